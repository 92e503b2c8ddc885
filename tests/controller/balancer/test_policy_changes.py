"""A changed policy moves the data, or is refused with the reason.

Source: docs/decisions/0010-the-balancer.md."""

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, BalancerWorld

FIVE = ("east", "east", "west", "west", "south")
POLICY, DEFAULT = "placement.policy", "strandline.placement.policy"
CONSTRAINTS = "confluent.placement.constraints"
SURVIVE = "survive: region"
IN = '{"rules":[{"where":[{"label":"region","op":"in","values":[%s]}],"count":%d}]}'
LEADERS = '{"leaders":{"prefer":[[{"label":"region","op":"in","values":["%s"]}]]},%s}'
PREFER_SOUTH = (
    "rules:\n  - {count: 2, level: soft, where: [{label: region, op: in, values: [south]}]}"
)


def test_a_changed_policy_moves_the_data_and_no_more_of_it_than_it_has_to() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    assert world.alter("flights", POLICY, IN % ('"east"', 2)) == (0, "")
    world.rest()
    assert world.regions() == {("east", "east")}
    assert world.alter("flights", POLICY, "survive: [region, 2 brokers]") == (0, "")
    moves = world.look().moves
    assert len(moves) == 6
    assert all(set(one.command.replicas) <= set(one.command.target) for one in moves)
    world.rest()
    assert world.regions() == {("east", "east", "south", "west", "west")}


def test_a_topic_without_a_policy_gets_one_and_loses_it_again() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=4, replicas=(1, 2))
    assert world.alter("flights", POLICY, SURVIVE) == (0, "")
    world.rest()
    assert world.regions() == {("east", "south", "west")}
    assert world.alter("flights", POLICY, None) == (0, "")
    assert world.rest() == 0


def test_a_policy_that_asks_for_fewer_replicas_removes_some() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy="survive: [region, 2 brokers]", partitions=4)
    assert world.alter("flights", POLICY, SURVIVE) == (0, "")
    moves = world.look().moves
    assert moves and all(set(one.command.target) <= set(one.command.replicas) for one in moves)
    world.rest()
    assert world.regions() == {("east", "south", "west")}


def test_confluents_constraints_move_it_as_well() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=4, replicas=(1, 2))
    text = '{"version":2,"replicas":[{"count":2,"constraints":{"rack":"west"}}]}'
    assert world.alter("flights", CONSTRAINTS, text) == (0, "")
    world.rest()
    assert world.regions() == {("west", "west")}
    code, message = world.alter("flights", POLICY, SURVIVE)
    assert code == 40 and "are both set" in message


@pytest.mark.parametrize(
    ("policy", "code", "says"),
    [
        ("survive: 2 regions", 44, "this would be possible"),
        (IN % ('"east"', 3), 44, "brokers 3, 4, 5: region is not in [east]"),
        ("survive: zone", 44, "brokers 1, 2, 3, 4, 5 have no label 'zone'"),
        ("survive: planet", 40, "placement.policy"),
    ],
)
def test_what_cannot_be_met_is_refused_and_changes_nothing(
    policy: str, code: int, says: str
) -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=4)
    refused, message = world.alter("flights", POLICY, policy)
    assert refused == code and says in message
    assert max(map(len, message.splitlines())) < 250
    assert world.look().moves == [] and world.waits() == {}


def test_more_in_sync_replicas_need_more_replicas() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=4)
    assert world.alter("flights", "min.insync.replicas", "3") == (0, "")
    world.rest()
    assert world.regions() == {("east", "east", "south", "west", "west")}
    code, message = world.alter("flights", "min.insync.replicas", "5")
    assert code == 44 and "placement.policy" in message
    assert world.alter("flights", "min.insync.replicas", "1") == (0, "")
    world.rest()
    assert world.regions() == {("east", "south", "west")}


def test_in_an_outage_fewer_in_sync_replicas_may_be_asked_for() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, configs=[("min.insync.replicas", "2")])
    world.relabel(5, "west")
    assert "cannot-be-met" in world.waits()
    assert world.alter("flights", "min.insync.replicas", "1") == (0, "")
    assert world.alter("flights", "retention.ms", "1000") == (0, "")


def test_the_clusters_default_moves_topics_that_say_nothing() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=4)
    world.topic("plain", partitions=4, replicas=(1, 2))
    assert world.alter("", DEFAULT, IN % ('"west"', 2), scope=CLUSTER) == (0, "")
    world.rest()
    assert world.regions("plain") == {("west", "west")}
    assert world.regions() == {("east", "south", "west")}
    code, message = world.alter("", DEFAULT, IN % ('"south"', 2), scope=CLUSTER)
    assert code == 44 and "of topic plain" in message
    both = '{"version":1,"replicas":[{"count":1,"constraints":{"rack":"west"}}]}'
    code, _ = world.alter("", "confluent.log.placement.constraints", both, scope=CLUSTER)
    assert code == 40


def test_where_leaders_should_be_moves_no_data() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    before = world.replicas()
    survive = '"survive":[{"region":1}]'
    assert world.alter("flights", POLICY, LEADERS % ("west", survive)) == (0, "")
    assert {move.code for move in world.round()} == {"leaders"}
    assert not world.state.cluster.moving and world.replicas() == before
    first = {one.replicas[0] for one in world.state.cluster.topics["flights"].partitions}
    assert first <= {3, 4}
    assert world.round() == []


