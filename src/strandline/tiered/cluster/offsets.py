"""The committed offsets of the groups in one partition of `__consumer_offsets`, as bytes.

    4  magic       SLCO
    1  version     1
    4  CRC-32C     of the body, big-endian
    n  body        MessagePack

Why:    `__consumer_offsets` is compacted, and is not in the buckets: without this, the groups of a
        lost cluster begin anew.
Source: decision 0063."""

from struct import Struct

import msgspec
from fastcrc import crc32

from strandline.base.errors import StrandlineError

VERSION = 1
MAGIC = b"SLCO"
_FRAME = Struct(">4sBI")


class DamagedOffsetsError(StrandlineError):
    """An object of committed offsets is not what its name promises."""


class GroupOffset(msgspec.Struct, frozen=True, array_like=True):
    """One committed offset."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_ms: int


class GroupOffsets(msgspec.Struct, frozen=True, array_like=True):
    """All committed offsets of one group."""

    group: str
    offsets: tuple[GroupOffset, ...]


class OffsetsBody(msgspec.Struct, frozen=True, array_like=True):
    """The groups of one partition of `__consumer_offsets`, all of them at one offset of its log."""

    cluster_id: str
    partition: int
    groups: tuple[GroupOffsets, ...]


def encode(body: OffsetsBody) -> bytes:
    """The object."""
    data = msgspec.msgpack.encode(body)
    return _FRAME.pack(MAGIC, VERSION, crc32.iscsi(data)) + data


def decode(name: str, data: bytes) -> OffsetsBody:
    """What the object `name` says. Raises DamagedOffsetsError."""
    if len(data) < _FRAME.size:
        raise DamagedOffsetsError(f"{name}: {len(data)} bytes, less than its frame")
    magic, version, crc = _FRAME.unpack_from(data)
    if magic != MAGIC:
        raise DamagedOffsetsError(f"{name}: begins with {magic!r}, not with {MAGIC!r}")
    if version > VERSION:
        raise DamagedOffsetsError(f"{name}: version {version} is of a later release")
    body = data[_FRAME.size :]
    if crc32.iscsi(body) != crc:
        raise DamagedOffsetsError(f"{name}: CRC-32C {crc32.iscsi(body):08x}, not {crc:08x}")
    try:
        return msgspec.msgpack.decode(body, type=OffsetsBody)
    except msgspec.DecodeError as error:
        raise DamagedOffsetsError(f"{name}: {error}") from error
