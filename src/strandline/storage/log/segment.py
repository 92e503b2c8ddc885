"""One file of record batches, and where things are in it.

Why:    a log is a row of these; only the last one is written, the others are read, let go or
        compacted.
How:    [batch][batch]...[zeros up to `allocated`].  `note` accounts for a batch once it is written;
        a search starts at the sparse index and walks headers for at most one index interval.
Owns:   the file, the index, the spans of markers. Changed only by the log it belongs to.
Source: design section 4."""

import contextlib
from bisect import bisect_left
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

from strandline.base.disk import Disk, File, is_unreadable
from strandline.base.errors import StorageError
from strandline.model.ids import Index, Offset
from strandline.records.batch import (
    BATCH_LENGTH_MIN,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
)
from strandline.storage.layout import INDEX, LOG, TIME_INDEX, SegmentName, checksum, read_beside
from strandline.storage.log.checksum_verification import Place, Trust, Unproved
from strandline.storage.log.index import IndexCache, SparseIndex

_WALK_BYTES = 16 * 1024
_unpack_header = HEADER.unpack_from
_unpack_walk = Struct(">qi4xb6xi").unpack_from
"""baseOffset, batchLength, magic, lastOffsetDelta."""


class MarkerSpan(NamedTuple):
    """Where a marker lies in its segment."""

    raft_index: Index
    position: int
    size: int


