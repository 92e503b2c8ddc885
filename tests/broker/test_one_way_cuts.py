"""Links that carry one way only: a broker that all hear and that hears none, and the opposite.

Why:    heartbeats of one way say little about the other: neither may be taken for well, or the
        partitions there would wait for it for ever; nor for lost while others get on with it.
Source: docs/decisions/0018-outages.md, "Who is silent"."""

import logging
from collections.abc import Collection, Iterator

import pytest
from tests.broker.moving_world import MovingWorld, moving_world
from tests.broker.test_balancing import CLUSTER, alter, want
from tests.broker.test_outages import HELD_BY, LOST_AFTER_MS, REGIONS, described, waits

from strandline.model.ids import BrokerId

DEAF, MUTE = "hears nobody", "is heard by nobody"
WAYS = [DEAF, MUTE]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """Five brokers, one topic whose policy any three of them keep, a producer that goes on."""
    with moving_world(monkeypatch, HELD_BY, REGIONS) as made:
        alter(made, CLUSTER, "", "broker.lost.after.ms", str(LOST_AFTER_MS))
        want(made, 1, 2, 3, 4, 5)
        made.advance(2 * LOST_AFTER_MS)
        assert set(made.known.replicas) == set(HELD_BY)
        yield made


def cut(world: MovingWorld, way: str, broker: int, others: Collection[int]) -> None:
    """Between this broker and the others, one way only."""
    for other in set(others) - {broker}:
        pair = (other, broker) if way == DEAF else (broker, other)
        world.fabric.cut(BrokerId(pair[0]), BrokerId(pair[1]))


def heal(world: MovingWorld) -> None:
    for one in REGIONS:
        for other in set(REGIONS) - {one}:
            world.fabric.heal(BrokerId(one), BrokerId(other))


def verdicts(world: MovingWorld) -> dict[int, str]:
    return {one.broker_id: one.verdict for one in described(world).brokers}


def until_judged(world: MovingWorld, expected: dict[int, str]) -> None:
    """The controller asks again soon about a broker that is silent to it."""
    for _ in range(20):
        if verdicts(world) == expected:
            return
        world.advance(LOST_AFTER_MS)
    assert verdicts(world) == expected


@pytest.mark.parametrize("way", WAYS)
def test_who_is_cut_off_from_all_one_way_is_silent_and_replaced(
    world: MovingWorld, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    cut(world, way, 4, REGIONS)
    world.until(lambda: 4 not in world.known.replicas and not world.known.is_moving)
    until_judged(world, {**dict.fromkeys(REGIONS, "heard"), 4: "silent"})
    kinds = [one.split(":")[0] for one in caplog.messages if "broker 4" in one]
    assert kinds[0] == "broker"
    heal(world)
    until_judged(world, dict.fromkeys(REGIONS, "heard"))


@pytest.mark.parametrize("way", WAYS)
def test_a_controller_that_is_cut_off_one_way_is_judged_by_the_next_one(
    world: MovingWorld, way: str
) -> None:
    first = world.controller_leader()
    cut(world, way, first, REGIONS)
    world.until(lambda: world.controller_leader() not in (first, 0))
    world.until(lambda: first not in world.known.replicas and not world.known.is_moving)
    until_judged(world, {**dict.fromkeys(REGIONS, "heard"), first: "silent"})
    heal(world)
    until_judged(world, dict.fromkeys(REGIONS, "heard"))


@pytest.mark.parametrize("way", WAYS)
def test_who_is_cut_off_from_the_controller_alone_one_way_lives_and_is_not_replaced(
    world: MovingWorld, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "strandline.controller")
    controller = world.controller_leader()
    cut(world, way, 4, [controller])
    world.advance(4 * LOST_AFTER_MS)
    assert world.controller_leader() == controller
    assert verdicts(world) == {**dict.fromkeys(REGIONS, "heard"), 4: "cut"}
    assert not world.known.is_moving and set(world.known.replicas) == set(HELD_BY)
    assert "cut-off" in waits(world)
    assert any(
        one.startswith("network-cut: heartbeats of broker 4 in region west")
        for one in caplog.messages
    )
    heal(world)
    until_judged(world, dict.fromkeys(REGIONS, "heard"))
