"""A broker whose replicas an outage holds: what waits for it, and what moves all the same.

Source: docs/decisions/0010-the-balancer.md."""

from dataclasses import replace

import pytest
from tests.controller.balancer.balancer_world import BalancerWorld, ids

from strandline.model.ids import BrokerId

FIVE = ("east", "east", "west", "west", "south")
SURVIVE = "survive: region"
BROKER = 4
IN = '{"rules":[{"where":[{"label":"region","op":"in","values":[%s]}],"count":%d}]}'


def test_what_an_outage_holds_is_not_moved_and_is_counted_once() -> None:
    world = BalancerWorld(["east", "east", "east", "east", "west", "west"])
    world.topic(policy='{"rules":[{"count":5,"where":[]}]}', partitions=2)
    world.lose(5, 6)
    held = dict.fromkeys(ids(5, 6), ("zone-down", "region west is down"))
    world.condition = replace(world.condition, lost=frozenset(), held=held)
    assert not world.look().moves
    assert world.waits() == {"zone-down": ("region west is down", 2)}


HELD = ("zone-down", "region east is down")


def broken_by_a_policy(down: int) -> BalancerWorld:
    """Of brokers 1 and 2, which are in one region, one replica has to go; one of them is silent."""
    world = BalancerWorld(FIVE)
    world.topic(replicas=(1, 2, 3))
    world.topic("others", replicas=(3 - down,), partitions=3)
    assert world.alter("flights", "placement.policy", SURVIVE) == (0, "")
    world.down(down)
    return world


@pytest.mark.parametrize("down", [1, 2])
def test_of_two_of_which_one_has_to_go_the_silent_one_does(down: int) -> None:
    world = broken_by_a_policy(down)
    assert [sorted(move.command.target) for move in world.round()] == [[3 - down, 3, 5]]


@pytest.mark.parametrize("down", [1, 2])
def test_of_two_of_which_one_has_to_go_the_one_that_is_held_stays(down: int) -> None:
    world = broken_by_a_policy(down)
    world.waiting_for = {BrokerId(down): HELD}
    world.wait(1_000)
    assert [sorted(move.command.target) for move in world.round()] == [[down, 3, 5]]


def test_who_is_held_and_has_to_go_is_waited_for_until_it_is_released() -> None:
    world = BalancerWorld(FIVE)
    world.topic(replicas=(1, 3, 5))
    assert world.alter("flights", "placement.policy", IN % ('"west","south"', 3)) == (0, "")
    world.down(1)
    world.waiting_for = {BrokerId(1): HELD}
    world.wait(1_000)
    assert world.round() == [] and world.waits() == {"zone-down": ("region east is down", 1)}
    world.waiting_for = {}
    world.wait(1_000)
    assert [sorted(move.command.target) for move in world.round()] == [[3, 4, 5]]


def test_who_is_held_and_is_to_be_emptied_goes() -> None:
    world = BalancerWorld(FIVE)
    world.topic(replicas=(1, 3, 5))
    assert world.alter("flights", "placement.policy", SURVIVE) == (0, "")
    world.down(1)
    world.waiting_for = {BrokerId(1): HELD}
    assert world.alter("1", "broker.decommission", "true", scope=BROKER) == (0, "")
    world.wait(1_000)
    assert [(one.code, sorted(one.command.target)) for one in world.round()] == [
        ("decommission", [2, 3, 5])
    ]
