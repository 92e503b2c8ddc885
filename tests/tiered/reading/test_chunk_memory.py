"""Chunks in memory: a scan needs no disk, a second one does, and no chunk is lost unread.

Source: decision 0060 ("Admission")."""

import asyncio
from pathlib import Path

import pytest
from tests.tiered.reading.reading_world import (
    CHUNK_BYTES,
    Buckets,
    ReadWorld,
    batches,
    bytes_of,
    flip,
    offsets_of,
)

from strandline.tiered.reading import admission, chunk_cache
from strandline.tiered.reading.admission import GhostList
from strandline.tiered.reading.chunk_files import ChunkKey
from strandline.tiered.reading.chunk_memory import ChunkMemory
from strandline.tiered.reading.memory_file import MemoryFile

COUNT = 400
OBJECT_COUNT = 200


def _buckets() -> tuple[Buckets, list[bytes]]:
    log = batches(COUNT)
    buckets = Buckets()
    for start in range(0, COUNT, OBJECT_COUNT):
        buckets.put("near", log[start : start + OBJECT_COUNT])
    return buckets, log


def _file_bytes(world: ReadWorld) -> int:
    return sum(one.stat().st_size for one in world.directory.rglob("*.chunk"))


async def _scan(world: ReadWorld, *, start: int = 0, max_bytes: int = CHUNK_BYTES) -> bytes:
    """Read from an offset to the end, a fetch at a time."""
    data = b""
    while start < COUNT:
        read = await world.read(start, max_bytes=max_bytes)
        start = int(read.next_offset)
        data += bytes_of(read)
        await world.settle()
        await asyncio.sleep(0)
    return data


def test_a_scan_is_served_from_memory_and_writes_no_more_than_it_waited_for(
    tmp_path: Path,
) -> None:
    buckets, log = _buckets()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        assert await _scan(world) == b"".join(log)
        # The first two fetches are like any other read: nothing shows that more will follow.
        assert world.reader.counters.cache_misses == 2
        assert _file_bytes(world) == 2 * CHUNK_BYTES
        # It asks for the next object's first chunks before it comes there.
        assert len(buckets.stores["near"].objects) == 2
        await world.reader.cache.stop()

    asyncio.run(run())


def test_a_second_scan_writes_what_the_first_one_had_and_a_third_asks_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_cache, "MEMORY_BYTES_MAX", 20 * CHUNK_BYTES)
    buckets, log = _buckets()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        for _ in range(3):
            calls = len(buckets.stores["near"].calls)
            assert await _scan(world) == b"".join(log)
        assert len(buckets.stores["near"].calls) == calls
        await world.reader.cache.stop()
        data_bytes = sum(one.data_bytes for one in buckets.entries["near"])
        assert data_bytes - 20 * CHUNK_BYTES <= _file_bytes(world) <= data_bytes

    asyncio.run(run())


