"""Functions that generated codecs call: variable-length integers, tags, UUIDs, records.

Why:    code that is rare, or not worth repeating in every generated function, stands here once,
        typed and testable.
How:    readers take `(data, p, ...)` and return `(value, new p)`; a truncated buffer raises
        IndexError or struct.error, which `codec.decode` turns into ProtocolError.
Source: KIP-482; limits as in Kafka 4.4 (reference kafka-protocol 8.7)."""

from collections.abc import Sequence
from typing import NoReturn, cast
from uuid import UUID

from strandline.base.disk import Buffer
from strandline.base.errors import ProtocolError
from strandline.protocol.table import NO_ID, Records, SizedPart

ARRAY_ELEMENTS_MAX = 1_000_000
"""Longest array that is read."""
STRING_BYTES_MAX = 32_767
"""Longest string that a client may send, also where its length could be a larger number; as in
Kafka."""
ALL_ITEMS = 1 << 62
"""The bound on the items of a message that is trusted."""
TAGGED_FIELDS_MAX = 10_000
"""Most tagged fields in one section."""
_CACHED_UUIDS_MAX = 10_000
"""Topic ids remembered, because making a UUID object costs more than reading a partition."""

Part = Buffer | SizedPart
"""A piece of an encoded message."""


def fail(reason: str) -> NoReturn:
    """Refuse the message."""
    raise ProtocolError(reason)


def fail_items(left: list[int]) -> NoReturn:
    """Refuse a message with more items than it may have. `left`: see `decoder_source`."""
    raise ProtocolError(f"a request that names too many items; the limit is {left[1]}")


def read_uvarint(data: Buffer, p: int) -> tuple[int, int]:
    """Read an unsigned varint of at most 32 bits."""
    value = data[p]
    if value < 0x80:
        return value, p + 1
    byte = data[p + 1]
    value = value & 0x7F | (byte & 0x7F) << 7
    if byte < 0x80:
        return value, p + 2
    byte = data[p + 2]
    value |= (byte & 0x7F) << 14
    if byte < 0x80:
        return value, p + 3
    byte = data[p + 3]
    value |= (byte & 0x7F) << 21
    if byte < 0x80:
        return value, p + 4
    byte = data[p + 4]
    if byte > 0x0F:
        raise ProtocolError("varint above 32 bits")
    return value | byte << 28, p + 5


def encode_uvarint(value: int) -> bytes:
    """Write an unsigned varint."""
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 0x7F | 0x80, value >> 7))
    if value < 0x20_0000:
        return bytes((value & 0x7F | 0x80, value >> 7 & 0x7F | 0x80, value >> 14))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = [bytes((value,)) for value in range(0x80)]


def skip_tags(data: Buffer, p: int, end: int, left: list[int] | None = None) -> int:
    """Skip a section of unknown tagged fields. `left`: how many the message may still have."""
    count, p = read_uvarint(data, p)
    if count > TAGGED_FIELDS_MAX:
        raise ProtocolError(f"{count} tagged fields")
    if left is not None:
        left[0] -= count
        if left[0] < 0:
            fail_items(left)
    for _ in range(count):
        _, p = read_uvarint(data, p)
        size, p = read_uvarint(data, p)
        p += size
        if p > end:
            raise ProtocolError("tagged field longer than what is left")
    return p


_uuids: dict[bytes, UUID] = {bytes(16): NO_ID}


def to_uuid(raw: bytes) -> UUID:
    """The UUID of 16 bytes; known ones are not built again."""
    known = _uuids.get(raw)
    if known is not None:
        return known
    if len(_uuids) >= _CACHED_UUIDS_MAX:
        _uuids.clear()
        _uuids[bytes(16)] = NO_ID
    made = _uuids[raw] = UUID(bytes=raw)
    return made


BUFFERS = (bytes, bytearray, memoryview)


def records_size_bytes(records: Records) -> int:
    """How many bytes the records will take on the wire."""
    if isinstance(records, BUFFERS):
        return len(records)
    if isinstance(records, (list, tuple)):
        return parts_size_bytes(records)
    return cast(SizedPart, records).size_bytes


def parts_size_bytes(parts: Sequence[Part]) -> int:
    """How many bytes an encoded message takes: what goes into the frame's length."""
    total = 0
    for part in parts:
        total += len(part) if isinstance(part, BUFFERS) else part.size_bytes
    return total


def put_records(records: Records, out: bytearray, parts: list[Part] | None) -> None:
    """Write record batches: copied into `out`, or kept apart when `parts` is given.

    With `parts`, the bytes of `out` so far go before them, and `out` is emptied."""
    if parts is not None:
        parts.append(bytes(out))
        out.clear()
        if isinstance(records, (list, tuple)):
            parts.extend(records)
        else:
            parts.append(cast(Part, records))
    elif isinstance(records, (list, tuple)):
        for piece in records:
            out += piece
    else:
        out += cast(Buffer, records)