def test_what_is_only_preferred_waits_for_what_is_urgent() -> None:
    world = BalancerWorld((*FIVE, "south"))
    world.topic("broken", partitions=1, replicas=(1, 3))
    world.topic("dear", partitions=1, replicas=(1, 3))
    assert world.alter("dear", POLICY, PREFER_SOUTH) == (0, "")
    assert world.alter("broken", POLICY, IN % ('"west"', 2)) == (0, "")
    assert [move.code for move in world.look().moves] == ["policy-broken"]
    text, count = world.waits()["calm"]
    assert text.endswith("once nothing urgent moves") and count == 1
    assert len(world.round()) == 1 and world.look().moves == []
    assert world.waits()["calm"][1] == 1
    world.settle()
    assert [move.code for move in world.round()] == ["policy-dearer"]


def test_of_equal_needs_the_first_by_name_is_met_first_whichever_topic_is_older() -> None:
    world = BalancerWorld(FIVE)
    world.alter("", "balancer.moves.max", "3", scope=CLUSTER)
    for name in ("younger", "older"):
        world.topic(name, partitions=2, replicas=(1, 2))
        assert world.alter(name, POLICY, IN % ('"west"', 2)) == (0, "")
    groups = world.state.cluster.groups
    names = [groups[move.command.group].name for move in world.round()]
    assert names == ["older-0", "older-1", "younger-0"]


def test_what_is_only_preferred_moves_too_once_all_is_calm() -> None:
    world = BalancerWorld((*FIVE, "south"))
    world.topic(partitions=3, replicas=(1, 3))
    assert world.alter("flights", POLICY, PREFER_SOUTH) == (0, "")
    world.down(4)
    assert world.round() == []
    assert world.waits()["calm"][1] == 3
    world.up(4)
    world.wait(60_000)
    assert {move.code for move in world.round()} == {"policy-dearer"}
    world.rest()
    assert world.regions() == {("south", "south")}


def test_a_policy_that_is_changed_twice_ends_as_the_last_one_says() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=4)
    before = world.replicas()
    world.alter("flights", POLICY, IN % ('"east"', 2))
    assert len(world.round()) == 4
    world.alter("flights", POLICY, IN % ('"west"', 2))
    assert len(world.round()) == 4
    assert all(
        set(one.target) == {3, 4} for one in world.state.cluster.topics["flights"].partitions
    )
    world.alter("flights", POLICY, SURVIVE)
    assert all(move.command.target == () for move in world.round())
    assert world.replicas() == before and not world.state.cluster.moving
    world.alter("flights", POLICY, IN % ('"east"', 2))
    world.round()
    world.grant()
    world.alter("flights", POLICY, SURVIVE)
    assert world.round() == []  # What is granted is finished first.
    world.settle()
    world.rest()
    assert world.regions() == {("east", "south", "west")}


def test_the_next_controller_knows_what_the_balancer_moves() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=4)
    world.alter("flights", POLICY, IN % ('"east"', 2))
    world.round()
    world.reasons.clear()
    assert world.round() == []
    world.alter("flights", POLICY, IN % ('"west"', 2))
    assert len(world.round()) == 4
    world.rest()
    assert world.regions() == {("west", "west")}


def test_what_was_only_good_enough_in_an_outage_is_undone_after_it() -> None:
    world = BalancerWorld(("east", "east", "west", "west", "south", "north"))
    world.topic(policy="survive: 2 brokers", partitions=4)
    regions = world.regions()
    assert all({"south", "north"} <= set(each) for each in regions)
    world.lose(5)
    world.rest()
    assert all("south" not in each and len(each) == 5 for each in world.regions())
    world.up(5)
    world.wait(60_000)
    assert {move.code for move in world.round()} == {"policy-dearer"}
    world.rest()
    assert all({"south", "north"} <= set(each) for each in world.regions())


def test_a_default_of_more_in_sync_replicas_is_held_against_every_policy_that_it_concerns() -> None:
    world = BalancerWorld(FIVE)
    names = ("one", "two", "three", "four", "five")
    for name in names:
        world.topic(name, policy=SURVIVE)
    world.topic("own", policy=SURVIVE, configs=[("min.insync.replicas", "2")])
    world.topic("plain", replicas=(1, 2))
    assert world.alter("", "min.insync.replicas", "3", scope=CLUSTER) == (0, "")
    world.rest()
    assert world.regions("one") == {("east", "east", "south", "west", "west")}
    assert world.regions("own") == {("east", "south", "west")}
    code, message = world.alter("", "min.insync.replicas", "5", scope=CLUSTER)
    assert code == 44 and message.startswith("placement.policy of topic one: cannot place")
    assert message.endswith("\nnor could that of two, three, four and 1 more")
    assert "own" not in message and "plain" not in message
    assert world.state.cluster.cluster_configs["min.insync.replicas"] == "3"
    world.relabel(5, "west")  # Now three regions are no more to be had; less may still be asked.
    assert world.alter("", "min.insync.replicas", "2", scope=CLUSTER) == (0, "")
    assert world.alter("", "min.insync.replicas", "3", scope=CLUSTER)[0] == 44
    assert world.alter("", "min.insync.replicas", None, scope=CLUSTER) == (0, "")


def test_a_default_policy_and_its_default_of_replicas_are_judged_together() -> None:
    world = BalancerWorld(FIVE)
    world.topic("plain", replicas=(1, 3, 5))
    assert world.alter("", "min.insync.replicas", "5", scope=CLUSTER) == (0, "")
    code, message = world.alter("", DEFAULT, SURVIVE, scope=CLUSTER)
    assert code == 44 and message.startswith("strandline.placement.policy of topic plain: ")
    assert world.alter("", "min.insync.replicas", "3", scope=CLUSTER) == (0, "")
    assert world.alter("", DEFAULT, SURVIVE, scope=CLUSTER) == (0, "")
    code, message = world.alter("", "min.insync.replicas", "5", scope=CLUSTER)
    assert code == 44 and message.startswith("strandline.placement.policy of topic plain: ")
