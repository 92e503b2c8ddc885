"""Observers are kept where policies want them, by the same rounds as voters. Source: decision
0017."""

import pytest
from tests.controller.balancer.balancer_world import BalancerWorld
from tests.controller.balancer.test_decommission import decommission, held

from strandline.controller.commands import ReportVoters, RequestVoters, VotersNoted

SEVEN = ("east", "east", "west", "west", "south", "south", "south")
POLICY = "placement.policy"
FAR = (
    "rules: [{count: 3, where: [{label: region, op: in, values: [east, west]}]},"
    "{role: observer, count: 1, where: [{label: region, op: in, values: [south]}]}]"
)


@pytest.fixture
def world() -> BalancerWorld:
    """Voters in east and west, an observer in south."""
    made = BalancerWorld(SEVEN)
    made.topic(policy=FAR, partitions=6)
    assert made.rest() == 0
    return made


def test_a_lost_observer_is_replaced_and_no_voter_moves(world: BalancerWorld) -> None:
    before = world.replicas()
    lost = world.observers()[0][0]
    world.lose(lost)
    moves = world.round()
    assert {move.code for move in moves} == {"broker-lost"}
    world.rest()
    assert world.replicas() == before
    assert world.regions(watch=True) == {("south",)}
    assert held(world, lost) == 0


def test_an_observer_that_is_down_is_waited_for_at_first(world: BalancerWorld) -> None:
    world.down(world.observers()[0][0])
    world.wait(60_000)
    assert world.round() == []
    assert "broker-down" in world.waits()


def test_a_lost_voter_is_replaced_and_no_observer_moves(world: BalancerWorld) -> None:
    before = world.observers()
    world.lose(1)
    world.rest()
    assert world.observers() == before
    assert held(world, 1) == 0


def test_a_lost_region_of_observers_is_waited_for(world: BalancerWorld) -> None:
    """Nobody elsewhere is what their rule asks for."""
    before = world.observers()
    world.lose(5, 6, 7)
    world.rest()
    assert world.observers() == before
    assert "needs-broker" in world.waits()


def test_an_observer_is_not_waited_for_while_a_voter_is_replaced(world: BalancerWorld) -> None:
    """What can be replaced is; the other waits for a broker of its region."""
    world.lose(2, 5, 6, 7)
    world.rest()
    assert held(world, 2) == 0
    assert world.regions(watch=True) == {("south",)}


def test_a_broker_is_emptied_of_its_observers(world: BalancerWorld) -> None:
    broker = world.observers()[0][0]
    assert decommission(world, broker) == (0, "")
    assert {move.code for move in world.round()} == {"decommission"}
    world.rest()
    assert held(world, broker) == 0
    assert world.regions(watch=True) == {("south",)}


def test_a_broker_that_observers_need_is_not_decommissioned() -> None:
    world = BalancerWorld(("east", "east", "west", "south"))
    world.topic(policy=FAR)
    code, message = decommission(world, 4)
    assert code != 0 and "observer" in message


@pytest.mark.parametrize(
    ("policy", "voters", "observers"),
    [
        (FAR.replace("[south]", "[west]").replace("[east, west]", "[east, south]"), None, "west"),
        (FAR.replace("role: observer, count: 1", "role: observer, count: 2"), None, "south south"),
        ("rules: [{count: 3}]", None, ""),
        (
            "rules: [{count: 1, where: [{label: region, op: in, values: [south]}]},"
            "{role: observer, count: 2, where: [{label: region, op: in, values: [east]}]}]",
            "south",
            "east east",
        ),
    ],
)
def test_another_policy_moves_adds_and_removes_observers(
    world: BalancerWorld, policy: str, voters: str | None, observers: str
) -> None:
    assert world.alter("flights", POLICY, policy) == (0, "")
    world.rest()
    assert world.regions(watch=True) == {tuple(observers.split())}
    if voters is not None:
        assert world.regions() == {tuple(voters.split())}
    assert world.alter("flights", POLICY, FAR) == (0, "")
    world.rest()
    assert world.regions(watch=True) == {("south",)}
    assert all("south" not in one for one in world.regions())


def test_without_a_policy_observers_stay_and_are_replaced_when_lost(world: BalancerWorld) -> None:
    assert world.alter("flights", POLICY, None) == (0, "")
    before = world.observers()
    assert world.rest() == 0 and world.observers() == before
    world.lose(before[0][0])
    world.rest()
    assert all(len(one) == 1 for one in world.observers())
    assert held(world, before[0][0]) == 0


def test_an_added_broker_takes_observers_from_full_ones() -> None:
    world = BalancerWorld(("east", "east", "west", "south"))
    world.topic(policy=FAR, partitions=8)
    world.add_broker(5, "south")
    world.wait(60_000)
    world.rest()
    counts = [sum(broker in one for one in world.observers()) for broker in (4, 5)]
    assert sorted(counts) == [4, 4]


def test_a_move_that_was_granted_is_finished_before_another(world: BalancerWorld) -> None:
    lost, other = world.observers()[0][0], 0
    world.lose(lost)
    world.round()
    one = next(world.state.cluster.groups[each] for each in world.state.cluster.moving)
    asked = RequestVoters(one.group, one.version, one.target, one.target_observers)
    assert isinstance(world.run(asked), VotersNoted)
    (other,) = one.target_observers
    world.lose(other)
    world.round()
    assert world.state.cluster.groups[one.group].wanted == one.wanted
    world.run(ReportVoters(one.group, one.version + 1, one.replicas))
    assert world.state.cluster.groups[one.group].observers == (other,)
    world.up(lost)
    world.wait(60_000)
    world.rest()
    assert other not in {broker for each in world.observers() for broker in each}


def test_where_lost_replicas_may_break_the_policy_a_rule_s_own_labels_still_hold() -> None:
    """Best effort: an observer goes to nobody whom its rule refuses."""
    world = BalancerWorld(("east", "east", "west", "south"))
    world.topic(policy=FAR)
    world.alter("", "balancer.best.effort.enable", "true", scope=4)
    world.lose(4)
    world.rest()
    assert world.observers() == [(4,)]
