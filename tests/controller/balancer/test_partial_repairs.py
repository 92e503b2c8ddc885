"""Where not all that is lost can be replaced, what can be is, once, and by the same brokers.

Source: docs/decisions/0010-the-balancer.md."""

import json
from dataclasses import replace

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, LOST_AFTER_MS, BalancerWorld


def rules(**counts: int) -> str:
    """So many voters in each region, and observers as `observers_in_<region>`."""
    found = []
    for name, count in counts.items():
        region = name.removeprefix("observers_in_")
        where = [{"label": "region", "op": "in", "values": [region]}]
        role = {} if region == name else {"role": "observer"}
        found.append({"count": count, "where": where, **role})
    return json.dumps({"rules": found})


ONE_IN_EACH = rules(east=1, west=1, south=1)


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


@pytest.mark.parametrize("policy", ["", ONE_IN_EACH])
def test_a_copy_to_a_disk_that_has_become_full_is_made_elsewhere(
    policy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = half_lost(policy, spares=3)
    world.round()
    (first,) = world.partition().adding
    look = BalancerWorld._look

    def full(self: BalancerWorld) -> None:
        look(self)
        self.condition = replace(self.condition, full=frozenset({first}))

    monkeypatch.setattr(BalancerWorld, "_look", full)
    world.wait(1_000)
    assert len(world.round()) == 1
    assert first not in world.partition().adding != ()
    assert world.round() == []


@pytest.mark.parametrize(
    ("policy", "voters", "observers"),
    [
        (rules(east=2, west=1, south=1), 4, 0),
        (rules(east=4, west=1, south=1), 6, 0),
        (rules(east=2, west=1, south=1, observers_in_east=1), 4, 1),
        (rules(west=1, south=4), 5, 0),
    ],
)
def test_a_policy_that_is_changed_meanwhile_is_met_as_it_is_then(
    policy: str, voters: int, observers: int
) -> None:
    """The same brokers broke none of its rules: there were too many of them, or too few."""
    world = BalancerWorld(("east", "east", "east", "west", *("south",) * 4, *("east",) * 3))
    world.topic(policy=rules(east=3, west=1, south=1))
    before = world.partition().replicas
    lost = next(one for one in before if one in (1, 2, 3, 9, 10, 11))
    world.lose(lost, 4)
    world.vote(*(one for one in before if one not in (lost, 4)))
    world.round()
    assert len(world.partition().adding) == 1
    assert world.alter("flights", "placement.policy", policy) == (0, "")
    assert len(world.round()) == 1
    wanted = world.partition().wanted
    assert (len(wanted.voters), len(wanted.observers)) == (voters, observers)
    assert world.round() == []
