"""Runs at most one background task at a time.

Why:    a poller that fires every second must not start a second request while the first one runs.
How:    `begin` starts a task if none is under way; it is over when its call returns or raises.
Owns:   its task."""

import asyncio
from collections.abc import Awaitable, Callable


class SingleFlight:
    """See the module."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether the task still runs."""
        return self._task is not None

    def begin(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work` in the background; no task may be under way."""
        assert self._task is None
        self._task = asyncio.get_running_loop().create_task(self._run(work))

    def stop(self) -> None:
        """Cancel the task; harmless without one."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            self._task = None
