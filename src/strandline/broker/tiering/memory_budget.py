"""Bounds what uploads hold in memory, over all of a broker.

How:    a count of bytes, first come first served; a piece of work larger than all of it gets all.
Owns:   the count.
Source: decision 0059."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class MemoryBudget:
    """See the module."""

    def __init__(self, bytes_max: int) -> None:
        self._left_bytes = self.bytes_max = bytes_max
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, count: int) -> AsyncIterator[None]:
        """Hold `count` bytes of memory; waits for them."""
        count = min(count, self.bytes_max)
        await self._take(count)
        try:
            yield
        finally:
            self._give_back(count)

    async def _take(self, count: int) -> None:
        if not self._waiting and count <= self._left_bytes:
            self._left_bytes -= count
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = (count, future)
        self._waiting.append(place)
        try:
            await future
        except asyncio.CancelledError:
            if place in self._waiting:
                self._waiting.remove(place)
                self._give_back(0)  # Another one may be first now, and fit.
            elif not future.cancelled():
                self._give_back(count)  # Granted, and not used.
            raise

    def _give_back(self, count: int) -> None:
        self._left_bytes += count
        while self._waiting and self._waiting[0][0] <= self._left_bytes:
            wanted, future = self._waiting.popleft()
            if not future.done():
                self._left_bytes -= wanted
                future.set_result(None)
