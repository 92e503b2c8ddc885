"""Encodes and decodes messages by functions generated from the tables.

Why:    there are hundreds of pairs of class and version; each gets straight-line code, generated
        on first use.
How:    `encode(message, version)`, `decode(cls, buffer, position, version)`. The class says whether
        a version is flexible; structures inside a message are compiled for their message's version
        and flexibility. Malformed input raises ProtocolError and no other error, before any memory
        is allocated for it.
Owns:   two caches of compiled functions, never evicted: their number is bounded by the tables.
Source: design section 3; reference reliability.md section 4."""

import struct
from collections.abc import Callable
from functools import cache
from typing import TypeVar, cast

import msgspec

from strandline.base.disk import Buffer
from strandline.base.errors import ProtocolError
from strandline.protocol.decoder_source import DecoderSource
from strandline.protocol.encoder_source import EncoderSource
from strandline.protocol.primitives import ALL_ITEMS, Part
from strandline.protocol.table import Message, VersionRange, columns

M = TypeVar("M", bound=msgspec.Struct)
Decoder = Callable[[Buffer, int, int, list[int]], tuple[M, int]]
Encoder = Callable[[msgspec.Struct, bytearray, list[Part] | None], bytearray]


def decode(
    cls: type[M],
    buffer: Buffer,
    position: int,
    version: int,
    *,
    flexible: bool | None = None,
    items_max: int = ALL_ITEMS,
) -> tuple[M, int]:
    """Read one `cls` from `buffer[position:]`: the message, and the position after it.

    `records` fields are memoryviews of `buffer`, everything else is copied. `flexible` is for
    structures, which do not know it. `items_max` bounds the elements of arrays, and the tags, at
    all depths together: give it for what a client sends. Bytes that follow the message are left
    alone: the caller judges them. Raises ProtocolError."""
    read, has_records = decoder(cls, version, flexible=flexible)
    if not has_records:
        buffer = bytes(buffer)  # Slices of bytes cost less than those of other buffers.
    try:
        return read(buffer, position, len(buffer), [items_max, items_max])
    except (IndexError, struct.error) as error:
        raise ProtocolError(f"{cls.__name__} version {version} is cut short") from error
    except UnicodeDecodeError as error:
        raise ProtocolError(f"{cls.__name__} version {version}: text is not UTF-8") from error


def encode(message: msgspec.Struct, version: int, *, flexible: bool | None = None) -> bytearray:
    """Write a message, record batches included, into one new bytearray."""
    return encoder(type(message), version, flexible=flexible)(message, bytearray(), None)


def encode_parts(
    message: msgspec.Struct, version: int, *, flexible: bool | None = None
) -> list[Part]:
    """Write a message as pieces to be sent one after the other; records stay as they were given.

    A piece is a buffer, or an object with `size_bytes` given as records (a range of a file)."""
    parts: list[Part] = []
    rest = encoder(type(message), version, flexible=flexible)(message, bytearray(), parts)
    if rest:
        parts.append(rest)
    return parts


@cache
def is_flexible(cls: type[msgspec.Struct], version: int) -> bool:
    """Whether this version of a whole message is flexible; only versions that the class has."""
    assert issubclass(cls, Message), f"{cls.__name__} is a structure: say whether it is flexible"
    assert VersionRange.parse(cls.VERSIONS).has(version), f"{cls.__name__} has no version {version}"
    return VersionRange.parse(cls.FLEXIBLE).has(version)


@cache
def decoder(cls: type[M], version: int, *, flexible: bool | None = None) -> tuple[Decoder[M], bool]:
    """The generated function that reads `cls`, and whether there are records in what it reads."""
    is_compact = is_flexible(cls, version) if flexible is None else flexible
    source = DecoderSource(
        cls,
        version,
        flexible=is_compact,
        nested=lambda element: decoder(element, version, flexible=is_compact)[0],
    )
    text = source.build()
    exec(compile(text, f"<decoder of {cls.__name__} version {version}>", "exec"), source.namespace)
    return cast(Decoder[M], source.namespace["decode"]), _has_records(cls)


@cache
def encoder(cls: type[msgspec.Struct], version: int, *, flexible: bool | None = None) -> Encoder:
    """The generated function that writes `cls`."""
    is_compact = is_flexible(cls, version) if flexible is None else flexible
    source = EncoderSource(
        cls,
        version,
        flexible=is_compact,
        nested=lambda element: encoder(element, version, flexible=is_compact),
    )
    text = source.build()
    exec(compile(text, f"<encoder of {cls.__name__} version {version}>", "exec"), source.namespace)
    return cast(Encoder, source.namespace["encode"])


def _has_records(cls: type[msgspec.Struct]) -> bool:
    return any(
        column.wire == "records" or (column.element is not None and _has_records(column.element))
        for column in columns(cls)
    )
