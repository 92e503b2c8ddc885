"""The cache's disk hangs, fails or is full: records come from the bucket all the same, and the
process ends.

Source: decision 0060; `tiered.reading.worker`."""

import asyncio
import errno
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.tiered.reading.reading_world import Buckets, ReadWorld, batches, bytes_of

from strandline.model.ids import Offset
from strandline.tiered.reading import worker as worker_module
from strandline.tiered.reading.chunk_cache import WRITE_PAUSE_MS
from strandline.tiered.reading.chunk_files import ChunkFiles
from strandline.tiered.reading.worker import THREAD_COUNT_MAX, DiskThreads

LOG = batches(60)
ALL = b"".join(LOG)
ANSWERS_MS_MAX = 30_000
"""So long may a disk take that does answer."""


class Gate:
    """Every access to files waits while it is closed, as a disk that hangs has them wait. Only then
    is the disk given up soon: one that answers may be slow."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_open = threading.Event()
        self.is_open.set()
        self.waiting = 0
        self._monkeypatch = monkeypatch

    def close(self) -> None:
        self.is_open.clear()
        self._monkeypatch.setattr(worker_module, "DISK_MS_MAX", 20)

    def open(self) -> None:
        self._monkeypatch.setattr(worker_module, "DISK_MS_MAX", ANSWERS_MS_MAX)
        self.is_open.set()

    def wrap(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        real = getattr(ChunkFiles, name)

        def wait(files: ChunkFiles, *arguments: Any) -> Any:
            if not self.is_open.is_set():
                self.waiting += 1
                self.is_open.wait()
            return real(files, *arguments)

        monkeypatch.setattr(ChunkFiles, name, wait)


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate(monkeypatch)
    made.open()
    for name in ("shards", "scan", "write", "open_verified", "remove"):
        made.wrap(name, monkeypatch)
    yield made
    made.is_open.set()


def world_of(directory: Path) -> tuple[ReadWorld, Buckets]:
    buckets = Buckets()
    buckets.put("near", LOG)
    world = ReadWorld(directory, buckets)
    use_threads(world)
    return world, buckets


def use_threads(world: ReadWorld) -> None:
    world.reader.work.worker = DiskThreads()
    world.reader.work.computing = DiskThreads()


async def read_all(world: ReadWorld) -> bytes:
    return bytes_of(await world.read(0, min_bytes=1 << 20))


def test_a_disk_that_hangs_on_writes_costs_one_wait_and_no_record(
    tmp_path: Path, gate: Gate
) -> None:
    async def run() -> None:
        world, buckets = world_of(tmp_path)
        await world.reader.start()
        gate.close()
        assert await read_all(world) == ALL
        assert world.reader.work.is_hung
        assert 0 < gate.waiting <= THREAD_COUNT_MAX
        # While it hangs, memory serves, and no further thread is lost.
        waiting, calls = gate.waiting, len(buckets.stores["near"].calls)
        assert await read_all(world) == ALL
        assert len(buckets.stores["near"].calls) == calls
        assert gate.waiting == waiting
        world.reader.stop()

    asyncio.run(run())


def test_a_disk_that_hangs_on_reads_is_passed_over_and_used_again_once_it_answers(
    tmp_path: Path, gate: Gate
) -> None:
    async def run() -> None:
        world, buckets = world_of(tmp_path)
        await world.reader.start()
        assert await read_all(world) == ALL
        await world.restart()  # All chunks are on the disk, and to be verified.
        use_threads(world)
        kept = len(world.reader.cache)
        assert kept > 1
        gate.close()
        calls = len(buckets.stores["near"].calls)
        assert await read_all(world) == ALL
        assert len(buckets.stores["near"].calls) > calls, "the bucket gave them"
        assert len(world.reader.cache) >= kept, "the files are good, and not forgotten"
        gate.open()
        while world.reader.work.is_hung:
            await asyncio.sleep(0)
        world.clock.advance(WRITE_PAUSE_MS)
        await world.reader.cache.stop()
        await world.restart()
        use_threads(world)
        calls = len(buckets.stores["near"].calls)
        assert await read_all(world) == ALL
        assert len(buckets.stores["near"].calls) == calls + 1, "the trailer alone"
        world.reader.stop()

    asyncio.run(run())


def test_a_disk_that_hangs_at_the_start_leaves_an_empty_cache(tmp_path: Path, gate: Gate) -> None:
    async def run() -> None:
        gate.close()
        world, _ = world_of(tmp_path)
        await world.reader.start()
        assert await read_all(world) == ALL
        world.reader.stop()

    asyncio.run(run())


def test_a_lookup_by_time_is_answered_although_the_disk_hangs(tmp_path: Path, gate: Gate) -> None:
    async def run() -> None:
        world, _ = world_of(tmp_path)
        await world.reader.start()
        await read_all(world)
        await world.restart()
        use_threads(world)
        gate.close()
        found = await world.reader.times.first_at(
            world.partition, 1_300, start_offset=Offset(0), end_offset=Offset(60)
        )
        assert found is not None
        assert found.offset == 30
        world.reader.stop()

    asyncio.run(run())


def test_a_cached_file_that_cannot_be_read_is_fetched_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        world, buckets = world_of(tmp_path)
        await world.reader.start()
        assert await read_all(world) == ALL
        for file in world.reader.cache._open.values():

            def broken(*_: object) -> bytes:
                raise OSError(errno.EIO, "broken")

            monkeypatch.setattr(type(file), "pread", broken)
        calls = len(buckets.stores["near"].calls)
        read = await world.read(0, min_bytes=1 << 20)
        monkeypatch.undo()
        assert bytes_of(read) == ALL
        assert len(buckets.stores["near"].calls) > calls
        world.reader.stop()

    asyncio.run(run())


def test_the_process_ends_although_the_disk_hangs() -> None:
    code = (
        "import asyncio, threading\n"
        "from strandline.tiered.reading import worker\n"
        "worker.DISK_MS_MAX = 10\n"
        "async def main():\n"
        "    work = worker.DiskWork()\n"
        "    work.worker = worker.DiskThreads()\n"
        "    for _ in range(2):\n"
        "        try:\n"
        "            await work.run(threading.Event().wait)\n"
        "        except TimeoutError as error:\n"
        "            print(error)\n"
        "    work.stop()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.count("has not answered") == 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount (2026-11-30)")
def test_a_file_system_that_is_full_lets_records_pass_through(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", small], check=True)
    try:

        async def run() -> None:
            log = batches(400, value_bytes=1_000)
            buckets = Buckets()
            buckets.put("near", log)
            world = ReadWorld(small, buckets)
            use_threads(world)
            await world.reader.start()
            found = b""
            offset = 0
            while offset < 400:
                read = await world.read(offset, min_bytes=1)
                found += bytes_of(read)
                offset = read.next_offset
            assert found == b"".join(log)
            await world.reader.cache.stop()
            assert shutil.disk_usage(small).free > 0, "room for others is left"
            world.reader.stop()

        asyncio.run(run())
    finally:
        subprocess.run(["umount", "-l", small], check=True)
