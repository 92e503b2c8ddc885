"""A broker that is to leave gives all its replicas away, or the person reads why it cannot.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

from collections.abc import Mapping

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, BalancerWorld, ids
from tests.controller.controller_world import changes

from strandline.config.broker_life import BrokerLife
from strandline.controller.commands import (
    AlterConfigs,
    AlterReassignments,
    CreatePartitions,
    MorePartitions,
    PartitionResults,
    ResourceResults,
    WantedReplicas,
)
from strandline.model.ids import BrokerId

SIX = ("east", "east", "west", "west", "south", "south")
FIVE = SIX[:5]
SURVIVE = "survive: region"
KEY = "broker.decommission"
BROKER = 4
POLICY_VIOLATION, NOT_REGISTERED = 44, 102


def decommission(world: BalancerWorld, broker: int) -> tuple[int, str]:
    return world.alter(str(broker), KEY, "true", scope=BROKER)


def cancel(world: BalancerWorld, broker: int) -> tuple[int, str]:
    return world.alter(str(broker), KEY, None, scope=BROKER)


def held(world: BalancerWorld, broker: int) -> int:
    return sum(BrokerId(broker) in one.hosts for one in world.state.cluster.groups.values())


def test_a_broker_gives_all_it_has_away_and_gets_nothing_more() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=12)
    world.topic("plain", partitions=4, replicas=(1, 3, 5))
    assert decommission(world, 1) == (0, "")
    assert {move.code for move in world.round()} == {"decommission"}
    world.rest()
    assert held(world, 1) == 0
    assert world.regions() == {("east", "south", "west")}
    assert world.regions("plain") == {("east", "south", "west")}
    world.topic("more", partitions=12)
    world.topic("ruled", policy=SURVIVE, partitions=12)
    world.run(CreatePartitions((MorePartitions(topic="plain", count=12),)))
    assert world.rest() == 0 and held(world, 1) == 0
    wanted = WantedReplicas(topic="plain", index=0, replicas=ids(1, 2, 3))
    answer = world.run(AlterReassignments((wanted,)))
    assert isinstance(answer, PartitionResults)
    assert "broker 1, which is being decommissioned" in (answer.partitions[0].message or "")


def test_a_broker_that_is_down_leaves_without_being_waited_for() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=6)
    world.down(1)
    assert decommission(world, 1) == (0, "")
    world.rest()
    assert held(world, 1) == 0 and world.waits() == {}


@pytest.mark.parametrize(
    ("regions", "policy", "replicas", "broker", "says"),
    [
        (FIVE, SURVIVE, (), 5, "placement.policy of topic flights"),
        (
            FIVE[:3],
            "",
            (1, 2, 3),
            2,
            "has 3 replicas, and without broker 2 2 brokers are left",
        ),
        (("east",), "", (), 1, "broker 1 is the last one"),
    ],
)
def test_what_the_others_could_not_hold_is_refused(
    regions: tuple[str, ...], policy: str, replicas: tuple[int, ...], broker: int, says: str
) -> None:
    world = BalancerWorld(regions)
    if policy or replicas:
        world.topic(policy=policy, replicas=replicas)
    code, message = decommission(world, broker)
    assert code == POLICY_VIOLATION and says in message
    assert max(map(len, message.splitlines())) < 200
    assert world.round() == [] and world.waits() == {}


def unmet(world: BalancerWorld) -> None:
    """The topic "held" is on broker 7, and its policy can be met no more: nobody is in north."""
    where = '[{"label":"region","op":"in","values":["north"]}]'
    world.topic("held", policy=f'{{"rules":[{{"where":{where},"count":1}}]}}', partitions=2)
    world.relabel(7, "west")


def test_a_policy_that_is_not_met_anyhow_keeps_nobody_who_has_no_part_in_it() -> None:
    world = BalancerWorld((*SIX, "north"))
    unmet(world)
    world.topic("others", policy=SURVIVE, partitions=6)
    code, message = decommission(world, 7)
    assert code == POLICY_VIOLATION and "placement.policy of topic held" in message
    assert decommission(world, 1) == (0, "")
    world.rest()
    assert held(world, 1) == 0
    assert {one.replicas for one in world.state.cluster.topics["held"].partitions} == {ids(7)}


def test_who_makes_it_worse_stays_though_it_holds_nothing_of_the_topic() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=1)
    (one,) = world.state.cluster.topics["flights"].partitions
    assert world.alter("", "balancer.enable", "false", scope=CLUSTER) == (0, "")
    wanted = WantedReplicas(topic="flights", index=0, replicas=ids(1, 2, 3))
    world.run(AlterReassignments((wanted,)))
    world.finish(one.group)
    assert held(world, 5) == 0
    code, message = decommission(world, 5)
    assert code == POLICY_VIOLATION and "placement.policy of topic flights" in message


def test_two_at_once_are_refused_where_one_could_go() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=6)
    rows = [changes(BROKER, str(one), (KEY, 0, "true")) for one in (5, 6)]
    answer = world.run(AlterConfigs(tuple(rows)))
    assert isinstance(answer, ResourceResults)
    assert [one.error_code for one in answer.resources] == [0, POLICY_VIOLATION]
    world.rest()
    assert held(world, 5) == 0
    assert decommission(world, 6)[0] == POLICY_VIOLATION
    assert decommission(world, 3) == (0, "")
    world.rest()
    assert held(world, 3) == held(world, 5) == 0
    assert world.regions() == {("east", "south", "west")}


def test_the_last_broker_of_a_region_leaves_where_no_policy_needs_it() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=4, replicas=(1, 3, 5))
    assert decommission(world, 5) == (0, "")
    world.rest()
    assert held(world, 5) == 0
    assert {len(set(one)) for one in world.replicas()} == {3}


def test_who_waits_is_told_with_the_broker_that_it_keeps() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=3)
    world.down(6)
    assert decommission(world, 5) == (0, "")
    on_it = held(world, 5)
    world.round()
    found = world.look().waits.found
    ((code, text),) = [key for key, one in found.items() if one.leaving]
    assert code == "needs-broker" and "with region=south in place of broker 5" in text
    assert found[code, text].leaving == {BrokerId(5): on_it}
    world.up(6)
    world.wait(60_000)
    world.rest()
    assert held(world, 5) == 0


def test_cancelled_in_the_middle_what_is_not_granted_stays_and_the_broker_is_one_again() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=8)
    before = held(world, 1)
    decommission(world, 1)
    world.round()
    assert world.state.cluster.moving
    assert cancel(world, 1) == (0, "")
    assert all(move.command.target == () for move in world.round())
    assert held(world, 1) == before and not world.state.cluster.moving
    decommission(world, 1)
    world.round()
    world.grant()
    cancel(world, 1)
    world.rest()
    assert world.waits() == {}
    world.topic("more", partitions=12)
    assert held(world, 1) > 0


def test_the_next_controller_goes_on() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=30)
    decommission(world, 1)
    world.round()
    world.reasons.clear()
    world.rest()
    assert held(world, 1) == 0


def test_it_dies_in_the_middle_and_still_leaves() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=30)
    decommission(world, 1)
    world.round()
    world.down(1)
    world.rest()
    assert held(world, 1) == 0


def test_with_a_lost_region_the_others_still_leave() -> None:
    world = BalancerWorld(FIVE)
    world.topic(policy=SURVIVE, partitions=6)
    world.topic("plain", partitions=6, replicas=(1, 3, 5))
    world.lose(5)
    assert decommission(world, 1) == (0, "")
    world.rest()
    assert held(world, 1) == 0
    assert held(world, 5) == 12  # Its region is waited for.


def test_an_unknown_broker_and_an_unknown_key_are_one_line() -> None:
    world = BalancerWorld(FIVE)
    assert decommission(world, 9) == (NOT_REGISTERED, "there is no broker '9'")
    code, message = world.alter("1", "retention.ms", "5", scope=BROKER)
    assert code == 40 and message == "unknown key 'retention.ms'"
    assert world.alter("1", KEY, "maybe", scope=BROKER)[0] == 42


def test_who_leaves_is_read_once_for_a_command_however_many_partitions_it_makes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = BalancerWorld(SIX)
    assert decommission(world, 6) == (0, "")
    read: list[Mapping[str, str]] = []
    plain = BrokerLife.from_values

    def from_values(values: Mapping[str, str]) -> BrokerLife:
        read.append(values)
        return plain(values)

    monkeypatch.setattr(BrokerLife, "from_values", from_values)
    world.topic(partitions=100, replicas=(1, 3, 5))
    assert len(read) == 1  # One broker has configuration.
    read.clear()
    world.topic("placed", partitions=100)
    assert len(read) == 2  # Who leaves, and who is in maintenance.


def test_a_broker_leaves_while_a_partition_has_a_replica_that_no_rule_asks_for() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=2, replicas=(1, 3, 5))
    assert world.alter("", "balancer.enable", "false", scope=CLUSTER) == (0, "")
    two = '{"rules":[{"where":[{"label":"region","op":"in","values":["east","west"]}],"count":2}]}'
    assert world.alter("flights", "placement.policy", two) == (0, "")
    for broker in (1, 3, 5):
        assert decommission(world, broker) == (0, "")
        assert cancel(world, broker) == (0, "")


# ---- cancelled -----------------------------------------------------------------------------------


def ordered(world: BalancerWorld, name: str = "flights") -> list[tuple[BrokerId, ...]]:
    """The replicas of each partition, the preferred leader first."""
    return [one.replicas for one in world.state.cluster.topics[name].partitions]


def test_a_cancelled_decommission_brings_back_what_was() -> None:
    """Replicas, and which of them is the preferred leader, with and without a policy."""
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=6)
    for number in range(6):
        # As creation spreads them: each broker leads one.
        order = tuple((number + step * 2) % 6 + 1 for step in range(3))
        world.topic(f"plain{number}", replicas=order)
    names = ("flights", *(f"plain{number}" for number in range(6)))
    before = [ordered(world, name) for name in names]
    assert decommission(world, 1) == (0, "")
    world.rest()
    assert held(world, 1) == 0
    assert cancel(world, 1) == (0, "")
    world.wait(60_000)
    assert {move.code for move in world.round()} == {"undo"}
    world.rest()
    assert [ordered(world, name) for name in names] == before
    assert world.waits() == {} and not world.state.cluster.returning


def test_cancelled_while_some_moves_are_granted_what_was_comes_back() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=12)
    before = ordered(world)
    decommission(world, 1)
    world.round()
    world.grant()
    cancel(world, 1)
    world.rest()
    assert ordered(world) == before and not world.state.cluster.returning


def test_what_was_decided_since_is_not_undone() -> None:
    world = BalancerWorld(SIX)
    world.topic("plain", partitions=2, replicas=(1, 3, 5))
    decommission(world, 1)
    world.rest()
    chosen = ids(6, 4, 2)
    world.run(AlterReassignments((WantedReplicas(topic="plain", index=0, replicas=chosen),)))
    world.settle()
    cancel(world, 1)
    world.rest()
    assert ordered(world, "plain") == [chosen, (1, 3, 5)]


def test_nothing_returns_to_a_broker_that_leaves_again_or_is_gone() -> None:
    world = BalancerWorld(SIX)
    world.topic("plain", replicas=(1, 3, 5))
    decommission(world, 1)
    decommission(world, 3)
    world.rest()
    cancel(world, 1)
    world.rest()
    assert held(world, 1) == held(world, 3) == 0, "broker 3 still leaves"
    cancel(world, 3)
    world.rest()
    assert ordered(world, "plain") == [(1, 3, 5)]
