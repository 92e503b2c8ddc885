"""A host's clock: virtual time as this host sees it, with a drift and a wall clock that may jump.

Why:    leases and timeouts must hold between hosts whose clocks run at different rates.
How:    local = anchor + (virtual time - anchor's) * (1 + drift); a change of drift sets a new
        anchor, so that monotonic time never goes back. The wall clock is monotonic time plus an
        offset that may change at any moment.
Owns:   the mapping of one host; timers run through the host's process.
Source: design section 10."""

from collections.abc import Callable

from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import US_PER_MS, ScheduledEvent, Scheduler

WALL_START_MS = 1_700_000_000_000
PPM = 1_000_000
DRIFT_PPM_MAX = 50_000


class HostClock:
    """The hardware: outlives processes; `drift_ppm` microseconds too fast in every second."""

    def __init__(
        self, scheduler: Scheduler, *, drift_ppm: int = 0, wall_offset_ms: int = 0
    ) -> None:
        self._scheduler = scheduler
        self._anchor_us = scheduler.now_us
        self._anchor_local_us = scheduler.now_us
        self._rate_ppm = PPM + drift_ppm
        self.wall_offset_ms = wall_offset_ms

    @property
    def drift_ppm(self) -> int:
        """How much too fast it is."""
        return self._rate_ppm - PPM

    def set_drift(self, drift_ppm: int) -> None:
        """Run at another rate from now on."""
        assert abs(drift_ppm) <= DRIFT_PPM_MAX, drift_ppm
        self._anchor_local_us = self.local_us()
        self._anchor_us = self._scheduler.now_us
        self._rate_ppm = PPM + drift_ppm

    def jump_wall(self, jump_ms: int) -> None:
        """Set the wall clock forward or back; monotonic time does not notice."""
        self.wall_offset_ms += jump_ms

    def local_us(self) -> int:
        """This host's monotonic time."""
        elapsed_us = self._scheduler.now_us - self._anchor_us
        return self._anchor_local_us + elapsed_us * self._rate_ppm // PPM

    def wall_ms(self) -> int:
        """What its wall clock shows."""
        return WALL_START_MS + self.local_us() // US_PER_MS + self.wall_offset_ms

    def due_us(self, local_us: int) -> int:
        """The first virtual moment at which this host's monotonic time is at least `local_us`."""
        ahead_us = local_us - self._anchor_local_us
        return self._anchor_us + -(-ahead_us * PPM // self._rate_ppm)


class SimClock:
    """`base.clock.Clock` for one process on a host."""

    def __init__(self, hardware: HostClock, process: Process) -> None:
        self.hardware = hardware
        self._process = process
        self._local_us = hardware.local_us

    def monotonic_ms(self) -> int:
        """See `base.clock.Clock`."""
        return self._local_us() // US_PER_MS

    def wall_ms(self) -> int:
        """See `base.clock.Clock`."""
        local_ms = self._local_us() // US_PER_MS
        return WALL_START_MS + local_ms + self.hardware.wall_offset_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ScheduledEvent:
        """See `base.clock.Clock`."""
        due_us = self._local_us() + max(0, delay_ms) * US_PER_MS
        return self._process.at(self.hardware.due_us(due_us), callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """See `base.clock.Clock`."""
        self._process.after(0, callback)

    def at_pass_end(self, callback: Callable[[], None]) -> None:
        """See `base.clock.Clock`."""
        self._process.after(0, callback)
