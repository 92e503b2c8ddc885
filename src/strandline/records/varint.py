"""Kafka's zigzag varints, with a bound on their length.

Source: Protocol Buffers' encoding; at most 5 bytes for 32 bits, 10 for 64."""

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.protocol.errors import Error

_VARINT_BYTES_MAX = 5
_VARLONG_BYTES_MAX = 10


def encode_varint(value: int) -> bytes:
    """`value`, a signed number of up to 64 bits, as a zigzag varint."""
    raw = (value << 1) ^ (value >> 63)
    if raw < 0x80:
        return bytes((raw,))
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def read_varint(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """(value, position after it) of a 32-bit varint; raises ApiError when it is cut or too long."""
    return _read(buffer, position, end, bytes_max=_VARINT_BYTES_MAX, bits=32)


def read_varlong(buffer: Buffer, position: int, end: int) -> tuple[int, int]:
    """(value, position after it) of a 64-bit varint; raises ApiError when it is cut or too long."""
    return _read(buffer, position, end, bytes_max=_VARLONG_BYTES_MAX, bits=64)


def _read(buffer: Buffer, position: int, end: int, *, bytes_max: int, bits: int) -> tuple[int, int]:
    if position < end and (byte := buffer[position]) < 0x80:  # Most are one byte long.
        return (byte >> 1) ^ -(byte & 1), position + 1
    raw = 0
    shift = 0
    for at in range(position, min(end, position + bytes_max)):
        byte = buffer[at]
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> bits:
                break
            return (raw >> 1) ^ -(raw & 1), at + 1
        shift += 7
    raise ApiError(Error.CORRUPT_MESSAGE, f"a varint at byte {position} is cut or too long")
