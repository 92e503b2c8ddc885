"""Finds records of one batch by their timestamps.

Why:    look-ups by time read client's batches on the event loop: a batch of a kilobyte may have
        millions of records, or of headers.
How:    decompress (bounded) -> the compiled walk over records whose offsets are dense. Where
        compaction has left holes, or where a search begins within the batch, the records are
        decoded one by one, at most `ITEMS_MAX` of them with their headers.
Source: Kafka's ListOffsets; docs/decisions/0044-inside-a-batch.md."""

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import HEADER_BYTES, BatchHeader
from strandline.records.codec import decompress
from strandline.records.contents import NO_RECORD, first_since, walk
from strandline.records.record import ITEMS_MAX, NO_TIMESTAMP, Record, decode_uncompressed

SEARCHED_BYTES_MAX = 16 << 20
"""Uncompressed records of a batch that a look-up reads on the event loop, within 0.15 s."""

_START = Offset(0)


def first_record_since(
    batch: Buffer,
    header: BatchHeader,
    timestamp: int,
    *,
    start_offset: Offset = _START,
    bytes_max: int = SEARCHED_BYTES_MAX,
) -> tuple[int, Offset] | None:
    """(timestamp, offset) of the first record of the batch, which `header` was read from, at or
    after `start_offset` and `timestamp`; None if there is none.

    Raises ApiError CORRUPT_MESSAGE for anything malformed or beyond the bounds. The CRC is not
    looked at."""
    first = Offset(max(start_offset, header.base_offset))
    if header.has_append_time:
        is_found = header.max_timestamp >= timestamp and header.next_offset > first
        return (header.max_timestamp, first) if is_found else None
    data = _uncompressed(batch, header, bytes_max)
    if first == header.base_offset:
        try:
            index, found = first_since(
                data,
                count=header.records_count,
                base_timestamp=header.base_timestamp,
                timestamp=timestamp,
            )
        except ApiError:  # Compaction leaves holes between offsets, which that walk refuses.
            pass
        else:
            return None if index == NO_RECORD else (found, Offset(first + index))
    for record in _decoded(data, header):
        if record.timestamp >= timestamp and header.base_offset + record.offset_delta >= first:
            return record.timestamp, Offset(header.base_offset + record.offset_delta)
    return None


def newest_record(
    batch: Buffer, header: BatchHeader, *, start_offset: Offset
) -> tuple[int, Offset] | None:
    """(timestamp, offset) of the first record with the highest timestamp of those at or after
    `start_offset`; None without records there. Raises ApiError as `first_record_since` does."""
    first = Offset(max(start_offset, header.base_offset))
    if header.has_append_time or first == header.base_offset:
        highest = header.max_timestamp if header.has_append_time else _highest(batch, header)
        if highest is not None:
            return first_record_since(batch, header, highest, start_offset=start_offset)
    best: tuple[int, Offset] | None = None
    for record in _decoded(_uncompressed(batch, header, SEARCHED_BYTES_MAX), header):
        offset = Offset(header.base_offset + record.offset_delta)
        if offset >= first and (best is None or record.timestamp > best[0]):
            best = record.timestamp, offset
    return best


def _highest(batch: Buffer, header: BatchHeader) -> int | None:
    """The highest timestamp of dense records; None if they are not dense, or have none."""
    data = _uncompressed(batch, header, SEARCHED_BYTES_MAX)
    try:
        highest, _, _ = walk(data, header.records_count, header.base_timestamp)
    except ApiError:
        return None
    return None if highest == NO_TIMESTAMP else highest


def _uncompressed(batch: Buffer, header: BatchHeader, bytes_max: int) -> Buffer:
    data = memoryview(batch)[header.position + HEADER_BYTES : header.position + header.size]
    return decompress(header.codec, data, bytes_max=bytes_max) if header.codec else data


def _decoded(data: Buffer, header: BatchHeader) -> list[Record]:
    return decode_uncompressed(bytes(data), header, items_max=ITEMS_MAX)
