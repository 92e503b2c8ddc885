"""DescribeStatus: each broker tells what it sees, with a controller and without.

Source: docs/decisions/0046-cluster-status.md."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld, joined
from tests.broker.test_lost_disk import NOT_A_VOTER, lose_disk

from strandline.broker.handlers import describe_status
from strandline.placement.survival.course import Course
from strandline.protocol.messages.describe_status import (
    DescribeStatusRequest,
    DescribeStatusResponse,
    StatusBroker,
)

REGIONS = {1: "east", 2: "west", 3: "south", 4: "west"}
KEPT, LOSABLE = "kept", "losable"
SILENT_MS = 15_000


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Three voters of the controller and a fourth broker; two topics."""
    with joined(ClusterWorld(regions=REGIONS)) as made:
        for name, least in ((KEPT, "1"), (LOSABLE, "2")):
            made.create_topic(
                name, partitions=2, replicas=3, configs=(("min.insync.replicas", least),)
            )
        yield made


def told(world: ClusterWorld, broker: int) -> DescribeStatusResponse:
    return world.ask(broker, DescribeStatusRequest(), DescribeStatusResponse, 0)


def controller_of(world: ClusterWorld) -> int:
    return next(
        (one for one in (1, 2, 3) if world.hosts[one].program and told(world, one).is_controller), 0
    )


def of(answer: DescribeStatusResponse, broker: int) -> StatusBroker:
    (found,) = [one for one in answer.brokers if one.broker_id == broker]
    return found


def test_a_healthy_cluster_has_nothing_to_tell(world: ClusterWorld) -> None:
    world.advance(2_000)
    assert controller_of(world) != 0
    world.advance(SILENT_MS)
    for broker in world.hosts:
        found = told(world, broker)
        assert found.broker_id == broker and found.controller_id in (1, 2, 3)
        assert [one.region for one in found.brokers] == ["east", "west", "south", "west"]
        assert all(one.is_heard and not one.fate and one.port for one in found.brokers)
        assert (found.leaderless, found.refusing, found.thin) == ([], [], [])
        assert found.partition_count == 4 and found.controller_voters == [1, 2, 3]
    assert [told(world, one).is_controller for one in world.hosts].count(True) == 1
    assert told(world, controller_of(world)).is_settled


def test_a_silent_broker_is_told_with_what_becomes_of_it(world: ClusterWorld) -> None:
    world.advance(2_000)
    assert controller_of(world) != 0
    world.hosts[4].fail_power()
    world.advance(SILENT_MS)
    found = told(world, controller_of(world))
    silent = of(found, 4)
    assert not silent.is_heard and SILENT_MS - 3_000 <= silent.silent_ms <= SILENT_MS + 1_000
    assert silent.silent_since_ms > 0 and silent.fate == "due"
    assert 0 < silent.due_ms <= 900_000
    # Others do not know what the controller does.
    other = next(one for one in (1, 2, 3) if one != controller_of(world))
    assert of(told(world, other), 4).fate == ""
    assert of(told(world, other), 4).silent_since_ms == silent.silent_since_ms


def test_without_a_controller_those_that_are_left_tell_what_stopped(world: ClusterWorld) -> None:
    world.advance(2_000)
    assert controller_of(world) != 0
    for broker in (2, 3, 4):
        world.hosts[broker].fail_power()
    world.advance(SILENT_MS)
    found = told(world, 1)
    assert (found.controller_id, found.is_controller, found.is_settled) == (-1, False, False)
    assert [one.broker_id for one in found.brokers if one.is_heard] == [1]
    assert all(one.silent_ms >= SILENT_MS - 3_000 for one in found.brokers if not one.is_heard)
    stopped = [one for one in found.leaderless if 1 not in one.missing]
    assert sum(len(one.partitions) for one in found.leaderless) == 4
    for one in stopped:
        if one.left:
            assert (one.course, one.voters, one.left, one.back) == (Course.MAY_LACK, 3, 1, 1)
        else:
            assert one.course == Course.GONE


def test_a_partition_that_refuses_acks_all_is_told_at_once_by_its_leader(
    world: ClusterWorld,
) -> None:
    """Two of three are left where all three are asked for."""
    world.create_topic("strict", partitions=1, replicas=3, configs=(("min.insync.replicas", "3"),))
    leader = world.leader_of("strict")
    lost = next(one for one in world.replicas_of("strict") if one != leader)
    world.hosts[lost].fail_power()
    world.advance(5_000)
    assert not of(told(world, leader), lost).is_heard
    (found,) = told(world, leader).refusing
    assert (found.topic, found.partitions, found.left) == ("strict", [0], 2)
    assert (found.course, found.back, found.missing) == (Course.LOWER, 1, [lost])
    thin = {one.topic for broker in world.replicas_of(LOSABLE) for one in told(world, broker).thin}
    assert LOSABLE in thin or lost not in world.replicas_of(LOSABLE)


def test_a_broker_that_came_back_without_its_disk_names_what_has_no_log(
    world: ClusterWorld,
) -> None:
    """The controller hears it, and expects an election."""
    world.create_topic("single", partitions=4, replicas=1)
    (mine,) = [
        one.index
        for one in world.broker(1).services.cluster.topics["single"].partitions
        if one.replicas == (NOT_A_VOTER,)
    ]
    lose_disk(world, NOT_A_VOTER)
    world.advance(SILENT_MS)
    world.hosts[NOT_A_VOTER].start()
    world.until_started(NOT_A_VOTER)
    world.until(lambda: told(world, NOT_A_VOTER).lost_logs != [])
    (found,) = told(world, NOT_A_VOTER).lost_logs
    assert (found.topic, found.partitions, found.has_buckets) == ("single", [mine], False)
    (expected,) = told(world, controller_of(world)).leaderless
    assert (expected.partitions, expected.course) == ([mine], Course.ELECTION)
    assert told(world, controller_of(world)).lost_logs == []


def test_other_work_goes_on_while_many_partitions_are_described(
    world: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describe_status, "STEP", 1)
    turns = 0

    async def work() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def describe() -> int:
        beside = asyncio.get_running_loop().create_task(work())
        await describe_status.describe(world.broker(1).services)
        beside.cancel()
        return turns

    assert world.do(1, describe()) >= 4
