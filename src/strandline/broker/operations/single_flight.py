"""Work in the background of which there is one piece at a time.

Why:    who looks each second must not ask again while an answer is under way.
How:    begun where none is under way; over when its call is, whatever came of that.
Owns:   its task."""

import asyncio
from collections.abc import Awaitable, Callable


class SingleFlight:
    """See the module."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether nothing else may begin yet."""
        return self._task is not None

    def begin(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do it, in the background; nothing is under way."""
        assert self._task is None
        self._task = asyncio.get_running_loop().create_task(self._run(work))

    def stop(self) -> None:
        """Give it up; harmless when there is none."""
        if self._task is not None:
            self._task.cancel()

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        finally:
            self._task = None
