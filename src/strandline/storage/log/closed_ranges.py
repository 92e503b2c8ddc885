"""Ranges of closed segments, for copies that leave the log: what comes next, and where it lies.

Why:    tiered storage copies closed segments in pieces of bounded size, off the event loop. Its
        copier checks each batch by itself, so nothing is verified here.
How:    next_range: from the batch that holds an offset to the segment's end, or to the last batch
        that fits. file_ranges: the bytes of such a range, without markers.
        Searching reads a few KiB of headers and a sparse index, as a fetch does.
        Compaction leaves empty batches over many offsets, and replicas end them at different ones.
        A range that begins or ends inside of one has all of it: the copier cuts it.
Owns:   nothing.
Source: decisions 0059 and 0066."""

from typing import NamedTuple

from strandline.model.ids import Offset
from strandline.records.cleaning import is_filler
from strandline.storage.log.reads import FileRange, segment_at_offset
from strandline.storage.log.row import SegmentRow
from strandline.storage.log.segment import Segment


class ClosedRange(NamedTuple):
    """Whole data batches of one closed segment."""

    base_offset: Offset
    end_offset: Offset
    size_bytes: int
    """Of the file, markers included."""
    max_timestamp: int
    """Of the whole segment; -1 for none."""


class ClosedRanges:
    """See the module; one per log."""

    __slots__ = ("_row",)

    def __init__(self, row: SegmentRow) -> None:
        self._row = row

    @property
    def end_offset(self) -> Offset:
        """Where the active segment begins: no range goes beyond it."""
        return self._row.active.name.base_offset

    def next_range(self, offset: Offset, *, bytes_max: int, limit: Offset) -> ClosedRange | None:
        """The first range of closed segments that holds `offset` or follows it, at most `bytes_max`
        but at least one batch; None if there is none, or if it would end above `limit`.

        Raises OSError, StorageError if headers are damaged."""
        segments = self._row.segments
        for segment in segments[segment_at_offset(segments, offset) : -1]:
            if segment.end_offset <= max(offset, segment.name.base_offset):
                continue
            found = _range_of(segment, max(offset, segment.name.base_offset), bytes_max)
            return found if found.end_offset <= limit else None
        return None

    def file_ranges(self, start: Offset, end: Offset) -> list[FileRange]:
        """Where the batches of [start, end) lie, without markers; both at boundaries of batches, or
        inside of an empty one. Not verified.

        Raises OSError, StorageError if headers are damaged, or if the log lacks a part of it."""
        segments = self._row.segments
        found: list[FileRange] = []
        at = start
        for segment in segments[segment_at_offset(segments, start) :]:
            if at >= end:
                break
            if segment.end_offset <= at:
                continue
            first = segment.find_offset(at)
            if first is None or (first.base_offset != at and not is_filler(first)):
                raise segment.damaged(0, f"no batch that begins at offset {at}")
            stop = _position_of(segment, end)
            _add_ranges(found, segment, first.position, stop)
            at = segment.end_offset
        if at < end:
            raise self._row.active.damaged(0, f"an end at {at}, not at {end}")
        return found

    def bytes_from(self, offset: Offset) -> int:
        """About how many bytes the log has from `offset` on. For figures and limits: a part of a
        segment counts by its share of offsets."""
        segments = self._row.segments
        total = 0
        for segment in segments[segment_at_offset(segments, offset) :]:
            count = segment.end_offset - segment.name.base_offset
            left = min(count, max(0, segment.end_offset - offset))
            total += segment.size_bytes * left // count if count else 0
        return total

    def oldest_after(self, offset: Offset) -> int:
        """When the closed segment that holds `offset` was last changed, in ms since 1970; -1 if
        there is none, or its file cannot say."""
        segments = self._row.segments
        for segment in segments[segment_at_offset(segments, offset) : -1]:
            if segment.end_offset > offset:
                try:
                    return segment.modified_ms()
                except OSError:
                    return -1
        return -1


def _range_of(segment: Segment, offset: Offset, bytes_max: int) -> ClosedRange:
    first = segment.find_offset(offset)
    if first is None:
        raise segment.damaged(segment.size_bytes, f"an end without the batch of offset {offset}")
    stop = segment.floor_boundary(first.position, first.position + bytes_max)
    if stop <= first.position:
        stop = first.position + first.size
    end = _offset_at(segment, stop)
    base = offset if is_filler(first) else first.base_offset
    return ClosedRange(base, end, stop - first.position, segment.max_timestamp)


def _offset_at(segment: Segment, position: int) -> Offset:
    """The offset of the next data batch at or after `position`, where a batch begins."""
    if position >= segment.size_bytes:
        return segment.end_offset
    return next(segment.headers(position, position + 1)).base_offset


def _position_of(segment: Segment, end: Offset) -> int:
    """Where the batches below `end` stop."""
    if end >= segment.end_offset:
        return segment.size_bytes
    beyond = segment.find_offset(end)
    if beyond is not None and beyond.base_offset == end:
        return beyond.position
    if beyond is not None and is_filler(beyond):
        return beyond.position + beyond.size
    raise segment.damaged(0, f"no batch that begins at offset {end}")


def _add_ranges(found: list[FileRange], segment: Segment, start: int, stop: int) -> None:
    """Add [start, stop) of a segment without its markers."""
    for marker in segment.markers_in(start, stop):
        if marker.position > start:
            found.append(FileRange(segment.file, start, marker.position - start))
        start = marker.position + marker.size
    if stop > start:
        found.append(FileRange(segment.file, start, stop - start))
