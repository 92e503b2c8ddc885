"""Chunks on their way from buckets: one download for all who ask, which outlives those who asked.

Why:    a fetch gives up after its client's wait, often 500 ms. If the download ended with it, each
        fetch would begin anew, and a slow bucket would never be read.
How:    wanted --a range of chunks--> bucket --each chunk's CRC-32C, on a worker--> cache --> askers
        A chunk that a reader waits for comes alone; read-ahead comes in ranges of up to 8 MiB, if
        bytes in flight are free. The cache is told of read-ahead: a scan's chunks are used once.
Owns:   the downloads that are under way.
Source: decision 0060."""

import asyncio
import logging
from typing import NamedTuple

from strandline.base.disk import Buffer
from strandline.tiered.objects.store import StoreError
from strandline.tiered.reading.budget import InflightBytes
from strandline.tiered.reading.chunk_cache import Chunk, ChunkCache
from strandline.tiered.reading.chunk_files import ChunkKey
from strandline.tiered.reading.failures import WrongBytesError
from strandline.tiered.reading.ranged_store import RangedStore
from strandline.tiered.reading.worker import DiskWork
from strandline.tiered.segments.trailer import Trailer

RANGE_CHUNKS_MAX = 8
INFLIGHT_BYTES_MAX = 64 << 20

Answer = Chunk | StoreError

_log = logging.getLogger("strandline.tiered")


class ReadObject(NamedTuple):
    """An object whose trailer is known."""

    bucket: str
    name: str
    object_id: str
    """See `chunk_files.object_id_of`."""
    trailer: Trailer


class Downloads:
    """See the module."""

    def __init__(
        self,
        store: RangedStore,
        cache: ChunkCache,
        worker: DiskWork,
        *,
        inflight_bytes_max: int = INFLIGHT_BYTES_MAX,
    ) -> None:
        self._store = store
        self._cache = cache
        self._worker = worker
        self.budget = InflightBytes(inflight_bytes_max)
        self._coming: dict[ChunkKey, asyncio.Future[Answer]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._coming)

    async def get(self, source: ReadObject, number: int) -> Chunk:
        """One chunk, from the cache or its bucket. Raises StoreError."""
        key = ChunkKey(source.object_id, number)
        counters = self._store.counters
        chunk = await self._cache.get(key, crc=source.trailer.chunk_crcs[number])
        if chunk is not None:
            counters.cache_hits += 1
            return chunk
        counters.cache_misses += 1
        coming = self._coming.get(key)
        if coming is None:
            self._start(source, number, number + 1, is_ahead=False)
            coming = self._coming[key]
        answer = await asyncio.shield(coming)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    async def get_cached(self, source: ReadObject, number: int) -> Chunk | None:
        """One chunk if it is in the cache."""
        key = ChunkKey(source.object_id, number)
        if key not in self._cache:
            return None
        return await self._cache.get(key, crc=source.trailer.chunk_crcs[number])

    def pass_over_cached(self, source: ReadObject, error: OSError) -> None:
        """The disk does not give cached chunks of an object: the bucket shall."""
        self._cache.pass_over(source.object_id, error)

    def has_cached(self, key: ChunkKey) -> bool:
        """Whether a chunk is in the cache."""
        return key in self._cache

    def read_ahead(self, source: ReadObject, first: int, end: int) -> bool:
        """Have chunks [first, end) come, without those that are here or coming; whether there are
        enough bytes in flight free for them."""
        while first < end:
            stop = first
            while stop < min(end, first + RANGE_CHUNKS_MAX) and not self._has(source, stop):
                stop += 1
            if stop > first:
                if not self.budget.take_nowait(_size(source, first, stop)):
                    return False
                self._start(source, first, stop, is_ahead=True)
            first = max(stop, first + 1)
        return True

    def stop(self) -> None:
        """End all downloads."""
        for task in list(self._tasks):
            task.cancel()

    def _has(self, source: ReadObject, number: int) -> bool:
        key = ChunkKey(source.object_id, number)
        return key in self._coming or key in self._cache

    def _start(self, source: ReadObject, first: int, end: int, *, is_ahead: bool) -> None:
        """Begin a download. `is_ahead`: no reader waits, and its bytes in flight are taken."""
        loop = asyncio.get_running_loop()
        for number in range(first, end):
            self._coming[ChunkKey(source.object_id, number)] = loop.create_future()
        task = loop.create_task(self._download(source, first, end, is_ahead=is_ahead))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _download(self, source: ReadObject, first: int, end: int, *, is_ahead: bool) -> None:
        size_bytes = _size(source, first, end)
        error = StoreError("the broker ends")
        is_taken = is_ahead
        try:
            if not is_taken:
                await self.budget.take(size_bytes)
                is_taken = True
            start = source.trailer.chunk_range(first)[0]
            data = await self._store.get(source.bucket, source.name, start, start + size_bytes)
            await self._accept(source, range(first, end), data, is_ahead=is_ahead)
        except StoreError as failure:
            error = failure
        except Exception as failure:  # A task boundary: the readers get an error instead.
            _log.exception("cannot fetch chunks of %s from %s", source.name, source.bucket)
            error = StoreError(f"{type(failure).__name__}: {failure}")
        finally:
            if is_taken:
                self.budget.give_back(size_bytes)
            for number in range(first, end):
                self._answer(source, number, error)

    async def _accept(
        self, source: ReadObject, numbers: range, data: Buffer, *, is_ahead: bool
    ) -> None:
        """Check the chunks that came, keep the good ones, and answer those who wait."""
        view = memoryview(data)
        trailer = source.trailer
        origin = trailer.chunk_range(numbers[0])[0]
        ranges = [trailer.chunk_range(number) for number in numbers]
        parts = [view[low - origin : high - origin] for low, high in ranges]
        matches = await self._worker.compute(
            lambda: [trailer.chunk_matches(*one) for one in zip(numbers, parts, strict=True)]
        )
        good: list[tuple[ChunkKey, Buffer]] = []
        for number, one, (low, high), is_sound in zip(numbers, parts, ranges, matches, strict=True):
            if is_sound:
                good.append((ChunkKey(source.object_id, number), one))
                continue
            wrong = WrongBytesError(f"the checksum of bytes {low} to {high} does not match")
            self._store.failures.note(source.bucket, source.name, wrong)
            self._answer(source, number, wrong)
        if is_ahead:
            for chunk in self._cache.put_ahead(good, buffer_bytes=len(data)):
                self._answer(source, chunk.number, chunk)
        else:
            for key, part in good:
                self._answer(source, key.number, await self._cache.put(key, part))

    def _answer(self, source: ReadObject, number: int, answer: Answer) -> None:
        future = self._coming.pop(ChunkKey(source.object_id, number), None)
        if future is not None and not future.done():
            future.set_result(answer)


def _size(source: ReadObject, first: int, end: int) -> int:
    start = source.trailer.chunk_range(first)[0]
    return source.trailer.chunk_range(end - 1)[1] - start
