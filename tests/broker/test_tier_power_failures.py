"""Power fails between any two steps of uploads and local retention, and no record is lost.

Source: decision 0057."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import fetch
from tests.broker.tiering_world import leader, tiers, until_same, write_segments

from strandline.config.tiered_section import TieredSection

SEGMENTS, RECORDS = 3, 5
STEPS = 16
STEP_MS = 150
SECTION = TieredSection(buckets=("eu=file:///buckets/eu",))
CONFIGS = (
    ("retention.ms", "-1"),
    ("remote.storage.enable", "true"),
    ("local.retention.ms", "1"),
)


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """Three brokers with a bucket; topic t has three closed segments."""
    with joined(ClusterWorld(VOTERS, tiered=SECTION)) as cluster:
        cluster.create_topic("t", configs=CONFIGS)
        write_segments(cluster, SEGMENTS, records=RECORDS)
        yield cluster


def starts(world: ClusterWorld) -> set[int]:
    """Where the replicas' own logs begin."""
    return {one.log.start_offset for one in world.replicas_of("t").values()}


def check(world: ClusterWorld) -> None:
    """All replicas agree, and readers get every record."""
    world.until(lambda: world.leader_of("t") != 0)
    world.until(lambda: starts(world) == {SEGMENTS * RECORDS}, every_ms=200)
    until_same(world)
    assert {one.log_start_offset for one in world.replicas_of("t").values()} == {0}
    seen: list[bytes | None] = []
    while len(seen) < SEGMENTS * RECORDS:
        found = fetch(world, "t", offset=len(seen))
        assert found, f"nothing at {len(seen)}"
        seen += found
    assert seen == [b"x"] * len(seen)
    assert leader(world).log.end_offset == len(seen)


@pytest.mark.parametrize("step", range(STEPS))
def test_power_of_all_fails_at_any_moment(world: ClusterWorld, step: int) -> None:
    world.advance(step * STEP_MS)
    world.lose_power()
    check(world)


@pytest.mark.parametrize("step", range(0, STEPS, 4))
def test_power_of_one_fails_while_the_others_go_on(world: ClusterWorld, step: int) -> None:
    world.advance(step * STEP_MS)
    follower = next(one for one in tiers(world) if one != world.leader_of("t"))
    world.lose_power_of(follower, for_ms=3_000)
    world.until(lambda: follower in world.replicas_of("t"))
    check(world)


def test_no_reader_of_a_restarted_follower_is_told_a_later_start(world: ClusterWorld) -> None:
    world.until(lambda: starts(world) == {SEGMENTS * RECORDS}, every_ms=200)
    follower = next(one for one in tiers(world) if one != world.leader_of("t"))
    world.hosts[follower].kill()
    world.hosts[follower].start()
    seen: list[int] = []

    def is_known() -> bool:
        """Looked at after every event."""
        replica = world.replicas_of("t").get(follower)
        if replica is not None and replica.knows_start:
            seen.append(replica.log_start_offset)
        return len(seen) > 200

    world.until(is_known)
    assert set(seen) == {0}
