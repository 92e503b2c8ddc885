"""Where the cache's disk work runs: on threads beside the event loop, or at once.

Why:    a slow disk may hold a read for seconds; the loop must answer heartbeats meanwhile.
Owns:   the threads, which begin with the first piece of work."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

R = TypeVar("R")
THREAD_COUNT_MAX = 4
"""Reads of the cache's disk at a time."""


class DiskWorker(Protocol):
    """What runs work that may block."""

    async def run(self, work: Callable[[], R]) -> R:
        """The result of `work`. Raises what it raises."""

    def stop(self) -> None:
        """Begin no further work."""


class AtOnce:
    """Runs work on the caller's thread: for the simulator and for tests."""

    async def run(self, work: Callable[[], R]) -> R:
        """See `DiskWorker`."""
        return work()

    def stop(self) -> None:
        """See `DiskWorker`."""


class DiskWork:
    """The work of one cache. `worker`: what runs it; real brokers set it to threads."""

    def __init__(self) -> None:
        self.worker: DiskWorker = AtOnce()

    async def run(self, work: Callable[[], R]) -> R:
        """See `DiskWorker`."""
        return await self.worker.run(work)

    def stop(self) -> None:
        """See `DiskWorker`."""
        self.worker.stop()


class DiskThreads:
    """Runs work on a few threads."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREAD_COUNT_MAX, thread_name_prefix="tier-cache")

    async def run(self, work: Callable[[], R]) -> R:
        """See `DiskWorker`."""
        return await asyncio.get_running_loop().run_in_executor(self._pool, work)

    def stop(self) -> None:
        """Begin no further work; what runs ends by itself."""
        self._pool.shutdown(wait=False, cancel_futures=True)
