"""The clock of a broker: a monotonic clock, a wall clock, and timers.

Why:    the same drivers run against real time and against the simulator's virtual time.
Source: design section 3."""

from collections.abc import Callable
from typing import Protocol


class Timer(Protocol):
    """A callback that has not run yet."""

    def cancel(self) -> None:
        """Make sure that the callback does not run; harmless when it has."""


class Clock(Protocol):
    """Time in whole milliseconds. All callbacks run on the broker's one thread."""

    def monotonic_ms(self) -> int:
        """Milliseconds since some fixed moment; never goes back."""

    def wall_ms(self) -> int:
        """Milliseconds since 1970-01-01 UTC; may jump. For record timestamps and people only."""

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """Run `callback` once, not before `delay_ms` have gone by."""

    def call_soon(self, callback: Callable[[], None]) -> None:
        """Run `callback` after the work in hand, and after what has come in meanwhile."""

    def at_pass_end(self, callback: Callable[[], None]) -> None:
        """Run `callback` at the end of this pass of the loop: once all that this pass brought is
        dealt with, and before the loop looks for more. What the callback adds itself runs in the
        same pass. So this is for the next step of a request, which others can share, and
        `call_soon` for work that lets others in."""
