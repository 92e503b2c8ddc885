"""A ticker calls until it is stopped, whatever the calls do.

Source: `broker.operations.ticker`."""

import logging

import pytest

from strandline.broker.operations.ticker import Ticker
from strandline.simulation.world.clock import HostClock, SimClock
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import US_PER_MS, Scheduler


class Looks:
    """Notes the virtual time of each call. `fails_at`, `stops_at`: which call does that."""

    def __init__(self, *, fails_at: int = -1, stops_at: int = -1, next_ms: int = 100) -> None:
        self.scheduler = Scheduler()
        self.at_ms: list[int] = []
        self._fails_at, self._stops_at, self._next_ms = fails_at, stops_at, next_ms
        self.ticker = Ticker(
            SimClock(HostClock(self.scheduler), Process(self.scheduler, "host")),
            self._look,
            interval_ms=100,
            log=logging.getLogger("strandline.test"),
            failure="cannot look",
        )
        self.ticker.start()

    def _look(self) -> None:
        self.at_ms.append(self.scheduler.now_us // US_PER_MS)
        self.ticker.interval_ms = self._next_ms
        if len(self.at_ms) == self._stops_at:
            self.ticker.stop()
        if len(self.at_ms) == self._fails_at:
            raise RuntimeError("out of order")

    def run_until(self, ms: int) -> list[int]:
        self.scheduler.run_until(ms * US_PER_MS)
        return self.at_ms


def test_the_first_call_comes_after_an_interval_and_so_does_each_next() -> None:
    assert Looks().run_until(350) == [100, 200, 300]


def test_a_call_may_say_when_the_next_is_due() -> None:
    assert Looks(next_ms=10).run_until(125) == [100, 110, 120]


def test_a_call_that_fails_is_logged_and_the_next_comes(caplog: pytest.LogCaptureFixture) -> None:
    assert Looks(fails_at=1).run_until(250) == [100, 200]
    (record,) = caplog.records
    assert (record.getMessage(), record.levelno) == ("cannot look", logging.ERROR)
    assert record.exc_info is not None


def test_nothing_is_called_once_it_is_stopped() -> None:
    looks = Looks()
    assert looks.ticker.is_running
    looks.run_until(150)
    looks.ticker.stop()
    looks.ticker.stop()
    assert looks.run_until(1_000) == [100]
    assert not looks.ticker.is_running


def test_a_call_that_stops_it_is_the_last() -> None:
    assert Looks(stops_at=2).run_until(1_000) == [100, 200]
    assert Looks(stops_at=2, fails_at=2).run_until(1_000) == [100, 200]


def test_it_may_be_started_again() -> None:
    looks = Looks()
    looks.run_until(150)
    looks.ticker.stop()
    looks.run_until(500)
    looks.ticker.start()
    assert looks.run_until(700) == [100, 600, 700]
