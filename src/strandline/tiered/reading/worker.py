"""Where the cache's disk work runs: on threads beside the event loop, or at once.

Why:    a slow disk may hold a read for seconds; the loop must answer heartbeats meanwhile. A disk
        that hangs may hold a thread for ever; reads go on without it, and so does the exit.
How:    ANSWERING --a piece of work takes `DISK_MS_MAX`--> HUNG --that work ends after all-->
        ANSWERING;  HUNG: every other piece of work fails at once, so that no more threads hang.
        Checksums need no disk and have threads of their own.
Owns:   the threads, which begin with the first piece of work."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from errno import ETIMEDOUT
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

R = TypeVar("R")
THREAD_COUNT_MAX = 4
"""Reads of the cache's disk at a time, and checks of checksums."""
DISK_MS_MAX = 5_000
"""A piece of work that takes longer says that the disk hangs."""


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
    """The work of one cache. `worker`, `computing`: what runs disk work, and work that needs no
    disk; real brokers set them to threads."""

    def __init__(self) -> None:
        self.worker: DiskWorker = AtOnce()
        self.computing: DiskWorker = AtOnce()
        self._late: set[asyncio.Future[Any]] = set()
        """Pieces of work that the disk has not ended in time."""

    @property
    def is_hung(self) -> bool:
        """Whether the disk is not to be asked now."""
        return bool(self._late)

    async def run(self, work: Callable[[], R]) -> R:
        """See `DiskWorker`. Raises TimeoutError, which is an OSError, if the disk hangs."""
        if isinstance(self.worker, AtOnce):
            return work()
        if self._late:
            raise _hung()
        task = asyncio.ensure_future(self.worker.run(work))
        try:
            await asyncio.wait((task,), timeout=DISK_MS_MAX / 1000)
        except asyncio.CancelledError:
            task.add_done_callback(_forget)
            raise
        if task.done():
            return task.result()
        self._late.add(task)
        task.add_done_callback(self._on_late)
        raise _hung()

    async def compute(self, work: Callable[[], R]) -> R:
        """The result of work that needs no disk."""
        return await self.computing.run(work)

    def stop(self) -> None:
        """Begin no further work; what runs is not waited for."""
        self.worker.stop()
        self.computing.stop()

    def _on_late(self, task: "asyncio.Future[Any]") -> None:
        self._late.discard(task)
        _forget(task)


def _forget(task: "asyncio.Future[Any]") -> None:
    """No caller waits for its error any more."""
    if not task.cancelled():
        task.exception()


def _hung() -> TimeoutError:
    return TimeoutError(ETIMEDOUT, f"the disk has not answered for {DISK_MS_MAX} ms")


class DiskThreads:
    """Runs work on a few threads that do not hold up the end of the process."""

    def __init__(self, name: str = "tier-cache") -> None:
        self._name = name
        self._waiting: SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = SimpleQueue()
        self._threads = 0
        self._idle = threading.Semaphore(0)
        self._is_stopped = False

    async def run(self, work: Callable[[], R]) -> R:
        """See `DiskWorker`."""
        if self._is_stopped:
            raise OSError(ETIMEDOUT, "the broker ends")
        future: Future[R] = Future()
        self._waiting.put((work, future))
        if not self._idle.acquire(blocking=False) and self._threads < THREAD_COUNT_MAX:
            self._threads += 1
            name = f"{self._name}-{self._threads}"
            threading.Thread(target=self._work, name=name, daemon=True).start()
        return await asyncio.wrap_future(future)

    def stop(self) -> None:
        """Begin no further work; what runs ends by itself, or with the process."""
        self._is_stopped = True
        while not self._waiting.empty():
            one = self._waiting.get()
            if one is not None:
                one[1].cancel()
        for _ in range(self._threads):
            self._waiting.put(None)

    def _work(self) -> None:
        while (one := self._waiting.get()) is not None:
            work, future = one
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except BaseException as error:
                    future.set_exception(error)
                del work, future, one
            self._idle.release()
