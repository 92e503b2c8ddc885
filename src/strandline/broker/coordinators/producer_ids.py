"""Hands out producer ids from blocks that the controller allots to this broker.

Why:    an id must never be given twice in the life of the cluster, and asking the controller for
        each would delay every producer that starts.
How:    One block at a time. Requests that come while the next block is fetched wait for it. Ids
        that are left in a block when the broker stops are lost, which is harmless: there are 2^63.
Owns:   the block in use; one per broker.
Source: KIP-98; Kafka's ProducerIdManager."""

import asyncio
from collections.abc import Awaitable, Callable

Allocate = Callable[[], Awaitable[tuple[int, int]]]
"""Fetches a block: its first id and how many. Raises ApiError."""


class ProducerIds:
    """See the module."""

    def __init__(self, allocate: Allocate) -> None:
        self._allocate = allocate
        self._next = 0
        self._end = 0
        self._lock = asyncio.Lock()

    async def next(self) -> int:
        """An id that no other producer has. Raises ApiError if the controller cannot be reached."""
        while self._next >= self._end:
            async with self._lock:
                if self._next >= self._end:
                    first, count = await self._allocate()
                    self._next, self._end = first, first + count
        self._next += 1
        return self._next - 1
