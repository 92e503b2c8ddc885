"""The clock of a broker in the real world.

Source: decision 0035 (a lease is counted by it)."""

import asyncio
import time

import pytest

from strandline.network.loop_clock import LoopClock


def test_time_goes_on_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    slept_ns = {time.CLOCK_BOOTTIME: 5_000_000_000, time.CLOCK_MONOTONIC: 0}
    now_ns = time.clock_gettime_ns
    loop = asyncio.new_event_loop()
    clock = LoopClock(loop)
    before = clock.monotonic_ms()
    monkeypatch.setattr(time, "clock_gettime_ns", lambda which: now_ns(which) + slept_ns[which])
    assert clock.monotonic_ms() - before >= 5_000
    loop.close()
