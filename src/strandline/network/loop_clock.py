"""Real time, from the event loop.

Why:    gives `base.clock.Clock` to a broker in the real world.
Source: design section 3."""

import asyncio
import time
from collections.abc import Callable

from strandline.base.clock import Timer


class LoopClock:
    """Time of one event loop; all callbacks run on its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    def monotonic_ms(self) -> int:
        """See `base.clock.Clock.monotonic_ms`."""
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        """See `base.clock.Clock.wall_ms`."""
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """See `base.clock.Clock.call_later`."""
        return self._loop.call_later(delay_ms / 1000, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """See `base.clock.Clock.call_soon`."""
        self._loop.call_soon(callback)
