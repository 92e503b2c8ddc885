"""One life of a host's process: the gate through which everything that runs on the host passes.

Why:    a crash must silence every timer, message and task of a host at once, a pause must hold them
        back, and a blocking call must delay them. The code under test must not care.
How:    RUNNING --pause--> PAUSED --resume--> RUNNING;  RUNNING | PAUSED --kill--> DEAD (for good: a
        restart is a new process). Events that come due while the process is paused or busy wait in
        order. A disk may kill the process in the middle of a callback by raising `ProcessDied`, as
        a power failure between two system calls would.
Owns:   the events that are held back, and the loop on which the process' coroutines run.
Source: design section 10."""

import asyncio
from asyncio import _get_running_loop, _set_running_loop
from collections import deque
from collections.abc import Callable

from strandline.simulation.world.scheduler import ScheduledEvent, Scheduler


class ProcessDied(BaseException):
    """Raised into the code of a process that dies in the middle of a callback."""


class Process:
    """See the module. `on_death` is called once, outside of any callback of the process."""

    def __init__(
        self, scheduler: Scheduler, name: str, *, on_death: Callable[[], None] | None = None
    ) -> None:
        self.name = name
        self.alive = True
        self.paused = False
        self.dying = False
        self.loop: asyncio.AbstractEventLoop | None = None
        self._scheduler = scheduler
        self._on_death = on_death
        self._busy_until_us = 0
        self._held: deque[ScheduledEvent] = deque()
        self._wake_at_us = -1

    @property
    def is_usable(self) -> bool:
        """Whether its code may still touch the world."""
        return self.alive and not self.dying

    def at(self, time_us: int, callback: Callable[[], None]) -> ScheduledEvent:
        """Run `callback` at `time_us` in this process, unless it is dead by then."""
        return self._scheduler.at(time_us, callback, gate=self)

    def after(self, delay_us: int, callback: Callable[[], None]) -> ScheduledEvent:
        """Run `callback` in this process after `delay_us`, unless it is dead by then."""
        return self._scheduler.at(self._scheduler.now_us + delay_us, callback, gate=self)

    def admit(self, event: ScheduledEvent) -> None:
        """Run what is due, hold it back, or drop it: see the module."""
        if not self.alive:
            return
        if self.paused or self._held or self._scheduler.now_us < self._busy_until_us:
            self._held.append(event)
            self._wake_later()
            return
        self._run(event.callback)

    def enter(self, callback: Callable[[], None]) -> None:
        """As `after` with no delay, for what comes from outside of any process: runs at once."""
        self.admit(ScheduledEvent(self._scheduler.now_us, callback, self))

    def pause(self) -> None:
        """Hold everything back, as SIGSTOP does."""
        self.paused = True

    def resume(self) -> None:
        """Run what was held back, in order, then go on."""
        self.paused = False
        self._wake_later()

    def kill(self) -> None:
        """End it. Nothing of it runs afterwards."""
        if not self.alive:
            return
        self.alive = False
        self.dying = False
        self._held.clear()
        if self._on_death is not None:
            self._on_death()

    def die_now(self) -> ProcessDied:
        """What to raise in order to end the process in the middle of its callback."""
        self.dying = True
        return ProcessDied(self.name)

    def charge(self, duration_us: int) -> None:
        """The running callback blocks for `duration_us`: everything later here waits."""
        self._busy_until_us = max(self._busy_until_us, self._scheduler.now_us) + duration_us

    def run_now(self, callback: Callable[[], None]) -> None:
        """Run `callback` as if the process did it at this moment; for the world that starts it."""
        if self.alive:
            self._run(callback)

    def _wake_later(self) -> None:
        if self.paused or not self._held:
            return
        time_us = max(self._busy_until_us, self._scheduler.now_us)
        if self._wake_at_us != time_us:
            self._wake_at_us = time_us
            self._scheduler.at(time_us, self._wake)

    def _wake(self) -> None:
        self._wake_at_us = -1
        while self._held and self.alive and not self.paused:
            if self._scheduler.now_us < self._busy_until_us:
                break
            event = self._held.popleft()
            if not event.cancelled:
                self._run(event.callback)
        self._wake_later()

    def _run(self, callback: Callable[[], None]) -> None:
        running = _get_running_loop()
        _set_running_loop(self.loop)
        try:
            callback()
        except ProcessDied:
            pass
        finally:
            _set_running_loop(running)
            if self.dying:
                self.kill()
