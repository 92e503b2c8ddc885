"""A policy that cannot be met any more: what is lost is still replaced by what is as good,
others go on, and what waits says for what. With best effort, by what breaks the policy least.

Source: docs/decisions/0010-the-balancer.md."""

from tests.controller.balancer.balancer_world import CLUSTER, BalancerWorld

FIVE = ("east", "east", "west", "west", "south")
SURVIVE = "survive: region"
POLICY = "placement.policy"
BROKER = 4
BEST_EFFORT = "balancer.best.effort.enable"
NOT_SOUTH = "{survive: broker, residency: {deny: [{label: region, op: in, values: [south]}]}}"


def place(world: BalancerWorld, *replicas: int, name: str = "flights", partitions: int = 4) -> None:
    """A topic on these brokers, which only then gets the policy."""
    world.topic(name, partitions=partitions, replicas=replicas)
    assert world.alter(name, POLICY, SURVIVE) == (0, "")


def broken_world(*replicas: int) -> BalancerWorld:
    """Three regions are asked for, and the south is no more one."""
    world = BalancerWorld(FIVE)
    place(world, *(replicas or (1, 3, 5)))
    world.relabel(5, "west")
    world.wait(60_000)
    return world


# ---- no placement is right ---------------------------------------------------------------------


def test_a_lost_broker_is_replaced_in_its_region_though_the_policy_cannot_be_met() -> None:
    world = broken_world()
    assert world.round() == []
    world.lose(1)
    assert {one.code for one in world.round()} == {"broker-lost"}
    world.rest()
    assert world.replicas() == [(2, 3, 5)] * 4
    text, count = world.waits()["cannot-be-met"]
    assert count == 4 and text.startswith("placement.policy: cannot place 3 voters")


def test_nothing_gets_worse_by_that_and_it_is_said_who_is_needed() -> None:
    world = BalancerWorld(FIVE)
    place(world, 1, 3, 4)
    place(world, 1, 2, 3, name="other", partitions=2)
    world.relabel(5, "west")
    world.lose(1, 2)
    assert world.round() == []
    waits = world.waits()
    assert waits["needs-broker"] == (
        "needs one more broker with region=east in place of broker 1",
        4,
    )
    assert waits["no-quorum"][1] == 2 and waits["cannot-be-met"][1] == 6


def test_a_broker_that_was_told_to_leave_before_is_emptied_as_well() -> None:
    world = BalancerWorld(FIVE)
    place(world, 1, 3, 5)
    assert world.alter("1", "broker.decommission", "true", scope=BROKER) == (0, "")
    world.relabel(5, "west")
    assert {one.code for one in world.round()} == {"decommission"}
    world.rest()
    assert world.replicas() == [(2, 3, 5)] * 4


def test_what_is_made_anew_is_left_alone_when_its_broker_returns() -> None:
    world = broken_world()
    world.lose(1)
    world.round()
    world.up(1)
    world.wait(60_000)
    assert all(move.command.target == () for move in world.round())
    assert world.replicas() == [(1, 3, 5)] * 4 and world.round() == []


def test_a_move_that_a_policy_wanted_ends_where_it_cannot_be_met_any_more() -> None:
    world = BalancerWorld(FIVE)
    place(world, 1, 2, 3, partitions=1)
    assert {one.code for one in world.round()} == {"policy-broken"}
    world.relabel(5, "west")
    world.round()
    assert not world.partition().is_moving


def test_once_it_can_be_met_all_is_right_again() -> None:
    world = broken_world()
    world.lose(1)
    world.rest()
    world.add_broker(6, "south")
    world.wait(60_000)
    world.rest()
    assert world.regions() == {("east", "south", "west")} and "cannot-be-met" not in world.waits()


# ---- brokers that lack a label -----------------------------------------------------------------


