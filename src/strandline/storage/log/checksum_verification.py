"""What of a segment is to be proved before it is believed: all that may come from the disk.

Why:    what a reader gets goes from the page cache to the socket, and the cache has it from the
        disk whenever it had to let go of it: unless somebody looks, a flipped byte is served as if
        it were sound. So a reader has the bytes looked at that it asks for, those that an earlier
        process wrote, and those that were written or looked at more than a few seconds ago: the
        newest ones, which everybody reads, are not looked at for each of them.
How:    |----proved----|.........|--proved--|.....................| end    written since
        A walk over headers and checksums begins where the place in the log is known: at the
        segment's base, at an entry of the sparse index (whose file has a checksum of its own), or
        where an earlier walk ended. Offsets, epochs and lengths, which no checksum covers, must be
        those that follow.
Owns:   the ranges that were proved since all of the segment was last in doubt.
Source: reliability reference 3 (a CRC per batch, checked on read)."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from strandline.base.clock import Clock
from strandline.base.disk import is_unreadable
from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import OFFSET_FIELD
from strandline.storage.layout import LOG
from strandline.storage.log.scan import proved_batches

if TYPE_CHECKING:
    from strandline.storage.log.segment import Segment


class Place(NamedTuple):
    """The beginning of a batch: where it is in the file, and what has to stand there."""

    position: int
    offset: Offset
    """Of the batch, or of the next data batch when it is a marker."""
    raft_index: Index


class Trust(NamedTuple):
    """How long the segments of one log are believed once they were written, or proved."""

    clock: Clock
    ms: int
    epochs_of: Callable[["Segment"], Sequence[tuple[Epoch, Index]]]
    """(epoch, its first index in the segment), ascending."""


class Unproved:
    """The part of a segment up to `end`, as far as it has not been proved.

    `epochs`: (epoch, its first index in the segment), as the log or the summary has them."""

    __slots__ = ("_ends", "_epochs", "_starts", "end")

    def __init__(self, end: int, epochs: Sequence[tuple[Epoch, Index]]) -> None:
        self.end = end
        self._epochs = epochs
        self._starts: list[int] = []
        """Positions where proved ranges begin, ascending; no two ranges touch."""
        self._ends: list[Place] = []

    def cut(self, position: int) -> None:
        """What is at `position` and above is gone."""
        if position < self.end:
            self.end = position
            # Rare: what is left may be proved again.
            self._starts.clear()
            self._ends.clear()

    def prove(self, segment: "Segment", start: int, end: int, *, sees_next: bool = True) -> bool:
        """See that the batches in [start, end) are those that were written, and follow each other
        up to `end <= self.end`; whether nothing is left to prove. Raises StorageError where they do
        not.

        `sees_next`: also that what follows has the right offset, for a search may have ended here
        because it has not. Without that, nothing is noted."""
        at = bisect_right(self._starts, start) - 1
        if at >= 0 and self._ends[at].position >= end:
            return False
        if at >= 0 and self._ends[at].position >= start:
            first = self._ends[at]
        else:
            first = segment.place_before(start)
        proved_end = self._walk(segment, first, end, sees_next=sees_next)
        if not sees_next:
            return False
        self._add(first.position, proved_end)
        return self._starts == [0] and self._ends[0].position == self.end

    def _walk(self, segment: "Segment", first: Place, end: int, *, sees_next: bool) -> Place:
        position, offset, index = first
        batches = proved_batches(
            segment.file,
            position,
            end=self.end,
            until=end,
            offset=offset,
            epoch=self._epoch_of(segment, index),
        )
        try:
            for header, _, _ in batches:
                if header.partition_leader_epoch != self._epoch_of(segment, index):
                    break
                position += header.size
                offset = header.next_offset
                index = Index(index + header.index_count)
            is_whole = not sees_next or end == self.end or _offset_at(segment, end) == offset
            if position == end and is_whole:
                return Place(position, offset, index)
            found = f"damaged bytes, {segment.file.pread(16, position).hex()}"
        except OSError as error:
            if not is_unreadable(error):
                raise
            found = str(error)
        raise StorageError(
            segment.path(LOG),
            position,
            expected=f"the batch of index {index} with the right checksum",
            found=found,
        )

    def _epoch_of(self, segment: "Segment", index: Index) -> Epoch:
        at = bisect_right(self._epochs, index, key=_first_index) - 1
        return self._epochs[at][0] if at >= 0 else segment.name.previous_epoch

    def _add(self, start: int, end: Place) -> None:
        """Note that [start, end) is proved."""
        low = bisect_right(self._starts, start) - 1
        if low < 0 or self._ends[low].position < start:
            low += 1
        else:
            start = self._starts[low]
        high = low
        while high < len(self._starts) and self._starts[high] <= end.position:
            if self._ends[high].position > end.position:
                end = self._ends[high]
            high += 1
        self._starts[low:high] = [start]
        self._ends[low:high] = [end]


def _offset_at(segment: "Segment", position: int) -> int:
    data = segment.file.pread(OFFSET_FIELD.size, position)
    return OFFSET_FIELD.unpack(data)[0] if len(data) == OFFSET_FIELD.size else -1


def _first_index(epoch: tuple[Epoch, Index]) -> Index:
    return epoch[1]
