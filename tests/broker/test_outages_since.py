"""Since when something is down stays the same across controllers, and a young controller says that
it does not know yet.

Source: docs/decisions/0046-cluster-status.md; docs/operating/outages.md."""

from collections.abc import Iterator

import pytest
from tests.broker.moving_world import MovingWorld, moving_world
from tests.broker.test_balancing import CLUSTER, alter, want
from tests.broker.test_outages import (
    HELD_BY,
    LOST_AFTER_MS,
    REGIONS,
    WEST,
    described,
    lose_west,
    shown_status,
)

from strandline.client.operations.zone_rows import CALM, UNSETTLED, rows_of
from strandline.model.ids import BrokerId

GAP_MS = 60_000
"""How long there is no controller."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers in four regions; two of them in the west."""
    with moving_world(monkeypatch, HELD_BY, REGIONS) as made:
        alter(made, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        want(made, 1, 2, 3, 4, 5)
        made.advance(2 * LOST_AFTER_MS)
        yield made


def wall_ms(world: MovingWorld) -> int:
    return world.broker(1).services.clock.wall_ms()


def lose_all_controllers(world: MovingWorld) -> None:
    """All voters of the controller lose their power for a while; returns once one leads again."""
    for one in (1, 2, 3):
        world.hosts[one].fail_power()
    world.advance(GAP_MS)
    for one in (1, 2, 3):
        world.hosts[one].start()
    world.until_started(1, 2, 3)
    world.until(lambda: world._controller_known_at() != 0)


def test_since_when_a_region_is_down_outlives_all_controllers(world: MovingWorld) -> None:
    lose_west(world)
    lost_ms = wall_ms(world)
    world.until(lambda: WEST in world.broker(1).controller.cluster.outages)
    (outage,) = world.broker(1).controller.cluster.outages.values()
    assert abs(outage.since_ms - lost_ms) < LOST_AFTER_MS
    lose_all_controllers(world)
    world.advance(2 * LOST_AFTER_MS)
    (west,) = [one for one in described(world).zones if one.is_down]
    lasted_ms = wall_ms(world) - lost_ms
    assert lasted_ms > GAP_MS and abs(west.down_ms - lasted_ms) < LOST_AFTER_MS
    (region,) = [one for one in described(world).happenings if one.kind == "region"]
    assert abs(region.lasted_ms - lasted_ms) < LOST_AFTER_MS
    # What was recorded once is not recorded anew.
    assert world.broker(1).controller.cluster.outages == {WEST: outage}


def test_since_when_a_broker_is_silent_outlives_all_controllers(world: MovingWorld) -> None:
    world.hosts[4].fail_power()
    lost_ms = wall_ms(world)
    world.until(lambda: 4 in world.broker(1).controller.cluster.silent_since_ms)
    since_ms = world.broker(1).controller.cluster.silent_since_ms[BrokerId(4)]
    assert abs(since_ms - lost_ms) < LOST_AFTER_MS
    lose_all_controllers(world)
    world.advance(2 * LOST_AFTER_MS)
    (broker,) = [one for one in described(world).happenings if one.kind == "broker"]
    assert broker.lasted_ms > GAP_MS
    assert world.broker(1).controller.cluster.silent_since_ms == {4: since_ms}
    world.hosts[4].start()
    world.until(lambda: world.broker(1).controller.cluster.silent_since_ms == {})


def test_a_young_controller_says_that_it_does_not_know_yet(
    world: MovingWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    """The next one has not missed its predecessor for long."""
    alter(world, CLUSTER, "", "broker.lost.after.ms", "600000")
    before = world.controller_leader()
    world.hosts[before].fail_power()
    world.until(lambda: world._controller_known_at() not in (0, before))
    world.advance(3_000)
    lines = shown_status(world, capsys)
    assert UNSETTLED in lines and CALM not in lines
    assert described(world).is_unsettled
    (row,) = [one for one in rows_of(described(world)) if one.name == REGIONS[before]]
    assert (row.state, row.heard, row.silent) == ("not known yet", "0/1", [before])
    world.advance(15_000)
    assert not described(world).is_unsettled
    lines = shown_status(world, capsys)
    assert UNSETTLED not in lines and CALM not in lines
    (row,) = [one for one in rows_of(described(world)) if one.name == REGIONS[before]]
    assert (row.state, row.heard) == ("no broker heard", "0/1")


def test_what_is_silent_for_too_short_a_time_to_be_reported_is_not_called_up(
    world: MovingWorld, capsys: pytest.CaptureFixture[str]
) -> None:
    alter(world, CLUSTER, "", "broker.lost.after.ms", "600000")
    world.advance(2_000)
    assert shown_status(world, capsys)[-1] == CALM
    world.hosts[4].fail_power()
    heard = world.broker(world.controller_leader()).controller.alive
    world.until(lambda: 4 not in heard())
    world.advance(3_000)
    lines = shown_status(world, capsys)
    assert CALM not in lines
    assert [one for one in lines if one.startswith("broker 4 is silent; ")]
