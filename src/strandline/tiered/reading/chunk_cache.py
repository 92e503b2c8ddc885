"""The cache of chunks on this broker's disk, and of those in memory that need none.

Why:    a request to a bucket costs money and a round trip; ten consumers of one history, or one
        with small fetches, should cost it once.
How:    scan names --> READY;  put: a file, or memory if the disk fails;  get: a chunk, or None
        put_ahead: memory. A scan's chunk goes when it has been read to its end and others need its
        room. It goes to the disk instead if no reader has come to its end by then, or if an earlier
        scan had it.
        A chunk is verified on arrival by its downloader. It is read and verified again, on a
        worker, if it is from an earlier process, if nothing used it for `WARM_MS`, or if it was
        verified more than `TRUST_MS` ago: the kernel may have to read it from the disk again. So
        what a reader gets is in the page cache, and sound.
            After a failed write the cache does not try again for `WRITE_PAUSE_MS`; a full disk also
        costs it a share of its chunks.
Owns:   the index of the files, and a bounded number of open ones. One event loop only.
Source: decision 0060; base.disk for the meaning of errors."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from strandline.base.clock import Clock
from strandline.base.disk import Buffer, File, is_full
from strandline.tiered.reading.admission import GhostList, SegmentedLru
from strandline.tiered.reading.chunk_files import ChunkFiles, ChunkKey, FoundChunk
from strandline.tiered.reading.chunk_memory import ChunkInMemory, ChunkMemory
from strandline.tiered.reading.counters import ReadCounters
from strandline.tiered.reading.memory_file import MemoryFile
from strandline.tiered.reading.worker import DiskWork

OPEN_FILES_MAX = 256
MEMORY_BYTES_MAX = 64 << 20
"""Chunks in memory: of scans, and those that the disk did not take."""
SPILLING_BYTES_MAX = 32 << 20
"""Chunks on their way from memory to the disk; what is more than the disk takes is forgotten."""
MEMORY_IDLE_MS = 60_000
"""If no scan brought a chunk for so long, the memory is given up."""
WRITE_PAUSE_MS = 10_000
WARM_MS = 60_000
"""The page cache keeps what was used so recently."""
TRUST_MS = 3_600_000
FULL_DISK_RATIO = 0.875
"""What a full disk leaves of the cache: an eighth goes."""
NEVER = -1 << 62

_log = logging.getLogger("strandline.tiered")


class Chunk(NamedTuple):
    """Bytes of an object that have been verified; `file` has them from its start on."""

    number: int
    size_bytes: int
    file: File


class _Kept:
    """One chunk with a file."""

    __slots__ = ("size_bytes", "used_ms", "verified_ms")

    def __init__(self, size_bytes: int, verified_ms: int) -> None:
        self.size_bytes = size_bytes
        self.verified_ms = verified_ms
        self.used_ms = verified_ms

    def is_fresh(self, now_ms: int) -> bool:
        """Whether a reader may have it as it is."""
        return now_ms - self.used_ms <= WARM_MS and now_ms - self.verified_ms <= TRUST_MS


class ChunkCache:
    """See the module. `bytes_max`: of files; 0 for none."""

    def __init__(
        self,
        files: ChunkFiles,
        worker: DiskWork,
        clock: Clock,
        counters: ReadCounters,
        *,
        bytes_max: int,
    ) -> None:
        self._files = files
        self._worker = worker
        self._clock = clock
        self._counters = counters
        self.bytes_max = bytes_max
        self._lru: SegmentedLru[ChunkKey] = SegmentedLru(bytes_max)
        self._kept: dict[ChunkKey, _Kept] = {}
        self._open: OrderedDict[ChunkKey, File] = OrderedDict()
        """The files in use last, verified ones only. A dropped one closes with its last reader."""
        self._memory = ChunkMemory(MEMORY_BYTES_MAX)
        self._read_once: GhostList[ChunkKey] = GhostList(bytes_max)
        self._spilling: dict[ChunkKey, MemoryFile] = {}
        self._spilling_bytes = 0
        self._is_scanned = False
        """Whether read-ahead has brought something since the last look at the memory."""
        self._look: asyncio.TimerHandle | None = None
        self._no_write_before_ms = 0
        self._was_told = False
        self._opening: dict[ChunkKey, asyncio.Future[Chunk | None]] = {}
        self._removals: set[asyncio.Task[None]] = set()

    @property
    def size_bytes(self) -> int:
        """Bytes in files."""
        return self._lru.size_bytes

    def __len__(self) -> int:
        return len(self._lru) + len(self._memory)

    def __contains__(self, key: ChunkKey) -> bool:
        if key in self._memory or key in self._spilling:
            return True
        return key in self._kept and not self._worker.is_hung

    async def start(self) -> None:
        """Find what an earlier process left. A disk that fails leaves the cache empty."""
        if not self.bytes_max:
            return
        try:
            for shard in await self._worker.run(self._files.shards):
                found = await self._worker.run(partial(self._files.scan, shard))
                self._adopt(found)
        except OSError as error:
            self._fail("list", error)

    async def get(self, key: ChunkKey, *, crc: int) -> Chunk | None:
        """The chunk, verified; None if it is not here, or was damaged."""
        now_ms = self._clock.monotonic_ms()
        in_memory = self._memory.get(key) or self._spilling.get(key)
        if in_memory is not None:
            return Chunk(key.number, in_memory.size(), in_memory)
        kept = self._kept.get(key)
        if kept is None or self._worker.is_hung:
            return None
        self._lru.use(key, now_ms)
        file = self._open.get(key)
        if file is not None and kept.is_fresh(now_ms):
            kept.used_ms = now_ms
            self._open.move_to_end(key)
            return Chunk(key.number, kept.size_bytes, file)
        opening = self._opening.get(key)
        if opening is None:
            opening = asyncio.get_running_loop().create_future()
            self._opening[key] = opening
            task = asyncio.get_running_loop().create_task(self._verify(key, kept, crc, opening))
            self._keep_task(task)
        return await asyncio.shield(opening)

    async def put(self, key: ChunkKey, data: Buffer) -> Chunk:
        """Keep a chunk that has been verified."""
        chunk = await self._write(key, data)
        if chunk is None:
            chunk = self._add_to_memory([(key, bytes(data))], buffer_bytes=len(data))[0]
        return chunk

    def put_ahead(
        self, chunks: Sequence[tuple[ChunkKey, Buffer]], *, buffer_bytes: int
    ) -> list[Chunk]:
        """Keep chunks of a scan that have been verified: parts of one buffer."""
        self._is_scanned = True
        if self._look is None:
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(MEMORY_IDLE_MS / 1000, self._look_at_memory)
        found = self._add_to_memory(chunks, buffer_bytes=buffer_bytes)
        again = [
            ChunkInMemory(key, chunk.file, is_read=False)
            for (key, _), chunk in zip(chunks, found, strict=True)
            if self._read_once.take(key) and isinstance(chunk.file, MemoryFile)
        ]
        self._spill(again)
        return found

    def note_read(self, key: ChunkKey) -> None:
        """A reader has read a chunk to its end."""
        self._memory.note_read(key)

    def keep_only(self, object_ids: Collection[str]) -> int:
        """Forget the files of all other objects; how many those are."""
        gone = [one for one in self._kept if one.object_id not in object_ids]
        for key in gone:
            self._drop(key)
        return len(gone)

    def pass_over(self, object_id: str, error: OSError) -> None:
        """Forget the files of an object: the disk does not give them, and gets no others for a
        while. While it hangs nothing has to be forgotten, because nothing is asked of it."""
        self._fail("read", error)
        if not self._worker.is_hung:
            for key in [one for one in self._kept if one.object_id == object_id]:
                self._drop(key)

    async def stop(self) -> None:
        """Wait for the removals that are under way."""
        if self._look is not None:
            self._look.cancel()
        while self._removals:
            await asyncio.wait(set(self._removals))

    # ---- files -----------------------------------------------------------------------------------

    def _adopt(self, found: Iterable[FoundChunk]) -> None:
        """Note files of an earlier process; those beyond the limit are removed."""
        now_ms = self._clock.monotonic_ms()
        twice = []
        for one in found:
            if one.key in self._kept:
                twice.append(one)
                continue
            self._kept[one.key] = _Kept(one.size_bytes, NEVER)
            self._evict(self._lru.add(one.key, one.size_bytes, now_ms))
        self._remove(twice)

    async def _write(self, key: ChunkKey, data: Buffer) -> Chunk | None:
        """Keep a chunk on the disk; None if the disk does not take it."""
        now_ms = self._clock.monotonic_ms()
        if self.bytes_max < len(data) or now_ms < self._no_write_before_ms:
            return None
        try:
            file = await self._worker.run(lambda: self._files.write(key, data))
        except OSError as error:
            self._fail("write", error)
            return None
        return self._add(key, len(data), file)

    def _add(self, key: ChunkKey, size_bytes: int, file: File) -> Chunk:
        now_ms = self._clock.monotonic_ms()
        if self._was_told:
            _log.info("the cache for old data writes to its disk again")
            self._was_told = False
        self._kept[key] = _Kept(size_bytes, now_ms)
        self._note_open(key, file)
        if key not in self._lru:
            self._evict(self._lru.add(key, size_bytes, now_ms))
        return Chunk(key.number, size_bytes, file)

    async def _verify(
        self, key: ChunkKey, kept: _Kept, crc: int, opening: asyncio.Future[Chunk | None]
    ) -> None:
        chunk = None
        try:
            size_bytes = kept.size_bytes
            file = await self._worker.run(lambda: self._files.open_verified(key, size_bytes, crc))
            if file is None:
                self._counters.cache_damaged += 1
                _log.warning("a cached chunk of old data is damaged; it is fetched again")
                self._drop(key)
            else:
                kept.verified_ms = kept.used_ms = self._clock.monotonic_ms()
                if self._kept.get(key) is kept:
                    self._note_open(key, file)
                chunk = Chunk(key.number, size_bytes, file)
        except FileNotFoundError:  # Removed by hand, or while it was written again.
            self._drop(key)
        except OSError as error:
            self._fail("read", error)
            if not isinstance(error, TimeoutError):  # The file is good once the disk answers.
                self._drop(key)
        finally:
            del self._opening[key]
            if not opening.done():
                opening.set_result(chunk)

    def _note_open(self, key: ChunkKey, file: File) -> None:
        self._open[key] = file
        self._open.move_to_end(key)
        while len(self._open) > OPEN_FILES_MAX:
            self._open.popitem(last=False)

    def _drop(self, key: ChunkKey) -> None:
        if self._lru.discard(key):
            self._evict([key])

    def _evict(self, keys: Iterable[ChunkKey]) -> None:
        """Forget these keys, which the LRU has let go, and remove their files."""
        gone = []
        for key in keys:
            self._open.pop(key, None)
            gone.append(FoundChunk(key, self._kept.pop(key).size_bytes))
        self._remove(gone)

    def _remove(self, gone: list[FoundChunk]) -> None:
        if gone:
            self._keep_task(asyncio.get_running_loop().create_task(self._remove_files(gone)))

    async def _remove_files(self, gone: list[FoundChunk]) -> None:
        def remove() -> list[OSError]:
            # A chunk that has come back meanwhile has the same name and the same bytes.
            return list(self._files.remove(one for one in gone if one.key not in self._kept))

        try:
            for one in await self._worker.run(remove):
                self._fail("remove", one)
        except OSError as error:  # The next start finds the files.
            self._fail("remove", error)

    def _keep_task(self, task: asyncio.Task[None]) -> None:
        self._removals.add(task)
        task.add_done_callback(self._removals.discard)

    def _fail(self, doing: str, error: OSError) -> None:
        """Go on without the disk for a while."""
        self._counters.cache_errors += 1
        self._no_write_before_ms = self._clock.monotonic_ms() + WRITE_PAUSE_MS
        if not self._was_told:
            self._was_told = True
            _log.warning(
                "the cache for old data cannot %s its files: %s; records pass through memory",
                doing,
                error,
            )
        if is_full(error):
            self._evict(self._lru.shrink(FULL_DISK_RATIO))

    # ---- memory ----------------------------------------------------------------------------------

    def _add_to_memory(
        self, chunks: Sequence[tuple[ChunkKey, Buffer]], *, buffer_bytes: int
    ) -> list[Chunk]:
        files = self._memory.add(chunks, buffer_bytes=buffer_bytes)
        self._let_go(self._memory.overflow())
        return [
            Chunk(key.number, len(data), file)
            for (key, data), file in zip(chunks, files, strict=True)
        ]

    def _let_go(self, gone: Iterable[ChunkInMemory]) -> None:
        """Remember what was read, and write the rest to the disk."""
        unread = []
        for one in gone:
            if one.is_read:
                self._read_once.add(one.key, one.file.size())
            else:
                unread.append(one)
        self._spill(unread)

    def _spill(self, chunks: Sequence[ChunkInMemory]) -> None:
        """Write chunks to the disk, in the background; what it does not take is forgotten."""
        taken = []
        for one in chunks:
            size_bytes = one.file.size()
            is_there = one.key in self._kept or one.key in self._spilling
            if not is_there and self._spilling_bytes + size_bytes <= SPILLING_BYTES_MAX:
                self._spilling[one.key] = one.file
                self._spilling_bytes += size_bytes
                taken.append(one)
        if taken:
            self._keep_task(asyncio.get_running_loop().create_task(self._write_all(taken)))

    async def _write_all(self, chunks: Sequence[ChunkInMemory]) -> None:
        for key, file, _ in chunks:
            try:
                await self._write(key, file.view(file.size(), 0))
            finally:
                del self._spilling[key]
                self._spilling_bytes -= file.size()

    def _look_at_memory(self) -> None:
        """Give the memory up if no scan is under way."""
        self._look = None
        if self._is_scanned:
            self._is_scanned = False
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(MEMORY_IDLE_MS / 1000, self._look_at_memory)
        else:
            self._let_go(self._memory.clear())
