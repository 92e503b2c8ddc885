"""Any bytes are a message or raise ProtocolError, before memory is taken for them.

Source: reference reliability.md section 4 (KAFKA-14063: an array length larger than the frame)."""

import random
import tracemalloc
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.protocol.oracle import (
    BLOBS,
    MESSAGES,
    OWN_MESSAGES,
    RECORDS,
    any_message,
    fitted,
    versions,
)

from strandline.base.errors import ProtocolError
from strandline.protocol import primitives
from strandline.protocol.codec import decode, encode
from strandline.protocol.consumer import (
    ConsumerProtocolAssignment,
    decode_assignment,
    decode_subscription,
)
from strandline.protocol.fast_fetch import decode_request as decode_by_hand
from strandline.protocol.headers import decode_request_header, decode_response_header
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from strandline.protocol.messages.delete_topics import DeleteTopicsRequest
from strandline.protocol.messages.describe_groups import DescribeGroupsRequest
from strandline.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
)
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from strandline.protocol.messages.metadata import MetadataRequest
from strandline.protocol.messages.produce import ProduceRequest
from strandline.protocol.offsets_records import OffsetCommitValue, decode_key, decode_value
from strandline.protocol.primitives import (
    ARRAY_ELEMENTS_MAX,
    TAGGED_FIELDS_MAX,
    encode_uvarint,
    read_uvarint,
    skip_tags,
    to_uuid,
)
from strandline.protocol.table import NO_ID, Message

QUICK = settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.mark.parametrize(
    "cls", MESSAGES + OWN_MESSAGES + BLOBS + RECORDS, ids=lambda cls: cls.__name__
)
def test_damaged_messages_are_read_or_refused(cls: type[Message]) -> None:
    @QUICK
    @given(any_message(cls), st.integers(0, 2**32))
    def check(message: Message, seed: int) -> None:
        rng = random.Random(seed)
        for version in versions(cls):
            damaged = bytearray(encode(fitted(message, version), version))
            for _ in range(rng.randint(0, 3) if damaged else 0):
                damaged[rng.randrange(len(damaged))] = rng.choice([0, 1, 127, 128, 255])
            del damaged[rng.randrange(len(damaged) + 1) :]
            damaged += rng.randbytes(rng.choice([0, 0, 5]))
            read_or_refuse(cls, bytes(damaged), version)

    check()


@settings(QUICK, max_examples=300)
@given(st.sampled_from(MESSAGES), st.data(), st.binary(max_size=60))
def test_noise_is_read_or_refused(cls: type[Message], data: st.DataObject, noise: bytes) -> None:
    read_or_refuse(cls, noise, data.draw(st.sampled_from(versions(cls))))


def read_or_refuse(cls: type[Message], data: bytes, version: int) -> None:
    """What can be read can be written, and read again."""
    try:
        message, position = decode(cls, data, 0, version)
    except ProtocolError:
        return
    assert 0 <= position <= len(data)
    again = encode(message, version)
    assert decode(cls, again, 0, version) == (message, len(again))


