"""Requests that wait: fetches for records, produces for their quorum.

Why:    a long poll costs nothing while nothing happens, and a produce is answered in time even if
        its quorum never answers. Neither may need a task, nor a produce a timer.
How:    `Parked` waits until one of some replicas moves, or for its time-out. Replicas that move
        within one pass of the loop are looked at once, at its end.
            `Deadlines` is swept while it is not empty. A produce that is answered in time, as
        nearly all are, costs one insertion and one removal.
Owns:   the watches and timers of waiting requests. A parked fetch leaves when its client goes.
Source: Kafka's purgatory; design section 5; python-speed reference 9 (no task a request)."""

from collections.abc import Callable, Sequence
from typing import Protocol

from strandline.base.clock import Clock, Timer

SWEEP_INTERVAL_MS = 100


class WatchHandle(Protocol):
    """A watch that has not fired."""

    def cancel(self) -> None:
        """Make sure that it does not fire."""


class Watched(Protocol):
    """What a replica offers to waiting requests."""

    def watch(self, callback: Callable[[], None]) -> WatchHandle:
        """Call `callback` once, when the high watermark or the leadership changes."""


class Parked:
    """One waiting fetch. `check(positions)` returns whether the changes at these positions of
    `watched` are enough. `finish` is called once: then, or after `delay_ms`; not after `drop`."""

    __slots__ = (
        "_changed",
        "_check",
        "_clock",
        "_early",
        "_finish",
        "_is_over",
        "_timer",
        "_watched",
        "_watches",
    )

    def __init__(
        self,
        *,
        clock: Clock,
        watched: Sequence[Watched],
        delay_ms: int,
        check: Callable[[Sequence[int]], bool],
        finish: Callable[[], None],
    ) -> None:
        self._clock = clock
        self._watched = watched
        self._check = check
        self._finish = finish
        self._is_over = False
        # Positions in `watched` that moved in this pass of the loop.
        self._changed: list[int] = []
        self._watches: list[WatchHandle] = [
            one.watch(self._on_change(position)) for position, one in enumerate(watched)
        ]
        self._timer: Timer = clock.call_later(delay_ms, self._end)
        self._early: Timer | None = None

    def drop(self) -> None:
        """Stop waiting; `finish` is not called."""
        self._is_over = True
        self._timer.cancel()
        if self._early is not None:
            self._early.cancel()
        for watch in self._watches:
            watch.cancel()
        self._watches.clear()

    def end_within(self, delay_ms: int) -> None:
        """Call `finish` after so long, if not earlier. Only the first call counts."""
        if self._early is None and not self._is_over:
            self._early = self._clock.call_later(delay_ms, self._end)

    def _on_change(self, position: int) -> Callable[[], None]:
        def changed() -> None:
            if not self._changed:
                self._clock.call_soon(self._look)
            self._changed.append(position)

        return changed

    def _look(self) -> None:
        if self._is_over:
            return
        changed, self._changed = self._changed, []
        if self._check(changed):
            self._end()
        if not self._is_over_now():
            self._watch_again(changed)

    def _is_over_now(self) -> bool:
        """As a call, because type checkers take `_is_over` for what it was before `_check`."""
        return self._is_over

    def _watch_again(self, changed: Sequence[int]) -> None:
        for position in changed:
            self._watches[position] = self._watched[position].watch(self._on_change(position))

    def _end(self) -> None:
        if not self._is_over:
            self.drop()
            self._finish()


class Expirable(Protocol):
    """A request with a deadline."""

    deadline_ms: int

    def expire(self) -> None:
        """The deadline has passed; the request has left `Deadlines` already."""


class Deadlines:
    """Requests with a deadline, kept to within SWEEP_INTERVAL_MS; one per broker."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: dict[Expirable, None] = {}
        self._is_sweep_due = False

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, request: Expirable) -> None:
        """Expire the request at `request.deadline_ms`, unless it is discarded before."""
        self._waiting[request] = None
        if not self._is_sweep_due:
            self._is_sweep_due = True
            self._clock.call_later(SWEEP_INTERVAL_MS, self._sweep)

    def discard(self, request: Expirable) -> None:
        """The request was answered; harmless if it is not here."""
        self._waiting.pop(request, None)

    def _sweep(self) -> None:
        self._is_sweep_due = False
        now = self._clock.monotonic_ms()
        for request in [one for one in self._waiting if one.deadline_ms <= now]:
            if request in self._waiting:
                del self._waiting[request]
                request.expire()
        if self._waiting and not self._is_sweep_due:
            self._is_sweep_due = True
            self._clock.call_later(SWEEP_INTERVAL_MS, self._sweep)
