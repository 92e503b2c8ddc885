"""Finds records by their timestamp.

Why:    ListOffsets asks for the first record at or after a time, and for the newest one.
How:    segments know their highest timestamp, the time index leads near the batch, and the search
        decodes that one batch: the only place where a log reads the records of a batch.
Source: Kafka's ListOffsets; design section 4."""

from collections.abc import Sequence

import msgspec

from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader
from strandline.records.record import NO_TIMESTAMP
from strandline.records.record_times import first_record_since, newest_record
from strandline.storage.log.segment import Segment


def offset_for_time(
    segments: Sequence[Segment], timestamp: int, limit_offset: Offset, *, start_offset: Offset
) -> tuple[int, Offset] | None:
    """(timestamp, offset) of the first record in [start, limit) that is at or after `timestamp`."""
    for segment in segments:
        if segment.name.base_offset >= limit_offset:
            return None
        if segment.max_timestamp < timestamp or segment.max_timestamp_offset < 0:
            continue
        if segment.end_offset <= start_offset:
            continue
        header = segment.find_time(timestamp, start_offset)
        _verify(segment, segment.floor_time(timestamp, start_offset), header)
        while header is not None and header.base_offset < limit_offset:
            found = _first_record(segment, header, timestamp, start_offset)
            if found is not None:
                return found if found[1] < limit_offset else None
            passed = header.position + header.size
            header = _next_reaching(segment, header, timestamp)
            _verify(segment, passed, header)
    return None


def max_timestamp(
    segments: Sequence[Segment], *, start_offset: Offset
) -> tuple[int, Offset] | None:
    """(timestamp, offset) of the first record from `start_offset` on with the highest timestamp of
    those; None for none."""
    best: tuple[int, Segment] | None = None
    for segment in segments:
        highest = _highest(segment, start_offset)
        if highest >= 0 and (best is None or highest > best[0]):
            best = highest, segment
    if best is None:
        return None
    timestamp, segment = best
    found = offset_for_time((segment,), timestamp, segment.end_offset, start_offset=start_offset)
    return found if found is not None else _highest_read(segments, start_offset)


def _highest_read(segments: Sequence[Segment], start_offset: Offset) -> tuple[int, Offset] | None:
    """The answer of `max_timestamp` where a header promises a timestamp that no record has: reads
    the batches that promise the most first."""
    claims: list[tuple[int, int, Segment, BatchHeader]] = []
    for at, segment in enumerate(segments):
        if segment.end_offset > start_offset and segment.max_timestamp >= 0:
            segment.verify(0, segment.size_bytes)
            for header in segment.headers(0, segment.size_bytes):
                if header.records_count and header.next_offset > start_offset:
                    claims.append((-header.max_timestamp, at, segment, header))
    claims.sort(key=lambda claim: claim[:2])
    best: tuple[int, int] | None = None
    for claim, _, segment, header in claims:
        if best is not None and -claim < best[0]:
            break
        found = _newest_record(segment, header, start_offset)
        if found is not None and (best is None or (found[0], -found[1]) > best):
            best = found[0], -found[1]
    return None if best is None or best[0] < 0 else (best[0], Offset(-best[1]))


def _newest_record(
    segment: Segment, header: BatchHeader, start_offset: Offset
) -> tuple[int, Offset] | None:
    """(timestamp, offset) of the batch's newest record from `start_offset` on; None if it is a
    marker or cannot be read."""
    if header.is_control:
        return None
    batch = segment.file.pread(header.size, header.position)
    try:
        return newest_record(batch, _placed(header), start_offset=start_offset)
    except ApiError:
        return None


def _placed(header: BatchHeader) -> BatchHeader:
    """The header of a batch that was read out of its file."""
    return msgspec.structs.replace(header, position=0)


def _highest(segment: Segment, start_offset: Offset) -> int:
    """The highest timestamp of the segment's records from `start_offset` on; -1 for none."""
    if segment.max_timestamp_offset < 0 or segment.end_offset <= start_offset:
        return -1
    if segment.max_timestamp_offset >= start_offset:
        return segment.max_timestamp
    first = segment.find_offset(start_offset)
    segment.verify_from(start_offset, segment.size_bytes)
    if first is None:
        return -1
    highest = -1
    for header in segment.headers(first.position, segment.size_bytes):
        if header.is_marker or not header.records_count:
            continue
        if header.base_offset >= start_offset or header.has_append_time:
            highest = max(highest, header.max_timestamp)
        else:
            highest = max(highest, _timestamp(segment, header, start_offset))
    return highest


def _timestamp(segment: Segment, header: BatchHeader, start_offset: Offset) -> int:
    """The highest of a batch's records from `start_offset` on; -1 for none."""
    batch = segment.file.pread(header.size, header.position)
    try:
        found = newest_record(batch, _placed(header), start_offset=start_offset)
    except ApiError:
        return header.max_timestamp
    return NO_TIMESTAMP if found is None else found[0]


def _verify(segment: Segment, start: int, found: BatchHeader | None) -> None:
    """Verify the batches that a search passed, and the one it found. Raises StorageError."""
    segment.verify(start, segment.size_bytes if found is None else found.position + found.size)


def _next_reaching(segment: Segment, after: BatchHeader, timestamp: int) -> BatchHeader | None:
    """The next batch that claims to reach `timestamp`."""
    for header in segment.headers(after.position + after.size, segment.size_bytes):
        if header.max_timestamp >= timestamp and header.last_offset_delta >= 0:
            return header
    return None


def _first_record(
    segment: Segment, header: BatchHeader, timestamp: int, start_offset: Offset
) -> tuple[int, Offset] | None:
    first = Offset(max(start_offset, header.base_offset))
    if header.has_append_time:
        return (header.max_timestamp, first) if header.records_count else None
    batch = segment.file.pread(header.size, header.position)
    try:
        return first_record_since(batch, _placed(header), timestamp, start_offset=first)
    except ApiError:
        return header.max_timestamp, first  # The header is all that can be read.