@settings(QUICK, max_examples=300)
@given(st.binary(max_size=40))
def test_headers_and_blobs_of_noise_are_read_or_refused(noise: bytes) -> None:
    for read in (decode_request_header, decode_key, decode_assignment, decode_subscription):
        try:
            read(noise)
        except ProtocolError:
            pass
    for length in range(3):
        try:
            decode_value(OffsetCommitValue, noise[length:])
            decode_response_header(noise, 3, 12)
        except ProtocolError:
            pass


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (MetadataRequest, 8, "7fffffff"),  # an array of 2**31 - 1 topics
        (MetadataRequest, 8, "ffffff00"),  # of negative length
        (MetadataRequest, 0, "ffffffff"),  # null, where version 0 has none
        (MetadataRequest, 9, "ffffffff0f"),  # 2**32 - 2 topics
        (MetadataRequest, 9, "ffffffffff"),  # a varint without end
        (MetadataRequest, 9, "ffffffff1f"),  # a varint of 33 bits
        (HeartbeatRequest, 0, "7fff"),  # a group id longer than the frame
        (HeartbeatRequest, 0, "ffff"),  # a null group id
        (HeartbeatRequest, 3, "0000" + "00000000" + "0000" + "fffe"),  # a string of length -2
        (HeartbeatRequest, 4, "00"),  # a null group id, compact
        (HeartbeatRequest, 4, "02ff" + "00000000" + "01" + "00" + "00"),  # not UTF-8
        (HeartbeatRequest, 4, "04eda080" + "00000000" + "01" + "00" + "00"),  # a lone surrogate
        (HeartbeatRequest, 4, "0167" + "00000000" + "01" + "00"),  # cut before the tags
        (HeartbeatRequest, 4, "01" + "00000000" + "01" + "00" + "01" + "00" + "05"),  # long tag
        (ProduceRequest, 3, "ffff0001000000010000000100017400000001000000007fffffff"),
        (ProduceRequest, 3, "ffff000100000001000000010001740000000100000000fffffffe"),
        (ApiVersionsResponse, 3, "0000" + "01" + "00000000" + "01" + "01" + "02" + "0000"),
        (CreateTopicsResponse, 5, "00000000" + "00" + "00"),  # null topics
        (FetchResponse, 12, "00000000" + "0000" + "00000000" + "ffffffff07"),
        (DescribeTopicPartitionsRequest, 0, "01" + "00000000" + "01"),  # a cursor cut short
    ],
)
def test_impossible_lengths_are_refused(cls: type[Message], version: int, data: str) -> None:
    with pytest.raises(ProtocolError):
        decode(cls, bytes.fromhex(data), 0, version)


def test_an_array_has_at_most_a_million_elements() -> None:
    for count, is_refused in ((ARRAY_ELEMENTS_MAX, False), (ARRAY_ELEMENTS_MAX + 1, True)):
        data = encode_uvarint(count + 1) + b"\1" * count + b"\0\0"
        if is_refused:
            with pytest.raises(ProtocolError, match="more elements"):
                decode(DescribeGroupsRequest, data, 0, 5)
        else:
            message, _ = decode(DescribeGroupsRequest, data, 0, 5)
            assert len(message.groups) == count


def test_a_section_has_at_most_ten_thousand_tags() -> None:
    for cls, version in ((HeartbeatResponse, 4), (ApiVersionsResponse, 3)):
        head = bytes(encode(cls(), version)[:-1])
        for count, is_refused in ((TAGGED_FIELDS_MAX, False), (TAGGED_FIELDS_MAX + 1, True)):
            data = head + encode_uvarint(count) + b"\x63\0" * count
            if is_refused:
                with pytest.raises(ProtocolError, match="tagged"):
                    decode(cls, data, 0, version)
            else:
                assert decode(cls, data, 0, version) == (cls(), len(data))


def test_unknown_tags_are_stepped_over_wherever_they_are() -> None:
    known = encode(ApiVersionsResponse(finalized_features_epoch=7), 3)
    head, tags = known[:-11], known[-11:]
    assert tags == b"\1" + b"\1\x08" + (7).to_bytes(8, "big")
    mixed = head + b"\3" + b"\1\x08" + (7).to_bytes(8, "big") + b"\x09\2ab" + b"\xff\1\0"
    assert decode(ApiVersionsResponse, mixed, 0, 3)[0].finalized_features_epoch == 7
    request = encode(ApiVersionsRequest("client", "1"), 3)
    assert request[-1] == 0
    strange = request[:-1] + b"\1\x09\3abc"
    assert decode(ApiVersionsRequest, strange, 0, 3) == (
        ApiVersionsRequest("client", "1"),
        len(strange),
    )


def test_a_known_tag_of_the_wrong_size_is_refused() -> None:
    head = bytes(encode(ApiVersionsResponse(), 3)[:-1])
    for size in (0, 7, 9):
        with pytest.raises(ProtocolError):
            decode(ApiVersionsResponse, head + b"\1\1" + bytes((size,)) + b"\0" * size, 0, 3)


def test_varints_are_bounded() -> None:
    for value in (0, 127, 128, 2**14 - 1, 2**14, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**32 - 1):
        data = encode_uvarint(value)
        assert read_uvarint(data, 0) == (value, len(data))
        assert read_uvarint(b"x" + data, 1) == (value, len(data) + 1)
    with pytest.raises(ProtocolError):
        read_uvarint(encode_uvarint(2**32), 0)
    with pytest.raises(ProtocolError):
        read_uvarint(b"\x80" * 4 + b"\x80\0", 0)


