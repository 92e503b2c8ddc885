"""Renders costly pages one at a time; reuses the last page for a second.

Why:    a flood of requests takes at most half of the broker's loop.
How:    a request for the page that was rendered last, less than a second ago, gets that answer. Any
        other request waits its turn.
Owns:   the last page.
Source: decision 0036."""

import asyncio
from collections.abc import Awaitable, Callable

from strandline.admin.http_server import Answer
from strandline.base.clock import Clock

FRESH_MS = 1_000


class LastPage:
    """See the module. One for all pages of a broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turn = asyncio.Lock()
        # (name of the page, when it was rendered, the page)
        self._last: tuple[str, int, Answer] | None = None

    async def fresh(self, page: str, make: Callable[[], Awaitable[Answer]]) -> Answer:
        """The page named `page`: the cached one if it is less than a second old, else a new one."""
        async with self._turn:
            now = self._clock.monotonic_ms()
            if self._last is not None:
                last, made_ms, answer = self._last
                if last == page and now - made_ms < FRESH_MS:
                    return answer
            answer = await make()
            self._last = page, now, answer
            return answer
