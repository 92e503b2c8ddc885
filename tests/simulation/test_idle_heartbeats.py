"""Idle brokers send little, keep their leases, and still notice within the election time-out that a
leader is gone. Source: decision 0073."""

from dataclasses import replace

import pytest
from tests.simulation.plain_scenario import plain_scenario, started

from strandline.model.ids import GroupId
from strandline.replication.replica.replica import Replica
from strandline.simulation.scenarios.scenario import REGIONS, ProducerPlan, Scenario
from strandline.simulation.swarm.swarm import run_seed
from strandline.simulation.world.world import World

MS = 1_000
EAST, WEST, SOUTH = REGIONS[:3]
NEAR, FAR = (15, 40, 45), (125, 125, 125)
"""One way between east and west, east and south, west and south, in ms."""
LOOK_MS = 5
FAR_JOINS_SEED = 942


def wide_area(*, seed: int, ways: tuple[int, int, int], loss_ratio: float = 0.0) -> Scenario:
    """Five brokers, 2 + 2 + 1; the first one leads the groups."""
    scenario = plain_scenario(seed=seed, brokers=5, groups=3, loss_ratio=loss_ratio)
    one_way_us = {(one, other): 300 for one in REGIONS for other in REGIONS}
    pairs = ((EAST, WEST), (EAST, SOUTH), (WEST, SOUTH))
    for (one, other), way_ms in zip(pairs, ways, strict=True):
        one_way_us[one, other] = one_way_us[other, one] = way_ms * MS
    return replace(scenario, regions=(EAST, EAST, WEST, WEST, SOUTH), one_way_us=one_way_us)


def settled(scenario: Scenario) -> World:
    world = started(scenario)
    run(world, 4_000)
    return world


def run(world: World, duration_ms: int) -> None:
    world.scheduler.run_until(world.scheduler.now_us + duration_ms * MS)


def sent_between_regions(world: World) -> int:
    region = world.scenario.region_of
    counts = world.fabric.counters.sent_count
    return sum(n for (a, b, _), n in counts.items() if region(a) != region(b))


def leaders(world: World) -> list[Replica]:
    return sorted(world.cluster.leading_replicas(), key=lambda replica: replica.group)


@pytest.mark.parametrize("seed", range(1, 3))
def test_idle_brokers_exchange_two_messages_for_each_pair(seed: int) -> None:
    """Eight pairs of brokers in different regions, an exchange in about 430 ms: with the
    acknowledgement of the second message, fewer than 60 packets a second."""
    world = settled(wide_area(seed=seed, ways=NEAR))
    before = sent_between_regions(world)
    run(world, 20_000)
    assert 30 * 20 <= sent_between_regions(world) - before <= 40 * 20


@pytest.mark.parametrize("seed", range(1, 3))
@pytest.mark.parametrize("loss_ratio", [0.0, 0.005])
@pytest.mark.parametrize("ways", [NEAR, FAR], ids=["near", "far"])
def test_an_idle_leader_always_has_its_lease(
    seed: int, loss_ratio: float, ways: tuple[int, int, int]
) -> None:
    """Otherwise the first read after a while would wait for a round trip."""
    world = settled(wide_area(seed=seed, ways=ways, loss_ratio=loss_ratio))
    led = leaders(world)
    for _ in range(30_000 // LOOK_MS):
        run(world, LOOK_MS)
        for replica in led:
            assert replica.lease.is_held, f"at {world.scheduler.now_us} us"


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_leader_whose_own_connections_die_without_a_word_goes_on_leading(seed: int) -> None:
    """Its heartbeats go over the connections that its followers have opened."""
    world = settled(wide_area(seed=seed, ways=NEAR))
    led = {replica.group: replica.epoch for replica in leaders(world)}
    for pipe in world.fabric.pipes_of(leaders(world)[0].self_id):
        pipe.swallow()
    run(world, 8_000)
    assert {replica.group: replica.epoch for replica in leaders(world)} == led


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_leader_whose_own_connections_die_without_a_word_soon_writes_again(seed: int) -> None:
    """TCP alone gives them up after 10 s, and the heartbeats keep the followers from an election
    meanwhile."""
    producer = ProducerPlan("p", GroupId(1), -1, False, 20, 50)
    world = started(plain_scenario(seed=seed, one_way_us=15 * MS, producers=(producer,)))
    run(world, 4_000)
    for one in world.producers:
        one.start()
    run(world, 1_000)
    leader = leaders(world)[0]
    for pipe in world.fabric.pipes_of(leader.self_id):
        pipe.swallow()
    run(world, 100)
    before = leader.raft.commit
    run(world, 1_500)
    assert leader.is_leader
    assert leader.raft.commit > before


@pytest.mark.parametrize("seed", range(1, 4))
def test_a_leader_that_falls_silent_is_followed_in_time(seed: int) -> None:
    """After an election time-out, the spread of 400 ms and two round trips at most."""
    world = settled(wide_area(seed=seed, ways=NEAR))
    led = leaders(world)
    silent = led[0].self_id
    for other in world.scenario.brokers:
        if other != silent:
            world.fabric.cut(silent, other)
            world.fabric.cut(other, silent)
    groups = {replica.group for replica in led if replica.self_id == silent}
    begun_us = world.scheduler.now_us
    assert world.scheduler.run_until_true(
        lambda: (
            groups
            <= {
                one.group
                for one in world.cluster.replicas()
                if one.is_serving and one.self_id != silent
            }
        ),
        limit_us=begun_us + (800 + 400 + 2 * 90 + 200) * MS,
    )


def test_exchanges_with_a_far_broker_may_join_those_with_nearer_ones() -> None:
    """The far one is due each heartbeat interval as it is, and joins at each half of it."""
    assert run_seed(FAR_JOINS_SEED).violation is None
