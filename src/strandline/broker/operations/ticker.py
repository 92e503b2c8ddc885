"""Calls something again and again until it is stopped.

Why:    what a broker looks at each second must be looked at again, whatever came of the last look.
How:    the timer is set anew once a call is over; one that raises is logged.
Owns:   its timer."""

import logging
from collections.abc import Callable

from strandline.base.clock import Clock, Timer


class Ticker:
    """See the module. `tick` may set `interval_ms`, the time until the next call; `failure` is what
    is logged, to `log`, where it raises."""

    def __init__(
        self,
        clock: Clock,
        tick: Callable[[], None],
        *,
        interval_ms: int,
        log: logging.Logger,
        failure: str,
    ) -> None:
        self.interval_ms = interval_ms
        self._clock = clock
        self._tick = tick
        self._log = log
        self._failure = failure
        self._timer: Timer | None = None

    @property
    def is_running(self) -> bool:
        """Whether it was started, and not stopped since."""
        return self._timer is not None

    def start(self) -> None:
        """Call for the first time after one interval."""
        self._timer = self._clock.call_later(self.interval_ms, self._run)

    def stop(self) -> None:
        """Call no more; harmless when it does not run."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        try:
            self._tick()
        except Exception:  # A task boundary: the next call tries again.
            self._log.exception(self._failure)
        if self.is_running:  # The call may have stopped it.
            self.start()
