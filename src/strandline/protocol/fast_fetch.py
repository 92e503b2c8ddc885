"""Fetch by hand: reads the usual request and writes the response faster than the tables do.

Why:    consumers poll many partitions again and again, most of them without new records.
How:    without tags, the partitions of a topic lie side by side in equal steps, and one
        `iter_unpack` reads them all. `codec` reads everything unusual in a request (a follower's
        tags, a session's forgotten topics, damage), and it alone decides what is refused.
        A partition of the response without news is one struct call; one with a new leader, a
        divergence or aborted transactions goes through the table.
        A test compares both, field for field and byte for byte, in every version and on damaged
        input.

        asked     partition i32 | leader epoch i32 (9+) | offset i64 | last epoch i32 (12+)
                  | log start i64 (5+) | max bytes i32 | tags (12+)
        answer    partition i32 | error i16 | high watermark i64 | last stable i64 | log start
                  i64 (5+) | aborted | preferred replica i32 (11+) | records | tags (12+)
Source: python-speed.md section 5; `messages.fetch` for the tables."""

import struct
from typing import cast

from strandline.base.disk import Buffer
from strandline.protocol.codec import decode, encode_parts, encoder
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from strandline.protocol.primitives import (
    ALL_ITEMS,
    ARRAY_ELEMENTS_MAX,
    Part,
    encode_uvarint,
    read_uvarint,
    records_size_bytes,
    to_uuid,
)
from strandline.protocol.table import NO_ID, Records

_FLEXIBLE_FROM = 12
_TOPIC_ID_FROM = 13
_NO_REPLICA_ID_FROM = 15

_short = struct.Struct(">h").unpack_from
_int = struct.Struct(">i").unpack_from
_start_4 = struct.Struct(">iiiib").unpack_from
_start_7 = struct.Struct(">iiiibii").unpack_from
_start_15 = struct.Struct(">iiibii").unpack_from
_asked_4 = struct.Struct(">iqi")
_asked_5 = struct.Struct(">iqqi")
_asked_9 = struct.Struct(">iiqqi")
_asked_12 = struct.Struct(">iiqiqiB")


def decode_request(
    buffer: Buffer, position: int, version: int, *, items_max: int = ALL_ITEMS
) -> tuple[FetchRequest, int]:
    """The result of `codec.decode(FetchRequest, ...)`. Raises ProtocolError."""
    data = bytes(buffer)
    try:
        if version < _FLEXIBLE_FROM:
            usual = _decode_legacy(data, position, version, items_max=items_max)
        else:
            usual = _decode_flexible(data, position, version, items_max=items_max)
    except (IndexError, struct.error, ValueError):
        usual = None
    if usual is not None:
        return usual
    return decode(FetchRequest, data, position, version, items_max=items_max)


def _decode_legacy(
    data: bytes, p: int, version: int, *, items_max: int
) -> tuple[FetchRequest, int] | None:
    session_id, session_epoch = 0, -1
    if version >= 7:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation, session_id, session_epoch = (
            _start_7(data, p)
        )
        p += 25
    else:
        replica_id, max_wait_ms, min_bytes, max_bytes, isolation = _start_4(data, p)
        p += 17
    request = FetchRequest(None, replica_id)
    request.max_wait_ms, request.min_bytes, request.max_bytes = max_wait_ms, min_bytes, max_bytes
    request.isolation_level = isolation
    request.session_id, request.session_epoch = session_id, session_epoch
    (topic_count,) = _int(data, p)
    p += 4
    if not 0 <= topic_count * 6 <= len(data) - p or topic_count > ARRAY_ELEMENTS_MAX:
        return None
    items_max -= topic_count
    for _ in range(topic_count):
        (n,) = _short(data, p)
        start = p + 2
        p = start + n
        (partition_count,) = _int(data, p)
        items_max -= partition_count
        if n < 0 or not 0 <= partition_count <= ARRAY_ELEMENTS_MAX or items_max < 0:
            return None
        name = data[start:p].decode()
        partitions, p = _partitions_legacy(data, p + 4, partition_count, version=version)
        request.topics.append(FetchTopic(name, NO_ID, partitions))
    if version >= 7:
        (forgotten_count,) = _int(data, p)
        if forgotten_count:
            return None
        p += 4
    if version >= 11:
        (n,) = _short(data, p)
        start = p + 2
        p = start + n
        if n < 0 or p > len(data):
            return None
        request.rack_id = data[start:p].decode()
    return request, p


