"""Finds records by their timestamp.

Why:    ListOffsets asks for the first record at or after a time, and for the newest one.
How:    segments know their highest timestamp, the time index leads near the batch, and that one
        batch is opened: the only place where a log looks inside a batch.
Source: Kafka's ListOffsets; design section 4."""

from collections.abc import Sequence

from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader
from strandline.records.record import decode_records
from strandline.storage.segment import Segment


def offset_for_time(
    segments: Sequence[Segment], timestamp: int, limit_offset: Offset
) -> tuple[int, Offset] | None:
    """(timestamp, offset) of the first record below the limit that is at or after `timestamp`."""
    for segment in segments:
        if segment.name.base_offset >= limit_offset:
            return None
        if segment.max_timestamp < timestamp or segment.max_timestamp_offset < 0:
            continue
        header = segment.find_time(timestamp)
        _prove(segment, segment.index.floor_time(timestamp), header)
        while header is not None and header.base_offset < limit_offset:
            found = _first_record(segment, header, timestamp)
            if found is not None:
                return found if found[1] < limit_offset else None
            passed = header.position + header.size
            header = _next_reaching(segment, header, timestamp)
            _prove(segment, passed, header)
    return None


def max_timestamp(segments: Sequence[Segment]) -> tuple[int, Offset] | None:
    """(timestamp, offset) of the first record with the highest timestamp; None for none."""
    best: Segment | None = None
    for segment in segments:
        if segment.max_timestamp_offset >= 0 and (
            best is None or segment.max_timestamp > best.max_timestamp
        ):
            best = segment
    if best is None:
        return None
    return offset_for_time((best,), best.max_timestamp, best.end_offset)


def _prove(segment: Segment, start: int, found: BatchHeader | None) -> None:
    """What was passed in a search, and what was found, has to be sound. Raises StorageError."""
    segment.prove(start, segment.size if found is None else found.position + found.size)


def _next_reaching(segment: Segment, after: BatchHeader, timestamp: int) -> BatchHeader | None:
    """The next batch that claims to reach `timestamp`."""
    for header in segment.headers(after.position + after.size, segment.size):
        if header.max_timestamp >= timestamp and header.last_offset_delta >= 0:
            return header
    return None


def _first_record(
    segment: Segment, header: BatchHeader, timestamp: int
) -> tuple[int, Offset] | None:
    if header.has_append_time:
        return (header.max_timestamp, header.base_offset) if header.records_count else None
    batch = segment.file.pread(header.size, header.position)
    try:
        records = decode_records(batch)
    except ApiError:
        return header.max_timestamp, header.base_offset  # The header is all that can be read.
    for record in records:
        if record.timestamp >= timestamp:
            return record.timestamp, Offset(header.base_offset + record.offset_delta)
    return None
