"""How many bytes of downloads may be in flight at once on this broker.

Why:    a hundred consumers of old data would otherwise fill the broker's memory with chunks.
How:    demand waits in line; read-ahead takes only what is free, and never waits.
Owns:   the count, and the line."""

import asyncio
from collections import deque


class InflightBytes:
    """See the module."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.used_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def take_nowait(self, size_bytes: int) -> bool:
        """Take so many bytes if they are free and nothing waits; whether they were taken."""
        if self._waiting or self.used_bytes + size_bytes > self.bytes_max:
            return False
        self.used_bytes += size_bytes
        return True

    async def take(self, size_bytes: int) -> None:
        """Wait in line for so many bytes. More than there are at all count as all."""
        size_bytes = min(size_bytes, self.bytes_max)
        if self.take_nowait(size_bytes):
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, future))
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self.give_back(size_bytes)
            raise

    def give_back(self, size_bytes: int) -> None:
        """These bytes are in flight no longer."""
        self.used_bytes -= min(size_bytes, self.bytes_max)
        assert self.used_bytes >= 0, "more given back than taken"
        while self._waiting:
            wanted, future = self._waiting[0]
            if future.done():  # Cancelled.
                self._waiting.popleft()
                continue
            if self.used_bytes + wanted > self.bytes_max:
                return
            self._waiting.popleft()
            self.used_bytes += wanted
            future.set_result(None)
