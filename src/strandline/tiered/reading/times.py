"""Finds records in buckets by their timestamp.

Why:    a consumer that seeks to a time before the local log has to begin at the right record.
How:    the log's entries say which object has the time, without a request; the trailer's time index
        says where in it, to about 16 KiB; the batches there are decoded, on a worker.
Source: Kafka's ListOffsets; `storage.log.times` for the local log; decision 0060."""

from functools import partial
from typing import NamedTuple

from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import HEADER, HEADER_BYTES, BatchHeader
from strandline.records.record_times import first_record_since, newest_record
from strandline.tiered.reading.bucket_order import BucketOrder
from strandline.tiered.reading.downloads import ReadObject
from strandline.tiered.reading.failures import UnreadableError
from strandline.tiered.reading.finding import ObjectBytes
from strandline.tiered.reading.object_reader import ObjectReader
from strandline.tiered.reading.ranges import RemotePartition, entry_at
from strandline.tiered.reading.worker import DiskWork
from strandline.tiered.segments.entry import SegmentEntry


class TimedOffset(NamedTuple):
    """A record's time and place."""

    timestamp: int
    offset: Offset


class _Wanted(NamedTuple):
    """Records at or after `timestamp` and `start_offset`: the first one, or the first one of those
    with the highest timestamp."""

    timestamp: int
    start_offset: Offset
    is_highest: bool


class _Searched(NamedTuple):
    """How far a search has come."""

    position: int
    """Where the next batch begins."""
    needed_end: int
    """The search cannot go on without the bytes before this."""
    found: TimedOffset | None


class TimeLookup:
    """See the module."""

    def __init__(self, objects: ObjectReader, order: BucketOrder, worker: DiskWork) -> None:
        self._objects = objects
        self._order = order
        self._worker = worker

    async def first_at(
        self,
        partition: RemotePartition,
        timestamp: int,
        *,
        start_offset: Offset,
        end_offset: Offset,
    ) -> TimedOffset | None:
        """The first record in [start, end) at or after `timestamp`. Raises UnreadableError if no
        bucket can say."""
        offset = start_offset
        wanted = _Wanted(timestamp, start_offset, is_highest=False)
        while offset < end_offset:
            entry = _nearest(partition, offset)
            if entry.max_timestamp >= timestamp:
                found = await self._search(partition, offset, wanted)
                if found is not None:
                    return found if found.offset < end_offset else None
            offset = entry.end_offset
        return None

    async def highest(
        self, partition: RemotePartition, *, start_offset: Offset, end_offset: Offset
    ) -> TimedOffset | None:
        """The first record with the highest timestamp, of the objects with records in [start, end);
        it may be at or after `end_offset`. Raises UnreadableError if no bucket can say."""
        best: TimedOffset | None = None
        offset = start_offset
        while offset < end_offset:
            entry = _nearest(partition, offset)
            if entry.max_timestamp > (-1 if best is None else best.timestamp):
                found: TimedOffset | None = TimedOffset(
                    entry.max_timestamp, entry.max_timestamp_offset
                )
                if entry.max_timestamp_offset < start_offset:  # Deleted, or there is none.
                    least = 0 if best is None else best.timestamp + 1
                    wanted = _Wanted(least, start_offset, is_highest=True)
                    found = await self._search(partition, offset, wanted)
                best = found or best
            offset = entry.end_offset
        return best

    async def _search(
        self, partition: RemotePartition, offset: Offset, wanted: _Wanted
    ) -> TimedOffset | None:
        """Search the object that has `offset`. Raises UnreadableError."""

        async def read(bucket: str, entry: SegmentEntry) -> TimedOffset | None:
            source = await self._objects.open(bucket, entry)
            try:
                return await self._search_object(source, wanted)
            except OSError as error:  # The cache's disk fails: the bucket has the chunks, too.
                self._objects.pass_over_cached(source, error)
                return await self._search_object(source, wanted)

        return await self._order.first(partition, offset, read)

    async def _search_object(self, source: ReadObject, wanted: _Wanted) -> TimedOffset | None:
        trailer = source.trailer
        position = trailer.position_of(wanted.start_offset)
        if not wanted.is_highest:
            position = max(position, trailer.position_of_time(wanted.timestamp))
        needed_end = position + HEADER_BYTES
        found = None
        while position < trailer.data_bytes:
            needed_end = min(needed_end, trailer.data_bytes)
            data = await self._objects.chunks(source, position, needed_end)
            step = partial(_search_batches, data, position, trailer.data_bytes, wanted)
            run = self._worker.compute if data.is_in_memory else self._worker.run
            position, needed_end, next_found = await run(step)
            if next_found is None:
                continue
            found = next_found
            if not wanted.is_highest:
                break
            wanted = wanted._replace(timestamp=found.timestamp + 1)
        return found


def _nearest(partition: RemotePartition, offset: Offset) -> SegmentEntry:
    """What the log says of the object with `offset`, of the first bucket that has one. Raises
    UnreadableError."""
    for bucket in partition.buckets:
        entry = entry_at(partition.source.live(bucket), offset)
        if entry is not None:
            return entry
    raise UnreadableError(f"no bucket has offset {offset}")


def _search_batches(data: ObjectBytes, position: int, end: int, wanted: _Wanted) -> _Searched:
    """Search the batches from `position` on that are here. Raises OSError."""
    best: TimedOffset | None = None
    while position < end:
        if position + HEADER_BYTES > data.end:
            return _Searched(position, position + HEADER_BYTES, best)
        header = BatchHeader(0, *HEADER.unpack(data.read(position, position + HEADER_BYTES)))
        if header.max_timestamp >= wanted.timestamp and header.next_offset > wanted.start_offset:
            if position + header.size > data.end:
                return _Searched(position, position + header.size, best)
            found = _find_in(header, data.read(position, position + header.size), wanted)
            if found is not None:
                best = found
                if not wanted.is_highest:
                    return _Searched(position, position, best)
                wanted = wanted._replace(timestamp=best.timestamp + 1)
        position += header.size
    return _Searched(position, position, best)


def _find_in(header: BatchHeader, batch: bytes, wanted: _Wanted) -> TimedOffset | None:
    """The record in one batch."""
    first = Offset(max(wanted.start_offset, header.base_offset))
    if header.has_append_time:
        return TimedOffset(header.max_timestamp, first) if header.records_count else None
    try:
        if wanted.is_highest:
            found = newest_record(batch, header, start_offset=first)
        else:
            found = first_record_since(batch, header, wanted.timestamp, start_offset=first)
    except ApiError:
        return TimedOffset(header.max_timestamp, first)  # The header is all that can be read.
    return TimedOffset(*found) if found is not None and found[0] >= wanted.timestamp else None
