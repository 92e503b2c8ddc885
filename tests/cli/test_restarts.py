"""Which of the planned restarts may be made now.

Source: docs/decisions/0011-the-life-of-a-broker.md."""

import pytest

from strandline.base.errors import OperatorError
from strandline.cli.text.live_cluster import LiveCluster, LiveTopic
from strandline.cli.text.restarts import Restarts, partition_groups
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.placement.explain.topics import PartitionState
from strandline.placement.policy.document import Policy
from strandline.placement.solver.request import Request
from strandline.placement.survival.restarts import QuorumGroup, Unit, plan_restarts
from strandline.placement.topology.round_trips import RoundTrips

ALL = frozenset(map(BrokerId, (1, 2, 3)))
UNITS = [Unit(f"broker {one}", frozenset((one,))) for one in sorted(ALL)]
GROUP = QuorumGroup(name="t-0", voters=ALL, quorum=2, ready=ALL)


def restarts(*spared: int) -> Restarts:
    plan = plan_restarts(UNITS, [GROUP])
    return Restarts(plan, (GROUP,), ALL, frozenset(map(BrokerId, spared)))


def test_one_at_a_time() -> None:
    now, later = restarts().now([])
    assert [one.name for one in now] == ["broker 1"]
    assert [(one.name, why) for one, why in later] == [
        ("broker 2", "in a later step"),
        ("broker 3", "in a later step"),
    ]


def test_who_is_in_maintenance_is_the_one_to_restart() -> None:
    now, later = restarts(2).now([])
    assert [one.name for one in now] == ["broker 2"]
    why = "t-0 needs 2 of brokers 1, 2, 3; in maintenance: 2"
    assert [(one.name, text) for one, text in later] == [
        ("broker 1", why),
        ("broker 3", why),
    ]


def test_a_name_that_is_not_in_the_plan_is_refused() -> None:
    with pytest.raises(OperatorError, match="broker 1, broker 2, broker 3"):
        restarts().now(["broker 9"])


def test_who_votes_now_is_not_restarted_and_who_did_before_may_be() -> None:
    one, two, three = sorted(ALL)
    state = PartitionState(0, (one, two), leader=two, observers=(three,), acting=(two, three))
    request = Request(policy=Policy(), min_insync_replicas=2, default_voters=2)
    cluster = LiveCluster(
        cluster_id="c",
        controller=one,
        candidates=(),
        round_trips=RoundTrips.measured({}, {}),
        led={},
        topics=(LiveTopic("t", "", request, (state,), {}),),
    )
    up = frozenset((two, three))
    groups = tuple(partition_groups(cluster, up))
    now, later = Restarts(plan_restarts(UNITS, groups), groups, up).now([])
    assert [unit.name for unit in now] == ["broker 1"]
    assert [text for _, text in later] == ["t-0 needs 2 of brokers 2, 3; down: 1"] * 2


def cluster_of(state: PartitionState, *, shrinks: bool = False) -> LiveCluster:
    request = Request(policy=Policy(), min_insync_replicas=1, default_voters=3)
    return LiveCluster(
        cluster_id="c",
        controller=state.voters[0],
        candidates=(),
        round_trips=RoundTrips.measured({}, {}),
        led={},
        topics=(LiveTopic("t", "", request, (state,), {}, shrinks=shrinks),),
    )


def test_a_replica_that_is_behind_is_the_reason_whether_it_votes_or_has_left() -> None:
    one, two, three = sorted(ALL)
    votes = PartitionState(0, (one, two, three), leader=one, behind=(three,))
    left = PartitionState(0, (one, two, three), leader=one, acting=(one, two))
    for state, needs in ((votes, "1, 2, 3"), (left, "1, 2")):
        groups = tuple(partition_groups(cluster_of(state), ALL))
        now, later = Restarts(plan_restarts(UNITS, groups), groups, ALL).now([])
        assert [unit.name for unit in now] == ["broker 3"]
        assert [text for _, text in later] == [f"t-0 needs 2 of brokers {needs}; behind: 3"] * 2


def test_a_partition_without_a_leader_is_the_reason() -> None:
    state = PartitionState(0, tuple(sorted(ALL)), leader=NO_BROKER)
    groups = tuple(partition_groups(cluster_of(state), ALL))
    now, later = Restarts(plan_restarts(UNITS, groups), groups, ALL).now([])
    assert now == []
    assert {text for _, text in later} == {"t-0 needs 2 of brokers 1, 2, 3; it has no leader"}
