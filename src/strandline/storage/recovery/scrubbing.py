"""Looks for damage in a log in the background: one pass, in slices.

Why:    damage in data that no reader asks for goes unnoticed until the other copies are gone too.
How:    walks headers and checksums as the first reader does, but always, and from the disk. Before
        the first slice of a closed segment the page cache drops the whole segment: the kernel keeps
        a page if it is told to drop only a part of it, and a batch may lie in two slices. If the
        walk ends early, that is a gap:

            [batch][batch]xxxxxxxxxxxxxx[batch][batch]
                          start         end: the next place that the index or a marker knows, and
                                        where a batch can be verified
        Index, epochs and markers of a gap are known without reading it.
        A pass ends where the log ended when it began: a pass over a log that grows faster than the
        scrub would never end.
Owns:   its place in the log, and the gaps found.
Source: reliability reference 3; ZFS and Ceph scrub stored data in the background."""

from collections.abc import Iterator
from dataclasses import dataclass

from strandline.base.errors import StorageError
from strandline.model.ids import Index
from strandline.storage.layout import LOG
from strandline.storage.log.checksum_verification import Place, Unverified
from strandline.storage.log.history import History
from strandline.storage.log.reads import segment_at_index
from strandline.storage.log.row import SegmentRow
from strandline.storage.log.scan import verified_batches
from strandline.storage.log.segment import Segment


@dataclass(frozen=True, slots=True)
class Gap:
    """The batches from `start` to before `end` are damaged, or some of them are."""

    segment: Segment
    start: Place
    end: Place

    @property
    def path(self) -> str:
        """The damaged file."""
        return self.segment.path(LOG)

    @property
    def last_index(self) -> Index:
        """The last entry of the gap."""
        return Index(self.end.raft_index - 1)


class Scrub:
    """A pass over the segments of `row` from the one that holds `from_index` on, to its end as it
    is now."""

    def __init__(self, row: SegmentRow, from_index: Index) -> None:
        self._row = row
        self.done_index = from_index
        """All segments that end at or before this index are scrubbed."""
        self._until_index = row.segments[-1].end_index
        self._segment: Segment | None = None
        self._position = 0
        # Of the segment, as it was when the pass came to it.
        self._size_bytes = 0
        self._end_index = Index(0)
        self._is_uncached = False
        """Whether the segment was evicted from the page cache."""
        self.gaps: list[Gap] = []
        """The gaps found that the owner has not taken yet."""

    def step(self, bytes_max: int) -> int:
        """Scrub about `bytes_max` more bytes, never beyond a segment; returns how many, 0 at the
        end of the pass."""
        segment = self._find_segment()
        if segment is None:
            return 0
        start = self._position
        end = min(self._size_bytes, segment.size_bytes)
        until = min(start + bytes_max, end)
        place = _place_before(segment, start)
        position = _walk(segment, self._row.history, place, until).position
        if position < until:
            gap = find_gap(segment, self._row.history, position)
            if gap is not None:
                self.gaps.append(gap)
                _mark_unverified(segment, self._row.history)
                position = max(position, gap.end.position)
            else:
                position = until
        self._position = position
        is_done = position >= end
        if segment is not self._row.active:
            # Pages that only the scrub has read do not stay in the page cache.
            first = 0 if is_done else start
            segment.file.forget_cached(first, position - first)
        if is_done:
            self.done_index = min(self._end_index, segment.end_index)
            self._segment = None
        return max(1, position - start)

    def _find_segment(self) -> Segment | None:
        """The segment of the next slice; the log may have changed since the last one."""
        segments = self._row.segments
        segment = self._segment
        if segment is not None and segment in segments and self._position < segment.size_bytes:
            self._evict_cache(segment)
            return segment
        if min(segments[-1].end_index, self._until_index) <= self.done_index:
            return None
        segment = segments[segment_at_index(segments, self.done_index)]
        if not segment.size_bytes or segment.end_index <= self.done_index:
            return None
        self._segment = segment
        self._size_bytes, self._end_index = segment.size_bytes, segment.end_index
        self._position = 0
        self._is_uncached = False
        self._evict_cache(segment)
        return segment

    def _evict_cache(self, segment: Segment) -> None:
        """Evict a closed segment from the page cache, once."""
        if not self._is_uncached and segment is not self._row.active:
            segment.file.forget_cached(0, segment.size_bytes)
            self._is_uncached = True


def find_gap(segment: Segment, history: History, position: int) -> Gap | None:
    """The gap that begins at or before `position` and reaches it; None where that is sound."""
    start = _walk(segment, history, _place_before(segment, position), position + 1)
    if start.position > position or start.position >= segment.size_bytes:
        return None
    return Gap(segment, start, _end_of_gap(segment, history, start.position))


def find_gaps(segment: Segment, history: History, position: int, end: int) -> Iterator[Gap]:
    """The gaps that lie in [position, end) of a segment, or reach into that."""
    end = min(end, segment.size_bytes)
    while position < end:
        reached = _walk(segment, history, _place_before(segment, position), end).position
        gap = find_gap(segment, history, reached) if reached < end else None
        if gap is None:
            return
        yield gap
        position = max(gap.end.position, reached + 1)


def _mark_unverified(segment: Segment, history: History) -> None:
    """Mark a damaged segment as unverified: readers verify all of it from now on."""
    epochs = history.epochs_between(segment.name.base_index, segment.end_index)
    segment.unverified = Unverified(segment.size_bytes, epochs)


def _place_before(segment: Segment, position: int) -> Place:
    try:
        return segment.place_before(position)
    except (OSError, StorageError):  # The index is lost and cannot be rebuilt.
        return Place(0, segment.name.base_offset, segment.name.base_index)


def _walk(segment: Segment, history: History, first: Place, until: int) -> Place:
    """The end of the last verified batch of those that begin at `first` and before `until`."""
    position, offset, index = first
    if index >= segment.end_index:
        return first
    batches = verified_batches(
        segment.file,
        position,
        end=segment.size_bytes,
        until=until,
        offset=offset,
        epoch=history.epoch_of(index),
    )
    try:
        for header, _, _ in batches:
            if (
                index >= segment.end_index
                or header.partition_leader_epoch != history.epoch_of(index)
                or header.is_marker != history.is_marker(index)
            ):
                break
            position += header.size
            offset = header.next_offset
            index = Index(index + header.index_count)
    except OSError:
        pass  # The disk cannot read the next batch: it is damaged.
    return Place(position, offset, index)


def _end_of_gap(segment: Segment, history: History, position: int) -> Place:
    """The next place that is known without the gap and where a batch can be verified."""
    end = Place(segment.size_bytes, segment.end_offset, segment.end_index)
    try:
        while (position := segment.index.after(position, segment.size_bytes)) < segment.size_bytes:
            place = segment.place_before(position)
            if _walk(segment, history, place, place.position + 1).position > place.position:
                return place
    except (OSError, StorageError):
        pass  # Without an index, the gap reaches to the end of the segment.
    return end
