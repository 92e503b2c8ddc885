"""One file of record batches, and the positions of its batches.

Why:    a log is a row of segments. Appends go to the last one; the others are read, compacted or
        deleted.
How:    [batch][batch]...[zeros up to `allocated_bytes`].  `note` accounts for a written batch;
        a search starts at the sparse index and walks headers for at most one index interval.
Owns:   the file, the index, the spans of markers. Only the log that owns the segment changes it.
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
from strandline.storage.log.checksum_verification import Place, TrustPeriod, Unverified
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
    """A segment. `end_offset` and `end_index` are exclusive; `size_bytes` counts batches only."""

    __slots__ = (
        "_cache",
        "_directory",
        "_disk",
        "_first_timestamp",
        "_index",
        "_index_crcs",
        "_index_interval_bytes",
        "_indexed_to",
        "_is_index_rebuilt",
        "_trust",
        "_trusted_from_ms",
        "allocated_bytes",
        "end_index",
        "end_offset",
        "first_append_ms",
        "is_dirty",
        "markers",
        "max_timestamp",
        "max_timestamp_offset",
        "name",
        "opened",
        "size_bytes",
        "unverified",
        "was_found",
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
        self._index_interval_bytes = index_interval_bytes
        self.opened: File | None = None
        """The file, if it is open already: see `file`."""
        self._index: SparseIndex | None = SparseIndex()
        self._index_crcs = (0, 0)
        self._indexed_to = 0
        self._is_index_rebuilt = False
        self._trust: TrustPeriod | None = None
        self._trusted_from_ms = 0
        self._first_timestamp = -1
        self.name = name
        self.size_bytes = 0
        self.allocated_bytes = 0
        self.end_offset = name.base_offset
        self.end_index = name.base_index
        self.max_timestamp = -1
        self.max_timestamp_offset = Offset(-1)
        """Base offset of the first batch that reaches `max_timestamp`."""
        self.markers: list[MarkerSpan] = []
        self.is_dirty = False
        """Whether some written bytes are not covered by a finished flush."""
        self.write_count = 0
        """Grows with every write: a flush compares it to see whether it covers the last write."""
        self.unverified: Unverified | None = None
        """The part to verify before a reader gets it; None for nothing. See `unverified_now`."""
        self.first_append_ms = -1
        """Monotonic time of the first append since the log was opened, -1 before it."""
        self.was_found = False
        """Whether batches were here when the log was opened."""

    @property
    def file(self) -> File:
        """The open file. It stays open until the last reader drops it."""
        if self.opened is None:
            self.opened = self._disk.open(self.path(LOG))
            self.allocated_bytes = self.opened.size()
        return self.opened

    def modified_ms(self) -> int:
        """When its file was last changed: not before its newest batch was written. Raises
        OSError."""
        return self._disk.modified_ms(self.path(LOG))

    def path(self, suffix: str) -> str:
        """The path of this segment's file with that suffix."""
        return f"{self._directory}/{self.name.stem}{suffix}"

    def create(self) -> None:
        """Create the file; the directory is not flushed."""
        self.opened = self._disk.open(self.path(LOG), create=True)
        self.opened.truncate(0)
        self.allocated_bytes = 0

    def trim(self) -> None:
        """Return the space behind the last batch to the disk."""
        if self.file.size() > self.size_bytes:
            self.file.truncate(self.size_bytes)
        self.allocated_bytes = self.size_bytes

    def undo_partial_write(self, position: int) -> None:
        """Cut the part of a write that fitted on a full disk. Blocks to flush: the part may hold
        whole batches, and after a crash none of them may stand where later batches were appended.
        """
        self.file.truncate(position)
        self.allocated_bytes = position
        self._disk.flush_now(self.file)

    def release(self) -> None:
        """Drop the file. A reader that still uses it keeps it open."""
        self._cache.forget(self)
        self.opened = None

    # ---- growing and shrinking ----

    def mark_found(self, monotonic_ms: int) -> None:
        """The log was opened now, and this is its active segment, with batches."""
        self.first_append_ms = monotonic_ms
        self.was_found = True

    def note(self, header: BatchHeader) -> None:
        """Account for the batch that was written at the end of this segment."""
        assert header.base_offset == self.end_offset, f"{header.base_offset}, not {self.end_offset}"
        position = self.size_bytes
        self.size_bytes = position + header.batch_length + LENGTH_END
        count = header.last_offset_delta + 1
        if count:
            if position - self._indexed_to >= self._index_interval_bytes:
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
        """(highest timestamp, base offset of the first batch that reaches it) of the batches before
        `position`, where a batch of offset `end_offset` begins. Loads the index; raises
        StorageError if it cannot be built. A batch hidden by damage counts as late as the latest
        one of the segment, so that retention does not delete it early."""
        start, timestamp = self.index.latest_before(position)
        if self.max_timestamp_offset < end_offset:
            return self.max_timestamp, self.max_timestamp_offset
        try:
            return self._latest_between(start, position, timestamp)
        except StorageError:
            return self.max_timestamp, self.name.base_offset

    def _latest_between(self, start: int, position: int, timestamp: int) -> tuple[int, Offset]:
        self.verify(start, position, checks_next=False)
        for header in self.headers(start, position):
            if not header.is_marker:
                timestamp = max(timestamp, header.max_timestamp)
        base_offset = self.name.base_offset
        found = self.find_time(timestamp, base_offset, end=position)
        end = position if found is None else found.position + found.size
        self.verify(self.floor_time(timestamp, base_offset), end, checks_next=False)
        return timestamp, Offset(-1) if found is None else found.base_offset

    def cut(
        self,
        position: int,
        *,
        end_offset: Offset,
        end_index: Index,
        latest: tuple[int, Offset],
    ) -> None:
        """Account for the removal of all batches from `position`, where one begins.
        `latest`: see `latest_before`."""
        assert position <= self.size_bytes, (
            f"a cut at {position}, behind the end at {self.size_bytes}"
        )
        assert end_index <= self.end_index, f"a cut at index {end_index}, not {self.end_index}"
        if self.unverified is not None:
            self.unverified.cut(position)
        self.index.truncate(position)
        self.size_bytes = position
        self.end_offset = end_offset
        self.end_index = end_index
        self._indexed_to = self.index.positions[-1] if self.index.positions else 0
        del self.markers[bisect_left(self.markers, end_index, key=_index_of) :]
        self.max_timestamp, self.max_timestamp_offset = latest
        self._first_timestamp = -1

    # ---- the index ----

    @property
    def index(self) -> SparseIndex:
        """The sparse index: loaded from its files, or rebuilt if they are missing or damaged."""
        if self._index is None:
            self._index = self._load_index()
            self._cache.hold(self)
        return self._index

    def close_index(self, crcs: tuple[int, int], *, keep: bool = True) -> None:
        """The index files are written, with these CRCs: the cache may now drop the index."""
        self._index_crcs = crcs
        if keep:
            self._cache.hold(self)
        else:
            self.drop_index()

    def open_index(self) -> None:
        """Load the index and keep it in memory: the segment becomes the active one."""
        self._indexed_to = self.index.positions[-1] if self.index.positions else 0
        self._cache.forget(self)

    def drop_index(self) -> None:
        """Drop the index from memory."""
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
        self._is_index_rebuilt = True
        return self._build_index()

    def rebuild_index(self) -> None:
        """After a repair: rebuild the index if it was built from this segment's headers."""
        if not self._is_index_rebuilt:
            return
        is_cached = self._index is not None
        with contextlib.suppress(StorageError, OSError):  # Another damaged part is left.
            self._index = self._build_index()
            if not is_cached:
                self._cache.hold(self)

    def _build_index(self) -> SparseIndex:
        index = SparseIndex()
        indexed_to = 0
        timestamp = -1
        offset = self.name.base_offset
        for header in self.headers(0, self.size_bytes):
            if header.base_offset != offset:
                raise self.damaged(header.position, f"offset {header.base_offset}, not {offset}")
            offset = header.next_offset
            if header.is_marker:
                continue
            if header.position - indexed_to >= self._index_interval_bytes:
                indexed_to = header.position
                index.add(header.base_offset - self.name.base_offset, indexed_to, timestamp)
            timestamp = max(timestamp, header.max_timestamp)
        return index

    # ---- verifying ----

    def trust_from_now(self, trust: TrustPeriod) -> None:
        """Trust all batches but the `unverified` ones for one period from now; after it, all count
        as unverified again. Without this call no batch ever loses its trust."""
        self._trust = trust
        self._trusted_from_ms = trust.clock.monotonic_ms()

    def unverified_now(self) -> Unverified | None:
        """The part to verify before a reader gets it; None for nothing. Ends a trust period."""
        trust = self._trust
        if trust is not None:
            now = trust.clock.monotonic_ms()
            if now - self._trusted_from_ms >= trust.period_ms:
                self._trusted_from_ms = now
                self.unverified = (
                    Unverified(self.size_bytes, trust.epochs_of(self)) if self.size_bytes else None
                )
        return self.unverified

    def verify(self, start: int, end: int, *, checks_next: bool = True) -> None:
        """Verify the batches in [start, end) that are not verified yet. Raises StorageError.

        `end`: the end of a batch according to headers that may be unverified; `checks_next`: see
        `Unverified.verify`."""
        unverified = self.unverified_now()
        if unverified is not None:
            end = min(end, unverified.end)
            if start < end and unverified.verify(self, start, end, checks_next=checks_next):
                self.unverified = None

    def verify_from(self, offset: Offset, end: int) -> None:
        """As `verify`, from where a search for `offset` starts: the search read those headers."""
        if self.unverified_now() is not None:
            start = self.index.floor_offset(max(0, offset - self.name.base_offset))
            self.verify(start, end)

    def verify_again(self, offset: Offset, end: int) -> None:
        """As `verify_from`, but ignores trust and the batch at `end`. For a cut, which is final."""
        trust = self._trust
        if trust is not None:
            start = self.index.floor_offset(max(0, offset - self.name.base_offset))
            Unverified(self.size_bytes, trust.epochs_of(self)).verify(
                self, start, end, checks_next=False
            )

    def place_before(self, position: int) -> Place:
        """The nearest place at or before `position` that is known without reading the segment."""
        start, relative_offset = self.index.entry_before(position)
        offset = Offset(self.name.base_offset + relative_offset)
        marker_count = bisect_left(self.markers, start, key=_position_of)
        return Place(start, offset, Index(offset + self.name.markers_before + marker_count))

    def place_after(self, position: int) -> Place:
        """The nearest place above `position` that is known without reading the segment: its end at
        last."""
        following = self.index.after(position, self.size_bytes)
        if following < self.size_bytes:
            return self.place_before(following)
        return Place(self.size_bytes, self.end_offset, self.end_index)

    # ---- searching ----

    def headers(self, position: int, end: int) -> Iterator[BatchHeader]:
        """The headers of the batches that begin in [position, end), with positions in the file.

        Raises StorageError at bytes that are no header."""
        chunk = b""
        chunk_start = position
        while position < end:
            at = position - chunk_start
            if at + HEADER_BYTES > len(chunk):
                chunk = self._read(min(self.size_bytes - position, _WALK_BYTES), position)
                chunk_start = position
                at = 0
                if len(chunk) < HEADER_BYTES:
                    raise self.damaged(position, f"{len(chunk)} bytes")
            header = BatchHeader(position, *_unpack_header(chunk, at))
            if header.magic != MAGIC or header.batch_length < BATCH_LENGTH_MIN:
                raise self.damaged(position, f"magic {header.magic}")
            yield header
            position += header.batch_length + LENGTH_END

    def first_timestamp(self) -> int:
        """The highest timestamp of the first batch of records, not verified; -1 without any. Raises
        StorageError if no header can be read."""
        if self._first_timestamp < 0 and self.end_offset > self.name.base_offset:
            for header in self.headers(0, self.size_bytes):
                if not header.is_marker:
                    self._first_timestamp = header.max_timestamp
                    break
        return self._first_timestamp

    def find_offset(self, offset: Offset) -> BatchHeader | None:
        """The first data batch that ends above `offset`; None when there is none here."""
        start = self.index.floor_offset(max(0, offset - self.name.base_offset))
        return self._walk(start, offset=offset, limit=self.size_bytes)

    def bytes_before(self, limit: Offset) -> int:
        """A lower bound for the bytes of the batches that end at or below the limit, without the
        markers right below it. For a limit inside the segment, the index in memory decides: the
        bound is at most an index interval and a batch too low, or 0 without an index."""
        if limit > self.end_offset:
            return self.size_bytes
        if limit < self.end_offset:
            index = self._index
            return 0 if index is None else index.floor_offset(max(0, limit - self.name.base_offset))
        end = self.size_bytes
        for marker in reversed(self.markers):
            if marker.position + marker.size < end:
                break
            end = marker.position
        return end

    def marker_at(self, index: Index) -> MarkerSpan | None:
        """The span of the entry at `index` if it is a marker."""
        at = bisect_left(self.markers, index, key=_index_of)
        is_marker = at < len(self.markers) and self.markers[at].raft_index == index
        return self.markers[at] if is_marker else None

    def find_index(self, index: Index, offset: Offset) -> BatchHeader:
        """The batch that holds the entry at `index`, an index of this segment, at `offset`."""
        marker = self.marker_at(index)
        if marker is not None:
            return next(self.headers(marker.position, marker.position + 1))
        header = self.find_offset(offset)
        if header is None:
            self.verify_from(offset, self.size_bytes)
            raise self.damaged(self.size_bytes, f"an end without the batch of index {index}")
        return header

    def find_time(
        self, timestamp: int, from_offset: Offset, *, end: int | None = None
    ) -> BatchHeader | None:
        """The first data batch before the position `end` that ends above `from_offset` and reaches
        `timestamp`; None for none."""
        end = self.size_bytes if end is None else end
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
        if limit >= self.size_bytes:
            return self.size_bytes
        boundary = max(start, self.index.floor_position(limit))
        beyond = self._walk(boundary, offset=self.end_offset, limit=limit)
        return self.size_bytes if beyond is None else beyond.position

    def _walk(self, position: int, *, offset: int, limit: int) -> BatchHeader | None:
        """The first batch from `position` on that ends above `offset`, or above the position
        `limit`.

        The hot loop of every read: it looks at four fields per batch."""
        size = self.size_bytes
        while position < size:
            chunk = self._read(
                min(self._index_interval_bytes + HEADER_BYTES, size - position), position
            )
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
        """`count` bytes, or only a header if the disk cannot read that many. A header that the disk
        cannot read is damaged, as one that it reads wrongly."""
        for wanted in (count, HEADER_BYTES):
            try:
                return self.file.pread(wanted, position)
            except OSError as error:
                if not is_unreadable(error):
                    raise
                reason = str(error)
        raise self.damaged(position, reason)

    def damaged(self, position: int, found: str) -> StorageError:
        """The error to raise for a damaged batch at `position`."""
        return StorageError(
            self.path(LOG), position, expected="the header of a record batch", found=found
        )


def _index_of(span: MarkerSpan) -> Index:
    return span.raft_index


def _position_of(span: MarkerSpan) -> int:
    return span.position
