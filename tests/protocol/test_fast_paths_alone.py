"""The hand-written codecs read usual requests without the tables, and leave all others to them.

Each byte of a usual request is damaged in turn, and the outcome is that of the tables."""

from collections.abc import Callable, Iterator
from uuid import UUID

import msgspec
import pytest
from tests.protocol.oracle import fitted, versions

from strandline.base.errors import ProtocolError
from strandline.protocol import fast_fetch, fast_produce
from strandline.protocol.codec import decode, encode
from strandline.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.protocol.table import NO_ID

Decode = Callable[[memoryview, int, int], tuple[msgspec.Struct, int]]
ID = UUID(int=7)
BEFORE = b"123"
BYTES = (0, 1, 2, 3, 5, 127, 128, 129, 255)


def produce(name: str, records: bytes) -> ProduceRequest:
    """A request with one batch for one partition."""
    topic = TopicProduceData(name, ID, [PartitionProduceData(5, records)])
    return ProduceRequest(None, -1, 30_000, [topic])


def fetch(*topics: FetchTopic, rack_id: str = "east") -> FetchRequest:
    """A request for these topics, in a session."""
    return FetchRequest(
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=1 << 20,
        isolation_level=1,
        session_id=9,
        session_epoch=4,
        topics=list(topics),
        rack_id=rack_id,
    )


ONE = FetchPartition(1, 5, 100, -1, 3, 1 << 16)
OTHER = FetchPartition(2, 6, 200, -1, 4, 1 << 17)
PRODUCES = (
    produce("t", b"records"),
    produce("n" * 126, b"r" * 126),
    produce("n" * 63, b"r" * 127),
    produce("n", b""),
)
FETCHES = (
    fetch(FetchTopic("t", ID, [ONE])),
    fetch(FetchTopic("t", ID, [ONE, OTHER]), FetchTopic("uv", UUID(int=8), [OTHER])),
    fetch(rack_id=""),
    fetch(FetchTopic("t", ID, [])),
    fetch(FetchTopic("", ID, [])),
    fetch(FetchTopic("t", ID, [ONE]), rack_id="r" * 126),
    fetch(FetchTopic("n" * 249, ID, [ONE] * 200)),
)


def usual_requests() -> Iterator[tuple[msgspec.Struct, type, Decode, int]]:
    """(request, its class, how it is read by hand, version)."""
    for one in PRODUCES:
        for version in versions(ProduceRequest):
            yield one, ProduceRequest, fast_produce.decode_request, version
    for request in FETCHES:
        for version in versions(FetchRequest):
            yield request, FetchRequest, fast_fetch.decode_request, version


def outcome(read: Decode, data: bytes, version: int) -> object:
    """What comes of reading: the message and the position, or the refusal."""
    try:
        return read(memoryview(data), len(BEFORE), version)
    except ProtocolError:
        return ProtocolError


def test_a_usual_request_is_read_without_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    written = []
    for request, _, read, version in usual_requests():
        sent = fitted(request, version)
        written.append((sent, read, version, BEFORE + encode(sent, version)))

    def refuse(cls: type, *_: object) -> object:
        raise AssertionError(f"{cls.__name__} is read by the tables")

    monkeypatch.setattr(fast_produce, "decode", refuse)
    monkeypatch.setattr(fast_fetch, "decode", refuse)
    for sent, read, version, data in written:
        for after in (b"", b"more"):
            buffer = memoryview(bytearray(data + after))
            assert read(buffer, len(BEFORE), version) == (sent, len(data)), version


@pytest.mark.parametrize(
    ("request_", "read"),
    [
        (PRODUCES[0], fast_produce.decode_request),
        (produce("n" * 20, b"r" * 127), fast_produce.decode_request),
        (FETCHES[1], fast_fetch.decode_request),
        (FETCHES[2], fast_fetch.decode_request),
        (FETCHES[3], fast_fetch.decode_request),
    ],
)
def test_every_damaged_byte_has_the_outcome_that_it_has_by_the_tables(
    request_: msgspec.Struct, read: Decode
) -> None:
    cls = type(request_)

    def by_tables(data: memoryview, position: int, version: int) -> tuple[msgspec.Struct, int]:
        return decode(cls, data, position, version)

    for version in versions(cls):  # type: ignore[type-var]
        written = BEFORE + encode(fitted(request_, version), version)
        for at in range(len(BEFORE), len(written)):
            cut = bytes(written[:at])
            assert outcome(read, cut, version) == outcome(by_tables, cut, version), at
            for value in BYTES:
                damaged = bytearray(written)
                damaged[at] = value
                found = outcome(read, bytes(damaged), version)
                assert found == outcome(by_tables, bytes(damaged), version), (version, at, value)


def test_a_usual_answer_of_the_longest_short_name_is_written_by_hand() -> None:
    answer = PartitionProduceResponse(3, 0, 1_234, log_start_offset=7)
    for version in versions(ProduceResponse):
        asked = TopicProduceData("n" * 126, NO_ID)
        assert fast_produce.encode_usual_response(asked, answer, version) is not None
    loud = PartitionProduceResponse(3, 2, -1, error_message="damaged")
    for version in versions(ProduceResponse):
        written = fast_produce.encode_usual_response(TopicProduceData("t", ID), loud, version)
        assert (written is None) == (version >= 8)
