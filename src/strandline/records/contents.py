"""Walks over the records of a batch without building them: checks them, and finds their times.

Why:    a broker looks at each record before it stores a batch. A record that it cannot read would
        stop every consumer of the partition.
How:    `walk` takes the uncompressed records. The compiled twin (`_contents.c`) does the work where
        it is installed, `walk_in_python` elsewhere; both return the same for every input.
        Offset deltas must be 0, 1, 2...: offsets are dense.
Source: Kafka's DefaultRecord.readFrom and LogValidator; docs/decisions/0044-inside-a-batch.md."""

from collections.abc import Callable
from enum import IntEnum

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.varint import encode_varint, read_varint, read_varlong

NO_TIMESTAMP = -1
NO_RECORD = -1
NO_TIMESTAMP_AT_ALL = (1 << 63) - 1
"""The lowest timestamp if no record has one."""
_TIMESTAMP_MIN = -(1 << 63)
REVISION = 1
"""Of the results of a walk. A binary of another revision is not used."""

Walked = tuple[int, int, int, int, int]
"""(fault, which record, highest timestamp, lowest timestamp, first record without a key)."""

_SMALL = [encode_varint(number) for number in range(64)]


class Fault(IntEnum):
    """What is wrong with a record. The order is that of `enum fault` in `_contents.c`."""

    NONE = 0
    RECORD_CUT = 1
    RECORD_BEYOND_BATCH = 2
    FIELD_CUT = 3
    FIELD_LENGTH = 4
    FIELD_BEYOND_RECORD = 5
    OFFSET_DELTA = 6
    HEADER_COUNT = 7
    HEADER_WITHOUT_NAME = 8
    RECORD_TOO_LONG = 9
    TRAILING_BYTES = 10


REASONS = {
    Fault.RECORD_CUT: "the batch ends before record {index}, or its length is no varint",
    Fault.RECORD_BEYOND_BATCH: "record {index} reaches beyond its batch",
    Fault.FIELD_CUT: "a number in record {index} is cut or too long",
    Fault.FIELD_LENGTH: "a field of record {index} has a length below -1",
    Fault.FIELD_BEYOND_RECORD: "a field of record {index} reaches beyond it",
    Fault.OFFSET_DELTA: "record {index} has another offset delta",
    Fault.HEADER_COUNT: "record {index} has an impossible number of headers",
    Fault.HEADER_WITHOUT_NAME: "record {index} has a header without a name",
    Fault.RECORD_TOO_LONG: "record {index} is shorter than it says",
    Fault.TRAILING_BYTES: "bytes behind the last of {index} records",
}


def walk(records: Buffer, count: int, base_timestamp: int) -> tuple[int, int, int]:
    """Walk over the uncompressed records of a batch whose header says `count` and `base_timestamp`.

    Returns the highest timestamp (-1 for none), the lowest of the records that have one
    (`NO_TIMESTAMP_AT_ALL` for none), and the first record without a key (-1 for none). Raises
    ApiError INVALID_RECORD for anything malformed."""
    fault, index, highest, lowest, keyless = _walk(records, count, base_timestamp)
    if fault:
        raise ApiError(Error.INVALID_RECORD, REASONS[Fault(fault)].format(index=index))
    return highest, lowest, keyless


def refused_records(
    records: Buffer,
    *,
    count: int,
    base_timestamp: int,
    needs_keys: bool,
    timestamps: tuple[int, int],
    limit: int,
) -> list[tuple[int, int, int]]:
    """(which record, whether it has a key, timestamp) of the first `limit` records that lack a key
    with `needs_keys`, or whose timestamp is not within `timestamps` (both included). The records
    are those of a walk that found no fault."""
    low, high = timestamps
    return _refused(records, count, base_timestamp, needs_keys, low, high, limit)


def first_since(
    records: Buffer, *, count: int, base_timestamp: int, timestamp: int
) -> tuple[int, int]:
    """(index, timestamp) of the first of the uncompressed records of a batch that is not before
    `timestamp`; (-1, -1) for none. Raises ApiError INVALID_RECORD for anything malformed."""
    walk(records, count, base_timestamp)
    found = refused_records(
        records,
        count=count,
        base_timestamp=base_timestamp,
        needs_keys=False,
        timestamps=(_TIMESTAMP_MIN, timestamp - 1),
        limit=1,
    )
    return (found[0][0], found[0][2]) if found else (NO_RECORD, NO_TIMESTAMP)


def walk_in_python(records: Buffer, count: int, base_timestamp: int, /) -> Walked:
    """The walk without compiled code; see `_contents.c`."""
    data = bytes(records)
    end = len(data)
    position = index = 0
    highest, lowest, keyless = NO_TIMESTAMP, NO_TIMESTAMP_AT_ALL, NO_RECORD
    fault = Fault.NONE
    while index < count:
        usual = _pass_usual_record(data, position, index)
        if usual is not None:
            delta, has_key, position = usual
        else:
            try:
                length, position = read_varint(data, position, end)
            except ApiError:
                fault = Fault.RECORD_CUT
                break
            if length < 0 or length > end - position:
                fault = Fault.RECORD_BEYOND_BATCH
                break
            fault, delta, has_key = _walk_record(data, position, position + length, index)
            position += length
        if keyless < 0 and not has_key:
            keyless = index
        if fault:
            break
        timestamp = _sum(base_timestamp, delta)
        if timestamp > highest:
            highest = timestamp
        if timestamp < lowest and timestamp != NO_TIMESTAMP:
            lowest = timestamp
        index += 1
    if fault is Fault.NONE and position != end:
        fault = Fault.TRAILING_BYTES
    return fault, index, highest, lowest, keyless