def test_chunks_that_no_reader_has_read_go_to_the_disk_if_memory_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Many slow scans at once: nothing is fetched twice."""
    monkeypatch.setattr(chunk_cache, "MEMORY_BYTES_MAX", 9 * CHUNK_BYTES)
    buckets, log = _buckets()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        places = [0, 60, 120, 200, 260, 320]
        starts = list(places)
        for _ in range(20):
            for at, place in enumerate(places):
                read = await world.read(place, max_bytes=300)
                assert bytes_of(read).startswith(log[place])
                places[at] = int(read.next_offset)
                await world.settle()
        assert all(place >= start + 20 for start, place in zip(starts, places, strict=True))
        while world.reader.cache._spilling:
            await asyncio.sleep(0)
        assert _file_bytes(world) > 9 * CHUNK_BYTES
        asked = [
            (name, at)
            for name, start, end in buckets.stores["near"].calls
            for at in range(start, end, CHUNK_BYTES)
        ]
        assert len(asked) == len(set(asked))
        await world.reader.cache.stop()

    asyncio.run(run())


def test_what_is_on_its_way_to_the_disk_is_bounded_and_the_rest_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunk_cache, "MEMORY_BYTES_MAX", 0)
    monkeypatch.setattr(chunk_cache, "SPILLING_BYTES_MAX", 2 * CHUNK_BYTES)
    buckets, log = _buckets()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        assert await _scan(world) == b"".join(log)
        assert world.reader.cache._spilling_bytes == 0

    asyncio.run(run())


def test_memory_is_given_up_once_no_scan_brings_more(tmp_path: Path) -> None:
    buckets, log = _buckets()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        half = await _scan(world, start=COUNT // 2)
        assert half == b"".join(log[COUNT // 2 :])
        cache = world.reader.cache
        assert cache._memory.size_bytes > 0
        cache._look_at_memory()  # Something came meanwhile.
        assert cache._memory.size_bytes > 0
        cache._look_at_memory()
        assert cache._memory.size_bytes == 0
        calls = len(buckets.stores["near"].calls)
        assert await _scan(world, start=COUNT // 2) == half
        assert len(buckets.stores["near"].calls) > calls
        await cache.stop()

    asyncio.run(run())


def test_wrong_bytes_of_a_range_ahead_are_never_served(tmp_path: Path) -> None:
    buckets, log = _buckets()

    def damage_ranges(name: str, start: int, end: int) -> object:
        is_ahead = start and end - start > CHUNK_BYTES and (end - start) % CHUNK_BYTES == 0
        return flip() if is_ahead else None

    buckets.stores["near"].fault = damage_ranges  # type: ignore[assignment]
    buckets.put("far", log)

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        assert await _scan(world) == b"".join(log)
        assert world.reader.counters.wrong_bytes["near"] > 0
        await world.reader.cache.stop()

    asyncio.run(run())


def test_a_scan_finds_its_batches_without_a_worker(tmp_path: Path) -> None:
    buckets, _ = _buckets()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        place = 0
        for _ in range(4):
            place = int((await world.read(place, max_bytes=CHUNK_BYTES)).next_offset)
            await world.settle()

        class Refusing:
            async def run(self, work: object) -> None:
                raise AssertionError("a worker is asked")

            def stop(self) -> None: ...

        world.reader.work.worker = Refusing()  # type: ignore[assignment]
        read = await world.read(place, max_bytes=CHUNK_BYTES)
        assert offsets_of(read)[0] == place
        assert all(isinstance(one.file, MemoryFile) for one in read.slices)

    asyncio.run(run())


# ---- its parts -----------------------------------------------------------------------------------


def _key(number: int) -> ChunkKey:
    return ChunkKey("one", number)


def test_chunks_that_were_read_go_before_those_that_were_not() -> None:
    memory = ChunkMemory(30)
    for number in range(3):
        memory.add([(_key(number), bytes(10))], buffer_bytes=10)
    memory.note_read(_key(2))
    memory.note_read(_key(1))
    memory.get(_key(2))
    for number in range(3, 6):
        memory.add([(_key(number), bytes(10))], buffer_bytes=10)
    gone = memory.overflow()
    assert [(one.key.number, one.is_read) for one in gone] == [(1, True), (2, True), (0, False)]
    assert memory.size_bytes == 30


def test_a_buffer_counts_until_the_last_of_its_chunks_is_gone() -> None:
    memory = ChunkMemory(100)
    data = memoryview(bytes(80))
    memory.add([(_key(at), data[20 * at : 20 * at + 20]) for at in range(4)], buffer_bytes=80)
    memory.add([(_key(9), bytes(20))], buffer_bytes=20)
    for number in (0, 1, 2):
        memory.note_read(_key(number))
    memory.add([(_key(10), bytes(20))], buffer_bytes=20)
    assert [one.key.number for one in memory.overflow()] == [0, 1, 2, 3]
    assert memory.size_bytes == 40
    memory.add([(_key(10), bytes(20))], buffer_bytes=20)  # It comes a second time.
    assert memory.size_bytes == 40
    assert len(memory.clear()) == 2
    assert (memory.size_bytes, len(memory)) == (0, 0)
    assert memory.get(_key(10)) is None


def test_keys_are_remembered_for_as_many_bytes_as_the_cache_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ghosts: GhostList[str] = GhostList(30)
    for name in "abcd":
        ghosts.add(name, 10)
    assert [ghosts.take(name) for name in "abcd"] == [False, True, True, True]
    assert not ghosts.take("b")
    monkeypatch.setattr(admission, "GHOST_COUNT_MAX", 2)
    for name in "abca":
        ghosts.add(name, 1)
    assert len(ghosts) == 2
    assert ghosts.take("a")
