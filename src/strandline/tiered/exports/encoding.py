"""Objects of exports as bytes: an export, a page of its entries, heads, a topic.

How:    each kind has its own magic; `tiered.framing` has the rest.
Source: decision 0061."""

from typing import TypeVar
from uuid import UUID

import msgspec

from strandline.model.ids import BrokerId, Epoch, Index, Offset
from strandline.tiered.exports.export import RetiredObject
from strandline.tiered.framing import frame, unframe
from strandline.tiered.segments.entry import SegmentEntry

Body = TypeVar("Body")


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


def encode(body: Head | HeadsBody | TopicBody) -> bytes:
    """The object."""
    return frame(_MAGICS[type(body)], body)


def encode_page(entries: tuple[SegmentEntry, ...]) -> bytes:
    """The object of a page."""
    return frame(PAGE_MAGIC, entries)


def decode(name: str, data: bytes, kind: type[Body]) -> Body:
    """What the object `name` says. Raises DamagedObjectError."""
    return unframe(name, data, kind, _MAGICS[kind])  # type: ignore[index]


def decode_page(name: str, data: bytes) -> tuple[SegmentEntry, ...]:
    """The entries of a page. Raises DamagedObjectError."""
    return unframe(name, data, tuple[SegmentEntry, ...], PAGE_MAGIC)
