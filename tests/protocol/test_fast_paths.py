"""The hand-written codecs of Produce and Fetch do what the tables do, on good and on bad input."""

import random
from collections.abc import Callable
from uuid import UUID

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.protocol.oracle import any_message, fitted, versions

from strandline.base.errors import ProtocolError
from strandline.protocol import fast_fetch, fast_produce
from strandline.protocol.codec import decode, encode, encode_parts
from strandline.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from strandline.protocol.primitives import parts_size_bytes
from strandline.protocol.table import NO_ID

THOROUGH = settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)

Decode = Callable[[memoryview, int, int], tuple[msgspec.Struct, int]]

names = st.sampled_from(["t", "orders", "é" * 40, "n" * 126, "n" * 127, "n" * 249])
ids = st.sampled_from([UUID(int=1), UUID(int=2**128 - 1)])
longs = st.integers(-(2**63), 2**63 - 1)
ints = st.integers(-(2**31), 2**31 - 1)
shorts = st.integers(-(2**15), 2**15 - 1)
records = st.sampled_from([b"", b"r", b"r" * 126, b"r" * 127, b"r" * 20_000])

usual_produce_requests = st.builds(
    ProduceRequest,
    st.none(),
    shorts,
    ints,
    st.builds(
        TopicProduceData,
        names,
        ids,
        st.builds(PartitionProduceData, ints, records).map(lambda one: [one]),
    ).map(lambda one: [one]),
)
produce_answers = st.builds(
    PartitionProduceResponse, ints, shorts, longs, longs, longs
) | any_message(PartitionProduceResponse)
usual_fetch_requests = st.builds(
    FetchRequest,
    max_wait_ms=ints,
    min_bytes=ints,
    max_bytes=ints,
    isolation_level=st.sampled_from([0, 1]),
    session_id=ints,
    session_epoch=ints,
    topics=st.lists(
        st.builds(
            FetchTopic,
            names,
            ids,
            st.lists(st.builds(FetchPartition, ints, ints, longs, ints, longs, ints), max_size=4)
            | st.just([FetchPartition(index) for index in range(200)]),
        ),
        max_size=3,
    ),
    rack_id=st.sampled_from(["", "east/a", "r" * 126, "r" * 127]),
)
usual_fetch_responses = st.builds(
    FetchResponse,
    ints,
    shorts,
    ints,
    st.lists(
        st.builds(
            FetchableTopicResponse,
            names,
            ids,
            st.lists(
                st.builds(
                    PartitionData,
                    ints,
                    shorts,
                    longs,
                    longs,
                    longs,
                    aborted_transactions=st.none() | st.just([]),
                    preferred_read_replica=ints,
                    records=st.none() | records,
                ),
                max_size=4,
            ),
        ),
        max_size=3,
    ),
)

REQUESTS = [
    (ProduceRequest, fast_produce.decode_request, usual_produce_requests),
    (FetchRequest, fast_fetch.decode_request, usual_fetch_requests),
]


def outcome(read: Decode, data: bytes, version: int) -> object:
    """What comes of reading: the message and the position, or the refusal."""
    try:
        return read(memoryview(data), 3, version)
    except ProtocolError:
        return ProtocolError


@pytest.mark.parametrize(("cls", "fast", "usual"), REQUESTS)
def test_a_request_is_read_as_by_the_table(
    cls: type, fast: Decode, usual: st.SearchStrategy[msgspec.Struct]
) -> None:
    @THOROUGH
    @given(usual | any_message(cls), st.binary(max_size=3))
    def check(message: msgspec.Struct, after: bytes) -> None:
        for version in versions(cls):
            sent = fitted(message, version)
            written = b"123" + encode(sent, version)
            found, position = fast(memoryview(bytearray(written + after)), 3, version)
            assert (found, position) == (sent, len(written))

    check()


@pytest.mark.parametrize(("cls", "fast", "usual"), REQUESTS)
def test_a_damaged_request_has_the_same_outcome_as_by_the_table(
    cls: type, fast: Decode, usual: st.SearchStrategy[msgspec.Struct]
) -> None:
    def by_table(data: memoryview, position: int, version: int) -> tuple[msgspec.Struct, int]:
        return decode(cls, data, position, version)

    @THOROUGH
    @given(usual | any_message(cls), st.integers(0, 2**32))
    def check(message: msgspec.Struct, seed: int) -> None:
        rng = random.Random(seed)
        for version in versions(cls):
            written = b"123" + encode(fitted(message, version), version)
            for _ in range(3):
                damaged = damage(written, rng)
                assert outcome(fast, damaged, version) == outcome(by_table, damaged, version)

    check()


