"""Where not all that is lost can be replaced, what can be is, once, and by the same brokers.

Source: docs/decisions/0010-the-balancer.md."""

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, LOST_AFTER_MS, BalancerWorld

ONE_IN_EACH = (
    '{"rules":['
    '{"count":1,"where":[{"label":"region","op":"in","values":["east"]}]},'
    '{"count":1,"where":[{"label":"region","op":"in","values":["west"]}]},'
    '{"count":1,"where":[{"label":"region","op":"in","values":["south"]}]}]}'
)


def half_lost(policy: str, *, spares: int, best_effort: bool = False) -> BalancerWorld:
    """Of three replicas, of a region each, two are lost; of the first many could have the place,
    of the other one nobody."""
    world = BalancerWorld(("east", "west", "south") + ("east",) * spares)
    if best_effort:
        code, _ = world.alter("", "balancer.best.effort.enable", "true", scope=CLUSTER)
        assert code == 0
    world.topic(policy=policy, replicas=() if policy else (1, 2, 3))
    (east,) = {one for one in world.partition().replicas if one not in (2, 3)}
    world.lose(east, 2)
    world.vote(3)
    return world


@pytest.mark.parametrize("policy", ["", ONE_IN_EACH, "survive: region"])
@pytest.mark.parametrize("spares", [2, 3])
@pytest.mark.parametrize("best_effort", [False, True])
def test_a_copy_under_way_is_not_given_to_another_broker_that_would_do_as_well(
    policy: str, spares: int, *, best_effort: bool
) -> None:
    """Each round found the other of two spare brokers emptier, for the one had the copy, and no
    copy that took longer than a round came to an end."""
    world = half_lost(policy, spares=spares, best_effort=best_effort)
    (move,) = world.round()
    wanted = world.partition().wanted
    for _ in range(12):
        world.wait(1_000)
        assert world.round() == []
    assert world.partition().wanted == wanted == type(wanted)(move.command.target)


@pytest.mark.parametrize("policy", ["", ONE_IN_EACH])
def test_a_copy_under_way_goes_on_beside_one_that_can_be_made_by_now(policy: str) -> None:
    world = half_lost(policy, spares=3)
    world.round()
    (first,) = world.partition().adding
    world.add_broker(7, "west")
    world.wait(LOST_AFTER_MS)
    if policy:
        assert len(world.round()) == 1
        assert set(world.partition().adding) == {first, 7}
    world.rest()
    assert first in world.partition().replicas


def test_a_copy_whose_broker_goes_down_is_given_to_another() -> None:
    world = half_lost(ONE_IN_EACH, spares=3)
    world.round()
    (first,) = world.partition().adding
    world.down(first)
    world.wait(LOST_AFTER_MS - 1_000)
    assert len(world.round()) == 1
    assert first not in world.partition().adding != ()
    assert world.round() == []
