"""Timers by name, most of which are set again long before they fire.

Why:    each heartbeat of each group member restarts its session timer; a timer of the loop for
        every heartbeat would leave a trail of cancelled ones behind.
How:    Setting a timer to a later time only moves its deadline. When the loop's timer fires before
        the deadline, it is set for the rest.
Owns:   the timers; one table per partition of `__consumer_offsets` led here."""

from collections.abc import Callable

from strandline.base.clock import Clock, Timer

Name = tuple[str, str]


class _Entry:
    """One timer: when it is due, and when the loop's timer fires."""

    __slots__ = ("deadline_ms", "fires_ms", "timer")

    def __init__(self, deadline_ms: int, timer: Timer) -> None:
        self.deadline_ms = deadline_ms
        self.fires_ms = deadline_ms
        self.timer = timer


class TimerTable:
    """See the module. `on_fired(name)` is called once for each timer that was not cancelled."""

    def __init__(self, clock: Clock, on_fired: Callable[[Name], None]) -> None:
        self._clock = clock
        self._on_fired = on_fired
        self._entries: dict[Name, _Entry] = {}

    def set(self, name: Name, delay_ms: int) -> None:
        """Fire after `delay_ms`, in place of an earlier timer of this name."""
        deadline_ms = self._clock.monotonic_ms() + delay_ms
        entry = self._entries.get(name)
        if entry is not None and deadline_ms >= entry.fires_ms:
            entry.deadline_ms = deadline_ms
            return
        if entry is not None:
            entry.timer.cancel()
        self._entries[name] = _Entry(deadline_ms, self._start(name, delay_ms))

    def cancel(self, name: Name) -> None:
        """Do not fire; harmless when there is no such timer."""
        entry = self._entries.pop(name, None)
        if entry is not None:
            entry.timer.cancel()

    def clear(self) -> None:
        """Cancel all."""
        for entry in self._entries.values():
            entry.timer.cancel()
        self._entries.clear()

    def __len__(self) -> int:
        return len(self._entries)

    def _start(self, name: Name, delay_ms: int) -> Timer:
        return self._clock.call_later(delay_ms, lambda: self._on_timer(name))

    def _on_timer(self, name: Name) -> None:
        entry = self._entries[name]
        left_ms = entry.deadline_ms - self._clock.monotonic_ms()
        if left_ms > 0:
            entry.fires_ms = entry.deadline_ms
            entry.timer = self._start(name, left_ms)
            return
        del self._entries[name]
        self._on_fired(name)
