"""Digests of stored bytes, and of records, over ranges of one log.

Why:    equal digests of equal ranges are the proof; the smaller the range, the closer they name a
        difference.
How:    one walk over all ranges. BYTES hashes runs of neighbouring batches in one call, which
        releases the interpreter for other threads. RECORDS decodes each batch that overlaps a
        range.
Owns:   the hashes of one request.
Source: decision 0052."""

import hashlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from struct import Struct

from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader
from strandline.records.record import Record, decode_records
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
        self.chunk = b""
        self.start = self.end = 0

    def add(self, target: _Sum, chunk: bytes, at: int, size: int) -> None:
        if target is not self.sum or chunk is not self.chunk or at != self.end:
            self.flush()
            self.sum, self.chunk, self.start = target, chunk, at
        self.end = at + size

    def flush(self) -> None:
        if self.sum is not None:
            self.sum.hash.update(memoryview(self.chunk)[self.start : self.end])
            self.sum = None


def digest_contents(
    parts: Sequence[SourcePart],
    ranges: Sequence[OffsetRange],
    *,
    kind: DigestKind,
    bytes_max: int,
    pace: Pace,
    evicts: bool = False,
) -> Digested:
    """The digests of BYTES or RECORDS of these ranges, which ascend and do not overlap; `parts`
    hold them all. Ends after the range in which it has read `bytes_max`. Raises OSError."""
    walk = VerifiedWalk(parts, start=ranges[0].start, end=ranges[-1].end, pace=pace, evicts=evicts)
    sums = [_Sum(one) for one in ranges]
    starts = [one.start for one in ranges]
    run = _Run()
    read_bytes = done = 0
    for header, chunk, at in walk:
        while done < len(sums) and sums[done].range.end <= header.base_offset:
            done += 1
        if read_bytes >= bytes_max and done and header.base_offset >= sums[done].range.start:
            break
        read_bytes += header.size
        if kind is DigestKind.BYTES:
            _add_batch(run, sums, starts, header, chunk, at)
        elif not header.is_marker:
            _add_records(sums, starts, header, chunk, at, walk.note_record)
    run.flush()
    if walk.damage is None and not walk.is_stopped and walk.offset >= ranges[-1].end:
        done = len(sums)
    while done < len(sums) and sums[done].range.end <= walk.offset:
        done += 1
    return Digested(tuple(one.done() for one in sums[:done]), walk.damage)


def _range_at(sums: Sequence[_Sum], starts: Sequence[Offset], offset: Offset) -> _Sum | None:
    """The range that holds the offset."""
    at = bisect_right(starts, offset) - 1
    return sums[at] if at >= 0 and offset < sums[at].range.end else None


def _add_batch(
    run: _Run,
    sums: Sequence[_Sum],
    starts: Sequence[Offset],
    header: BatchHeader,
    chunk: bytes,
    at: int,
) -> None:
    target = _range_at(sums, starts, header.base_offset)
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
    run.add(target, chunk, at, header.size)


def _add_records(
    sums: Sequence[_Sum],
    starts: Sequence[Offset],
    header: BatchHeader,
    chunk: bytes,
    at: int,
    note_record: Callable[[], None],
) -> None:
    low = max(bisect_right(starts, header.base_offset) - 1, 0)
    high = bisect_right(starts, header.last_offset)
    touched = [one for one in sums[low:high] if one.range.end > header.base_offset]
    if not touched:
        return
    try:
        records = decode_records(chunk, at)
    except ApiError:  # Its checksum is right: a producer wrote what cannot be read.
        raw = bytes(memoryview(chunk)[at : at + header.size])
        records = [Record(offset_delta=0, value=raw)]
    for one in touched:
        one.batches += 1
        one.size_bytes += header.size
    starts = [one.range.start for one in touched]
    for record in records:
        note_record()
        offset = Offset(header.base_offset + record.offset_delta)
        target = _range_at(touched, starts, offset)
        if target is not None:
            target.records += 1
            target.note(offset, offset)
            target.hash.update(canonical(offset, record))


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