def damage(written: bytes, rng: random.Random) -> bytes:
    """The message changed in a byte or two, mostly near its start, where lengths are, or cut."""
    damaged = bytearray(written)
    for _ in range(rng.randint(1, 2)):
        end = len(written) if rng.random() < 0.3 else min(len(written), 60)
        damaged[rng.randrange(3, end)] = rng.choice([0, 1, 2, 3, 127, 128, 129, 255])
    if rng.random() < 0.3:
        del damaged[rng.randrange(3, len(damaged)) :]
    return bytes(damaged)


@THOROUGH
@given(names, ids, produce_answers)
def test_a_produce_answer_is_written_as_by_the_table(
    name: str, topic_id: UUID, answer: PartitionProduceResponse
) -> None:
    asked = TopicProduceData(name, topic_id)
    for version in versions(ProduceResponse):
        sent = fitted(ProduceResponse([TopicProduceResponse(name, topic_id, [answer])]), version)
        assert isinstance(sent, ProduceResponse)
        (one,) = sent.responses[0].partition_responses
        written = fast_produce.encode_usual_response(asked, one, version)
        assert written in (None, encode(sent, version))


def test_the_usual_produce_answer_is_written_by_hand() -> None:
    answer = PartitionProduceResponse(3, 0, 1_234, log_start_offset=7)
    for version in versions(ProduceResponse):
        asked = TopicProduceData("a", UUID(int=1))
        assert fast_produce.encode_usual_response(asked, answer, version) is not None


@THOROUGH
@given(usual_fetch_responses | any_message(FetchResponse))
def test_a_fetch_response_is_written_as_by_the_table(message: FetchResponse) -> None:
    for version in versions(FetchResponse):
        sent = fitted(message, version)
        assert isinstance(sent, FetchResponse)
        parts = fast_fetch.encode_response(sent, version)
        assert b"".join(parts) == encode(sent, version)  # type: ignore[arg-type]


class FileRange:
    """Stands for bytes in a file."""

    size_bytes = 300


@pytest.mark.parametrize("version", versions(FetchResponse))
@pytest.mark.parametrize("write", [encode_parts, fast_fetch.encode_response])
def test_records_travel_as_they_were_given(
    version: int, write: Callable[[FetchResponse, int], list[object]]
) -> None:
    whole, view, file = b"w" * 1000, memoryview(b"v" * 500), FileRange()
    given_records = [whole, [view, file], file, None, b"", []]
    partitions = [
        PartitionData(index, records=one)  # type: ignore[arg-type]
        for index, one in enumerate(given_records)
    ]
    response = FetchResponse(responses=[FetchableTopicResponse("t", NO_ID, partitions)])
    parts = write(response, version)
    kept = [part for part in parts if part in (whole, view, file)]
    assert [id(part) for part in kept] == [id(whole), id(view), id(file), id(file)]
    in_memory = [b"f" * 300 if isinstance(part, FileRange) else part for part in parts]
    joined = b"".join(in_memory)  # type: ignore[arg-type]
    assert parts_size_bytes(parts) == len(joined)  # type: ignore[arg-type]
    read, _ = decode(FetchResponse, joined, 0, version)
    sizes = [len(one.records or b"") for one in read.responses[0].partitions]  # type: ignore[arg-type]
    assert sizes == [1000, 800, 300, 0, 0, 0]


@pytest.mark.parametrize("version", versions(ProduceRequest))
def test_records_of_a_request_are_views_of_its_buffer(version: int) -> None:
    topic = TopicProduceData("t", UUID(int=1), [PartitionProduceData(0, b"old")])
    for read in (fast_produce.decode_request, lambda *a: decode(ProduceRequest, *a)):
        frame = bytearray(encode(ProduceRequest(topic_data=[topic]), version))
        request, _ = read(memoryview(frame), 0, version)
        start = frame.index(b"old")
        frame[start : start + 3] = b"new"
        records = request.topic_data[0].partition_data[0].records
        assert isinstance(records, memoryview) and records == b"new"
