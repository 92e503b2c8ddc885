"""Finds the batches for a reader: ranges of files that hold whole record batches.

Why:    a consumer gets data batches below its limit, as ranges that go from the page cache to the
        socket. A follower gets every batch, markers too, with their epochs and configurations.
How:    start = the batch that holds the offset; end = the last batch boundary below the limit and
        the byte budget. Both take the sparse index and a walk of one interval. Ranges leave out
        markers.
Source: design sections 4 and 9."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from strandline.base.disk import File
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import (
    OFFSET_FIELD,
    BatchHeader,
    read_header,
    seal,
)
from strandline.storage.log.history import History
from strandline.storage.log.segment import Segment

_LAST_OFFSET_DELTA_AT = 23
_UNVERIFIED_BYTES_MAX = 1 << 20
_UNVERIFIED_RECORDS_MAX = 4_000
"""The most bytes, or records if those are more bytes, of one read that may have to verify them. A
batch has at least one record, and 2 us for each of 4,000 batches are a few ms."""


@dataclass(frozen=True, slots=True)
class FileRange:
    """`length` bytes of `file` from `position`. It keeps a removed file open."""

    file: File
    position: int
    length: int

    def read(self) -> bytes:
        """The bytes; fewer when the file was cut meanwhile."""
        return self.file.pread(self.length, self.position)


@dataclass(slots=True)
class RecordSlices:
    """Whole data batches, in order; empty when there is nothing to read."""

    parts: list[FileRange] = field(default_factory=list)
    size_bytes: int = 0

    def bytes(self) -> bytes:
        """All of it, read into memory."""
        if len(self.parts) == 1:
            return self.parts[0].read()
        return b"".join(part.read() for part in self.parts)


@dataclass(frozen=True, slots=True)
class Entries:
    """Whole batches, markers included: the entries from `first_index` to `last_index`."""

    data: bytes
    first_index: Index
    last_index: Index
    runs: list[tuple[Epoch, Index]]
    """(epoch, last index of that run), in order."""
    configurations: list[tuple[Index, bytes]]


def segment_at_offset(segments: Sequence[Segment], offset: Offset) -> int:
    """The number of the segment that holds the data entry at `offset`, or follows it."""
    return max(0, bisect_right(segments, offset, key=_base_offset) - 1)


def segment_at_index(segments: Sequence[Segment], index: Index) -> int:
    """The number of the segment that holds the entry at `index`."""
    return max(0, bisect_right(segments, index, key=_base_index) - 1)


def read_records(
    segments: Sequence[Segment],
    offset: Offset,
    *,
    max_bytes: int,
    limit_offset: Offset,
    min_one: bool,
) -> RecordSlices:
    """Data batches from the one that holds `offset`, all wholly below `limit_offset`."""
    result = RecordSlices()
    budget = max_bytes
    for segment in segments[segment_at_offset(segments, offset) :]:
        if offset >= limit_offset:
            break
        first = segment.find_offset(offset)
        if segment.unverified_now() is not None:
            budget = min(budget, _unverified_bytes_max(segment))
        if first is None:
            if offset < segment.end_offset:
                segment.verify_from(offset, segment.size_bytes)  # The segment should hold it.
            continue
        end = _end_below(segment, first, limit_offset)
        if end - first.position > budget:
            end = segment.floor_boundary(first.position, first.position + budget)
            if end <= first.position and min_one and first.next_offset <= limit_offset:
                end = first.position + first.size
        segment.verify_from(offset, max(end, first.position + first.size))
        if end <= first.position:
            break
        _add_ranges(result, segment, first.position, end)
        budget -= end - first.position
        min_one = False
        if end < segment.size_bytes or budget <= 0:
            break
        offset = segment.end_offset
    return result


def read_entries(
    segments: Sequence[Segment], history: History, from_index: Index, *, max_bytes: int
) -> Entries:
    """Batches of one segment from the one that holds `from_index`; at least one.

    An empty batch that compaction left over many offsets is cut to begin at `from_index`."""
    segment = segments[segment_at_index(segments, from_index)]
    offset = history.offset_of(from_index)
    first = segment.find_index(from_index, offset)
    start = first.position
    end = segment.floor_boundary(start, start + max_bytes)
    if end <= start:
        end = start + first.size
    segment.verify(start, end)
    segment.verify_from(offset, end)
    data = segment.file.pread(end - start, start)
    if end == segment.size_bytes:
        last_index = Index(segment.end_index - 1)
    elif markers := segment.markers_in(end, end + 1):
        last_index = Index(markers[0].raft_index - 1)
    else:
        following = next(segment.headers(end, end + 1))
        last_index = Index(history.index_of(following.base_offset) - 1)
    return entries_from(data, first, from_index, history, last_index=last_index)


def entries_from(
    data: bytes, first: BatchHeader, from_index: Index, history: History, *, last_index: Index
) -> Entries:
    """The entries of whole batches, the first of which holds `from_index`; see `read_entries`."""
    first_index = from_index
    offset = history.offset_of(from_index)
    if not first.is_marker and offset != first.base_offset:
        if first.records_count == 0:
            data = _cut_empty(data, offset)
        else:
            first_index = history.index_of(first.base_offset)
    return Entries(
        data,
        first_index,
        last_index,
        history.runs(first_index, last_index),
        history.configurations_between(first_index, last_index),
    )


def _unverified_bytes_max(segment: Segment) -> int:
    records_count = max(1, segment.end_offset - segment.name.base_offset)
    return max(_UNVERIFIED_BYTES_MAX, segment.size_bytes * _UNVERIFIED_RECORDS_MAX // records_count)


def _end_below(segment: Segment, first: BatchHeader, limit_offset: Offset) -> int:
    """The end of the last batch that is wholly below `limit_offset`, at or after `first`."""
    if limit_offset >= segment.end_offset:
        return segment.size_bytes
    beyond = segment.find_offset(limit_offset)
    return segment.size_bytes if beyond is None else beyond.position


def _add_ranges(result: RecordSlices, segment: Segment, start: int, end: int) -> None:
    """Add [start, end) without the markers in it."""
    for marker in segment.markers_in(start, end):
        if marker.position > start:
            result.parts.append(FileRange(segment.file, start, marker.position - start))
            result.size_bytes += marker.position - start
        start = marker.position + marker.size
    if end > start:
        result.parts.append(FileRange(segment.file, start, end - start))
        result.size_bytes += end - start


def _cut_empty(data: bytes, offset: Offset) -> bytes:
    """Make the empty batch at the head of `data` begin at `offset`."""
    copy = bytearray(data)
    header = read_header(copy)
    assert header is not None and header.records_count == 0
    delta = header.last_offset - offset
    OFFSET_FIELD.pack_into(copy, 0, offset)
    copy[_LAST_OFFSET_DELTA_AT : _LAST_OFFSET_DELTA_AT + 4] = delta.to_bytes(4, "big")
    seal(copy, header)
    return bytes(copy)


def _base_offset(segment: Segment) -> Offset:
    return segment.name.base_offset


def _base_index(segment: Segment) -> Index:
    return segment.name.base_index
