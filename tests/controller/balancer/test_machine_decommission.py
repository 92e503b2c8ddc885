"""A machine of several brokers leaves by one command, or its operator reads why it cannot.

Source: docs/decisions/0011-the-life-of-a-broker.md, docs/decisions/0071-cores.md."""

import pytest
from tests.controller.balancer.balancer_world import BalancerWorld, ids
from tests.controller.controller_world import changes

from strandline.controller.commands import AlterConfigs, ResourceResults
from strandline.model.ids import BrokerId

KEY, MAINTENANCE = "broker.decommission", "broker.maintenance.until.ms"
BROKER = 4
SPREAD_OVER_HOSTS = "survive: broker"
SHARED_HOST = "{survive: broker, distinct_host: false}"
POLICY_VIOLATION = 44


def machines(count: int) -> BalancerWorld:
    """Machines of two brokers: 1 and 2 on the first one, 3 and 4 on the second one."""
    world = BalancerWorld(("east",) * (2 * count))
    for number in range(1, 2 * count + 1):
        world.relabel(number, "east", host=f"node-{(number + 1) // 2}")
    return world


def decommission(world: BalancerWorld, *brokers: int) -> list[tuple[int, str]]:
    """[(error code, message)] of one request for all of them."""
    rows = [changes(BROKER, str(one), (KEY, 0, "true")) for one in brokers]
    answer = world.run(AlterConfigs(tuple(rows)))
    assert isinstance(answer, ResourceResults)
    return [(one.error_code, one.message or "") for one in answer.resources]


def hosts(world: BalancerWorld, name: str) -> set[int]:
    """On how many machines the replicas of each partition are."""
    return {len({(one + 1) // 2 for one in some}) for some in world.replicas(name)}


def held(world: BalancerWorld, *brokers: int) -> int:
    groups = world.state.cluster.groups.values()
    return sum(BrokerId(one) in group.hosts for group in groups for one in brokers)


def test_what_a_machine_holds_moves_to_others_and_never_between_its_own_brokers() -> None:
    world = machines(4)
    world.topic("plain", partitions=6, replicas=(1, 3, 5))
    world.topic("other", partitions=6, replicas=(4, 2, 7))
    world.topic("ruled", policy=SPREAD_OVER_HOSTS, partitions=12)
    assert held(world, 1, 2) > 0
    assert decommission(world, 1, 2) == [(0, ""), (0, "")]
    before = len(world.state.cluster.moving)
    while moves := world.round():
        for move in moves:
            assert not {1, 2} & set(move.command.target), "no replica goes to the same machine"
        world.settle()
    assert before == 0 and held(world, 1, 2) == 0
    assert hosts(world, "plain") == hosts(world, "other") == hosts(world, "ruled") == {3}


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        ("", "topic t has 3 replicas for different hosts, and without brokers 1, 2 2 hosts are"),
        (SPREAD_OVER_HOSTS, "placement.policy of topic t"),
    ],
)
def test_fewer_machines_than_replicas_are_refused_with_what_to_do(policy: str, says: str) -> None:
    world = machines(3)
    world.topic("t", policy=policy, replicas=() if policy else (1, 3, 5))
    (first, second) = decommission(world, 1, 2)
    assert first == (0, "") and second[0] == POLICY_VIOLATION
    assert says in second[1] and max(map(len, second[1].splitlines())) < 200
    if not policy:
        assert "add a machine, or give the topic fewer replicas or a placement" in second[1]
    assert world.alter("t", "placement.policy", SHARED_HOST) == (0, "")
    assert decommission(world, 1, 2) == [(0, ""), (0, "")]
    world.rest()
    assert held(world, 1, 2) == 0


def test_replicas_that_share_a_machine_already_keep_none() -> None:
    world = machines(2)
    world.topic("t", replicas=(1, 2, 3))
    assert decommission(world, 4) == [(0, "")]
    world = machines(3)
    world.topic("t", replicas=(1, 2, 3, 5))
    assert decommission(world, 1, 2) == [(0, ""), (0, "")]
    world.rest()
    assert world.replicas("t") == [(3, 4, 5, 6)]


def test_a_broker_without_a_host_is_a_machine_by_itself() -> None:
    world = machines(2)
    world.relabel(4, "east")
    world.topic("t", replicas=(1, 3, 4))
    assert decommission(world, 2) == [(0, "")]
    world.rest()
    assert decommission(world, 1)[0][0] == POLICY_VIOLATION


def test_all_replicas_of_a_partition_leave_a_machine_together() -> None:
    world = machines(3)
    world.topic("t", partitions=4, replicas=(1, 2))
    assert decommission(world, 1, 2) == [(0, ""), (0, "")]
    world.rest()
    assert held(world, 1, 2) == 0 and hosts(world, "t") == {2}


def test_a_machine_in_maintenance_leaves_and_one_that_is_down_too() -> None:
    world = machines(4)
    world.topic("t", partitions=4, replicas=(1, 3, 5))
    for one in ("1", "2"):
        assert world.alter(one, MAINTENANCE, "-1", scope=BROKER) == (0, "")
    assert decommission(world, 1, 2) == [(0, ""), (0, "")]
    world.down(1, 2)
    world.rest()
    assert held(world, 1, 2) == 0 and hosts(world, "t") == {3} and world.waits() == {}


def test_the_rest_of_a_machine_may_be_asked_for_again() -> None:
    world = machines(4)
    world.topic("t", partitions=4, replicas=(1, 3, 5))
    assert decommission(world, 1) == [(0, "")]
    assert decommission(world, 1, 2) == [(0, ""), (0, "")]
    assert decommission(world, 1, 2) == [(0, ""), (0, "")]
    world.rest()
    assert held(world, 1, 2) == 0
    assert world.partition("t").replicas != ids(1, 3, 5)
