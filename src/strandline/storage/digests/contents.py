"""Digests of stored bytes, and of records, over ranges of one log.

Why:    equal digests of equal ranges are the proof; the smaller the range, the closer they name a
        difference.
How:    one walk over all ranges. BYTES and BATCHES hash runs of neighbouring batches in one call,
        which releases the interpreter for other threads. RECORDS decodes each batch that overlaps
        a range.
Owns:   the hashes of one request.
Source: decision 0052."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from struct import Struct

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader
from strandline.records.record import ITEMS_MAX, Record, decode_records
from strandline.storage.digests.ranges import (
    DIGEST_BYTES,
    NO_OFFSET,
    Digested,
    DigestKind,
    OffsetRange,
    RangeDigest,
)
from strandline.storage.digests.source import SourcePart
from strandline.storage.digests.walk import Pace, VerifiedWalk

_RECORD = Struct(">qqii")
"""Offset, timestamp, length of the key and of the value (-1 for null)."""
_HEADER = Struct(">ii")


class _Sum:
    """What one range has so far."""

    __slots__ = ("batches", "first", "hash", "last", "markers", "range", "records", "size_bytes")

    def __init__(self, wanted: OffsetRange) -> None:
        self.range = wanted
        self.hash = hashlib.sha256()
        self.records = self.batches = self.markers = self.size_bytes = 0
        self.first = self.last = NO_OFFSET

    def note(self, first: Offset, last: Offset) -> None:
        if self.first < 0:
            self.first = first
        self.last = last

    def done(self) -> RangeDigest:
        return RangeDigest(
            records=self.records,
            batches=self.batches,
            markers=self.markers,
            size_bytes=self.size_bytes,
            first_offset=self.first,
            last_offset=self.last,
            digest=self.hash.digest()[:DIGEST_BYTES],
        )


class _Run:
    """Neighbouring batches of one chunk, which are hashed together."""

    __slots__ = ("chunk", "end", "start", "sum")

    def __init__(self) -> None:
        self.sum: _Sum | None = None
        self.chunk: Buffer = b""
        self.start = self.end = 0

    def add(self, target: _Sum, chunk: Buffer, at: int, size: int) -> None:
        if target is not self.sum or chunk is not self.chunk or at != self.end:
            self.flush()
            self.sum, self.chunk, self.start = target, chunk, at
        self.end = at + size

    def flush(self) -> None:
        if self.sum is not None:
            self.sum.hash.update(memoryview(self.chunk)[self.start : self.end])
            self.sum = None


class RangeSums:
    """The digests of BYTES, BATCHES or RECORDS of these ranges, which ascend and do not overlap:
    takes one batch after the other, by ascending offsets. `note_record` is called for each record
    that was decoded."""

    def __init__(
        self,
        ranges: Sequence[OffsetRange],
        kind: DigestKind,
        note_record: Callable[[], None] = lambda: None,
    ) -> None:
        assert not kind.is_latest
        self._kind = kind
        self._note_record = note_record
        self._sums = [_Sum(one) for one in ranges]
        self._starts = [one.start for one in ranges]
        self._run = _Run()

    def add(self, header: BatchHeader, chunk: Buffer, at: int) -> None:
        """Take the batch that begins at a position of a chunk, which must not change."""
        if self._kind is DigestKind.RECORDS:
            if not header.is_marker:
                self._add_records(header, chunk, at)
        elif not (header.is_marker and self._kind is DigestKind.BATCHES):
            self._add_batch(header, chunk, at)

    def done(self, count: int) -> tuple[RangeDigest, ...]:
        """The digests of the first ranges."""
        self._run.flush()
        return tuple(one.done() for one in self._sums[:count])

    def _range_at(self, offset: Offset) -> _Sum | None:
        """The range that holds the offset."""
        at = bisect_right(self._starts, offset) - 1
        return self._sums[at] if at >= 0 and offset < self._sums[at].range.end else None

    def _add_batch(self, header: BatchHeader, chunk: Buffer, at: int) -> None:
        target = self._range_at(header.base_offset)
        if target is None:
            return
        if header.is_marker:
            if header.base_offset == target.range.start and not target.range.first_markers:
                return
            target.markers += 1
        else:
            target.batches += 1
            target.records += header.records_count
            target.note(header.base_offset, Offset(header.last_offset))
        target.size_bytes += header.size
        self._run.add(target, chunk, at, header.size)

    def _add_records(self, header: BatchHeader, chunk: Buffer, at: int) -> None:
        low = max(bisect_right(self._starts, header.base_offset) - 1, 0)
        high = bisect_right(self._starts, header.last_offset)
        touched = [one for one in self._sums[low:high] if one.range.end > header.base_offset]
        if not touched:
            return
        try:
            records = decode_records(chunk, at, items_max=ITEMS_MAX)
        except ApiError:  # Its checksum is right: a producer wrote what cannot be read.
            raw = bytes(memoryview(chunk)[at : at + header.size])
            records = [Record(offset_delta=0, value=raw)]
        for one in touched:
            one.batches += 1
            one.size_bytes += header.size
        for record in records:
            self._note_record()
            offset = Offset(header.base_offset + record.offset_delta)
            target = self._range_at(offset)
            if target is not None:
                target.records += 1
                target.note(offset, offset)
                target.hash.update(canonical(offset, record))


def digest_contents(
    parts: Sequence[SourcePart],
    ranges: Sequence[OffsetRange],
    *,
    kind: DigestKind,
    bytes_max: int,
    pace: Pace,
    evicts: bool = False,
) -> Digested:
    """The digests of these ranges, as `RangeSums` makes them; `parts` hold them all. Ends after the
    range in which it has read `bytes_max`. Raises OSError."""
    walk = VerifiedWalk(parts, start=ranges[0].start, end=ranges[-1].end, pace=pace, evicts=evicts)
    sums = RangeSums(ranges, kind, walk.note_record)
    read_bytes = done = 0
    for header, chunk, at in walk:
        while done < len(ranges) and ranges[done].end <= header.base_offset:
            done += 1
        if read_bytes >= bytes_max and done and header.base_offset >= ranges[done].start:
            break
        read_bytes += header.size
        sums.add(header, chunk, at)
    if walk.damage is None and not walk.is_stopped and walk.offset >= ranges[-1].end:
        done = len(ranges)
    while done < len(ranges) and ranges[done].end <= walk.offset:
        done += 1
    return Digested(sums.done(done), walk.damage)


def canonical(offset: Offset, record: Record) -> bytes:
    """A record as bytes that depend on nothing but its content and offset: not on its batch."""
    key, value = record.key, record.value
    parts = [
        _RECORD.pack(
            offset,
            record.timestamp,
            -1 if key is None else len(key),
            -1 if value is None else len(value),
        ),
        key or b"",
        value or b"",
    ]
    for name, content in record.headers:
        raw = name.encode(errors="surrogateescape")
        parts.append(_HEADER.pack(len(raw), -1 if content is None else len(content)))
        parts += (raw, content or b"")
    return b"".join(parts)
