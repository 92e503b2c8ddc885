"""Where one log begins and ends, its epochs and its markers: read from its segments.

Owns:   nothing; `Log` extends it.
Source: design section 4."""

from strandline.model.ids import Epoch, Index, Offset
from strandline.storage.layout import SegmentName
from strandline.storage.log.reads import segment_at_index
from strandline.storage.log.row import SegmentRow


class LogBounds:
    """`start_*` and `last_index` are inclusive, `end_offset` is exclusive."""

    def __init__(self, row: SegmentRow) -> None:
        self._row = row

    @property
    def start_offset(self) -> Offset:
        """The first offset that the log still has."""
        return self._row.history.start.base_offset

    @property
    def start_index(self) -> Index:
        """The first index that the log still has."""
        return self._row.history.start.base_index

    @property
    def previous_epoch(self) -> Epoch:
        """The epoch of the entry just before `start_index`; 0 for none."""
        return self._row.history.start.previous_epoch

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""
        return self._row.active.end_offset

    @property
    def last_index(self) -> Index:
        """The index of the last entry; `start_index - 1` when the log is empty."""
        return Index(self._row.active.end_index - 1)

    @property
    def last_epoch(self) -> Epoch:
        """The epoch of the last entry; `previous_epoch` when the log is empty."""
        return self._row.history.last_epoch

    @property
    def epochs(self) -> list[tuple[Epoch, Index]]:
        """(epoch, its first index here), ascending. The log's own list: copy it to keep it."""
        return self._row.history.epochs

    @property
    def configurations(self) -> list[tuple[Index, bytes]]:
        """(index, payload) of the configuration markers, ascending. The log's own list."""
        return self._row.history.configurations

    @property
    def deletions(self) -> list[tuple[Index, Offset]]:
        """(index, records below this offset are deleted) of the deletion markers, ascending in the
        index. The log's own list."""
        return self._row.history.deletions

    @property
    def tier_markers(self) -> list[tuple[Index, bytes]]:
        """(index, payload) of the TIER markers, ascending. The log's own list."""
        return self._row.history.tier_markers

    @property
    def has_tier_or_deletions(self) -> bool:
        """Whether it has any of these two kinds of markers."""
        history = self._row.history
        return bool(history.tier_markers or history.deletions)

    @property
    def tier_forgotten(self) -> Index:
        """See `History.tier_forgotten`."""
        return self._row.history.tier_forgotten

    def forget_tier_markers(self, before: Index) -> None:
        """See `History.forget_tier_markers`."""
        self._row.history.forget_tier_markers(before)

    def epoch_of(self, index: Index) -> Epoch:
        """The epoch of an entry; `start_index - 1 <= index <= last_index`."""
        return self._row.history.epoch_of(index)

    def offset_of(self, index: Index) -> Offset:
        """The offset of the entry at `index`; of the next data entry when that is a marker."""
        return self._row.history.offset_of(index)

    def index_of(self, offset: Offset) -> Index:
        """The index of the data entry at `offset`."""
        return self._row.history.index_of(offset)

    def epoch_end_offset(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """(the greatest epoch <= `epoch`, the offset where it ends); (-1, -1) when unknown.

        Kafka's OffsetForLeaderEpoch: an epoch before the log ends where the log begins."""
        return self._row.history.epoch_end_offset(epoch, self.end_offset)

    def segment_at(self, index: Index) -> SegmentName:
        """The name of the last segment that begins at or before `index`, or of the first one."""
        return self._row.segments[segment_at_index(self._row.segments, index)].name

    def size_before(self, index: Index) -> int:
        """Bytes of batches in the segments that end at or before `index`."""
        return sum(one.size_bytes for one in self._row.segments if one.end_index <= index)

    def size_bytes(self) -> int:
        """Bytes of batches in all segments."""
        segments = self._row.segments
        if len(segments) == 1:  # As most logs have: a report sums up thousands of them.
            return segments[0].size_bytes
        return sum(segment.size_bytes for segment in segments)
