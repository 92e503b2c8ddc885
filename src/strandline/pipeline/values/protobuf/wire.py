"""Reads a message from the wire, and reports all that a parser passes over.

How:    tag = number << 3 | wire type; then
            0  a varint of at most 64 bits       1  8 bytes       5  4 bytes
            2  a length and so many bytes: text, bytes, a message, or many numbers (packed)
        One function for each field, made once. `notes` gets the reason for each value that is left
        out or replaced: unknown and duplicate fields, a second member of a oneof. In strict mode
        any note makes the value a problem; all else that is wrong makes it one in lenient, too.
Source: https://protobuf.dev/programming-guides/encoding."""

import struct
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from strandline.pipeline.values import times
from strandline.pipeline.values.problems import NOT_UTF8, UnfitValueError, at, join, shown
from strandline.pipeline.values.protobuf.messages import TIMESTAMP, Message, MessageField

TRUNCATED = "ends too early"
VARINT_BYTES_MAX = 10

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_SIGNED = {"int32": 32, "int64": 64}
_UNSIGNED = {"uint32": 32, "uint64": 64, "sint32": 32, "sint64": 64}
_FIXED = {
    "fixed32": struct.Struct("<I"),
    "sfixed32": struct.Struct("<i"),
    "float": struct.Struct("<f"),
    "fixed64": struct.Struct("<Q"),
    "sfixed64": struct.Struct("<q"),
    "double": struct.Struct("<d"),
}
_TEXT = ("string", "bytes", "message")
_NANOS = 1_000_000_000

Convert = Callable[[Any], Any]
"""A varint, or the bytes of a field -> the value; raises UnfitValueError."""
ReadMessage = Callable[[bytes], Any]
"""The bytes of a message -> its values by name, or a timestamp."""


def read_varint(data: bytes, start: int) -> tuple[int, int]:
    """(an unsigned number of at most 64 bits, the next position); IndexError at the end."""
    byte = data[start]
    start += 1
    if byte < 0x80:
        return byte, start
    value, shift = byte & 0x7F, 7
    while byte >= 0x80:
        byte = data[start]
        start += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if shift > 7 * VARINT_BYTES_MAX:
            raise UnfitValueError("a number of more than 64 bits")
    if value >= 1 << 64:
        raise UnfitValueError("a number of more than 64 bits")
    return value, start


def reader_of(message: Message, notes: list[str], path: str = "") -> ReadMessage:
    """How to read a message of this type."""
    if message.name == TIMESTAMP:
        return _timestamp(path)
    parts = {one.number: _Part(one, notes, join(path, one.name)) for one in message.fields}
    defaults = {
        one.name: one.default for one in message.fields if not (one.is_repeated or one.is_map)
    }
    lists = [one.name for one in message.fields if one.is_repeated]
    maps = [
        (one.name, join(path, one.name), _absent_value(one)) for one in message.fields if one.is_map
    ]
    required = [(one.name, join(path, one.name)) for one in message.fields if one.is_required]

    def read(data: bytes) -> dict[str, Any]:
        values: dict[str, Any] = dict(defaults)
        for name in lists:
            values[name] = []
        seen: set[str] = set()
        start, end = 0, len(data)
        while start < end:
            start = _field(data, start, parts, values, seen, notes, path)
        for name, place, absent in maps:
            values[name] = _entries(values[name], absent, notes, place)
        for name, place in required:
            if name not in seen:
                raise UnfitValueError(f"missing field {place}")
        return values

    return read


class _Part:
    """One field of a message type."""

    def __init__(self, one: MessageField, notes: list[str], path: str) -> None:
        self.name = one.name
        self.path = path
        self.oneof = one.oneof
        self.is_repeated = one.is_repeated
        self.wire = _wire_type(one.kind)
        self.is_packable = one.is_repeated and one.kind not in _TEXT
        self.convert = _convert(one, notes, path)
        self.fixed = _FIXED.get(one.kind)
        self.unsigned64 = one.kind == "fixed64"


def _field(
    data: bytes,
    start: int,
    parts: dict[int, _Part],
    values: dict[str, Any],
    seen: set[str],
    notes: list[str],
    path: str,
) -> int:
    """Reads one field into `values`; the next position."""
    try:
        tag, start = read_varint(data, start)
    except IndexError:
        raise UnfitValueError(TRUNCATED) from None
    wire, part = tag & 7, parts.get(tag >> 3)
    if not 0 < tag >> 3 < 1 << 29 or wire not in (_VARINT, _FIXED64, _BYTES, _FIXED32):
        raise UnfitValueError("not Protobuf")
    try:
        if part is None:
            notes.append(f"unknown field {join(path, str(tag >> 3))}")
            return _raw(data, start, wire)[1]
        if wire == _BYTES and part.is_packable:
            return _packed(data, start, part, values[part.name])
        if wire != part.wire:
            raise UnfitValueError(f"expected wire type {part.wire}, got {wire}")
        raw, start = _raw(data, start, wire)
        value = part.convert(raw)
    except IndexError:
        raise UnfitValueError(at(part.path if part else path, TRUNCATED)) from None
    except _PlacedError:
        raise
    except UnfitValueError as unfit:
        raise _PlacedError(at(part.path if part else path, str(unfit))) from None
    if part.is_repeated:
        values[part.name].append(value)
        return start
    if part.name in seen:
        notes.append(f"duplicate field {part.path}")
    if part.oneof:
        if part.oneof in seen and part.name not in seen:
            notes.append(at(part.path, "expected one member of its oneof, got two"))
        seen.add(part.oneof)
    seen.add(part.name)
    values[part.name] = value
    return start