def _partitions_legacy(
    data: bytes, p: int, count: int, *, version: int
) -> tuple[list[FetchPartition], int]:
    """The partitions of one topic. Too few bytes for `count` of them raise struct.error."""
    layout = _asked_9 if version >= 9 else _asked_5 if version >= 5 else _asked_4
    end = p + count * layout.size
    if end > len(data):
        raise struct.error
    rows = layout.iter_unpack(data[p:end])
    if version >= 9:
        found = [FetchPartition(i, epoch, at, -1, low, most) for i, epoch, at, low, most in rows]
    elif version >= 5:
        found = [FetchPartition(i, -1, at, -1, low, most) for i, at, low, most in rows]
    else:
        found = [FetchPartition(i, -1, at, -1, -1, most) for i, at, most in rows]
    return found, end


def _decode_flexible(
    data: bytes, p: int, version: int, *, items_max: int
) -> tuple[FetchRequest, int] | None:
    request = FetchRequest()
    if version < _NO_REPLICA_ID_FROM:
        (request.replica_id,) = _int(data, p)
        p += 4
    (
        request.max_wait_ms,
        request.min_bytes,
        request.max_bytes,
        request.isolation_level,
        request.session_id,
        request.session_epoch,
    ) = _start_15(data, p)
    topic_count, p = read_uvarint(data, p + 21)
    has_ids = version >= _TOPIC_ID_FROM
    if not 0 < topic_count <= ARRAY_ELEMENTS_MAX or topic_count > len(data) - p:
        return None
    items_max -= topic_count - 1
    name, topic_id = "", NO_ID
    step = _asked_12.size
    for _ in range(topic_count - 1):
        start = p
        if has_ids:
            p += 16
            topic_id = to_uuid(data[start:p])
        else:
            n, start = read_uvarint(data, p)
            if n == 0:
                return None
            p = start + n - 1
            name = data[start:p].decode()
        count, p = read_uvarint(data, p)
        end = p + (count - 1) * step
        # One more byte: the tags of the topic.
        items_max -= count - 1
        if not 0 < count <= ARRAY_ELEMENTS_MAX or items_max < 0 or data[end]:
            return None
        partitions = []
        for i, epoch, at, last_epoch, low, most, tags in _asked_12.iter_unpack(data[p:end]):
            if tags:
                return None
            partitions.append(FetchPartition(i, epoch, at, last_epoch, low, most))
        p = end + 1
        request.topics.append(FetchTopic(name, topic_id, partitions))
    n = data[p + 1]
    if data[p] != 1 or not 0 < n < 0x80:  # Forgotten topics, or a long name of a rack.
        return None
    start = p + 2
    p = start + n - 1
    if data[p]:
        return None
    request.rack_id = data[start:p].decode()
    return request, p + 1


# The default objects, which are in every response that sets no others.
_NO_DIVERGENCE = PartitionData().diverging_epoch
_NO_LEADER = PartitionData().current_leader
_NO_SNAPSHOT = PartitionData().snapshot_id

_pack_short = struct.Struct(">h").pack
_pack_int = struct.Struct(">i").pack
_head_4 = struct.Struct(">ii").pack
_head_7 = struct.Struct(">ihii").pack
_head_12 = struct.Struct(">ihi").pack
_answer_4 = struct.Struct(">ihqqii").pack
_answer_5 = struct.Struct(">ihqqqii").pack
_answer_11 = struct.Struct(">ihqqqiii").pack
_answer_12 = struct.Struct(">ihqqqBi").pack


def encode_response(response: FetchResponse, version: int) -> list[Part]:
    """The result of `codec.encode_parts(response, version)`."""
    if version < _FLEXIBLE_FROM:
        return _encode_legacy(response, version)
    if response.node_endpoints and version >= 16:
        return encode_parts(response, version)
    return _encode_flexible(response, version)


