"""A waiting request is answered once: when a replica moved, or when its time is over.

Source: design section 5."""

from collections.abc import Sequence

from tests.broker.broker_world import BrokerWorld

from strandline.broker.server.purgatory import SWEEP_INTERVAL_MS, Deadlines, Parked
from strandline.replication.waiters import Watch, Watchers


class Thing:
    """Something that can be watched."""

    def __init__(self) -> None:
        self.watchers = Watchers()

    def watch(self, callback: object) -> Watch:
        return self.watchers.add(callback)  # type: ignore[arg-type]


class Waiter:
    """Keeps what it was asked and whether it was finished."""

    def __init__(self, world: BrokerWorld, things: Sequence[Thing], *, enough: bool) -> None:
        self.looked: list[list[int]] = []
        self.finished = 0
        self.enough = enough
        self.parked = Parked(
            clock=world.clock, watched=things, delay_ms=100, check=self._check, finish=self._finish
        )

    def _check(self, changed: Sequence[int]) -> bool:
        self.looked.append(list(changed))
        return self.enough

    def _finish(self) -> None:
        self.finished += 1


def test_a_change_that_is_enough_finishes_and_unwatches_everything(world: BrokerWorld) -> None:
    one, two = Thing(), Thing()
    waiter = Waiter(world, [one, two], enough=True)
    world.run(two.watchers.notify)
    assert (waiter.looked, waiter.finished) == ([[1]], 1)
    assert len(one.watchers.watches) == len(two.watchers.watches) == 0
    world.advance(200)
    assert waiter.finished == 1


def test_a_change_that_is_not_enough_goes_on_watching(world: BrokerWorld) -> None:
    one, two = Thing(), Thing()
    waiter = Waiter(world, [one, two], enough=False)
    world.run(one.watchers.notify)
    world.run(one.watchers.notify)
    assert (waiter.looked, waiter.finished) == ([[0], [0]], 0)
    world.advance(100)
    assert waiter.finished == 1


def test_what_was_dropped_is_never_finished(world: BrokerWorld) -> None:
    thing = Thing()
    waiter = Waiter(world, [thing], enough=True)
    thing.watchers.notify()
    waiter.parked.drop()
    world.advance(500)
    assert (waiter.looked, waiter.finished) == ([], 0)


class Due:
    """A request with a deadline."""

    def __init__(self, deadline_ms: int) -> None:
        self.deadline_ms = deadline_ms
        self.expired = 0

    def expire(self) -> None:
        self.expired += 1


def test_deadlines_expire_soon_after_their_time_and_not_before(world: BrokerWorld) -> None:
    deadlines = Deadlines(world.clock)
    early, late, answered = Due(150), Due(950), Due(150)
    for one in (early, late, answered):
        deadlines.add(one)
    deadlines.discard(answered)
    world.advance(149)
    assert early.expired == 0
    world.advance(SWEEP_INTERVAL_MS + 1)
    assert (early.expired, late.expired) == (1, 0)
    world.advance(1_000)
    assert (early.expired, late.expired, answered.expired) == (1, 1, 0)
    assert len(deadlines) == 0


def test_nothing_is_swept_while_nothing_waits(world: BrokerWorld) -> None:
    deadlines = Deadlines(world.clock)
    world.advance(10_000)
    before = world.scheduler.executed_count
    world.advance(10_000)
    assert world.scheduler.executed_count == before
    one = Due(world.clock.monotonic_ms() + 50)
    deadlines.add(one)
    world.advance(200)
    assert one.expired == 1
