"""Each host sees time in its own way."""

from hypothesis import given
from hypothesis import strategies as st

from strandline.simulation.world.clock import DRIFT_PPM_MAX, HostClock, SimClock
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import Scheduler


def test_a_fast_clock_runs_its_timers_early() -> None:
    scheduler = Scheduler()
    clock = SimClock(HostClock(scheduler, drift_ppm=10_000), Process(scheduler, "one"))
    seen: list[int] = []
    clock.call_later(1_000, lambda: seen.append(scheduler.now_us))
    scheduler.run_until(2_000_000)
    assert seen == [990_100]
    assert clock.monotonic_ms() == 2_020


def test_a_jump_of_the_wall_clock_leaves_monotonic_time_alone() -> None:
    scheduler = Scheduler()
    hardware = HostClock(scheduler)
    clock = SimClock(hardware, Process(scheduler, "one"))
    before_ms = clock.wall_ms()
    hardware.jump_wall(-5_000)
    assert clock.wall_ms() == before_ms - 5_000
    assert clock.monotonic_ms() == 0


@given(
    drift_ppm=st.integers(-DRIFT_PPM_MAX, DRIFT_PPM_MAX),
    start_us=st.integers(0, 10**9),
    delay_ms=st.integers(0, 10**6),
)
def test_no_timer_runs_before_its_delay_has_gone_by_on_its_host(
    drift_ppm: int, start_us: int, delay_ms: int
) -> None:
    scheduler = Scheduler()
    clock = SimClock(HostClock(scheduler, drift_ppm=drift_ppm), Process(scheduler, "one"))
    scheduler.run_until(start_us)
    begun_ms = clock.monotonic_ms()
    seen: list[int] = []
    clock.call_later(delay_ms, lambda: seen.append(clock.monotonic_ms()))
    while not seen:
        assert scheduler.step()
    assert delay_ms <= seen[0] - begun_ms <= delay_ms + 1


@given(drifts=st.lists(st.integers(-DRIFT_PPM_MAX, DRIFT_PPM_MAX), min_size=1, max_size=10))
def test_monotonic_time_never_goes_back_when_the_drift_changes(drifts: list[int]) -> None:
    scheduler = Scheduler()
    hardware = HostClock(scheduler)
    last_us = hardware.local_us()
    for drift_ppm in drifts:
        scheduler.run_until(scheduler.now_us + 12_345)
        hardware.set_drift(drift_ppm)
        assert hardware.local_us() > last_us
        last_us = hardware.local_us()
