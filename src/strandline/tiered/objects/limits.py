"""How much of a broker goes to its stores and comes from them at one time.

Why:    each object in flight costs memory and time of the broker's loop; a long upload must not
        keep a reader waiting.
How:    uploads have half of the requests and of the bytes, downloads the other half; small writes
        have requests of their own. A pace spreads bytes over time.
Owns:   the counts; one `StoreLimits` a broker, shared by all its buckets.
Source: decision 0058; reference 2.3 on what a request costs."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

MIB = 1024 * 1024
SMALL_BYTES_MAX = 256 * 1024
"""A write of at most so many bytes is small."""
SMALL_WRITES_MAX = 16
"""So many small writes at one time."""


class ByteBudget:
    """Bytes that may be held at one time; the first to ask is the first to get."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.held_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncIterator[None]:
        """Hold so many bytes, at most all of them; waits for room."""
        size = min(size, self.bytes_max)
        if self._waiting or self.held_bytes + size > self.bytes_max:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((size, turn))
            try:
                await turn
            except asyncio.CancelledError:
                if turn.done() and not turn.cancelled():
                    self._release(size)
                else:
                    self._waiting.remove((size, turn))
                    self._admit()
                raise
        else:
            self.held_bytes += size
        try:
            yield
        finally:
            self._release(size)

    def _release(self, size: int) -> None:
        self.held_bytes -= size
        assert self.held_bytes >= 0
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self.held_bytes + self._waiting[0][0] <= self.bytes_max:
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.held_bytes += size
                turn.set_result(None)


class Pace:
    """Bytes per second; 0 for no limit. Whoever takes bytes waits until those before are due."""

    def __init__(self, bytes_per_s: int) -> None:
        self._bytes_per_s = bytes_per_s
        self._due_s = 0.0

    async def take(self, size: int) -> None:
        """Wait until these bytes may go."""
        if not self._bytes_per_s:
            return
        now = asyncio.get_running_loop().time()
        start = max(now, self._due_s)
        self._due_s = start + size / self._bytes_per_s
        if start > now:
            await asyncio.sleep(start - now)


class StoreLimits:
    """See the module. Waiting for room here counts against no deadline of a request."""

    def __init__(
        self,
        *,
        requests_inflight_max: int = 4,
        inflight_bytes_max: int = 64 * MIB,
        upload_bytes_per_s: int = 0,
        download_bytes_per_s: int = 0,
    ) -> None:
        uploads = max(1, requests_inflight_max // 2)
        self._uploads = asyncio.Semaphore(uploads)
        self._downloads = asyncio.Semaphore(max(1, requests_inflight_max - uploads))
        self._small_writes = asyncio.Semaphore(SMALL_WRITES_MAX)
        self.upload_budget = ByteBudget(inflight_bytes_max // 2)
        self.download_budget = ByteBudget(inflight_bytes_max // 2)
        self.upload_pace = Pace(upload_bytes_per_s)
        self.download_pace = Pace(download_bytes_per_s)

    @asynccontextmanager
    async def upload(self, size: int) -> AsyncIterator[None]:
        """Room for a write of so many bytes in memory."""
        if size <= SMALL_BYTES_MAX:
            async with self._small_writes:
                yield
            return
        async with self._uploads, self.upload_budget.hold(size):
            yield

    @asynccontextmanager
    async def download(self, size: int) -> AsyncIterator[None]:
        """Room for a read of so many bytes."""
        async with self._downloads, self.download_budget.hold(size):
            await self.download_pace.take(size)
            yield
