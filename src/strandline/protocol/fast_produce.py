"""Produce by hand: reads the usual request and writes the usual response faster than the tables do.

Why:    a broker does both for every batch, and parsing is most of Python's share of the cost.
How:    usual is: one topic, one partition, no transaction, no error. The fields before the records
        are read from one small copy of the request's head, because slices of bytes cost less than
        slices of a memoryview. `codec` reads everything else, malformed or only rare, and it alone
        decides what is refused. A test compares both, field for field and byte for byte, in every
        version and on damaged input.

        request 3-8    -1 i16 | acks i16 | timeout i32 | 1 i32 | name | 1 i32 | index i32 | records
        request 9-12   0 u8 | acks | timeout | 2 u8 | name | 2 u8 | index | records | three empty
                       tagged sections;   13: a topic id in place of the name
        answer         index i32 | error i16 | base offset i64 | append time i64
                       | log start i64 (5+) | record errors (8+) | message (8+) | tags (9+)
Source: python-speed.md sections 1 and 5; `messages.produce` for the tables."""

import struct

from strandline.base.disk import Buffer
from strandline.protocol.codec import decode
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from strandline.protocol.primitives import ALL_ITEMS, read_uvarint, to_uuid
from strandline.protocol.table import NO_ID

HEAD_BYTES = 320
"""How much of a request is copied: more than its fields take with the longest topic name."""
_FLEXIBLE_FROM = 9
_TOPIC_ID_FROM = 13

_legacy_start = struct.Struct(">hhiih").unpack_from
_legacy_partition = struct.Struct(">iii").unpack_from
_start = struct.Struct(">BhiBB").unpack_from
_partition = struct.Struct(">BiB").unpack_from


def decode_request(
    buffer: Buffer, position: int, version: int, *, items_max: int = ALL_ITEMS
) -> tuple[ProduceRequest, int]:
    """The result of `codec.decode(ProduceRequest, ...)`. Raises ProtocolError.

    Records are views of `buffer`."""
    head = bytes(buffer[position : position + HEAD_BYTES])
    try:
        if version < _FLEXIBLE_FROM:
            usual = _decode_legacy(buffer, position, head)
        else:
            usual = _decode_flexible(buffer, position, head, has_id=version >= _TOPIC_ID_FROM)
    except (IndexError, struct.error, ValueError):
        usual = None  # Perhaps cut short, perhaps only long.
    if usual is not None:
        return usual
    return decode(ProduceRequest, buffer, position, version, items_max=items_max)


def _decode_legacy(buffer: Buffer, position: int, head: bytes) -> tuple[ProduceRequest, int] | None:
    no_transaction, acks, timeout_ms, topic_count, n = _legacy_start(head)
    if no_transaction != -1 or topic_count != 1 or n < 0:
        return None
    p = 14 + n
    name = head[14:p].decode()
    partition_count, index, n = _legacy_partition(head, p)
    start = position + p + 12
    end = start + n
    if partition_count != 1 or n < 0 or end > len(buffer):
        return None
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    records = view[start:end]
    topic = TopicProduceData(name, NO_ID, [PartitionProduceData(index, records)])
    return ProduceRequest(None, acks, timeout_ms, [topic]), end


def _decode_flexible(
    buffer: Buffer, position: int, head: bytes, *, has_id: bool
) -> tuple[ProduceRequest, int] | None:
    no_transaction, acks, timeout_ms, topic_count, n = _start(head)
    if no_transaction or topic_count != 2:
        return None
    if has_id:
        p = 24
        topic = TopicProduceData("", to_uuid(head[8:24]))
    else:
        if not 0 < n < 0x80:
            return None
        p = 8 + n
        topic = TopicProduceData(head[9:p].decode())
    partition_count, index, n = _partition(head, p)
    p += 6
    if n >= 0x80:
        n, p = read_uvarint(head, p - 1)
    if partition_count != 2 or n == 0:
        return None
    start = position + p
    end = start + n - 1
    # Three empty sections: of the partition, the topic, the request.
    if buffer[end] or buffer[end + 1] or buffer[end + 2]:
        return None
    topic.partition_data = [PartitionProduceData(index, memoryview(buffer)[start:end])]
    return ProduceRequest(None, acks, timeout_ms, [topic]), end + 3


# The default object, which is in every response that sets no other.
_NO_LEADER = PartitionProduceResponse().current_leader

_legacy_head = struct.Struct(">ih").pack
_answer_3 = struct.Struct(">iihqqi").pack
_answer_5 = struct.Struct(">iihqqqi").pack
_answer_8 = struct.Struct(">iihqqqihi").pack
_answer_9 = struct.Struct(">BihqqqBBBBiB").pack


def encode_usual_response(
    topic: TopicProduceData, answer: PartitionProduceResponse, version: int
) -> bytes | None:
    """The bytes of `codec.encode` for a ProduceResponse with this one answer, and nothing else, for
    the one partition asked for; None where the answer has something unusual to report."""
    if version < _FLEXIBLE_FROM:
        if version < 8 or (answer.error_message is None and not answer.record_errors):
            return _encode_legacy(topic.name, answer, version)
    elif (
        answer.current_leader is _NO_LEADER
        and answer.error_message is None
        and not answer.record_errors
    ):
        return _encode_flexible(topic, answer, has_id=version >= _TOPIC_ID_FROM)
    return None


def _encode_legacy(topic_name: str, answer: PartitionProduceResponse, version: int) -> bytes:
    name = topic_name.encode()
    head = _legacy_head(1, len(name))
    index, error, offset = answer.index, answer.error_code, answer.base_offset
    time, start = answer.log_append_time_ms, answer.log_start_offset
    if version < 5:
        return head + name + _answer_3(1, index, error, offset, time, 0)
    if version < 8:
        return head + name + _answer_5(1, index, error, offset, time, start, 0)
    # Between them: no record errors, a null message.
    return head + name + _answer_8(1, index, error, offset, time, start, 0, -1, 0)


def _encode_flexible(
    topic: TopicProduceData, answer: PartitionProduceResponse, *, has_id: bool
) -> bytes | None:
    if has_id:
        head = b"\2" + topic.topic_id.bytes
    else:
        name = topic.name.encode()
        if len(name) > 126:
            return None
        head = bytes((2, len(name) + 1)) + name
    return head + _answer_9(
        2,
        answer.index,
        answer.error_code,
        answer.base_offset,
        answer.log_append_time_ms,
        answer.log_start_offset,
        1,  # no record errors
        0,  # a null message
        0,  # no tags: the partition,
        0,  # the topic,
        0,  # not throttled
        0,  # the response
    )
