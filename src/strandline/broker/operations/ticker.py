"""Calls a function at an interval until it is stopped.

Why:    a check that runs each second must run again, whatever came of the last one.
How:    The timer is set again once a call returns. An exception is logged.
Owns:   its timer."""

import logging
from collections.abc import Callable

from strandline.base.clock import Clock, Timer


class Ticker:
    """See the module. `tick` may set `interval_ms`, the time until the next call. If it raises,
    `failure` is logged to `log`."""

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
        """Whether it was started and is not stopped."""
        return self._timer is not None

    def start(self) -> None:
        """Call for the first time after one interval."""
        self._timer = self._clock.call_later(self.interval_ms, self._run)

    def stop(self) -> None:
        """Stop calling; harmless if it does not run."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run(self) -> None:
        try:
            self._tick()
        except Exception:  # A task boundary: the next call tries again.
            self._log.exception(self._failure)
        if self.is_running:  # `tick` may have stopped it.
            self.start()
