"""What is told of a move in an outage. Source: docs/decisions/0018-outages.md."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from strandline.controller.records import ReassignmentSet
from strandline.model.cluster import Address, Broker, Cluster, Labels, Outage, Partition, Ruling
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, Epoch, GroupId, Index
from strandline.simulation.invariants.facts import BalancerMoved, Disturbed, LeaderElected
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.invariants.outages import SIGHT_MS, RepairHeldIffZoneDown, balancer_moved

REGIONS = ("east", "south", "west", "west", "north")
"""Of brokers 1 to 5; the west is down."""
GROUP = GroupId(7)


def ids(*brokers: int) -> tuple[BrokerId, ...]:
    return tuple(map(BrokerId, brokers))


@pytest.fixture
def cluster() -> Cluster:
    """Brokers 3 and 4 are silent; 1, 2 and 3 vote, 4 observes."""
    address = Address("127.0.0.1", 1)
    found = Cluster()
    for number, region in enumerate(REGIONS, 1):
        found.brokers[BrokerId(number)] = Broker(
            id=BrokerId(number), incarnation="1", rpc=address, kafka=address,
            labels=Labels(region=region),
        )  # fmt: skip
    found.silent_ms.update(dict.fromkeys(ids(3, 4), 9))
    found.outages["west",] = Outage(is_down=True)
    found.groups[GROUP] = Partition("t", 0, GROUP, ids(1, 2, 3), observers=ids(4))
    return found


@pytest.mark.parametrize(
    ("voters", "observers", "left"),
    [
        ((1, 2, 3), (5,), {4}),
        ((1, 2, 5), (4,), {3}),
        ((1, 2, 3), (), {4}),
        ((1, 2, 4), (3,), set()),
        ((5, 2, 3), (4,), set()),
    ],
)
def test_whoever_loses_a_replica_in_an_outage_is_told_observers_too(
    cluster: Cluster, voters: tuple[int, ...], observers: tuple[int, ...], left: set[int]
) -> None:
    record = ReassignmentSet(GROUP, ids(*voters), True, ids(*observers))
    moved = balancer_moved(record, cluster)
    assert moved.leaving & moved.held == left
    expected = pytest.raises(InvariantError, match="away from") if left else nullcontext()
    with expected:
        RepairHeldIffZoneDown().on_balancer_moved(moved)


def test_a_silent_broker_that_a_person_has_emptied_may_lose_a_replica(cluster: Cluster) -> None:
    cluster.broker_configs[BrokerId(3)] = {"broker.decommission": "true"}
    moved = balancer_moved(ReassignmentSet(GROUP, ids(1, 2, 5), True, ids(4)), cluster)
    assert moved.leaving == {3} and moved.held == {4}


# ---- by the hosts ------------------------------------------------------------------------------

S = 1_000_000
"""In microseconds."""
PATIENCE_S = 10
SEEN_S = SIGHT_MS // 1_000 + PATIENCE_S
"""After so long a controller has seen it."""


@pytest.fixture
def unseen(cluster: Cluster) -> Cluster:
    """The controller takes the west for well."""
    del cluster.outages["west",]
    return cluster


def away_from_3(cluster: Cluster, *, at_s: int) -> BalancerMoved:
    moved = balancer_moved(ReassignmentSet(GROUP, ids(1, 2, 5), True, ids(4)), cluster)
    assert moved.leaving == {3} and not moved.held
    assert moved.patience_ms == PATIENCE_S * 1_000
    return replace(moved, at_us=at_s * S, state_version=at_s)


def disturbed(at_s: int, *gone: int, has_other_faults: bool = False) -> Disturbed:
    return Disturbed(at_s * S, frozenset(ids(*gone)), has_other_faults)


def elected(at_s: int, group: GroupId = CONTROLLER_GROUP) -> LeaderElected:
    end = Index(0)
    return LeaderElected(BrokerId(1), group, Epoch(2), end, end, lambda _: Epoch(1), at_us=at_s * S)


def judged_by(moved: BalancerMoved, *before: Disturbed | LeaderElected | BalancerMoved) -> None:
    """Raise what is broken by the move, after all that."""
    one = RepairHeldIffZoneDown()
    for fact in before:
        if isinstance(fact, Disturbed):
            one.on_disturbed(fact)
        elif isinstance(fact, LeaderElected):
            one.on_leader_elected(fact)
        else:
            one.on_balancer_moved(fact)
    one.on_balancer_moved(moved)


def judged(moved: BalancerMoved, *before: Disturbed | LeaderElected | BalancerMoved) -> bool:
    """Whether the move keeps the promise, after all that."""
    try:
        judged_by(moved, *before)
    except InvariantError as error:
        assert "away from [3], though of west 2 of 2 are gone for" in str(error)
        return False
    return True


def test_of_what_is_really_gone_nothing_is_repaired_whatever_the_controller_believes(
    unseen: Cluster,
) -> None:
    moved = away_from_3(unseen, at_s=5 + SEEN_S)
    assert not judged(moved, elected(1), disturbed(5, 3, 4))
    assert not judged(moved, elected(1), disturbed(5, 3, 4), elected(9, GROUP))
    assert not judged(moved, disturbed(2, has_other_faults=True), disturbed(5, 3, 4))


def test_who_could_not_have_seen_it_yet_has_broken_no_promise(unseen: Cluster) -> None:
    moved = away_from_3(unseen, at_s=5 + SEEN_S)
    assert judged(moved, disturbed(6, 3, 4))
    assert judged(moved, disturbed(5, 3, 4), elected(6))
    assert judged(moved, disturbed(5, 3, 4, has_other_faults=True))
    assert judged(moved, disturbed(5, 3, 4), disturbed(6, 1, 3, 4))
    told_again = replace(moved, at_us=90 * S)  # By another broker, or after a start.
    assert judged(told_again, disturbed(2), moved, disturbed(5, 3, 4))


def test_a_single_broker_and_one_that_lives_are_replaced(unseen: Cluster) -> None:
    moved = away_from_3(unseen, at_s=5 + SEEN_S)
    assert judged(moved, disturbed(5, 3))
    assert judged(moved, disturbed(5, 4, 2))


def test_who_was_replaced_takes_its_zone_down_only_with_all_that_are_left(unseen: Cluster) -> None:
    unseen.groups[GROUP] = replace(unseen.groups[GROUP], observers=())
    assert not judged(away_from_3(unseen, at_s=5 + SEEN_S), disturbed(5, 3, 4))
    unseen.brokers[BrokerId(5)] = replace(unseen.brokers[BrokerId(5)], labels=Labels(region="west"))
    moved = away_from_3(unseen, at_s=5 + SEEN_S)
    assert judged(moved, disturbed(5, 3, 4))
    with pytest.raises(InvariantError, match="of west 3 of 3 are gone"):
        judged_by(moved, disturbed(5, 3, 4, 5))


@pytest.mark.parametrize(
    "domain", [("west",), ("west", "a")], ids=["its region", "a zone of its region"]
)
def test_where_a_person_has_said_something_that_counts(
    domain: tuple[str, ...], unseen: Cluster
) -> None:
    for number in ids(3, 4):
        unseen.brokers[number] = replace(unseen.brokers[number], labels=Labels("west", "a"))
    unseen.outages[domain] = Outage(ruling=Ruling.RELEASE)
    assert judged(away_from_3(unseen, at_s=5 + SEEN_S), disturbed(5, 3, 4))


def test_where_somebody_counts_for_nothing_hosts_are_not_asked(unseen: Cluster) -> None:
    unseen.broker_configs[BrokerId(4)] = {"broker.decommission": "true"}
    assert judged(away_from_3(unseen, at_s=5 + SEEN_S), disturbed(5, 3, 4))
