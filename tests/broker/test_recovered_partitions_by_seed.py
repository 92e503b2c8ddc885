"""Partitions that begin anew out of buckets, while brokers lose their power and buckets fail.

Whatever happens meanwhile: what was acknowledged after the partition began anew is read back,
behind what the buckets had, under the same offsets, and no record of the earlier group is.

Source: decision 0067."""

import random

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_lost_disk import lose_disk
from tests.broker.test_recovered_partitions import (
    BUCKETS,
    HOME,
    RECORDS,
    earliest,
    end_in_buckets,
    read_all,
    recover,
    until_exported,
    values,
    world,
)

__all__ = ["world"]

STEPS = 25
SEEDS = range(12)


def lose(world: ClusterWorld, rng: random.Random) -> tuple[int, ...]:
    """Kill all replicas. They come back with empty disks; one may stay away with all that it had.
    Returns those that stay away."""
    for one in HOME:
        world.hosts[one].kill()
    away = tuple(rng.sample(HOME, rng.choice((0, 1))))
    for one in HOME:
        if one not in away:
            lose_disk(world, one)
    world.advance(3_000)
    for one in HOME:
        if one not in away:
            world.hosts[one].start()
    world.until_started(*(one for one in HOME if one not in away))
    return away


def act(world: ClusterWorld, rng: random.Random, acked: list[bytes], end: int) -> None:
    """One step: a write, a fault, or the end of one."""
    step = rng.random()
    if step < 0.6 and world.leader_of("t"):
        value = b"after %d" % len(acked)
        answer = produce(world, "t", value)
        if answer.error_code == 0:
            assert answer.base_offset == end + len(acked), "an offset was given before"
            acked.append(value)
    elif step < 0.75:
        faults = world.buckets[rng.choice(BUCKETS)].faults
        faults.is_gone = not faults.is_gone
    else:
        up = [one for one in HOME if world.hosts[one].program is not None]
        if len(up) == len(HOME):
            world.lose_power_of(rng.choice(up), for_ms=rng.randint(10, 2_000))
    world.advance(rng.randint(0, 800))


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_acknowledged_since_is_lost_and_nothing_before_comes_back(
    world: ClusterWorld, seed: int
) -> None:
    rng = random.Random(seed)
    end = end_in_buckets(world)
    away = lose(world, rng)
    assert recover(world, *BUCKETS, broker_ids=list(away)).log_end_offset == end
    acked: list[bytes] = []
    returns_at = rng.randrange(STEPS)
    for step in range(STEPS):
        if step == returns_at:
            for one in away:
                world.hosts[one].start()
        act(world, rng, acked, end)
    for one in BUCKETS:
        world.buckets[one].faults.is_gone = False
    world.until_started(*HOME)
    world.until(lambda: world.leader_of("t") > 0)
    world.until(
        lambda: all(one.tier.is_known for one in world.replicas_of("t").values()), every_ms=500
    )
    assert earliest(world) == 0
    expected = [*values(0, end), *acked]
    assert read_all(world, len(expected)) == expected
    # The same on all replicas, and in all buckets.
    world.until(
        lambda: (
            len({one.log.end_offset for one in world.replicas_of("t").values()}) == 1
            and len(world.replicas_of("t")) == len(HOME)
        ),
        every_ms=500,
    )
    for at in range(60):
        assert produce(world, "t", b"%d" % at * 40).error_code == 0
    until_exported(world)
    assert end_in_buckets(world) > end
    assert all(len(world.directories(one)) == 1 for one in HOME)
    assert end <= RECORDS
