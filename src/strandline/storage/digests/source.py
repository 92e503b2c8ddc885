"""Finds which parts of which files hold a range of offsets, for a reader on another thread.

Why:    segments change while a digest reads them: compaction and repair replace their files, and
        appends go on. Only the broker's thread may look at segments.
How:    each part starts at a place that is known without reading the segment: its base, or an
        entry of the sparse index. A part keeps its file open, so a replaced file stays readable.
        The first part begins with the batch that holds the offset before the range: Raft's
        markers at the range's start lie behind that batch.
Owns:   nothing.
Source: decision 0052."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from strandline.base.disk import File
from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.storage.log.checksum_verification import Place
from strandline.storage.log.reads import segment_at_offset
from strandline.storage.log.row import SegmentRow
from strandline.storage.log.segment import Segment


@dataclass(frozen=True, slots=True)
class SourcePart:
    """Batches of one file, from `place` to before the position `end`.

    `epochs`: (epoch, its first index in the segment), ascending. `is_closed`: nothing is appended
    to the file any more; it has `file_bytes`."""

    file: File
    place: Place
    end: int
    epochs: Sequence[tuple[Epoch, Index]]
    previous_epoch: Epoch
    is_closed: bool
    file_bytes: int

    def epoch_of(self, index: Index) -> Epoch:
        """The epoch of an entry of the segment."""
        at = bisect_right(self.epochs, index, key=_first_index) - 1
        return self.epochs[at][0] if at >= 0 else self.previous_epoch


class LogParts:
    """The parts of one log."""

    __slots__ = ("_row",)

    def __init__(self, row: SegmentRow) -> None:
        self._row = row

    @property
    def open_segment_offset(self) -> Offset:
        """Where the active segment begins. Compaction has used no record from here on."""
        return self._row.active.name.base_offset

    def find(self, start: Offset, end: Offset) -> list[SourcePart]:
        """The parts that hold the batches of [start, end), in order; `start` is not below the log's
        first offset."""
        segments, history = self._row.segments, self._row.history
        before = Offset(max(segments[0].name.base_offset, start - 1))
        parts: list[SourcePart] = []
        for segment in segments[segment_at_offset(segments, before) :]:
            if parts and segment.name.base_offset >= end:
                break
            place = Place(0, segment.name.base_offset, segment.name.base_index)
            if not parts:
                place = _place_at(segment, before)
            parts.append(
                SourcePart(
                    file=segment.file,
                    place=place,
                    end=segment.size_bytes,
                    epochs=history.epochs_between(segment.name.base_index, segment.end_index),
                    previous_epoch=segment.name.previous_epoch,
                    is_closed=segment is not segments[-1],
                    file_bytes=segment.size_bytes,
                )
            )
        return parts


def _place_at(segment: Segment, offset: Offset) -> Place:
    """The last known place at or before the batch that holds `offset`."""
    try:
        position = segment.index.floor_offset(max(0, offset - segment.name.base_offset))
        return segment.place_before(position)
    except (OSError, StorageError):  # The index is lost and cannot be rebuilt.
        return Place(0, segment.name.base_offset, segment.name.base_index)


def _first_index(epoch: tuple[Epoch, Index]) -> Index:
    return epoch[1]
