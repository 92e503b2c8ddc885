"""The batches of some parts of a log, in order, each verified.

Why:    a digest of bytes that nobody checked would call two rotten copies different and not say
        which one rots.
How:    `scan.verified_batches` over part after part. If it ends before the range does, the batch
        that should follow is damaged or missing: the walk ends, and `damage` says where.
Owns:   its place.
Source: decision 0052."""

from collections.abc import Callable, Iterator, Sequence

from strandline.base.disk import is_unreadable
from strandline.model.ids import Index, Offset
from strandline.records.batch import (
    BATCH_LENGTH_MIN,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    BatchHeader,
)
from strandline.storage.digests.ranges import NO_OFFSET, Damage
from strandline.storage.digests.source import SourcePart
from strandline.storage.log.checksum_verification import Place
from strandline.storage.log.scan import verified_batches, why_refused

Pace = Callable[[int], bool]
"""Called with the bytes that were read since the last call. It may wait; False: stop here."""

PACE_BYTES = 256 * 1024
PACE_BATCHES = 64
PACE_RECORDS = 32
"""The most work between two calls of the pace; 64 headers, or 32 records decoded and hashed, take
about 0.3 ms."""

Found = tuple[BatchHeader, bytes, int]
"""A batch: its header, a chunk of the file, and where the batch begins in that."""


class VerifiedWalk:
    """Iterate over it once. `start`, `end`: the offsets that the caller needs; a damaged batch that
    ends at or before `start` is passed. `evicts`: the page cache drops closed files first, so that
    the bytes come from the disk."""

    def __init__(
        self,
        parts: Sequence[SourcePart],
        *,
        start: Offset,
        end: Offset,
        pace: Pace,
        evicts: bool = False,
    ) -> None:
        assert parts, "a log has a segment"
        self._parts = parts
        self._start = start
        self._end = end
        self._pace = pace
        self._evicts = evicts
        self._read_bytes = self._batch_count = self._record_count = 0
        # Since the last call of the pace.
        self.offset = parts[0].place.offset
        """All batches below this offset were found."""
        self.damage: Damage | None = None
        self.is_stopped = False
        """Whether the pace ended it."""

    def __iter__(self) -> Iterator[Found]:
        for part in self._parts:
            if self._evicts and part.is_closed:
                part.file.forget_cached(0, part.file_bytes)
            yield from self._walk(part)
            if self._evicts and part.is_closed:
                part.file.forget_cached(0, part.file_bytes)
            if self.damage is not None or self.is_stopped or self.offset >= self._end:
                return
        last = self._parts[-1]
        self._note_damage(last, last.end, "the log ends before it")

    def _walk(self, part: SourcePart) -> Iterator[Found]:
        place = part.place
        if place.offset != self.offset:
            reason = f"the next segment begins at offset {place.offset}"
            self._note_damage(part, place.position, reason)
            return
        while True:
            reached = place
            try:
                for header, chunk, at in verified_batches(
                    part.file,
                    place.position,
                    end=part.end,
                    until=part.end,
                    offset=place.offset,
                    epoch=part.epoch_of(place.raft_index),
                ):
                    if header.base_offset >= self._end:
                        return
                    if header.partition_leader_epoch != part.epoch_of(reached.raft_index):
                        break
                    yield header, chunk, at
                    reached = _after(reached, header)
                    self.offset = reached.offset
                    self._read_bytes += header.size
                    self._batch_count += 1
                    if self._batch_count >= PACE_BATCHES or self._read_bytes >= PACE_BYTES:
                        self._rest()
                    if self.is_stopped:
                        return
            except OSError as error:
                if not is_unreadable(error):
                    raise
            if reached.position >= part.end or reached.offset >= self._end:
                return
            behind = _sound_after(part, reached)
            if behind is None or behind.offset > self._start:
                self._note_damage(part, reached.position, _why(part, reached), behind)
                return
            place = behind
            self.offset = behind.offset

    def note_record(self) -> None:
        """The caller has decoded and hashed a record, which takes as long as two headers."""
        self._record_count += 1
        if self._record_count >= PACE_RECORDS:
            self._rest()

    def _rest(self) -> None:
        self.is_stopped = not self._pace(self._read_bytes) or self.is_stopped
        self._read_bytes = self._batch_count = self._record_count = 0

    def _note_damage(
        self, part: SourcePart, position: int, reason: str, behind: Place | None = None
    ) -> None:
        end = NO_OFFSET if behind is None else behind.offset
        self.damage = Damage(self.offset, end, part.file.path, position, reason)


def _after(place: Place, header: BatchHeader) -> Place:
    return Place(
        place.position + header.size,
        header.next_offset,
        Index(place.raft_index + header.index_count),
    )


def _why(part: SourcePart, place: Place) -> str:
    """Why the batch there does not count."""
    try:
        return why_refused(
            part.file,
            place.position,
            end=part.end,
            offset=place.offset,
            epoch=part.epoch_of(place.raft_index),
            is_epoch_covered=True,
        )
    except OSError as error:
        return f"the disk cannot read it: {error.strerror or error}"


def _sound_after(part: SourcePart, place: Place) -> Place | None:
    """Where sound batches go on if only the batch at `place` is damaged, by its own header and the
    next one; None if that is not known."""
    header = _header_at(part, place.position)
    if header is None or header.base_offset != place.offset or header.is_marker:
        return None
    behind = _after(place, header)
    if behind.position == part.end:
        return behind
    following = _header_at(part, behind.position) if behind.position < part.end else None
    return behind if following is not None and following.base_offset == behind.offset else None


def _header_at(part: SourcePart, position: int) -> BatchHeader | None:
    """The header there, if it looks like one."""
    try:
        head = part.file.pread(HEADER_BYTES, position)
    except OSError:
        return None
    if len(head) < HEADER_BYTES:
        return None
    header = BatchHeader(position, *HEADER.unpack(head))
    is_one = header.magic == MAGIC and header.batch_length >= BATCH_LENGTH_MIN
    return header if is_one and header.last_offset_delta >= -1 else None
