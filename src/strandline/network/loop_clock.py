"""Real time, from the event loop.

Why:    implements `base.clock.Clock` for a broker in the real world.
How:    uses the clock that also counts while the machine is suspended, if there is one: a leader
        that slept with its machine must not take its old lease for a valid one.
Source: design section 3; clock_gettime(2), CLOCK_BOOTTIME."""

import asyncio
import time
from collections.abc import Callable

from strandline.base.clock import Timer
from strandline.network.pass_end import PassEnd

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class LoopClock:
    """Time of one event loop; all callbacks run on its thread."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.at_pass_end = PassEnd.of(loop).add
        """See `base.clock.Clock.at_pass_end`."""

    def monotonic_ms(self) -> int:
        """See `base.clock.Clock.monotonic_ms`."""
        return time.clock_gettime_ns(_CLOCK) // 1_000_000

    def wall_ms(self) -> int:
        """See `base.clock.Clock.wall_ms`."""
        return time.time_ns() // 1_000_000

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """See `base.clock.Clock.call_later`."""
        return self._loop.call_later(delay_ms / 1000, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """See `base.clock.Clock.call_soon`."""
        self._loop.call_soon(callback)
