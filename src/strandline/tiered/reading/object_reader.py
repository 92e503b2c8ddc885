"""Reads batches of one object: its trailer, the chunks, the batches in them.

Why:    fetches and lookups by time read objects in the same way.
How:    open: trailer;  batches: the chunk with an offset, and those behind it that are here, or
        that its batch reaches into.
Owns:   nothing.
Source: decision 0060."""

import asyncio
from functools import partial

from strandline.model.ids import Offset
from strandline.tiered.reading.chunk_cache import Chunk
from strandline.tiered.reading.chunk_files import ChunkKey, object_id_of
from strandline.tiered.reading.downloads import Downloads, ReadObject
from strandline.tiered.reading.finding import FoundBatches, ObjectBytes, find_batches
from strandline.tiered.reading.trailers import Trailers
from strandline.tiered.reading.worker import DiskWork
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer


class ObjectReader:
    """See the module."""

    def __init__(self, trailers: Trailers, downloads: Downloads, worker: DiskWork) -> None:
        self._trailers = trailers
        self._downloads = downloads
        self._worker = worker

    async def open(self, bucket: str, entry: SegmentEntry) -> ReadObject:
        """The object with its trailer. Raises StoreError."""
        trailer = await self._trailers.get(bucket, entry)
        return ReadObject(bucket, entry.name, object_id_of(bucket, entry.name), trailer)

    def open_nowait(self, bucket: str, entry: SegmentEntry) -> ReadObject | None:
        """The object if its trailer is here."""
        trailer = self._trailers.get_nowait(bucket, entry)
        if trailer is None:
            return None
        return ReadObject(bucket, entry.name, object_id_of(bucket, entry.name), trailer)

    def prepare(self, bucket: str, entry: SegmentEntry) -> None:
        """Have the trailer come."""
        self._trailers.start(bucket, entry)

    def has(self, bucket: str, entry: SegmentEntry, offset: Offset) -> bool:
        """Whether the chunk to begin with at `offset` is in the cache."""
        source = self.open_nowait(bucket, entry)
        if source is None or not entry.data_bytes:
            return source is not None
        trailer = source.trailer
        number = trailer.position_of(offset) // trailer.chunk_bytes
        return self._downloads.has_cached(ChunkKey(source.object_id, number))

    async def batches(
        self, source: ReadObject, offset: Offset, max_bytes: int, *, may_fetch: bool
    ) -> FoundBatches | None:
        """Batches from the one that has `offset` on: see `finding`. It waits for the chunks of the
        first batch only; None if not all of them are here and it may not fetch. If the cache's disk
        fails or hangs, the bucket gives the chunks. Raises StoreError, OSError."""
        try:
            return await self._batches(source, offset, max_bytes, may_fetch=may_fetch)
        except OSError as error:
            if not may_fetch:
                return None
            self._downloads.pass_over_cached(source, error)
            return await self._batches(source, offset, max_bytes, may_fetch=may_fetch)

    def pass_over_cached(self, source: ReadObject, error: OSError) -> None:
        """See `Downloads`."""
        self._downloads.pass_over_cached(source, error)

    async def _batches(
        self, source: ReadObject, offset: Offset, max_bytes: int, *, may_fetch: bool
    ) -> FoundBatches | None:
        trailer = source.trailer
        position = trailer.position_of(offset)
        if not trailer.data_bytes:  # Compaction left nothing of these offsets.
            return FoundBatches([], 0, 0, 0, trailer.end_offset)
        chunks = [await self._downloads.get(source, position // trailer.chunk_bytes)]
        wanted_end = position + max_bytes
        while True:
            await self._add_cached(source, chunks, wanted_end)
            data = ObjectBytes(chunks, trailer.chunk_bytes)
            find = partial(find_batches, data, trailer, offset, max_bytes)
            found = find() if data.is_in_memory else await self._worker.run(find)
            if isinstance(found, FoundBatches):
                return found
            await self._add_cached(source, chunks, found.end)
            if not may_fetch and _end_of(chunks, trailer) < found.end:
                return None
            await self._add_needed(source, chunks, found.end)
            wanted_end = max(wanted_end, found.end)

    async def chunks(self, source: ReadObject, start: int, end: int) -> ObjectBytes:
        """The chunks that have the bytes [start, end) of the data. Raises StoreError."""
        trailer = source.trailer
        chunks = [await self._downloads.get(source, start // trailer.chunk_bytes)]
        await self._add_needed(source, chunks, end)
        return ObjectBytes(chunks, trailer.chunk_bytes)

    async def _add_needed(self, source: ReadObject, chunks: list[Chunk], end: int) -> None:
        """Add chunks up to the byte `end`, fetched side by side."""
        first, stop = chunks[-1].number + 1, -(-end // source.trailer.chunk_bytes)
        if first < stop:
            coming = [self._downloads.get(source, number) for number in range(first, stop)]
            chunks += await asyncio.gather(*coming)

    async def _add_cached(self, source: ReadObject, chunks: list[Chunk], end: int) -> None:
        """Add chunks below the byte `end` as long as they are in the cache."""
        trailer = source.trailer
        stop = min(-(-end // trailer.chunk_bytes), trailer.chunk_count)
        while chunks[-1].number + 1 < stop:
            chunk = await self._downloads.get_cached(source, chunks[-1].number + 1)
            if chunk is None:
                return
            chunks.append(chunk)


def _end_of(chunks: list[Chunk], trailer: Trailer) -> int:
    """Where the last of these chunks ends in the object."""
    return trailer.chunk_range(chunks[-1].number)[1]