def test_varints_are_cut_at_no_byte() -> None:
    for value in (128, 2**14, 2**21, 2**28, 2**32 - 1):
        data = encode_uvarint(value)
        for length in range(len(data)):
            with pytest.raises(IndexError):
                read_uvarint(data[:length], 0)


def test_a_tag_ends_with_what_is_left_at_the_latest() -> None:
    tag = b"\1\x09\3abc"
    assert skip_tags(b"xx" + tag, 2, 8) == 8
    assert skip_tags(b"xx" + tag + b"more", 2, 8) == 8
    with pytest.raises(ProtocolError):
        skip_tags(b"xx" + tag + b"more", 2, 7)


def test_topic_ids_are_remembered_up_to_a_bound() -> None:
    raw = (1 << 100).to_bytes(16, "big")
    assert to_uuid(raw).bytes == raw and to_uuid(raw) is to_uuid(raw)
    for number in range(primitives._CACHED_UUIDS_MAX + 1):
        to_uuid(number.to_bytes(16, "big"))
        assert len(primitives._uuids) <= primitives._CACHED_UUIDS_MAX
    assert to_uuid(bytes(16)) is NO_ID
    assert to_uuid(raw).bytes == raw


def test_an_assignment_may_come_in_a_newer_version_or_not_at_all() -> None:
    assert decode_assignment(b"") == ConsumerProtocolAssignment()
    newer = bytes.fromhex("0009" + "00000000" + "ffffffff" + "beef")
    assert decode_assignment(newer) == ConsumerProtocolAssignment()
    with pytest.raises(ProtocolError):
        decode_assignment(b"\0")
    with pytest.raises(ProtocolError):
        decode_subscription(b"\xff\xff\0\0\0\0")


@pytest.mark.parametrize("version", [4, 7, 11, 12, 17])
@pytest.mark.parametrize("read", [decode, decode_by_hand], ids=["table", "by hand"])
def test_items_are_counted_at_all_depths(read: Callable[..., object], version: int) -> None:
    """Many short arrays within an array are as many elements as one long array."""
    topic = FetchTopic(topic="t", partitions=[FetchPartition()] * 7)
    data = bytes(encode(FetchRequest(topics=[topic] * 3), version))
    arguments = (data, 0, version) if read is decode_by_hand else (FetchRequest, data, 0, version)
    read(*arguments, items_max=3 + 3 * 7)
    with pytest.raises(ProtocolError, match="too many items; the limit is 23"):
        read(*arguments, items_max=3 + 3 * 7 - 1)


def test_a_large_request_of_tiny_elements_costs_little() -> None:
    """Else 95 MB of them would hold up a broker for 16 s, and take 1.3 GB."""
    settings = b"\x01\x01\x00" * 90_000
    topic = b"\x02t" + bytes(6) + b"\x01" + encode_uvarint(90_001) + settings + b"\x00"
    data = encode_uvarint(21) + topic * 20 + bytes(7)
    tracemalloc.start()
    try:
        with pytest.raises(ProtocolError, match="too many items; the limit is 100000"):
            decode(CreateTopicsRequest, data, 0, 7, items_max=100_000)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_tags_count_as_items() -> None:
    tags = encode_uvarint(400) + bytes([99, 0]) * 400
    data = encode_uvarint(11) + (b"\x02t" + bytes(16) + tags) * 10 + bytes(5)
    decode(DeleteTopicsRequest, data, 0, 6, items_max=4010)
    with pytest.raises(ProtocolError, match="too many items; the limit is 4009"):
        decode(DeleteTopicsRequest, data, 0, 6, items_max=4009)


def test_a_client_may_not_send_a_longer_string_than_to_kafka() -> None:
    """A character beyond 16 bits has Python take four times the bytes for the whole string."""
    for length, is_refused in ((32_767, False), (32_768, True)):
        data = encode(HeartbeatRequest(group_id="g" * length), 4)
        decode(HeartbeatRequest, data, 0, 4)
        if is_refused:
            with pytest.raises(ProtocolError, match="group_id: longer than a string may be"):
                decode(HeartbeatRequest, data, 0, 4, items_max=100)
        else:
            decode(HeartbeatRequest, data, 0, 4, items_max=100)
