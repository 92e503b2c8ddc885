"""Cuts this broker off for a while, as a drill asks, and ends that by itself.

Why:    operators should try whether the cluster survives the loss of a region before it happens,
        without root, and without having to remember to undo it.
How:    IDLE --begin--> DUE --the delay is over--> CUT --the duration is over, or end--> IDLE
        The timer that ends the cut is set before anything is cut, and depends on no other process:
        the one that asked may be dead. A broker that restarts is not cut off. While it is cut off,
        the server takes one request from clients: the one that ends the drill.
Owns:   the two timers, and whether the broker is cut off.
Source: docs/decisions/0019-drills.md."""

import logging
from typing import Protocol

from strandline.base.clock import Clock, Timer
from strandline.base.errors import ApiError
from strandline.protocol.errors import Error

DELAY_MS_MIN = 100
"""The answer has to leave before the connection is closed."""
DELAY_MS_MAX = 10_000
DURATION_MS_MIN = 1_000
DURATION_MS_MAX = 600_000

_log = logging.getLogger("strandline.broker")


class Cut(Protocol):
    """Cuts the broker off, or no longer."""

    def __call__(self, *, is_cut: bool) -> None: ...


class Isolation:
    """See the module. `cut` cuts the broker off, or ends that; without it the broker refuses
    drills."""

    def __init__(self, clock: Clock, *, is_enabled: bool) -> None:
        self._clock = clock
        self._is_enabled = is_enabled
        self._timers: list[Timer] = []
        self.cut: Cut | None = None
        self.is_cut = False

    def check(self, *, delay_ms: int, duration_ms: int) -> None:
        """Raise ApiError where `begin` would."""
        if not self._is_enabled or self.cut is None:
            raise ApiError(
                Error.POLICY_VIOLATION, "its configuration allows no drills: [drills] enable"
            )
        if not DELAY_MS_MIN <= delay_ms <= DELAY_MS_MAX:
            raise ApiError(
                Error.INVALID_REQUEST, f"the delay must be {DELAY_MS_MIN} to {DELAY_MS_MAX} ms"
            )
        if not DURATION_MS_MIN <= duration_ms <= DURATION_MS_MAX:
            raise ApiError(
                Error.INVALID_REQUEST,
                f"the duration must be {DURATION_MS_MIN} to {DURATION_MS_MAX} ms",
            )
        if self._timers:
            raise ApiError(Error.INVALID_REQUEST, "it is in a drill already")

    def begin(self, *, delay_ms: int, duration_ms: int) -> None:
        """Be cut off after a delay, for a while; raises ApiError."""
        self.check(delay_ms=delay_ms, duration_ms=duration_ms)
        self._timers = [
            self._clock.call_later(delay_ms + duration_ms, self._end),
            self._clock.call_later(delay_ms, self._begin),
        ]
        _log.warning("a drill cuts this broker off in %d ms, for %d ms", delay_ms, duration_ms)

    def end(self) -> bool:
        """End the drill now, or before it begins; returns whether there was one."""
        if not self._timers:
            return False
        for timer in self._timers:
            timer.cancel()
        if self.is_cut:
            self._end()
        else:
            self._timers = []
            _log.warning("the drill was cancelled before it began")
        return True

    def stop(self) -> None:
        """The broker stops: no cut begins any more, and none has to be undone."""
        for timer in self._timers:
            timer.cancel()

    def _begin(self) -> None:
        assert self.cut is not None
        self.is_cut = True
        self.cut(is_cut=True)

    def _end(self) -> None:
        assert self.cut is not None
        self._timers = []
        self.is_cut = False
        self.cut(is_cut=False)
        _log.warning("the drill is over: no longer cut off")
