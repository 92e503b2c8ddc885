"""Repair of a region that is down is held, whoever is the controller, until it is back or somebody
says otherwise.

Source: docs/decisions/0018-outages.md."""

import logging
from collections.abc import Iterator

import pytest
from tests.broker.moving_world import MovingWorld, moving_world
from tests.broker.test_balancing import CLUSTER, alter, findings, want

from strandline.controller.commands import DomainAnswer, RuleDomain
from strandline.model.cluster import Outage, Ruling
from strandline.model.ids import BrokerId

LOST_AFTER_MS = 8_000
HELD_BY = (1, 2, 4)
REGIONS = {1: "east", 2: "south", 3: "north", 4: "west", 5: "west"}
WEST = ("west",)
TOLD = "region: region west is down since 00:00 UTC, 2 of 2 brokers silent"


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic whose policy any three of them keep, a producer that goes on."""
    with moving_world(monkeypatch, HELD_BY, REGIONS) as made:
        alter(made, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        want(made, 1, 2, 3, 4, 5)
        made.advance(2 * LOST_AFTER_MS)
        assert set(made.known.replicas) == set(HELD_BY)
        yield made


def lose_west(world: MovingWorld) -> None:
    for broker in (4, 5):
        world.hosts[broker].fail_power()


def start_west(world: MovingWorld) -> None:
    for broker in (4, 5):
        world.hosts[broker].start()
    world.until_started(4, 5)


def waits(world: MovingWorld) -> dict[str, str]:
    return dict(list(findings(world).waits.found))


def rule(world: MovingWorld, ruling: Ruling) -> None:
    answer = world.submit(RuleDomain(WEST, ruling), at=world._controller_known_at())
    assert isinstance(answer, DomainAnswer), answer


def test_of_a_region_that_is_down_nothing_is_made_anew_and_it_catches_up(
    world: MovingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    lose_west(world)
    world.advance(4 * LOST_AFTER_MS)
    assert not world.known.is_moving and set(world.known.replicas) == set(HELD_BY)
    assert list(waits(world)) == ["zone-down"]
    assert waits(world)["zone-down"].endswith("or by `strandline zone release west`")
    for broker in (1, 2, 3):
        assert world.broker(broker).controller.cluster.outages == {WEST: Outage(is_down=True)}
    start_west(world)
    world.finish(*world.known.replicas)
    world.advance(4 * LOST_AFTER_MS)
    assert findings(world).begun == {} and set(world.known.replicas) == set(HELD_BY)
    assert world.broker(1).controller.cluster.outages == {}
    told = [one for one in caplog.messages if one.startswith("region: ")]
    assert len(told) == 2 and told[1].startswith("region: region west is back, 2 of 2")


def test_a_single_broker_is_repaired_as_before(world: MovingWorld) -> None:
    world.hosts[4].fail_power()
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    assert findings(world).begun == {"broker-lost": 1}


def test_the_next_controller_holds_too_and_tells_nothing_anew(
    world: MovingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    lose_west(world)
    world.advance(LOST_AFTER_MS)
    for _ in range(3):
        world.lose_power_of(world.controller_leader(), for_ms=500)
        world.until(lambda: world.controller_leader() != 0)
        world.advance(LOST_AFTER_MS)
        assert not world.known.is_moving
    assert len([one for one in caplog.messages if one.startswith("region: ")]) == 1
    start_west(world)
    world.finish(*world.known.replicas)
    assert findings(world).begun == {}


@pytest.mark.parametrize("ruling", [Ruling.RELEASE, Ruling.LOST])
def test_what_is_released_or_declared_lost_is_made_anew(world: MovingWorld, ruling: Ruling) -> None:
    lose_west(world)
    world.advance(4 * LOST_AFTER_MS)
    rule(world, ruling)
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    start_west(world)
    world.finish(*world.known.replicas)
    world.until(lambda: world.broker(1).controller.cluster.outages == {})
    assert findings(world).begun == {"broker-lost": 1}


def test_a_hold_by_hand_outlives_the_controller_and_holds_one_broker(world: MovingWorld) -> None:
    rule(world, Ruling.HOLD)
    world.hosts[4].fail_power()
    world.advance(LOST_AFTER_MS)
    world.lose_power_of(world.controller_leader(), for_ms=500)
    world.advance(4 * LOST_AFTER_MS)
    assert not world.known.is_moving and set(world.known.replicas) == set(HELD_BY)
    rule(world, Ruling.RELEASE)
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)


def test_a_broker_that_only_the_controller_does_not_hear_is_not_replaced(
    world: MovingWorld, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    controller = world.controller_leader()
    cut = BrokerId(4)
    for one, other in ((controller, cut), (cut, controller)):
        world.fabric.cut(BrokerId(one), BrokerId(other))
    world.advance(4 * LOST_AFTER_MS)
    assert world.controller_leader() == controller
    assert not world.known.is_moving and set(world.known.replicas) == set(HELD_BY)
    assert "cut-off" in waits(world)
    assert any(one.startswith("network-cut: broker 4 in region west") for one in caplog.messages)
