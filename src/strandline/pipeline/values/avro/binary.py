"""Reads Avro's binary encoding, and refuses what no writer may write.

How:    each function takes (bytes, position) and returns (value, next position). IndexError and
        struct.error mean that the value ends too early; the caller says so.
Source: Avro 1.12, "Binary Encoding"."""

from struct import Struct

from strandline.pipeline.values.problems import UnfitValueError

TRUNCATED = "ends too early"
LONG_BYTES_MAX = 10
_FLOAT = Struct("<f").unpack_from
_DOUBLE = Struct("<d").unpack_from


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of at most 64 bits."""
    byte = data[at]
    at += 1
    if byte < 0x80:
        return (byte >> 1) ^ -(byte & 1), at
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 7 * LONG_BYTES_MAX:
            raise UnfitValueError("a number of more than 64 bits")
    if value >= 1 << 64:
        raise UnfitValueError("a number of more than 64 bits")
    return (value >> 1) ^ -(value & 1), at


def read_int(data: bytes, at: int) -> tuple[int, int]:
    """A zigzag number of at most 32 bits."""
    value, at = read_long(data, at)
    if not -(1 << 31) <= value < 1 << 31:
        raise UnfitValueError("an int of more than 32 bits")
    return value, at


def read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    """A byte that is 0 or 1."""
    byte = data[at]
    if byte > 1:
        raise UnfitValueError(f"a boolean of {byte}")
    return byte == 1, at + 1


def read_float(data: bytes, at: int) -> tuple[float, int]:
    """Four bytes."""
    return _FLOAT(data, at)[0], at + 4


def read_double(data: bytes, at: int) -> tuple[float, int]:
    """Eight bytes."""
    return _DOUBLE(data, at)[0], at + 8


def read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    """A length and so many bytes."""
    length, at = read_long(data, at)
    end = at + length
    if length < 0 or end > len(data):
        raise UnfitValueError(TRUNCATED)
    return data[at:end], end


def read_string(data: bytes, at: int) -> tuple[str, int]:
    """A length and so many bytes of UTF-8; raises UnicodeDecodeError."""
    value, at = read_bytes(data, at)
    return value.decode("utf-8"), at


def read_block(data: bytes, at: int) -> tuple[int, int]:
    """The number of items in the next block of an array or map; 0: it was the last."""
    count, at = read_long(data, at)
    if count < 0:
        _, at = read_long(data, at)
        count = -count
    if count > len(data) - at:
        # An item has at least one byte: only null has none, and null alone has no column.
        raise UnfitValueError(TRUNCATED)
    return count, at
