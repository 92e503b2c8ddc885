"""What is told of a move in an outage. Source: docs/decisions/0018-outages.md."""

from contextlib import nullcontext

import pytest

from strandline.controller.records import ReassignmentSet
from strandline.model.cluster import Address, Broker, Cluster, Labels, Outage, Partition
from strandline.model.ids import BrokerId, GroupId
from strandline.simulation.invariants import InvariantError
from strandline.simulation.outages import RepairHeldIffZoneDown, balancer_moved

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
