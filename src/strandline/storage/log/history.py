"""Maps indexes to offsets, epochs and configurations for one log.

Why:    offsets count records, indexes count records and markers. Elections are rare, so all markers
        fit into memory and both directions are a bisection.
How:    index = offset + markers before it.  Two parallel lists hold, for each marker, its index and
        the offset of the data entry that follows it.
Owns:   the lists of one log. Only the log changes them, as it appends, truncates and removes.
Source: design section 4."""

from array import array
from bisect import bisect_left, bisect_right

from strandline.model.ids import Epoch, Index, Offset
from strandline.storage.layout import SegmentName


class History:
    """The epochs, markers and configurations of one log from `start` on."""

    __slots__ = (
        "_marker_indexes",
        "_marker_offsets",
        "configurations",
        "deletions",
        "epochs",
        "is_epoch_covered",
        "start",
        "tier_forgotten",
        "tier_markers",
    )

    def __init__(self, start: SegmentName) -> None:
        self.start = start
        self.epochs: list[tuple[Epoch, Index]] = []
        """(epoch, its first index here), ascending in both."""
        self.configurations: list[tuple[Index, bytes]] = []
        """(index, payload) of each configuration marker, ascending."""
        self.deletions: list[tuple[Index, Offset]] = []
        """(index, records below this offset are deleted) of each deletion marker, ascending in the
        index. The offset is not above its marker's: once the log starts behind the marker, the
        records are gone and the deletion is not needed."""
        self.tier_markers: list[tuple[Index, bytes]] = []
        """(index, payload) of the TIER markers, ascending; those before a committed checkpoint of
        the tier may be forgotten."""
        self.tier_forgotten = Index(0)
        """Markers before this index may be missing above, though the log has them; 0 for none."""
        self.is_epoch_covered: bool | None = None
        """While a log is read: whether a marker's checksum covers the last epoch; None if unknown.
        """
        self._marker_indexes = array("q")
        self._marker_offsets = array("q")

    @property
    def last_epoch(self) -> Epoch:
        """Epoch of the last entry; of the one before the log when it is empty."""
        return self.epochs[-1][0] if self.epochs else self.start.previous_epoch

    @property
    def marker_count(self) -> int:
        """Markers in the whole log, those before its start included."""
        return self.start.markers_before + len(self._marker_indexes)

    def note_epoch(self, epoch: Epoch, index: Index) -> None:
        """The entry at `index`, the log's next, is of `epoch`."""
        if not self.epochs or self.epochs[-1][0] != epoch:
            assert epoch >= self.last_epoch, f"epoch {epoch} after {self.last_epoch}"
            assert not self.epochs or index > self.epochs[-1][1], f"epoch {epoch} at index {index}"
            self.epochs.append((epoch, index))

    def note_marker(
        self,
        index: Index,
        configuration: bytes | None,
        deleted_before: Offset | None = None,
        tier: bytes | None = None,
    ) -> None:
        """The entry at `index`, the log's next, is a marker."""
        last = self._marker_indexes[-1] if self._marker_indexes else self.start.base_index - 1
        assert index > last, f"a marker at index {index} after {last}"
        self._marker_offsets.append(index - self.marker_count)
        self._marker_indexes.append(index)
        if configuration is not None:
            self.configurations.append((index, configuration))
        if deleted_before is not None:
            self.deletions.append((index, deleted_before))
        if tier is not None:
            self.tier_markers.append((index, tier))

    def offset_of(self, index: Index) -> Offset:
        """The offset of the entry at `index`; of the next data entry when that is a marker."""
        before = self.start.markers_before + bisect_left(self._marker_indexes, index)
        return Offset(index - before)

    def index_of(self, offset: Offset) -> Index:
        """The index of the data entry at `offset`."""
        before = self.start.markers_before + bisect_right(self._marker_offsets, offset)
        return Index(offset + before)

    def is_marker(self, index: Index) -> bool:
        """Whether the entry at `index` is a marker."""
        at = bisect_left(self._marker_indexes, index)
        return at < len(self._marker_indexes) and self._marker_indexes[at] == index

    def epoch_of(self, index: Index) -> Epoch:
        """The epoch of the entry at `index`, which is here or is the one just before."""
        at = bisect_right(self.epochs, index, key=_start_of) - 1
        if at < 0:
            assert index == self.start.base_index - 1, f"index {index} is before the log"
            return self.start.previous_epoch
        return self.epochs[at][0]

    def epoch_end_offset(self, epoch: Epoch, end_offset: Offset) -> tuple[Epoch, Offset]:
        """(the greatest epoch <= `epoch`, where it ends), in a log that ends at `end_offset`.

        (-1, -1) for an epoch that is yet to come."""
        if epoch == self.last_epoch:
            return epoch, end_offset
        at = bisect_right(self.epochs, epoch, key=_epoch_of)
        if at == len(self.epochs):
            return Epoch(-1), Offset(-1)
        known = self.epochs[at - 1][0] if at else epoch
        return known, self.offset_of(self.epochs[at][1])

    def runs(self, first: Index, last: Index) -> list[tuple[Epoch, Index]]:
        """The entries from `first` to `last` as (epoch, last index of the run)."""
        at = bisect_right(self.epochs, first, key=_start_of) - 1
        result = []
        while at + 1 < len(self.epochs) and self.epochs[at + 1][1] <= last:
            result.append((self.epochs[at][0], Index(self.epochs[at + 1][1] - 1)))
            at += 1
        result.append((self.epochs[at][0], last))
        return result

    def configurations_between(self, first: Index, last: Index) -> list[tuple[Index, bytes]]:
        """The configurations at `first` to `last`."""
        low = bisect_left(self.configurations, first, key=_index_of)
        high = bisect_right(self.configurations, last, key=_index_of)
        return self.configurations[low:high]

    def deletions_between(self, first: Index, last: Index) -> list[tuple[Index, Offset]]:
        """The deletions at `first` to `last`."""
        return [entry for entry in self.deletions if first <= entry[0] <= last]

    def tier_markers_between(self, first: Index, last: Index) -> list[tuple[Index, bytes]]:
        """The TIER markers at `first` to `last`."""
        low = bisect_left(self.tier_markers, first, key=_index_of)
        high = bisect_right(self.tier_markers, last, key=_index_of)
        return self.tier_markers[low:high]

    def forget_tier_markers(self, before: Index) -> None:
        """The TIER markers before this index are needed no more: a committed checkpoint there has
        what they say. The summaries of segments that are written later lack them, too."""
        count = bisect_left(self.tier_markers, before, key=_index_of)
        if count:
            del self.tier_markers[:count]
            self.tier_forgotten = max(self.tier_forgotten, before)

    def epochs_between(self, first: Index, end: Index) -> list[tuple[Epoch, Index]]:
        """(epoch, its first index at or after `first`), for the entries in [first, end)."""
        return [
            (epoch, max(start, first))
            for at, (epoch, start) in enumerate(self.epochs)
            if max(start, first) < end
            and (at + 1 == len(self.epochs) or self.epochs[at + 1][1] > first)
        ]

    def truncate(self, from_index: Index) -> None:
        """Remove everything from `from_index` on."""
        del self.epochs[bisect_left(self.epochs, from_index, key=_start_of) :]
        del self.configurations[bisect_left(self.configurations, from_index, key=_index_of) :]
        del self.deletions[bisect_left(self.deletions, from_index, key=_index_of) :]
        del self.tier_markers[bisect_left(self.tier_markers, from_index, key=_index_of) :]
        count = bisect_left(self._marker_indexes, from_index)
        del self._marker_indexes[count:], self._marker_offsets[count:]

    def advance(self, start: SegmentName, end_index: Index) -> None:
        """The log begins at `start` and ends before `end_index`: remove everything before it."""
        first = start.base_index
        assert first >= self.start.base_index, f"the start goes back to index {first}"
        at = bisect_right(self.epochs, first, key=_start_of) - 1
        if first >= end_index:
            self.epochs.clear()
        elif at >= 0:
            self.epochs[: at + 1] = [(self.epochs[at][0], first)]
        del self.configurations[: bisect_left(self.configurations, first, key=_index_of)]
        del self.deletions[: bisect_left(self.deletions, first, key=_index_of)]
        del self.tier_markers[: bisect_left(self.tier_markers, first, key=_index_of)]
        count = bisect_left(self._marker_indexes, first)
        del self._marker_indexes[:count], self._marker_offsets[:count]
        self.start = start


def _start_of(entry: tuple[Epoch, Index]) -> Index:
    return entry[1]


def _epoch_of(entry: tuple[Epoch, Index]) -> Epoch:
    return entry[0]


def _index_of(entry: tuple[Index, object]) -> Index:
    return entry[0]
