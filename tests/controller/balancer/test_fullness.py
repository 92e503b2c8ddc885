"""Brokers whose disks are too full are given nothing; a broker is emptied only where there is room.

Source: docs/decisions/0010-the-balancer.md; docs/decisions/0011-the-life-of-a-broker.md."""

from collections.abc import Sequence

import pytest
from tests.controller.balancer.balancer_world import CLUSTER, BalancerWorld, ids

from strandline.controller.balancer.fullness import Fullness
from strandline.controller.commands import AlterReassignments, RequestVoters, WantedReplicas
from strandline.controller.reports import Report
from strandline.model.ids import BrokerId, GroupId

SIX = ("east", "east", "west", "west", "south", "south")
SURVIVE = "survive: region"
KEY = "broker.decommission"
BROKER, POLICY_VIOLATION = 4, 44
DISK_BYTES = 100_000_000_000
GB = 1_000_000_000


def report(used_percent: int, sizes: dict[int, int] | None = None) -> Report:
    used_bytes = DISK_BYTES * used_percent // 100
    logs = {GroupId(group): size for group, size in (sizes or {}).items()}
    return Report(used_bytes, DISK_BYTES - used_bytes, logs)


def tell(world: BalancerWorld, used_percent: Sequence[int]) -> None:
    """How full the disks of the brokers are, from the first one."""
    for number, percent in enumerate(used_percent, start=1):
        world.reports[BrokerId(number)] = report(percent)
    world.wait(1_000)


def held(world: BalancerWorld, broker: int) -> int:
    return sum(BrokerId(broker) in one.hosts for one in world.state.cluster.groups.values())


def decommission(world: BalancerWorld, broker: int) -> tuple[int, str]:
    return world.alter(str(broker), KEY, "true", scope=BROKER)


@pytest.mark.parametrize(
    ("percents", "is_full"),
    [((85,), False), ((86,), True), ((86, 81), True), ((86, 80), False), ((80, 85), False)],
)
def test_full_is_who_is_above_the_mark_until_well_below_it(
    percents: tuple[int, ...], *, is_full: bool
) -> None:
    fullness = Fullness()
    for percent in percents:
        fullness.step(0, {BrokerId(1): report(percent)}, high_percent=85, low_percent=80)
    assert (BrokerId(1) in fullness.full) is is_full
    assert fullness.used_percent == {BrokerId(1): percents[-1]}
    fullness.step(0, {}, high_percent=85, low_percent=80)
    assert (BrokerId(1) in fullness.full) is is_full


def test_a_disk_that_is_full_for_a_moment_is_not_relieved() -> None:
    fullness = Fullness()

    def is_overfull(at_ms: int, percent: int, low_percent: int = 80) -> bool:
        told = {BrokerId(1): report(percent)}
        fullness.step(at_ms, told, high_percent=85, low_percent=low_percent)
        return BrokerId(1) in fullness.overfull

    assert not is_overfull(0, 90)
    assert not is_overfull(10_000, 84) and fullness.full
    assert not is_overfull(30_000, 90)
    assert not is_overfull(40_000, 86)
    assert is_overfull(50_000, 86)
    assert is_overfull(60_000, 84)
    assert is_overfull(90_000, 81)
    assert not is_overfull(100_000, 80)
    assert not is_overfull(110_000, 90)
    assert is_overfull(130_000, 90)
    assert is_overfull(140_000, 84)
    # The marks are others: who is between them now was not found to be full by these.
    assert not is_overfull(150_000, 84, low_percent=70) and not fullness.full


def test_what_a_lost_broker_had_goes_to_those_with_room() -> None:
    world = BalancerWorld((*SIX, "south"))
    world.topic(policy=SURVIVE, partitions=8)
    before = held(world, 6)
    tell(world, [50, 50, 50, 50, 50, 90, 50])
    world.lose(5)
    world.rest()
    assert held(world, 5) == 0 and held(world, 6) == before
    assert world.regions() == {("east", "south", "west")}


def test_who_waits_for_room_is_told_and_goes_on_when_there_is_some() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=8)
    on_it = held(world, 5)
    tell(world, [50, 50, 50, 50, 50, 90])
    world.lose(5)
    world.round()
    assert held(world, 5) == on_it
    text = "the disks of brokers 6, which could take a replica, are more than 85 % full"
    assert world.waits()["disk-full"] == (text, on_it)
    world.alter("", "balancer.disk.high.percent", "95", scope=CLUSTER)
    tell(world, [50, 50, 50, 50, 50, 89])
    world.rest()
    assert held(world, 5) == 0


