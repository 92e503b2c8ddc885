"""Virtual time: one queue of events for the whole simulated world.

Why:    when every timer, message and finished flush of every host is an event in one queue, a run
        is a function of its seed, and an hour passes as fast as its events can be computed.
How:    events run in the order (time, sequence number); a sequence number is given when an event is
        made, so two events of the same moment run in the order in which they were asked for.
        Nothing ever waits for real time.
Owns:   the present moment, in microseconds since the start of the run. Only `run_...` and `step`
        move it.
Source: design section 10; FoundationDB's and TigerBeetle's simulators."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

US_PER_MS = 1_000


class Gate(Protocol):
    """Whose event it is: decides whether it runs now, later (paused, busy) or never (dead)."""

    def admit(self, event: "ScheduledEvent") -> None:
        """Called when `event` is due and was not cancelled."""


class ScheduledEvent:
    """A callback that is due at `time_us`. Satisfies `base.clock.Timer`."""

    __slots__ = ("callback", "cancelled", "gate", "time_us")

    def __init__(self, time_us: int, callback: Callable[[], None], gate: Gate | None) -> None:
        self.time_us = time_us
        self.callback = callback
        self.gate = gate
        self.cancelled = False

    def cancel(self) -> None:
        """Make sure that the callback does not run; harmless when it has."""
        self.cancelled = True


class Scheduler:
    """See the module."""

    def __init__(self) -> None:
        self.now_us = 0
        self.executed_count = 0
        self.is_stopped = False
        """If it is set, `run_until` and `run_until_true` end after the present event."""
        self.on_executed: Callable[[], None] | None = None
        """Called after each event; must change nothing."""
        self._sequence = 0
        self._queue: list[tuple[int, int, ScheduledEvent]] = []

    def at(
        self, time_us: int, callback: Callable[[], None], *, gate: Gate | None = None
    ) -> ScheduledEvent:
        """Run `callback` at `time_us`, or now if that has gone by; through `gate` if any."""
        if time_us < self.now_us:
            time_us = self.now_us
        event = ScheduledEvent(time_us, callback, gate)
        self._sequence += 1
        heappush(self._queue, (time_us, self._sequence, event))
        return event

    def after(
        self, delay_us: int, callback: Callable[[], None], *, gate: Gate | None = None
    ) -> ScheduledEvent:
        """Run `callback` when `delay_us` have gone by."""
        return self.at(self.now_us + delay_us, callback, gate=gate)

    def step(self) -> bool:
        """Run the next event; False when there is none."""
        while self._queue:
            time_us, _, event = heappop(self._queue)
            if not event.cancelled:
                self._run(time_us, event)
                return True
        return False

    def run_until(self, time_us: int) -> None:
        """Run every event that is due up to and including `time_us`, and stop there."""
        queue, run = self._queue, self._run
        while queue and queue[0][0] <= time_us and not self.is_stopped:
            due_us, _, event = heappop(queue)
            if not event.cancelled:
                run(due_us, event)
        if not self.is_stopped:
            self.now_us = max(self.now_us, time_us)

    def run_until_true(self, condition: Callable[[], bool], *, limit_us: int) -> bool:
        """Run events until `condition` holds; False when `limit_us` came first."""
        queue = self._queue
        while not condition() and not self.is_stopped:
            while queue and queue[0][2].cancelled:
                heappop(queue)
            if not queue or queue[0][0] > limit_us:
                self.now_us = max(self.now_us, limit_us)
                return False
            due_us, _, event = heappop(queue)
            self._run(due_us, event)
        return True

    def _run(self, time_us: int, event: ScheduledEvent) -> None:
        self.now_us = time_us
        self.executed_count += 1
        gate = event.gate
        if gate is None:
            event.callback()
        else:
            gate.admit(event)
        if self.on_executed is not None:
            self.on_executed()
