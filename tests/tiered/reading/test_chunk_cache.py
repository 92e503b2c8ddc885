"""The cache of chunks: bounded, verified, found again after a restart, never in the way.

Source: decision 0060."""

import asyncio
import errno
from pathlib import Path

import pytest
from tests.tiered.reading.reading_world import (
    Buckets,
    ReadWorld,
    batches,
    bytes_of,
    fail,
    offsets_of,
)

from strandline.storage.disk.real_disk import RealDisk
from strandline.tiered.reading import chunk_cache
from strandline.tiered.reading.chunk_cache import TRUST_MS, WARM_MS, WRITE_PAUSE_MS
from strandline.tiered.reading.chunk_files import ChunkFiles


def _one_bucket(count: int = 60) -> tuple[Buckets, list[bytes]]:
    log = batches(count)
    buckets = Buckets()
    buckets.put("near", log)
    return buckets, log


def _chunk_files(world: ReadWorld) -> list[Path]:
    return sorted(one for one in world.directory.rglob("*") if one.is_file())


def test_a_restart_finds_the_chunks_and_asks_the_bucket_for_none(tmp_path: Path) -> None:
    buckets, log = _one_bucket()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        await world.read(0, min_bytes=1 << 20)
        await world.restart()
        calls = len(buckets.stores["near"].calls)
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)
        assert len(buckets.stores["near"].calls) == calls + 1  # The trailer, which is in memory.

    asyncio.run(run())


def test_a_chunk_that_a_crash_damaged_is_fetched_again(tmp_path: Path) -> None:
    buckets, log = _one_bucket()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        await world.read(0, min_bytes=1 << 20)
        for at, path in enumerate(_chunk_files(world)):
            data = bytearray(path.read_bytes())
            if at % 3 == 0:
                data[len(data) // 2] ^= 1
            path.write_bytes(data[: len(data) // 2] if at % 3 == 1 else data)
        await world.restart()
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)
        assert world.reader.counters.cache_damaged >= 6

    asyncio.run(run())


def test_a_start_removes_half_written_files_and_leaves_others_alone(tmp_path: Path) -> None:
    buckets, _ = _one_bucket()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        await world.read(0)
        (half, *_) = _chunk_files(world)
        half.rename(half.with_name(half.name + ".new"))
        notes = half.with_name("notes.txt")
        notes.write_text("mine")
        (world.directory / "readme").write_text("mine, too")
        await world.restart()
        assert not half.with_name(half.name + ".new").exists()
        assert notes.exists()

    asyncio.run(run())


def test_the_cache_keeps_to_its_bytes_on_the_disk_too(tmp_path: Path) -> None:
    buckets, _ = _one_bucket(400)

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets, cache_bytes_max=10 * 1_024)
        await world.reader.start()
        seen = 0
        while seen < 400:
            seen += len(offsets_of(await world.read(seen, max_bytes=2_000)))
            await world.settle()
            assert world.reader.cache.size_bytes <= 10 * 1_024
        await world.reader.cache.stop()
        on_disk = sum(one.stat().st_size for one in _chunk_files(world))
        assert on_disk == world.reader.cache.size_bytes
        world.cache_bytes_max = 3 * 1_024  # A smaller cache after a restart, too.
        await world.restart()
        await world.reader.cache.stop()
        assert sum(one.stat().st_size for one in _chunk_files(world)) <= 3 * 1_024

    asyncio.run(run())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EROFS])
def test_a_disk_that_cannot_write_lets_records_pass_through(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    buckets, log = _one_bucket()
    write = ChunkFiles.write
    attempts = []

    def refuse(self: ChunkFiles, *args: object) -> None:
        attempts.append(args)
        raise OSError(number, "broken")

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        await world.read(59)
        monkeypatch.setattr(ChunkFiles, "write", refuse)
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)
        assert len(attempts) == 1  # It does not try with each chunk.
        # What is in memory serves the next fetch.
        calls = len(buckets.stores["near"].calls)
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)
        assert len(buckets.stores["near"].calls) == calls
        monkeypatch.setattr(ChunkFiles, "write", write)
        buckets.put("near", batches(5, base=60))
        world.clock.advance(WRITE_PAUSE_MS)
        before = len(_chunk_files(world))
        await world.read(60)
        assert len(_chunk_files(world)) > before

    asyncio.run(run())


def test_memory_for_what_the_disk_does_not_take_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_cache, "MEMORY_BYTES_MAX", 3_000)
    buckets, log = _one_bucket()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets, cache_bytes_max=0)
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)
        assert len(world.reader.cache) == 2
        assert not world.directory.exists()

    asyncio.run(run())


def test_a_full_file_system_is_left_some_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RealDisk, "free_bytes", lambda self, path: 5_000)
    monkeypatch.setattr(RealDisk, "total_bytes", lambda self, path: 90_000)
    buckets, log = _one_bucket()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)
        assert _chunk_files(world) == []
        assert world.reader.counters.cache_errors == 1

    asyncio.run(run())


def test_a_chunk_that_was_removed_by_hand_is_fetched_again(tmp_path: Path) -> None:
    buckets, log = _one_bucket()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        await world.read(0, min_bytes=1 << 20)
        for path in _chunk_files(world):
            path.unlink()
        world.clock.advance(WARM_MS + 1)
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)
        assert world.reader.counters.cache_errors == 0

    asyncio.run(run())


@pytest.mark.parametrize("pause_ms", [WARM_MS, TRUST_MS])
def test_a_chunk_that_the_page_cache_may_have_lost_is_verified_again(
    tmp_path: Path, pause_ms: int
) -> None:
    """Bits that flip on the disk are not served."""
    buckets, log = _one_bucket()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        await world.read(0, min_bytes=1 << 20)
        for path in _chunk_files(world):
            data = bytearray(path.read_bytes())
            data[100] ^= 1
            path.write_bytes(data)
        used = 0
        while used + WARM_MS // 2 < pause_ms:  # In use all the time, but for WARM_MS it is not.
            if pause_ms == TRUST_MS:
                await world.read(0, min_bytes=1 << 20)
            world.clock.advance(WARM_MS // 2)
            used += WARM_MS // 2
        world.clock.advance(WARM_MS)
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)
        assert world.reader.counters.cache_damaged > 0

    asyncio.run(run())


def test_a_directory_that_cannot_be_listed_leaves_an_empty_cache(tmp_path: Path) -> None:
    buckets, log = _one_bucket()
    (tmp_path / "cache").write_text("not a directory")

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        assert bytes_of(await world.read(0, min_bytes=1 << 20)) == b"".join(log)

    asyncio.run(run())


def test_an_evicted_chunk_is_served_to_its_end(tmp_path: Path) -> None:
    buckets, log = _one_bucket(100)

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets, cache_bytes_max=2 * 1_024)
        await world.reader.start()
        first = await world.read(0, max_bytes=1_000)
        buckets.stores["near"].fault = lambda *_: None
        for offset in range(20, 100, 6):
            await world.read(offset, max_bytes=1_000)
        await world.reader.cache.stop()
        buckets.stores["near"].fault = fail  # type: ignore[assignment]
        assert bytes_of(first) == b"".join(log)[: first.size_bytes]

    asyncio.run(run())
