"""Verifies the checksums of a segment before a reader gets its bytes.

Why:    a reader gets bytes from the page cache, and the kernel reads them from the disk again after
        it has evicted them. Without a check, the broker would serve a flipped bit as sound data.
How:    |--verified--|.........|--verified--|.....................| end    written later
        A reader verifies the bytes it asks for if an earlier process wrote them, or if they were
        written or verified more than `trust_ms` ago. Newer bytes are trusted: many readers read
        the end of a log, and each would verify the same bytes again.
        A walk over headers and checksums starts at a place that is known without reading the
        segment: its base, an entry of the sparse index (whose file has its own checksum), or the
        end of an earlier walk. No checksum covers offsets, epochs and lengths, so the walk checks
        that each batch continues the one before.
Owns:   the ranges verified since the whole segment last became unverified.
Source: reliability reference 3 (a CRC per batch, checked on read)."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from strandline.base.clock import Clock
from strandline.base.disk import File, is_unreadable
from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import OFFSET_FIELD
from strandline.storage.layout import LOG, SegmentName
from strandline.storage.log.scan import verified_batches


class Place(NamedTuple):
    """Where a batch begins: its position in the file, and the offset and index it must have."""

    position: int
    offset: Offset
    """The batch's own offset; for a marker, that of the next data batch."""
    raft_index: Index


class VerifiableSegment(Protocol):
    """The part of a segment that verification uses."""

    name: SegmentName
    end_index: Index

    @property
    def file(self) -> File:
        """The open file."""

    def path(self, suffix: str) -> str:
        """The path of the segment's file with that suffix."""

    def place_before(self, position: int) -> Place:
        """The nearest place at or before `position` that is known without reading the segment."""


class TrustPeriod(NamedTuple):
    """For how long the segments of one log are trusted after they were written or verified."""

    clock: Clock
    period_ms: int
    epochs_of: Callable[[VerifiableSegment], Sequence[tuple[Epoch, Index]]]
    """(epoch, its first index in the segment), ascending."""


class Unverified:
    """The part of a segment below `end` that has not been verified yet.

    `epochs`: (epoch, its first index in the segment), as the log or the summary has them."""

    __slots__ = ("_ends", "_epochs", "_starts", "end")

    def __init__(self, end: int, epochs: Sequence[tuple[Epoch, Index]]) -> None:
        self.end = end
        self._epochs = epochs
        self._starts: list[int] = []
        """Positions where verified ranges begin, ascending; no two ranges touch."""
        self._ends: list[Place] = []

    def cut(self, position: int) -> None:
        """The segment was cut at `position`: nothing at or above it is left to verify."""
        if position < self.end:
            self.end = position
            # Cuts are rare: the part below is simply verified again.
            self._starts.clear()
            self._ends.clear()

    def verify(
        self, segment: VerifiableSegment, start: int, end: int, *, checks_next: bool = True
    ) -> bool:
        """Verify the batches in [start, end), where `end <= self.end`: each has the right checksum
        and continues the one before. Returns whether nothing is left to verify. Raises StorageError
        for a damaged batch.

        `checks_next`: also check that the batch at `end` has the right offset, because a search may
        have stopped here only because that offset is damaged. Without it, the range does not count
        as verified."""
        at = bisect_right(self._starts, start) - 1
        if at >= 0 and self._ends[at].position >= end:
            return False
        if at >= 0 and self._ends[at].position >= start:
            first = self._ends[at]
        else:
            first = segment.place_before(start)
        verified_end = self._walk(segment, first, end, checks_next=checks_next)
        if not checks_next:
            return False
        self._add(first.position, verified_end)
        return self._starts == [0] and self._ends[0].position == self.end

    def _walk(
        self, segment: VerifiableSegment, first: Place, end: int, *, checks_next: bool
    ) -> Place:
        position, offset, index = first
        batches = verified_batches(
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
            is_whole = not checks_next or end == self.end or _offset_at(segment, end) == offset
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

    def _epoch_of(self, segment: VerifiableSegment, index: Index) -> Epoch:
        at = bisect_right(self._epochs, index, key=_first_index) - 1
        return self._epochs[at][0] if at >= 0 else segment.name.previous_epoch

    def _add(self, start: int, end: Place) -> None:
        """Add [start, end) to the verified ranges."""
        assert start < end.position <= self.end, f"[{start}, {end.position}) of {self.end} bytes"
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


def _offset_at(segment: VerifiableSegment, position: int) -> int:
    data = segment.file.pread(OFFSET_FIELD.size, position)
    return OFFSET_FIELD.unpack(data)[0] if len(data) == OFFSET_FIELD.size else -1


def _first_index(epoch: tuple[Epoch, Index]) -> Index:
    return epoch[1]
