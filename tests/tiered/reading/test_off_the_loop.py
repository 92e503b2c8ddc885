"""Nothing of a read blocks the event loop: the disk is used by the worker, the store by tasks.

Source: decision 0060 ("the event loop does not wait for the disk")."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.tiered.reading.reading_world import Buckets, ReadWorld, batches, bytes_of

from strandline.model.ids import Offset

R = TypeVar("R")


class Guard:
    """A worker, and a disk that only the worker may use."""

    def __init__(self) -> None:
        self.is_working = False
        self.used: set[str] = set()
        self.misused: list[str] = []

    async def run(self, work: Callable[[], R]) -> R:
        self.is_working = True
        try:
            return work()
        finally:
            self.is_working = False

    def stop(self) -> None:
        """See `DiskWorker`."""

    def watch(self, target: Any) -> Any:
        return Watched(self, target)

    def note(self, name: str) -> None:
        self.used.add(name)
        if not self.is_working:
            self.misused.append(name)


class Watched:
    """A disk or one of its files."""

    def __init__(self, guard: Guard, target: Any) -> None:
        self.__dict__.update(_guard=guard, _target=target)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._target, name, value)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if not callable(found) or name == "fileno":
            return found

        def call(*arguments: object, **options: object) -> object:
            self._guard.note(name)
            plain = [one._target if isinstance(one, Watched) else one for one in arguments]
            result = found(*plain, **options)
            return Watched(self._guard, result) if name == "open" else result

        return call


def test_only_the_worker_touches_the_cache_s_disk(tmp_path: Path) -> None:
    log = batches(200)
    buckets = Buckets()
    buckets.put("near", log[:120])
    buckets.put("near", log[120:])

    async def run() -> None:
        guard = Guard()
        world = ReadWorld(tmp_path, buckets, cache_bytes_max=20 * 1_024)
        for _ in range(2):
            reader = world.reader
            reader.work.worker = guard
            reader.cache._files._disk = guard.watch(reader.cache._files._disk)
            await reader.start()
            for offset in (*range(0, 200, 13), *range(0, 200, 29)):
                read = await world.read(offset, max_bytes=3_000)
                guard.is_working = True  # The outbox sends files from the page cache.
                assert bytes_of(read).startswith(log[offset])
                guard.is_working = False
                world.clock.advance(20_000)
            await reader.times.first_at(
                world.partition, 1_500, start_offset=Offset(0), end_offset=Offset(200)
            )
            await world.settle()
            await reader.cache.stop()
            world.reader = world._reader()  # A restart.
        assert guard.misused == []
        assert {"open", "pread", "pwrite", "rename", "remove", "list_directory"} <= guard.used

    asyncio.run(run())