class _PlacedError(UnfitValueError):
    """The reason names its field already."""


def _raw(data: bytes, start: int, wire: int) -> tuple[Any, int]:
    """(a varint or the bytes of a field, the next position)"""
    if wire == _VARINT:
        return read_varint(data, start)
    length = 8 if wire == _FIXED64 else 4
    if wire == _BYTES:
        length, start = read_varint(data, start)
    end = start + length
    if end > len(data):
        raise UnfitValueError(TRUNCATED)
    return data[start:end], end


def _packed(data: bytes, start: int, part: _Part, values: list[Any]) -> int:
    block, end = _raw(data, start, _BYTES)
    if part.wire == _VARINT:
        within = 0
        while within < len(block):
            raw, within = read_varint(block, within)
            values.append(part.convert(raw))
        return end
    assert part.fixed is not None
    if len(block) % part.fixed.size:
        raise UnfitValueError(TRUNCATED)
    found = [one for (one,) in part.fixed.iter_unpack(block)]
    values.extend(map(Decimal, found) if part.unsigned64 else found)
    return end


def _wire_type(kind: str) -> int:
    if kind in _TEXT:
        return _BYTES
    if kind in _FIXED:
        return _FIXED64 if _FIXED[kind].size == 8 else _FIXED32
    return _VARINT


def _convert(one: MessageField, notes: list[str], path: str) -> Convert:
    if one.message is not None:
        read = reader_of(one.message, notes, path)
        return lambda raw: _placed(read, raw)
    if one.kind in _FIXED:
        unpack = _FIXED[one.kind].unpack
        if one.kind == "fixed64":
            return lambda raw: Decimal(unpack(raw)[0])
        return lambda raw: unpack(raw)[0]
    if one.kind == "bytes":
        return lambda raw: raw
    if one.kind == "enum":
        return _enum(one.symbols)
    if one.kind == "string":
        return _text
    return _boolean if one.kind == "bool" else _integer(one.kind)


def _placed(read: ReadMessage, raw: bytes) -> Any:
    try:
        return read(raw)
    except UnfitValueError as unfit:
        raise _PlacedError(str(unfit)) from None


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UnfitValueError(NOT_UTF8) from None


def _boolean(raw: int) -> bool:
    if raw > 1:
        raise UnfitValueError(f"a boolean of {raw}")
    return raw == 1


def _enum(symbols: dict[int, str]) -> Convert:
    def convert(raw: int) -> str:
        number = raw - (1 << 64) if raw >> 63 else raw
        if number not in symbols:
            raise UnfitValueError(f"{number} is no value of its enum")
        return symbols[number]

    return convert


def _integer(kind: str) -> Convert:
    bits = (_SIGNED | _UNSIGNED)[kind]

    def convert(raw: int) -> int | Decimal:
        if kind in _SIGNED:
            value = raw - (1 << 64) if raw >> 63 else raw
            if not -(1 << bits - 1) <= value < 1 << bits - 1:
                raise UnfitValueError(f"{value} is out of range for {kind}")
            return value
        if raw >> bits:
            raise UnfitValueError(f"{raw} is out of range for {kind}")
        if kind.startswith("s"):
            return (raw >> 1) ^ -(raw & 1)
        return Decimal(raw) if kind == "uint64" else raw

    return convert


def _absent_value(one: MessageField) -> Any:
    """What a map's entry without a value has: an empty message, if its values are messages."""
    assert one.message is not None
    value = next(part for part in one.message.fields if part.name == "value")
    return None if value.message is None else reader_of(value.message, [])(b"")


def _entries(
    entries: list[dict[str, Any]], absent: Any, notes: list[str], path: str
) -> list[tuple[Any, Any]]:
    found: dict[Any, Any] = {}
    for entry in entries:
        key = entry["key"]
        if key in found:
            notes.append(at(path, f"duplicate key {shown(str(key))}"))
        found[key] = absent if entry["value"] is None else entry["value"]
    return list(found.items())


def _timestamp(path: str) -> ReadMessage:
    """Microseconds from 1970-01-01."""
    notes: list[str] = []
    fields = (
        MessageField("seconds", 1, "int64", default=0),
        MessageField("nanos", 2, "int32", default=0),
    )
    read = reader_of(Message("", fields), notes)

    def convert(raw: bytes) -> int:
        notes.clear()
        found = read(raw)
        if notes:
            raise UnfitValueError(at(path, notes[0]))
        seconds, nanos = int(found["seconds"]), int(found["nanos"])
        value = seconds * times.MICROS + nanos // 1000
        if not 0 <= nanos < _NANOS or not times.TIMESTAMP_MIN <= value <= times.TIMESTAMP_MAX:
            raise UnfitValueError(at(path, f"{seconds} s is out of range for timestamp"))
        if nanos % 1000:
            raise UnfitValueError(at(path, f"{nanos} ns has more than 6 decimals of a second"))
        return value

    return convert
