"""A broker is spared for a while where every partition can be written without it.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

import pytest
from tests.controller.balancer.balancer_world import LOST_AFTER_MS, BalancerWorld
from tests.controller.controller_world import changes

from strandline.controller.balancer.health import SPARED_MS_MAX, UNSEEN_MS_MAX, Health
from strandline.controller.commands import (
    AlterConfigs,
    AlterReassignments,
    ResourceResults,
    WantedReplicas,
)
from strandline.controller.reports import Report
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId

KEY = "broker.maintenance.until.ms"
BROKER = 4
FIVE = ("east", "east", "west", "west", "south")
POLICY_VIOLATION = 44


def maintain(world: BalancerWorld, *brokers: int) -> list[tuple[int, str]]:
    rows = [changes(BROKER, str(one), (KEY, 0, "-1")) for one in brokers]
    answer = world.run(AlterConfigs(tuple(rows)))
    assert isinstance(answer, ResourceResults)
    return [(one.error_code, one.message or "") for one in answer.resources]


def test_one_of_three_may_go_and_a_second_one_may_not() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=3, replicas=(1, 3, 5))
    first, second, third = maintain(world, 1, 3, 2)
    assert first == third == (0, "")
    assert second == (
        POLICY_VIOLATION,
        "flights-0 could not be written: it needs 2 of brokers 1, 3, 5; in maintenance: 1; so it "
        "is with 3 partitions",
    )
    assert world.alter("1", KEY, None, scope=BROKER) == (0, "")
    assert maintain(world, 3) == [(0, "")]


def test_who_is_down_counts_and_what_cannot_be_written_anyhow_does_not() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=1, replicas=(1, 3, 5))
    world.down(5)
    ((code, message),) = maintain(world, 1)
    assert code == POLICY_VIOLATION and message.endswith("2 of brokers 1, 3, 5; down: 5")
    world.down(3)
    assert maintain(world, 1) == [(0, "")]


def test_who_votes_now_counts_and_not_who_does_when_all_are_well() -> None:
    world = BalancerWorld(FIVE)
    world.topic(replicas=(1, 2, 3, 4))
    world.down(1, 2)
    assert maintain(world, 3) == [(0, "")]
    assert world.alter("3", KEY, None, scope=BROKER) == (0, "")
    world.vote(3, 4)
    ((code, message),) = maintain(world, 3)
    assert code == POLICY_VIOLATION and message.endswith("it needs 2 of brokers 3, 4")
    assert maintain(world, 1) == [(0, "")]


def test_who_may_vote_already_counts_as_well() -> None:
    """Voters that were granted, and are not reported yet, may be in force."""
    world = BalancerWorld(("east",) * 7)
    world.topic(replicas=(1, 2, 3))
    target = tuple(map(BrokerId, (1, 4, 5)))
    world.run(AlterReassignments((WantedReplicas(topic="flights", index=0, replicas=target),)))
    world.grant()
    world.down(4)
    for broker in (1, 5):
        ((code, message),) = maintain(world, broker)
        assert (code, message) == (
            POLICY_VIOLATION,
            "flights-0 could not be written: it needs 2 of brokers 1, 4, 5; down: 4",
        )
    assert maintain(world, 2) == [(0, "")]


@pytest.mark.parametrize(("replicas", "least"), [((1,), "1"), ((1, 2), "1"), ((1, 2, 3), "3")])
def test_a_partition_that_needs_them_all_refuses(replicas: tuple[int, ...], least: str) -> None:
    world = BalancerWorld(FIVE)
    world.topic(replicas=replicas, configs=[("min.insync.replicas", least)])
    ((code, _),) = maintain(world, 1)
    assert code == POLICY_VIOLATION
    assert maintain(world, 4) == [(0, "")]


def behind(world: BalancerWorld, leader: int, **groups: tuple[int, ...]) -> None:
    """What a leader says of partition 0 of topics, and of the controller."""
    told: dict[GroupId, tuple[BrokerId, ...]] = {}
    for name, brokers in groups.items():
        group = CONTROLLER_GROUP if name == "controller" else world.partition(name).group
        told[group] = tuple(map(BrokerId, brokers))
    world.reports[BrokerId(leader)] = Report(0, 1, behind=told)


def test_who_is_up_and_behind_does_not_count() -> None:
    world = BalancerWorld(FIVE)
    world.topic(partitions=1, replicas=(1, 3, 5))
    behind(world, 1, flights=(3,))
    ((code, message),) = maintain(world, 5)
    assert code == POLICY_VIOLATION
    assert message.endswith("could not be written: it needs 2 of brokers 1, 3, 5; behind: 3")
    assert maintain(world, 3) == [(0, "")]
    assert maintain(world, 2) == [(0, "")]
    assert world.alter("3", KEY, None, scope=BROKER) == (0, "")
    behind(world, 1, flights=(3, 5))
    assert maintain(world, 1)[0][0] == POLICY_VIOLATION
    behind(world, 1, flights=())
    assert maintain(world, 1) == [(0, "")]


def test_the_controller_keeps_its_quorum_too() -> None:
    world = BalancerWorld(FIVE)
    world.voters = frozenset(map(BrokerId, (1, 3, 5)))
    assert maintain(world, 2) == maintain(world, 3) == [(0, "")]
    assert maintain(world, 5) == [
        (
            POLICY_VIOLATION,
            "the controller could not decide: it needs 2 of brokers 1, 3, 5; in maintenance: 3",
        )
    ]
    assert world.alter("3", KEY, None, scope=BROKER) == (0, "")
    behind(world, 1, controller=(3,))
    assert maintain(world, 5)[0][1].endswith("of brokers 1, 3, 5; behind: 3")
    behind(world, 1, controller=())
    assert maintain(world, 5, 3)[1][0] == POLICY_VIOLATION


def test_new_partitions_are_led_by_others() -> None:
    world = BalancerWorld(FIVE)
    maintain(world, 1)
    world.topic("plain", partitions=20)
    world.topic("ruled", policy="survive: region", partitions=20)
    for name in ("plain", "ruled"):
        assert all(one.replicas[0] != 1 for one in world.state.cluster.topics[name].partitions)


def test_it_is_not_lost_while_it_is_down_but_after_a_day() -> None:
    health = Health()
    both = [BrokerId(1), BrokerId(2)]

    looked_ms = 0

    def look(now_ms: int, alive: list[BrokerId]) -> frozenset[BrokerId]:
        """And all the time since the last look."""
        nonlocal looked_ms
        times = [*range(looked_ms, now_ms, UNSEEN_MS_MAX), now_ms]
        looked_ms = now_ms
        for at_ms in times:
            condition = health.step(
                at_ms, brokers=both, alive=alive, lost_after_ms=LOST_AFTER_MS, spared=[BrokerId(1)]
            )
        return condition.lost

    look(0, both)
    look(1_000, both)
    look(1_000, [])
    assert look(1_000 + LOST_AFTER_MS, []) == {2}
    assert look(SPARED_MS_MAX, []) == {2}
    assert look(1_000 + SPARED_MS_MAX, []) == {1, 2}