def test_a_broker_without_a_label_stops_no_repair_but_of_what_it_holds() -> None:
    world = BalancerWorld((*FIVE, "south"))
    place(world, 1, 3, 5, partitions=3)
    place(world, 1, 3, 6, name="there", partitions=2)
    world.relabel(6, "")
    assert all(one.code == "uneven" and one.command.group <= 3 for one in world.look().moves)
    text, count = world.waits()["no-label"]
    assert count == 2 and text.startswith("placement.policy: broker 6 has no label 'region'")
    world.lose(3)
    assert {one.code for one in world.round()} == {"broker-lost"}
    world.rest()
    assert world.replicas() == [(1, 4, 5)] * 3
    assert world.regions("there") == {("east", "south", "west")}  # It had to move anyhow.
    assert world.waits() == {}


def test_a_policy_is_followed_though_some_broker_lacks_the_label() -> None:
    world = BalancerWorld(FIVE)
    place(world, 1, 2, 3)
    world.add_broker(6, "")
    world.wait(60_000)
    assert {one.code for one in world.round()} == {"policy-broken"}
    world.rest()
    assert world.regions() == {("east", "south", "west")}


def test_who_lacks_a_label_is_given_nothing() -> None:
    world = BalancerWorld(("east", "west", "south", "south"))
    world.topic(policy=SURVIVE, partitions=12)
    world.add_broker(5, "")
    world.lose(3, 4)
    assert world.round() == []
    found = world.look().waits.found
    assert sum(one.count for (code, _), one in found.items() if code == "needs-broker") == 12


# ---- best effort -------------------------------------------------------------------------------


def test_a_lost_region_is_waited_for_unless_the_operator_says_otherwise() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    world.lose(5)
    assert world.round() == [] and world.waits()["needs-broker"][1] == 6
    assert world.alter("", BEST_EFFORT, "true", scope=CLUSTER) == (0, "")
    assert {one.code for one in world.round()} == {"best-effort"}
    assert world.round() == []  # What it wants is what it goes on to want.
    world.rest()
    assert all(len(each) == 3 and 5 not in each for each in world.replicas())
    text, count = world.waits()["cannot-be-met"]
    assert count == 6 and "broker 5 is down" in text


def test_what_was_makeshift_is_undone_when_the_region_returns() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    world.alter("", BEST_EFFORT, "true", scope=CLUSTER)
    world.lose(5)
    world.rest()
    world.up(5)
    world.wait(1_000_000)
    assert {one.code for one in world.round()} == {"policy-broken"}
    world.rest()
    assert world.regions() == {("east", "south", "west")} and world.waits() == {}


def test_the_least_is_broken() -> None:
    world = BalancerWorld(("east", "east", "west", "west", "south", "south", "north"))
    world.alter("", BEST_EFFORT, "true", scope=CLUSTER)
    policy = "{survive: region, rules: [{where: [{label: region, op: notIn, values: [north]}]}]}"
    world.topic(policy=policy, partitions=4)
    world.lose(5, 6)
    world.rest()
    # One of the others has two of them; who is refused by a rule of its own has none.
    assert all(7 not in each and len(each) == 3 for each in world.replicas())
    assert {frozenset(each) for each in world.regions()} == {frozenset(("east", "west"))}


def test_residency_is_never_broken() -> None:
    world = BalancerWorld(("east", "east", "west", "south"))
    world.alter("", BEST_EFFORT, "true", scope=CLUSTER)
    world.topic(policy=NOT_SOUTH, partitions=3)
    assert world.regions() == {("east", "east", "west")}
    world.lose(3)
    assert world.round() == []
    assert world.waits()["needs-broker"][1] == 3


def test_what_can_be_right_is_made_right_with_best_effort_too() -> None:
    world = BalancerWorld(FIVE)
    world.alter("", BEST_EFFORT, "true", scope=CLUSTER)
    world.topic(policy=SURVIVE, partitions=6)
    world.lose(1)
    assert {one.code for one in world.round()} == {"broker-lost"}
    world.rest()
    assert world.regions() == {("east", "south", "west")}


def test_without_a_policy_a_lost_region_is_waited_for_whatever_is_said() -> None:
    world = BalancerWorld(FIVE)
    world.alter("", BEST_EFFORT, "true", scope=CLUSTER)
    world.topic(replicas=(1, 3, 5))
    world.lose(5)
    assert world.round() == [] and world.waits()["needs-broker"][1] == 1
