"""Objects of exports as bytes, checked and versioned.

    4  magic       SLEX an export, SLEP a page, SLEH heads, SLET a topic
    1  version     1
    4  CRC-32C     of the body, big-endian
    n  body        MessagePack

Why:    a bucket may answer with wrong bytes, or with half an object.
Source: decision 0061."""

from struct import Struct
from typing import TypeVar
from uuid import UUID

import msgspec
from fastcrc import crc32

from strandline.base.errors import StrandlineError
from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.tiered.exports.export import RetiredObject
from strandline.tiered.segments.entry import SegmentEntry

VERSION = 1
_FRAME = Struct(">4sBI")
Body = TypeVar("Body")


class DamagedExportError(StrandlineError):
    """An object of the exports is not what its name promises; the message names it and says why."""


class PageRef(msgspec.Struct, frozen=True, array_like=True):
    """Where a page is, and which of its entries count: those from `skip` on."""

    base_offset: Offset
    """Of the page's first entry; its name has it."""
    attempt: str
    count: int
    crc: int
    """CRC-32C of the whole object."""
    skip: int = 0


class Head(msgspec.Struct, frozen=True, array_like=True):
    """An export without the entries that are in pages; see `Export`."""

    cluster_id: str
    topic: str
    topic_id: UUID
    partition: int
    partition_count: int
    topic_config: dict[str, str]
    epoch: Epoch
    index: Index
    version: int
    written_ms: int
    high_watermark: Offset
    log_start_offset: Offset
    end_offset: Offset
    pages: tuple[PageRef, ...]
    tail: tuple[SegmentEntry, ...]
    """The entries after those of the pages."""
    retired: tuple[RetiredObject, ...]


class HeadRow(msgspec.Struct, frozen=True, array_like=True):
    """A partition and its newest export."""

    topic_id: UUID
    partition: int
    epoch: Epoch
    index: Index
    version: int


class HeadsBody(msgspec.Struct, frozen=True, array_like=True):
    """What one broker says at one moment of the partitions that it leads."""

    broker: BrokerId
    written_ms: int
    rows: tuple[HeadRow, ...]


class TopicBody(msgspec.Struct, frozen=True, array_like=True):
    """A topic that has exports."""

    topic: str
    topic_id: UUID
    first_seen_ms: int
    """When the first leader exported it, by that leader's clock."""


_MAGICS = {Head: b"SLEX", HeadsBody: b"SLEH", TopicBody: b"SLET"}
PAGE_MAGIC = b"SLEP"


def crc_of(data: bytes) -> int:
    """CRC-32C of an object."""
    return crc32.iscsi(data)


def encode(body: Head | HeadsBody | TopicBody) -> bytes:
    """The object."""
    return _framed(_MAGICS[type(body)], msgspec.msgpack.encode(body))


def encode_page(entries: tuple[SegmentEntry, ...]) -> bytes:
    """The object of a page."""
    return _framed(PAGE_MAGIC, msgspec.msgpack.encode(entries))


def decode(name: str, data: bytes, kind: type[Body]) -> Body:
    """What the object `name` says. Raises DamagedExportError."""
    return _decode(name, data, kind, _MAGICS[kind])  # type: ignore[index]


def decode_page(name: str, data: bytes) -> tuple[SegmentEntry, ...]:
    """The entries of a page. Raises DamagedExportError."""
    return _decode(name, data, tuple[SegmentEntry, ...], PAGE_MAGIC)


def _framed(magic: bytes, body: bytes) -> bytes:
    return _FRAME.pack(magic, VERSION, crc_of(body)) + body


def _decode(name: str, data: bytes, kind: type[Body], expected: bytes) -> Body:
    if len(data) < _FRAME.size:
        raise DamagedExportError(f"{name}: {len(data)} bytes, less than its frame")
    magic, version, crc = _FRAME.unpack_from(data)
    if magic != expected:
        raise DamagedExportError(f"{name}: begins with {magic!r}, not with {expected!r}")
    if version > VERSION:
        raise DamagedExportError(f"{name}: version {version} is of a later release")
    body = memoryview(data)[_FRAME.size :]
    found = crc_of(bytes(body))
    if found != crc:
        raise DamagedExportError(f"{name}: CRC-32C {found:08x}, expected {crc:08x}")
    try:
        return msgspec.msgpack.decode(body, type=kind)
    except msgspec.DecodeError as error:
        raise DamagedExportError(f"{name}: {error}") from error
