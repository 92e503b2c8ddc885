"""Who of a zone counts: those in maintenance, who was replaced, who came later, the last of two.

Source: docs/decisions/0018-outages.md."""

import pytest
from tests.controller.outages.watched_world import LOST_AFTER_MS, WEST, WEST_B, Watched

from strandline.controller.balancer.health import SPARED_MS_MAX
from strandline.controller.outages.judging import Rules
from strandline.controller.outages.marks import Marks, everywhere
from strandline.model.cluster import Ruling
from strandline.model.ids import BrokerId

HOUR_MS = 3_600_000


@pytest.fixture
def watched() -> Watched:
    return Watched()


def test_a_zone_of_which_nobody_is_heard_is_down_with_the_last_one_that_counts(
    watched: Watched,
) -> None:
    watched.spared = watched.silent = {7, 8, 9}
    watched.wait(4 * LOST_AFTER_MS)
    assert not watched.down and not watched.replaced
    for left in ({8, 9}, {9}, set()):  # Their maintenance ends one by one, long after.
        watched.spared = left
        for _ in range(30):
            watched.wait(5_000)
            assert watched.down == {WEST_B} and not watched.replaced
        assert watched.kinds[0] == "zone: zone b"


def test_who_was_lost_in_maintenance_counts(watched: Watched) -> None:
    watched.spared = watched.silent = {7, 8, 9}
    for _ in range(SPARED_MS_MAX // HOUR_MS + 1):
        watched.wait(HOUR_MS)
        assert not watched.replaced
    assert watched.condition.lost == {7, 8, 9}
    assert watched.down == {WEST_B} and watched.kinds == ["zone: zone b"]


def test_a_zone_in_maintenance_can_be_declared_lost(watched: Watched) -> None:
    watched.spared = watched.silent = {7, 8, 9}
    watched.wait(60_000)
    watched.rule(WEST_B, Ruling.LOST)
    watched.wait(60_000)
    assert watched.outages[WEST_B].ruling is Ruling.LOST and watched.replaced == {7, 8, 9}


@pytest.mark.parametrize("silent_min", [1, 2])
def test_of_two_brokers_one_that_never_returns_is_replaced(silent_min: int) -> None:
    marks_of = everywhere(Marks(silent_min=silent_min))
    watched = Watched(Rules(lost_after_ms=LOST_AFTER_MS, marks_of=marks_of))
    del watched.labels[BrokerId(9)]
    watched.silent = {7, 8}
    watched.wait(LOST_AFTER_MS)
    assert watched.down == {WEST_B} and not watched.replaced
    watched.silent = {8}
    watched.wait(LOST_AFTER_MS - 1_000)
    assert not watched.down and not watched.replaced
    watched.wait(2_000)
    assert watched.replaced == {8}


def test_who_was_replaced_takes_no_zone_down_with_the_next_one(watched: Watched) -> None:
    watched.silent = {9}
    watched.wait(LOST_AFTER_MS)
    watched.idle = {9}
    watched.silent = {8, 9}
    watched.wait(LOST_AFTER_MS + 1_000)
    assert not watched.down and watched.replaced == {8, 9}
    assert watched.told[-1].endswith("1 of 2 in zone b")
    assert watched.told[-2] == "broker 9 is silent since 22:14 UTC, and holds no replicas"
    watched.silent = {7, 8, 9}
    watched.wait(60_000)
    assert watched.down == {WEST_B}
    watched.silent = {9}
    watched.look()
    assert not watched.down


def test_who_came_to_what_was_declared_lost_is_not_lost_with_it(watched: Watched) -> None:
    watched.silent = {4, 5, 6, 7, 8, 9}
    watched.wait(60_000)
    watched.rule(WEST, Ruling.LOST)
    watched.silent = {4, 5, 6, 7, 8}
    watched.wait(60_000)
    assert watched.outages[WEST].ruling is Ruling.LOST and watched.replaced == {4, 5, 6, 7, 8}
    watched.silent.add(9)
    watched.wait(LOST_AFTER_MS - 5_000)
    assert watched.replaced == {4, 5, 6, 7, 8}
    watched.wait(5_000)
    assert watched.replaced == {4, 5, 6, 7, 8, 9}