def _pass_usual_record(data: bytes, position: int, index: int) -> tuple[int, bool, int] | None:
    """(timestamp delta, whether it has a key, the position after it) of a sound record whose
    numbers have at most two bytes (the timestamp more) and that has no headers; None for any other.

    Why: most records are such. Without calls it takes a third of the time."""
    try:
        length = data[position]
        position += 1
        if length & 0x80:
            if (byte := data[position]) & 0x80:
                return None
            length = length & 0x7F | byte << 7
            position += 1
        end = position + (length >> 1)  # An odd one is negative: then nothing ends there.
        position += 1
        delta = data[position]
        position += 1
        if delta & 0x80:
            delta, position = read_varlong(data, position - 1, end)
        else:
            delta = (delta >> 1) ^ -(delta & 1)
        offset = encode_varint(index) if index > 63 else _SMALL[index]
        if data[position : position + len(offset)] != offset:
            return None
        position += len(offset)
        key = data[position]
        if length & 1 or key & 0x80:
            return None
        value_at = position + 1 if key == 1 else position + 1 + (key >> 1)
        value = data[value_at]
        position = value_at + 1
        if value & 0x80:
            if (byte := data[position]) & 0x80:
                return None
            value = value & 0x7F | byte << 7
            position += 1
        if (value & 1 and value != 1) or (key & 1 and key != 1):
            return None
        position += 0 if value == 1 else value >> 1
        if data[position] != 0 or position + 1 != end:
            return None
    except (IndexError, ApiError):
        return None
    return delta, key != 1, end


def refused_in_python(
    records: Buffer,
    count: int,
    base_timestamp: int,
    needs_keys: bool,  # noqa: FBT001 - as the compiled twin takes it.
    timestamp_min: int,
    timestamp_max: int,
    limit: int,
    /,
) -> list[tuple[int, int, int]]:
    """See `refused_records`, without compiled code."""
    found: list[tuple[int, int, int]] = []
    position, end = 0, len(records)
    for index in range(count):
        if len(found) >= limit:
            break
        length, position = read_varint(records, position, end)
        fault, delta, has_key = _walk_record(records, position, position + length, index)
        assert not fault, f"record {index} is malformed: {fault}"
        position += length
        timestamp = _sum(base_timestamp, delta)
        is_late = not timestamp_min <= timestamp <= timestamp_max and timestamp != NO_TIMESTAMP
        if (needs_keys and not has_key) or is_late:
            found.append((index, int(has_key), timestamp))
    return found


def _sum(base_timestamp: int, delta: int) -> int:
    """In 64 bits, as in Java."""
    return (base_timestamp + delta + (1 << 63)) % (1 << 64) - (1 << 63)


def _walk_record(records: Buffer, position: int, end: int, index: int) -> tuple[Fault, int, bool]:
    """(what is wrong, timestamp delta, False if its key is null) of the record in
    [position, end)."""
    has_key = True
    if position == end:
        return Fault.FIELD_CUT, 0, has_key
    try:
        timestamp_delta, position = read_varlong(records, position + 1, end)
        offset_delta, position = read_varint(records, position, end)
        if offset_delta != index:
            return Fault.OFFSET_DELTA, 0, has_key
        fault, is_null, position = _skip_field(records, position, end)
        has_key = not is_null
        if not fault:
            fault, _, position = _skip_field(records, position, end)
        if not fault:
            fault, position = _skip_headers(records, position, end)
    except ApiError:
        return Fault.FIELD_CUT, 0, has_key
    if not fault and position != end:
        fault = Fault.RECORD_TOO_LONG
    return fault, timestamp_delta, has_key


def _skip_field(records: Buffer, position: int, end: int) -> tuple[Fault, bool, int]:
    """(what is wrong, whether it is null, the position after it)."""
    length, position = read_varint(records, position, end)
    if length < -1:
        return Fault.FIELD_LENGTH, False, position
    if length > end - position:
        return Fault.FIELD_BEYOND_RECORD, False, position
    return Fault.NONE, length < 0, position + max(length, 0)


def _skip_headers(records: Buffer, position: int, end: int) -> tuple[Fault, int]:
    """(what is wrong, the position after the headers)."""
    count, position = read_varint(records, position, end)
    if not 0 <= count <= end - position:
        return Fault.HEADER_COUNT, position
    for _ in range(count):
        fault, is_null, position = _skip_field(records, position, end)
        if is_null:
            fault = Fault.HEADER_WITHOUT_NAME
        if not fault:
            fault, _, position = _skip_field(records, position, end)
        if fault:
            return fault, position
    return Fault.NONE, position


try:
    from strandline.records import _contents
except ImportError:  # It is not built: there was no compiler when the package was installed.
    IS_COMPILED = False
else:
    IS_COMPILED = _contents.REVISION == REVISION
"""Whether the compiled twin does the work."""

_walk: Callable[[Buffer, int, int], Walked] = walk_in_python
_refused: Callable[[Buffer, int, int, bool, int, int, int], list[tuple[int, int, int]]]
_refused = refused_in_python
if IS_COMPILED:
    _walk, _refused = _contents.walk, _contents.refused
