"""Reads old records of partitions out of buckets, the nearest one first.

Why:    a consumer that begins at the start of a partition must not notice where its records are.
How:    a read tries the buckets in their order: one that does not answer, or whose object is absent
        or has wrong bytes, is passed over. Its downloads go on when the read is dropped, so the
        next fetch finds what they brought.
Owns:   the caches, downloads and readers of a broker; started and stopped with it.
Source: decision 0060."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from functools import partial
from typing import NamedTuple

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.model.ids import Offset
from strandline.tiered.reading.bucket_order import BucketOrder
from strandline.tiered.reading.chunk_cache import ChunkCache
from strandline.tiered.reading.chunk_files import ChunkFiles, ChunkKey
from strandline.tiered.reading.counters import ReadCounters
from strandline.tiered.reading.downloads import (
    INFLIGHT_BYTES_MAX,
    RANGE_CHUNKS_MAX,
    Downloads,
    ReadObject,
)
from strandline.tiered.reading.failures import UnreadableError
from strandline.tiered.reading.finding import FoundBatches
from strandline.tiered.reading.object_reader import ObjectReader
from strandline.tiered.reading.ranged_store import RangedStore, StoreSource
from strandline.tiered.reading.ranges import RemotePartition, entry_at
from strandline.tiered.reading.remote_read import RemoteRead
from strandline.tiered.reading.streams import Stream, Streams
from strandline.tiered.reading.times import TimeLookup
from strandline.tiered.reading.trailers import Trailers
from strandline.tiered.reading.worker import DiskWork
from strandline.tiered.segments.entry import SegmentEntry

READ_BYTES_MAX = 64 << 20
"""One read gives no more, however much is asked for, unless its first batch is larger."""

_Found = tuple[ReadObject, FoundBatches | None] | UnreadableError

_log = logging.getLogger("strandline.tiered")


class _Limits(NamedTuple):
    max_bytes: int
    min_bytes: int
    end_offset: Offset


class RemoteReader:
    """See the module. `directory`: of the cache. One per broker."""

    def __init__(
        self,
        *,
        buckets: StoreSource,
        disk: Disk,
        directory: str,
        clock: Clock,
        cache_bytes_max: int,
        inflight_bytes_max: int = INFLIGHT_BYTES_MAX,
    ) -> None:
        self.work = worker = DiskWork()
        self.counters = ReadCounters()
        store = RangedStore(buckets, clock, self.counters)
        self.failures = store.failures
        self.cache = ChunkCache(
            ChunkFiles(disk, directory), worker, clock, self.counters, bytes_max=cache_bytes_max
        )
        self.downloads = Downloads(store, self.cache, worker, inflight_bytes_max=inflight_bytes_max)
        self._trailers = Trailers(store)
        self._objects = ObjectReader(self._trailers, self.downloads, worker)
        self._order = BucketOrder(self._objects, self.failures, self.counters)
        self.times = TimeLookup(self._objects, self._order, worker)
        self._streams = Streams()
        self.is_started = False
        """Whether the cache knows what an earlier process left."""
        self._reads: set[asyncio.Task[None]] = set()
        self._fetching: dict[tuple[Hashable, Offset, int], asyncio.Task[_Found]] = {}
        """{(partition, offset, bytes): what brings them}; it outlives the reads that wait."""

    async def start(self) -> None:
        """Find what an earlier process left in the cache."""
        await self.cache.start()
        self.is_started = True

    def stop(self) -> None:
        """End all reads and downloads."""
        for task in (*self._reads, *self._fetching.values()):
            task.cancel()
        self.downloads.stop()
        self._trailers.stop()
        self.work.stop()

    def read(
        self,
        partition: RemotePartition,
        offset: Offset,
        *,
        max_bytes: int,
        min_bytes: int = 1,
        end_offset: Offset,
    ) -> RemoteRead:
        """Begin to read whole batches from the one that has `offset` on, before `end_offset`: at
        most `max_bytes`, unless the first one is larger. It is over once it has `min_bytes` and
        nothing more is in the cache. Call it on the event loop."""
        read = RemoteRead(offset)
        max_bytes = max(1, min(max_bytes, READ_BYTES_MAX))
        limits = _Limits(max_bytes, min(min_bytes, max_bytes), end_offset)
        read.task = asyncio.get_running_loop().create_task(self._run(read, partition, limits))
        self._reads.add(read.task)
        read.task.add_done_callback(self._reads.discard)
        return read

    # ---- one read --------------------------------------------------------------------------------

    async def _run(self, read: RemoteRead, partition: RemotePartition, limits: _Limits) -> None:
        try:
            await self._read(read, partition, limits)
        except UnreadableError as error:
            if not read.size_bytes:
                read.is_failed = True
                self.counters.failed_reads += 1
                self.failures.complain(partition.key, error)
        except Exception:  # A task boundary: the client is told to try again.
            _log.exception("cannot read old records of %s", partition.key)
            read.is_failed = not read.size_bytes
        read.is_over = True
        read.tell()

    async def _read(self, read: RemoteRead, partition: RemotePartition, limits: _Limits) -> None:
        stream = self._streams.find(partition.key, read.next_offset)
        while read.next_offset < limits.end_offset:
            if read.size_bytes >= limits.max_bytes:
                return
            offset = read.next_offset
            is_enough = read.size_bytes > 0 and read.size_bytes >= limits.min_bytes
            left_bytes = limits.max_bytes - read.size_bytes
            source, found = None, None
            if self._is_here(partition, offset):
                source, found = await self._find(partition, offset, left_bytes, may_fetch=False)
            if found is None and not is_enough:
                read.fetch()
                source, found = await self._fetch(partition, offset, left_bytes)
            if source is None or found is None:
                return
            if read.size_bytes and found.size_bytes > left_bytes:
                return
            read.add(found)
            self._note_read(source, found)
            self.counters.served_bytes += found.size_bytes
            self._read_ahead(stream, partition, source, found, limits.end_offset)
            self._streams.move(partition.key, stream, source=offset, target=read.next_offset)
            if found.size_bytes:
                read.tell()

    def _note_read(self, source: ReadObject, found: FoundBatches) -> None:
        """Tell the cache which chunks have been read to their end."""
        trailer = source.trailer
        is_end = found.end >= trailer.data_bytes
        end = trailer.chunk_count if is_end else found.end // trailer.chunk_bytes
        for number in range(found.start // trailer.chunk_bytes, end):
            self.cache.note_read(ChunkKey(source.object_id, number))

    def _is_here(self, partition: RemotePartition, offset: Offset) -> bool:
        """Whether the first bucket that has `offset` needs to be asked for nothing."""
        for bucket in partition.buckets:
            entry = entry_at(partition.source.live(bucket), offset)
            if entry is not None:
                return self._objects.has(bucket, entry, offset)
        return False

    async def _fetch(
        self, partition: RemotePartition, offset: Offset, max_bytes: int
    ) -> tuple[ReadObject, FoundBatches | None]:
        """The same as `_find`, for all who ask for these bytes together; it goes on if they do not
        wait for it. Raises UnreadableError."""
        place = partition.key, offset, max_bytes
        task = self._fetching.get(place)
        if task is None:
            work = _caught(partial(self._find, partition, offset, max_bytes, may_fetch=True))
            task = self._fetching[place] = asyncio.get_running_loop().create_task(work)
            task.add_done_callback(lambda _: self._fetching.pop(place, None))
        answer = await asyncio.shield(task)
        if isinstance(answer, UnreadableError):
            raise answer
        return answer

    async def _find(
        self, partition: RemotePartition, offset: Offset, max_bytes: int, *, may_fetch: bool
    ) -> tuple[ReadObject, FoundBatches | None]:
        """Batches from the first bucket that has them. Raises UnreadableError."""

        async def read(bucket: str, entry: SegmentEntry) -> tuple[ReadObject, FoundBatches | None]:
            source = await self._objects.open(bucket, entry)
            return source, await self._objects.batches(
                source, offset, max_bytes, may_fetch=may_fetch
            )

        return await self._order.first(partition, offset, read)

    # ---- ahead of it -----------------------------------------------------------------------------

    def _read_ahead(
        self,
        stream: Stream,
        partition: RemotePartition,
        source: ReadObject,
        found: FoundBatches,
        end_offset: Offset,
    ) -> None:
        """Have the chunks come that this reader needs next, and the next object's trailer."""
        if not stream.window_chunks:
            return
        trailer = source.trailer
        following = entry_at(partition.source.live(source.bucket), trailer.end_offset)
        if following is not None and following.base_offset >= end_offset:
            following = None
        target = None
        if following is not None:
            target = self._objects.open_nowait(source.bucket, following)
            if target is None and self.failures.may_ask(source.bucket, following.name):
                self._objects.prepare(source.bucket, following)
        name, ahead = stream.ahead
        here = -(-found.end // trailer.chunk_bytes)
        if following is not None and name == following.name:
            distance = trailer.chunk_count - here + ahead
            start = trailer.chunk_count
        else:
            start = max(here, ahead) if name == source.name else here
            distance = start - here
        if 2 * distance > stream.window_chunks:
            return
        if start < trailer.chunk_count:
            self._ahead_in(stream, source, start)
        elif target is not None:
            self._ahead_in(stream, target, ahead if name == target.name else 0)

    def _ahead_in(self, stream: Stream, source: ReadObject, start: int) -> None:
        wanted = min(stream.window_chunks, RANGE_CHUNKS_MAX)
        end = min(start + wanted, source.trailer.chunk_count)
        if start < end and self.downloads.read_ahead(source, start, end):
            stream.ahead = source.name, end
            stream.widen()


async def _caught(
    find: Callable[[], Awaitable[tuple[ReadObject, FoundBatches | None]]],
) -> _Found:
    """Its result, or its error: perhaps no read waits for it any more."""
    try:
        return await find()
    except UnreadableError as error:
        return error