class Segment:
    """A segment. It ends before `end_offset` and `end_index`; `size` counts batches only."""

    __slots__ = (
        "_believed_ms",
        "_cache",
        "_directory",
        "_disk",
        "_file",
        "_index",
        "_index_crcs",
        "_indexed_to",
        "_interval",
        "_is_index_made",
        "_trust",
        "allocated",
        "end_index",
        "end_offset",
        "first_append_ms",
        "is_dirty",
        "markers",
        "max_timestamp",
        "max_timestamp_offset",
        "name",
        "size",
        "unproved",
        "write_count",
    )

    def __init__(
        self,
        disk: Disk,
        directory: str,
        name: SegmentName,
        *,
        cache: IndexCache,
        index_interval_bytes: int,
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._cache = cache
        self._interval = index_interval_bytes
        self._file: File | None = None
        self._index: SparseIndex | None = SparseIndex()
        self._index_crcs = (0, 0)
        self._indexed_to = 0
        self._is_index_made = False
        self._trust: Trust | None = None
        self._believed_ms = 0
        self.name = name
        self.size = 0
        self.allocated = 0
        self.end_offset = name.base_offset
        self.end_index = name.base_index
        self.max_timestamp = -1
        self.max_timestamp_offset = Offset(-1)
        """Base offset of the first batch that reaches `max_timestamp`."""
        self.markers: list[MarkerSpan] = []
        self.is_dirty = False
        """Whether bytes were written that no finished flush covers."""
        self.write_count = 0
        """Rises with every write, so that a flush knows whether it covers the last one."""
        self.unproved: Unproved | None = None
        """What has to be looked at before it is believed; None for nothing. See `doubt`."""
        self.first_append_ms = -1
        """Monotonic time of the first append, -1 before; starts anew when the log is opened."""

    @property
    def file(self) -> File:
        """The open file. It stays open for as long as somebody reads from it."""
        if self._file is None:
            self._file = self._disk.open(self.path(LOG))
            self.allocated = self._file.size()
        return self._file

    def path(self, suffix: str) -> str:
        """The path of this segment's file with that suffix."""
        return f"{self._directory}/{self.name.stem}{suffix}"

    def create(self) -> None:
        """Create the file; the directory is not flushed."""
        self._file = self._disk.open(self.path(LOG), create=True)
        self._file.truncate(0)
        self.allocated = 0

    def trim(self) -> None:
        """Give back the space behind the last batch."""
        if self.file.size() > self.size:
            self.file.truncate(self.size)
        self.allocated = self.size

    def take_back(self, position: int) -> None:
        """Cut the part of a write that the disk had room for. Blocks to flush: whole batches may be
        in it, and none of them may come back in the place of what is appended next."""
        self.file.truncate(position)
        self.allocated = position
        self._disk.flush_now(self.file)

    def release(self) -> None:
        """Let go of the file. Whoever is still reading from it keeps it alive."""
        self._cache.forget(self)
        self._file = None

    # ---- growing and shrinking ----

    def note(self, header: BatchHeader) -> None:
        """Account for the batch that was written at the end of this segment."""
        position = self.size
        self.size = position + header.batch_length + LENGTH_END
        count = header.last_offset_delta + 1
        if count:
            if position - self._indexed_to >= self._interval:
                self._indexed_to = position
                self.index.add(
                    header.base_offset - self.name.base_offset, position, self.max_timestamp
                )
            self.end_offset = Offset(header.base_offset + count)
            self.end_index = Index(self.end_index + count)
            if header.max_timestamp > self.max_timestamp:
                self.max_timestamp = header.max_timestamp
                self.max_timestamp_offset = header.base_offset
        else:
            self.markers.append(MarkerSpan(self.end_index, position, header.size))
            self.end_index = Index(self.end_index + 1)

    def latest_before(self, position: int, end_offset: Offset) -> tuple[int, Offset]:
        """(the highest timestamp, base offset of the first batch that reaches it) of what is before
        `position`, a beginning of a batch, whose offset is `end_offset`. The index is there then;
        raises StorageError where it cannot be made. What damage hides counts as being as late as
        anything here: retention waits for it."""
        start, timestamp = self.index.latest_before(position)
        if self.max_timestamp_offset < end_offset:
            return self.max_timestamp, self.max_timestamp_offset
        try:
            return self._latest_between(start, position, timestamp)
        except StorageError:
            return self.max_timestamp, self.name.base_offset

    def _latest_between(self, start: int, position: int, timestamp: int) -> tuple[int, Offset]:
        self.prove(start, position, sees_next=False)
        for header in self.headers(start, position):
            if not header.is_marker:
                timestamp = max(timestamp, header.max_timestamp)
        base_offset = self.name.base_offset
        found = self.find_time(timestamp, base_offset, end=position)
        end = position if found is None else found.position + found.size
        self.prove(self.floor_time(timestamp, base_offset), end, sees_next=False)
        return timestamp, Offset(-1) if found is None else found.base_offset

    def cut(
        self,
        position: int,
        *,
        end_offset: Offset,
        end_index: Index,
        latest: tuple[int, Offset],
    ) -> None:
        """Account for the loss of everything at `position`, a beginning of a batch, and above.
        `latest`: see `latest_before`."""
        if self.unproved is not None:
            self.unproved.cut(position)
        self.index.truncate(position)
        self.size = position
        self.end_offset = end_offset
        self.end_index = end_index
        self._indexed_to = self.index.positions[-1] if self.index.positions else 0
        del self.markers[bisect_left(self.markers, end_index, key=_index_of) :]
        self.max_timestamp, self.max_timestamp_offset = latest

    # ---- the index ----

    @property
    def index(self) -> SparseIndex:
        """The sparse index; loaded, or built again when its files are not what they ought to be."""
        if self._index is None:
            self._index = self._load_index()
            self._cache.hold(self)
        return self._index

    def close_index(self, crcs: tuple[int, int], *, keep: bool = True) -> None:
        """The index files are written, with these CRCs: the index may leave the memory."""
        self._index_crcs = crcs
        if keep:
            self._cache.hold(self)
        else:
            self.drop_index()

    def open_index(self) -> None:
        """The segment is to be written again: load the index and keep it."""
        self._indexed_to = self.index.positions[-1] if self.index.positions else 0
        self._cache.forget(self)

    def drop_index(self) -> None:
        """Let the index leave the memory."""
        self._index = None

    def _load_index(self) -> SparseIndex:
        offsets = read_beside(self._disk, self.path(INDEX))
        times = read_beside(self._disk, self.path(TIME_INDEX))
        if (
            offsets is not None
            and times is not None
            and (checksum(offsets), checksum(times)) == self._index_crcs
        ):
            return SparseIndex.decode(offsets, times)
        self._is_index_made = True
        return self._make_index()

    def remake_index(self) -> None:
        """Something was mended: make the index again where it was made of the headers here."""
        if not self._is_index_made:
            return
        is_held = self._index is not None
        with contextlib.suppress(StorageError, OSError):  # Of what is still to be mended.
            self._index = self._make_index()
            if not is_held:
                self._cache.hold(self)

    def _make_index(self) -> SparseIndex:
        index = SparseIndex()
        indexed_to = 0
        timestamp = -1
        offset = self.name.base_offset
        for header in self.headers(0, self.size):
            if header.base_offset != offset:
                raise self.damaged(header.position, f"offset {header.base_offset}, not {offset}")
            offset = header.next_offset
            if header.is_marker:
                continue
            if header.position - indexed_to >= self._interval:
                indexed_to = header.position
                index.add(header.base_offset - self.name.base_offset, indexed_to, timestamp)
            timestamp = max(timestamp, header.max_timestamp)
        return index

    # ---- proving ----

    def believe(self, trust: Trust) -> None:
        """What is here was written or proved a moment ago, but for what is `unproved`; after a
        while all of it is in doubt again. Without this, nothing ever is."""
        self._trust = trust
        self._believed_ms = trust.clock.monotonic_ms()

    def doubt(self) -> Unproved | None:
        """What is to be proved before it is believed; None for nothing."""
        trust = self._trust
        if trust is not None:
            now = trust.clock.monotonic_ms()
            if now - self._believed_ms >= trust.ms:
                self._believed_ms = now
                self.unproved = Unproved(self.size, trust.epochs_of(self)) if self.size else None
        return self.unproved

    def prove(self, start: int, end: int, *, sees_next: bool = True) -> None:
        """See that the batches in [start, end) are what was written, unless that has been seen.

        `end` is the end of a batch, as far as can be told from headers that are not proved;
        `sees_next`: see `Unproved.prove`. Raises StorageError."""
        unproved = self.doubt()
        if unproved is not None:
            end = min(end, unproved.end)
            if start < end and unproved.prove(self, start, end, sees_next=sees_next):
                self.unproved = None

    def prove_from(self, offset: Offset, end: int) -> None:
        """The same from where a search for `offset` begins: it has believed what it passed."""
        if self.doubt() is not None:
            start = self.index.floor_offset(max(0, offset - self.name.base_offset))
            self.prove(start, end)

    def prove_again(self, offset: Offset, end: int) -> None:
        """The same, but for what follows, whatever was proved a moment ago: what is cut is gone."""
        trust = self._trust
        if trust is not None:
            start = self.index.floor_offset(max(0, offset - self.name.base_offset))
            Unproved(self.size, trust.epochs_of(self)).prove(self, start, end, sees_next=False)

    def place_before(self, position: int) -> Place:
        """The nearest place at or before `position` that is known without reading the segment."""
        start, relative_offset = self.index.entry_before(position)
        offset = Offset(self.name.base_offset + relative_offset)
        marker_count = bisect_left(self.markers, start, key=_position_of)
        return Place(start, offset, Index(offset + self.name.markers_before + marker_count))

    # ---- searching ----

    def headers(self, position: int, end: int) -> Iterator[BatchHeader]:
        """The headers of the batches that begin in [position, end); their `position` is the file's.

        Raises StorageError where there is no header."""
        chunk = b""
        chunk_start = position
        while position < end:
            at = position - chunk_start
            if at + HEADER_BYTES > len(chunk):
                chunk = self._read(min(self.size - position, _WALK_BYTES), position)
                chunk_start = position
                at = 0
                if len(chunk) < HEADER_BYTES:
                    raise self.damaged(position, f"{len(chunk)} bytes")
            header = BatchHeader(position, *_unpack_header(chunk, at))
            if header.magic != MAGIC or header.batch_length < BATCH_LENGTH_MIN:
                raise self.damaged(position, f"magic {header.magic}")
            yield header
            position += header.batch_length + LENGTH_END

    def find_offset(self, offset: Offset) -> BatchHeader | None:
        """The first data batch that ends above `offset`; None when there is none here."""
        start = self.index.floor_offset(max(0, offset - self.name.base_offset))
        return self._walk(start, offset=offset, limit=self.size)

    def bytes_before(self, limit: Offset) -> int:
        """At least so many bytes are of batches that end at or below the limit, but for markers
        right below it. Where the limit is in the middle, what an index in memory tells: an index
        interval and a batch too little, or all of it."""
        if limit > self.end_offset:
            return self.size
        if limit < self.end_offset:
            known = self._index
            return 0 if known is None else known.floor_offset(max(0, limit - self.name.base_offset))
        end = self.size
        for marker in reversed(self.markers):
            if marker.position + marker.size < end:
                break
            end = marker.position
        return end

    def marker_at(self, index: Index) -> MarkerSpan | None:
        """Where the entry at `index` lies, if it is a marker."""
        at = bisect_left(self.markers, index, key=_index_of)
        is_marker = at < len(self.markers) and self.markers[at].raft_index == index
        return self.markers[at] if is_marker else None

    def find_index(self, index: Index, offset: Offset) -> BatchHeader:
        """The batch that holds `index`, which is in this segment and whose offset is `offset`."""
        marker = self.marker_at(index)
        if marker is not None:
            return next(self.headers(marker.position, marker.position + 1))
        header = self.find_offset(offset)
        if header is None:
            self.prove_from(offset, self.size)
            raise self.damaged(self.size, f"an end without the batch of index {index}")
        return header

    def find_time(
        self, timestamp: int, from_offset: Offset, *, end: int | None = None
    ) -> BatchHeader | None:
        """The first data batch that ends above `from_offset` and reaches `timestamp`; None when
        there is none here, or before the position `end`."""
        end = self.size if end is None else end
        for header in self.headers(self.floor_time(timestamp, from_offset), end):
            if (
                header.max_timestamp >= timestamp
                and header.next_offset > from_offset
                and not header.is_marker
            ):
                return header
        return None

    def floor_time(self, timestamp: int, from_offset: Offset) -> int:
        """A position before which no batch reaches `timestamp` and ends above `from_offset`."""
        relative_offset = max(0, from_offset - self.name.base_offset)
        return max(self.index.floor_time(timestamp), self.index.floor_offset(relative_offset))

    def floor_boundary(self, start: int, limit: int) -> int:
        """The highest end of a batch at or below `limit`; `start` is a beginning of a batch."""
        if limit >= self.size:
            return self.size
        boundary = max(start, self.index.floor_position(limit))
        beyond = self._walk(boundary, offset=self.end_offset, limit=limit)
        return self.size if beyond is None else beyond.position

    def _walk(self, position: int, *, offset: int, limit: int) -> BatchHeader | None:
        """The first batch from `position` on that ends above `offset`, or above `limit` in the
        file.

        The hot loop of every read: it looks at four fields per batch."""
        size = self.size
        while position < size:
            chunk = self._read(min(self._interval + HEADER_BYTES, size - position), position)
            at = 0
            stop = len(chunk) - HEADER_BYTES
            if stop < 0:
                raise self.damaged(position, f"{len(chunk)} bytes")
            while at <= stop:
                base, length, magic, delta = _unpack_walk(chunk, at)
                if magic != MAGIC or length < BATCH_LENGTH_MIN:
                    raise self.damaged(position, f"magic {magic}")
                length += LENGTH_END
                if base + delta >= offset or position + length > limit:
                    return BatchHeader(position, *_unpack_header(chunk, at))
                at += length
                position += length
        return None

    def markers_in(self, start: int, end: int) -> list[MarkerSpan]:
        """The markers that begin in [start, end)."""
        if not self.markers:
            return []
        low = bisect_left(self.markers, start, key=_position_of)
        return self.markers[low : bisect_left(self.markers, end, key=_position_of)]

    def _read(self, count: int, position: int) -> bytes:
        """Many bytes, or where the disk does not give them out, a header. What it does not give
        out is damaged, as what it gives out changed."""
        for wanted in (count, HEADER_BYTES):
            try:
                return self.file.pread(wanted, position)
            except OSError as error:
                if not is_unreadable(error):
                    raise
                reason = str(error)
        raise self.damaged(position, reason)

    def damaged(self, position: int, found: str) -> StorageError:
        """What to raise where a batch is not what it ought to be."""
        return StorageError(
            self.path(LOG), position, expected="the header of a record batch", found=found
        )


def _index_of(span: MarkerSpan) -> Index:
    return span.raft_index


def _position_of(span: MarkerSpan) -> int:
    return span.position
