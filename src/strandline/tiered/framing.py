"""What a bucket says of itself, as bytes that are checked and versioned.

    4  magic       which kind of object
    1  version     1
    4  CRC-32C     of the body, big-endian
    n  body        MessagePack

Why:    a bucket may answer with wrong bytes, or with half an object.
Source: decisions 0061 and 0063."""

from struct import Struct
from typing import TypeVar

import msgspec
from fastcrc import crc32

from strandline.base.disk import Buffer
from strandline.base.errors import StrandlineError

VERSION = 1
_FRAME = Struct(">4sBI")
Body = TypeVar("Body")


class DamagedObjectError(StrandlineError):
    """An object is not what its name promises; the message names it and says why."""


def crc_of(data: Buffer) -> int:
    """CRC-32C of an object, or of a part of it."""
    return int(crc32.iscsi(data))


def frame(magic: bytes, body: object) -> bytes:
    """The object with this body."""
    data = msgspec.msgpack.encode(body)
    return _FRAME.pack(magic, VERSION, crc_of(data)) + data


def unframe(name: str, data: Buffer, kind: type[Body], magic: bytes) -> Body:
    """The body of the object `name`. Raises DamagedObjectError."""
    if len(data) < _FRAME.size:
        raise DamagedObjectError(f"{name}: {len(data)} bytes, less than its frame")
    found, version, crc = _FRAME.unpack_from(data)
    if found != magic:
        raise DamagedObjectError(f"{name}: begins with {found!r}, not with {magic!r}")
    if version > VERSION:
        raise DamagedObjectError(f"{name}: version {version} is of a later release")
    body = memoryview(data)[_FRAME.size :]
    if crc_of(body) != crc:
        raise DamagedObjectError(f"{name}: CRC-32C {crc_of(body):08x}, expected {crc:08x}")
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise DamagedObjectError(f"{name}: {error}") from error
