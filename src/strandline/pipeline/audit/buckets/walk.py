"""The batches of one object, in order, each verified.

Why:    a checksum of a chunk says that a megabyte is wrong; the audit wants the batch.
How:    pieces of the data come one after the other. A batch counts if its header is valid, its
        offset continues the one before, its epoch is the log's, and its CRC is right. Behind one
        that does not, the walk goes on at the next batch, if the header says where that is, or at
        the next place that the trailer's index knows.
        A chunk with a wrong checksum whose batches are all sound has other batches than the log.
Owns:   its place.
Source: decision 0057, "One object"."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

from strandline.base.disk import Buffer
from strandline.model.ids import Epoch
from strandline.pipeline.audit.buckets.objects import Fault
from strandline.pipeline.audit.results import FindingKind
from strandline.pipeline.audit.tasks import Bounds
from strandline.records.batch import (
    BATCH_LENGTH_MIN,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
    crc_of,
)
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer


class Sums(Protocol):
    """What takes the sound batches."""

    def add(self, header: BatchHeader, chunk: Buffer, at: int) -> None:
        """Take the batch at this place of a chunk, which does not change."""


class ObjectWalk:
    """See the module. `sums` gets the batches. `trailer`: if it can be trusted. `first`: (position,
    offset) of the batch with which the data begins; `end`: the position behind it."""

    def __init__(
        self,
        entry: SegmentEntry,
        sums: Sums,
        *,
        trailer: Trailer | None,
        first: tuple[int, int],
        end: int,
    ) -> None:
        self._entry = entry
        self._trailer = trailer
        self._end = end
        self._sums = sums
        self._position, self.offset = first
        """Of the next batch."""
        self._read_to = first[0]
        self._rest: Buffer = b""
        """The bytes before that position which are of no whole batch yet."""
        self._is_lost = False
        """Whether it is unknown where the next batch begins."""
        self._wrong: dict[Bounds, list[int]] = {}
        """{[start, end) of a chunk with a wrong checksum: [first, end) of its sound batches}."""
        self.faults: list[Fault] = []

    def add(self, data: Buffer, *, wrong: Sequence[Bounds] = ()) -> None:
        """Take the next piece of the data. `wrong`: chunks of it, by positions in the object, whose
        checksums are not those of the trailer."""
        for chunk in wrong:
            self._wrong[chunk] = []
        piece: Buffer = b"".join((self._rest, data)) if self._rest else memoryview(data)
        start = self._read_to - len(self._rest)
        self._read_to += len(data)
        self._take(piece, start)
        self._rest = b"" if self._is_lost else bytes(memoryview(piece)[self._position - start :])

    def finish(self) -> None:
        """The data has ended."""
        if not self._is_lost and self._position < self._end:
            reason = f"{len(self._rest)} bytes, less than a batch"
            self._note(self._entry.end_offset, reason, is_cut=True)
        elif not self._is_lost and self._end >= self._entry.data_bytes:
            self._note_end()
        unlike = [found for found in self._wrong.values() if found]
        if unlike:
            self.faults.append(
                Fault(
                    FindingKind.DIFFERENT,
                    min(found[0] for found in unlike),
                    max(found[1] for found in unlike),
                    "its batches are sound, but have another checksum than the log says",
                    is_placed=False,
                )
            )

    # ---- batches -------------------------------------------------------------------------------

    def _take(self, piece: Buffer, start: int) -> None:
        """Take the whole batches of a piece that begins at a position of the object."""
        size = len(piece)
        while not self._is_lost and self._position < self._end:
            at = self._position - start
            if size - at < HEADER_BYTES:
                return
            header = BatchHeader(self._position, *HEADER.unpack_from(piece, at))
            reason = self._why_not(header)
            if not reason and size - at < header.size:
                return
            if not reason and (found := crc_of(piece, at, header.size)) != header.crc:
                reason = f"a batch with the checksum {found:08x}, not {header.crc:08x}"
            if reason:
                behind = at + header.size
                if self._has_more(header) and size - behind < HEADER_BYTES:
                    return  # The next header tells whether the walk can go on there.
                self._go_on(header, reason, piece, behind)
                continue
            self._sums.add(header, piece, at)
            self._see(header)
            self._position += header.size
            self.offset = header.next_offset

    def _why_not(self, header: BatchHeader) -> str:
        """Why this is not the next batch, by its header; empty if it may be."""
        if header.magic != MAGIC or header.batch_length < BATCH_LENGTH_MIN:
            return "no header of a batch"
        if header.position + header.size > self._end:
            left = self._end - header.position
            return f"a batch of {header.size} bytes, {left} of which are there"
        if header.last_offset_delta < 0:
            return f"a batch whose last offset delta is {header.last_offset_delta}"
        if header.base_offset != self.offset:
            return f"a batch at offset {header.base_offset}"
        if header.next_offset > self._entry.end_offset:
            return f"a batch up to offset {header.last_offset}, beyond the object's end"
        epoch = self._epoch_at(header.base_offset)
        if header.partition_leader_epoch != epoch:
            return f"a batch of epoch {header.partition_leader_epoch}, not {epoch}"
        return ""

    def _epoch_at(self, offset: int) -> Epoch:
        epochs = self._entry.epochs
        at = bisect_right(epochs, offset, key=lambda one: one[1]) - 1
        return epochs[max(at, 0)][0]

    def _has_more(self, header: BatchHeader) -> bool:
        """Whether a header of this size can be the next one, and lies within the data."""
        return (
            header.batch_length >= BATCH_LENGTH_MIN
            and header.position + header.size + HEADER_BYTES <= self._end
        )

    # ---- behind a batch that does not count ------------------------------------------------------

    def _go_on(self, header: BatchHeader, reason: str, piece: Buffer, behind: int) -> None:
        """Leave a bad batch out. `behind`: where in the piece it ends, if its size is right."""
        position, offset = self._next_place(header, piece, behind)
        self._note(offset, reason, is_cut=header.position + header.size > self._end)
        for chunk in [one for one in self._wrong if one[0] < position and self._position < one[1]]:
            del self._wrong[chunk]
        self._is_lost = position >= self._end and offset < self._entry.end_offset
        self._position, self.offset = position, offset

    def _next_place(self, header: BatchHeader, piece: Buffer, behind: int) -> tuple[int, int]:
        """(position, offset) of a batch that may come next."""
        at = behind - header.size
        is_later = self.offset < header.base_offset < self._entry.end_offset
        is_whole = header.magic == MAGIC and behind <= len(piece)
        if is_later and is_whole and crc_of(piece, at, header.size) == header.crc:
            return header.position, header.base_offset  # Those before it are missing.
        if self._has_more(header) and header.base_offset == self.offset:
            following = BatchHeader(0, *HEADER.unpack_from(piece, behind))
            if following.magic == MAGIC and following.base_offset == header.next_offset:
                return header.position + header.size, header.next_offset
        ends_data = header.position + header.size == self._end
        if ends_data and (header.base_offset, header.next_offset) == (
            self.offset,
            self._entry.end_offset,
        ):
            return self._end, header.next_offset
        if self._trailer is not None:
            known = self._trailer.positions
            at = bisect_right(known, self._position)
            if at < len(known) and known[at] < self._end:
                return known[at], self._trailer.base_offset + self._trailer.offsets[at]
        return self._end, self._entry.end_offset

    def _see(self, header: BatchHeader) -> None:
        """A sound batch lies in these chunks."""
        for (low, high), found in self._wrong.items():
            if low < header.position + header.size and header.position < high:
                found[:] = (found[0] if found else header.base_offset, header.next_offset)

    def _note(self, end_offset: int, reason: str, *, is_cut: bool) -> None:
        """The next batch does not count. `is_cut`: the data ends within it."""
        is_missing = is_cut and self._end < self._entry.data_bytes
        kind = FindingKind.MISSING if is_missing else FindingKind.DAMAGED
        self.faults.append(Fault(kind, self.offset, max(end_offset, self.offset + 1), reason))

    def _note_end(self) -> None:
        """All data was read: it has to end where the object does."""
        end = self._entry.end_offset
        if self.offset < end:
            reason = f"its batches end at offset {self.offset}, and the log says {end}"
            self.faults.append(Fault(FindingKind.MISSING, self.offset, end, reason))