def _encode_legacy(response: FetchResponse, version: int) -> list[Part]:
    topic_count = len(response.responses)
    if version >= 7:
        error_code, session_id = response.error_code, response.session_id
        head = _head_7(response.throttle_time_ms, error_code, session_id, topic_count)
    else:
        head = _head_4(response.throttle_time_ms, topic_count)
    parts: list[Part] = []
    # What goes before the next records; not yet one of the parts.
    pieces: list[bytes | bytearray] = [head]
    for topic in response.responses:
        name = topic.topic.encode()
        pieces += (_pack_short(len(name)), name, _pack_int(len(topic.partitions)))
        for one in topic.partitions:
            if one.aborted_transactions:
                pieces = _encode_by_table(one, version, pieces, parts=parts)
                continue
            records = one.records
            if records:
                pieces.append(_answer_legacy(one, version, records_size_bytes(records)))
                parts.append(b"".join(pieces))
                _keep(records, parts)
                pieces = []
            else:
                pieces.append(_answer_legacy(one, version, -1 if records is None else 0))
    rest = b"".join(pieces)
    if rest:
        parts.append(rest)
    return parts


def _answer_legacy(one: PartitionData, version: int, size: int) -> bytes:
    """A partition's answer, up to the length of its records."""
    aborted = -1 if one.aborted_transactions is None else 0
    index, error, high = one.partition_index, one.error_code, one.high_watermark
    stable, low = one.last_stable_offset, one.log_start_offset
    if version >= 11:
        prefer = one.preferred_read_replica
        return _answer_11(index, error, high, stable, low, aborted, prefer, size)
    if version >= 5:
        return _answer_5(index, error, high, stable, low, aborted, size)
    return _answer_4(index, error, high, stable, aborted, size)


def _encode_flexible(response: FetchResponse, version: int) -> list[Part]:
    parts: list[Part] = []
    # What goes before the next records; not yet one of the parts.
    pieces: list[bytes | bytearray] = [
        _head_12(response.throttle_time_ms, response.error_code, response.session_id),
        encode_uvarint(len(response.responses) + 1),
    ]
    for topic in response.responses:
        if version >= _TOPIC_ID_FROM:
            pieces.append(topic.topic_id.bytes)
        else:
            name = topic.topic.encode()
            pieces += (encode_uvarint(len(name) + 1), name)
        pieces.append(encode_uvarint(len(topic.partitions) + 1))
        for one in topic.partitions:
            aborted = one.aborted_transactions
            if (
                aborted
                or one.current_leader is not _NO_LEADER
                or one.diverging_epoch is not _NO_DIVERGENCE
                or one.snapshot_id is not _NO_SNAPSHOT
            ):
                pieces = _encode_by_table(one, version, pieces, parts=parts)
                continue
            answer = _answer_12(
                one.partition_index,
                one.error_code,
                one.high_watermark,
                one.last_stable_offset,
                one.log_start_offset,
                0 if aborted is None else 1,
                one.preferred_read_replica,
            )
            records = one.records
            if records:
                pieces += (answer, encode_uvarint(records_size_bytes(records) + 1))
                parts.append(b"".join(pieces))
                _keep(records, parts)
                pieces = [b"\0"]
            else:
                pieces += (answer, b"\0\0" if records is None else b"\1\0")
        pieces.append(b"\0")
    pieces.append(b"\0")
    parts.append(b"".join(pieces))
    return parts


def _encode_by_table(
    one: PartitionData, version: int, pieces: list[bytes | bytearray], *, parts: list[Part]
) -> list[bytes | bytearray]:
    """A partition that is not usual; gives the pieces that follow its records."""
    out = bytearray().join(pieces)
    return [encoder(PartitionData, version, flexible=version >= _FLEXIBLE_FROM)(one, out, parts)]


def _keep(records: Records, parts: list[Part]) -> None:
    if isinstance(records, (list, tuple)):
        parts.extend(records)
    else:
        parts.append(cast(Part, records))