def test_where_nobody_could_take_it_anyhow_room_is_not_the_reason() -> None:
    world = BalancerWorld(SIX[:5])
    world.topic(policy=SURVIVE, partitions=3)
    tell(world, [90, 50, 50, 50, 50])
    world.lose(5)
    world.round()
    assert set(world.waits()) == {"needs-broker", "disk-high"}


def test_a_full_broker_that_is_new_gets_nothing_for_evenness() -> None:
    world = BalancerWorld(SIX)
    world.topic(policy=SURVIVE, partitions=12)
    world.add_broker(7, "east")
    tell(world, [50, 50, 50, 50, 50, 50, 90])
    world.wait(60_000)
    assert world.rest() == 0 and held(world, 7) == 0
    tell(world, [50, 50, 50, 50, 50, 50, 70])
    assert world.rest() > 0 and held(world, 7) > 0


def sized(world: BalancerWorld, used_percent: Sequence[int], log_bytes: int) -> None:
    """The same, and each replica is so large."""
    groups = world.state.cluster.groups.values()
    for number, percent in enumerate(used_percent, start=1):
        broker = BrokerId(number)
        logs = {one.group: log_bytes for one in groups if broker in one.replicas}
        world.reports[broker] = report(percent, dict(logs))


def test_a_broker_is_not_emptied_onto_disks_that_are_too_small() -> None:
    world = BalancerWorld(SIX)
    world.topic(replicas=(1, 3, 5), policy="", partitions=4)
    world.alter("flights", "placement.policy", SURVIVE)
    sized(world, [50, 50, 50, 50, 50, 80], 2 * GB)
    assert decommission(world, 5) == (
        POLICY_VIOLATION,
        "the 8.0 GB of broker 5 do not fit elsewhere: broker 6 lacks 3.0 GB of 8.0 GB up to 85 % "
        "of the disk (balancer.disk.high.percent): add a broker, or room",
    )
    sized(world, [50, 50, 50, 50, 50, 77], 2 * GB)
    assert decommission(world, 5) == (0, "")


def test_what_no_policy_holds_back_may_go_to_anybody() -> None:
    world = BalancerWorld(SIX)
    world.topic(replicas=(1, 3, 5), partitions=4)
    sized(world, [84, 84, 84, 81, 50, 81], 2 * GB)
    assert decommission(world, 5) == (0, "")
    world = BalancerWorld(SIX)
    world.topic(replicas=(1, 3, 5), partitions=4)
    sized(world, [84, 84, 84, 82, 50, 82], 2 * GB)
    code, message = decommission(world, 5)
    assert code == POLICY_VIOLATION and "broker 4 lacks 1.0 GB of 4.0 GB" in message


def test_two_that_leave_need_room_for_both_and_what_moves_has_taken_its_own() -> None:
    world = BalancerWorld((*SIX, "south"))
    world.topic(replicas=(1, 3, 5), partitions=2, policy="")
    world.topic("more", replicas=(1, 3, 6), partitions=2)
    for name in ("flights", "more"):
        world.alter(name, "placement.policy", SURVIVE)
    sized(world, [50, 50, 50, 50, 50, 50, 80], 2 * GB)
    assert decommission(world, 6) == (0, "")
    assert decommission(world, 5)[0] == POLICY_VIOLATION
    sized(world, [50, 50, 50, 50, 50, 50, 77], 2 * GB)
    assert decommission(world, 5) == (0, "")
    world = BalancerWorld((*SIX, "south"))
    world.topic(replicas=(1, 3, 5), partitions=2, policy="")
    world.alter("flights", "placement.policy", SURVIVE)
    world.topic("more", replicas=(1, 3, 6))
    wanted = WantedReplicas(topic="more", index=0, replicas=ids(1, 3, 7))
    world.run(AlterReassignments((wanted,)))
    group = world.partition("more").group
    world.run(RequestVoters(group, 0, ids(1, 3, 7)))
    sized(world, [50, 50, 50, 50, 50, 84, 80], 2 * GB)
    code, message = decommission(world, 5)
    assert code == POLICY_VIOLATION and "broker 6 lacks 1.0 GB of 2.0 GB" in message


def test_who_tells_nothing_is_not_counted_as_full() -> None:
    world = BalancerWorld(SIX)
    world.topic(replicas=(1, 3, 5), partitions=4)
    world.alter("flights", "placement.policy", SURVIVE)
    sized(world, [50, 50, 50, 50, 50], 2 * GB)
    assert decommission(world, 5) == (0, "")
