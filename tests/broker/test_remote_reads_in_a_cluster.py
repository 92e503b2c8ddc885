"""Brokers whose disks have let old records go read them from simulated buckets.

Source: decisions 0057 and 0060."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import delete as delete_topic
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.broker.tiering_world import enable, leader, propose, until_same

from strandline.broker.fetch import cache_sweep
from strandline.config.tiered_section import TieredSection
from strandline.model.ids import BrokerId, Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.tiered.segments.writer import SegmentWriter
from strandline.tiered.state.commands import GoLive, Intend

BUCKETS = ("eu", "us")
SECTION = TieredSection(buckets=tuple(f"{one}=file:///buckets/{one}" for one in BUCKETS))
CONFIGS = (
    ("retention.ms", "-1"),
    ("remote.storage.enable", "true"),
    ("remote.log.copy.disable", "true"),  # The test uploads.
)
SEGMENTS, RECORDS = 4, 10
SWEEP_MS = 5_000


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterWorld]:
    """Three brokers with two buckets; topic t has four closed segments, and ten records more."""
    monkeypatch.setattr(cache_sweep, "LOOK_MS", SWEEP_MS)
    with joined(ClusterWorld(VOTERS, tiered=SECTION)) as cluster:
        cluster.create_topic("t", configs=CONFIGS)
        at = 0
        for segment in range(SEGMENTS + 1):
            for _ in range(RECORDS):
                assert produce(cluster, "t", f"{at:03}".encode()).error_code == 0
                at += 1
            cluster.advance(1_000)
            for broker, replica in cluster.replicas_of("t").items():
                if segment < SEGMENTS:
                    process = cluster.hosts[broker].process
                    assert process is not None
                    process.run_now(replica.log._roll)
        yield cluster


def upload(world: ClusterWorld, bucket: str, base: int, end: int) -> str:
    """Put the records of [base, end) into a bucket, as an uploader does; the object's name."""
    broker = world.leader_of("t")
    replica = leader(world)
    writer = SegmentWriter(Offset(base), Offset(end))
    writer.add(replica.log.read_records(Offset(base), 1 << 30, Offset(end)).bytes())
    name = f"c/t/0/{bucket}-{base}"
    made = writer.finish(name)
    store = world.broker(broker).services.buckets.store(bucket)
    world.do(broker, store.put(name, made.parts))
    intent = Intend(bucket, name, Offset(base), Offset(end), BrokerId(1))
    assert propose(world, intent) == (Error.NONE, None)
    assert propose(world, GoLive(bucket, made.entry)) == (Error.NONE, None)
    return name


def let_go(world: ClusterWorld, buckets: tuple[str, ...] = BUCKETS) -> None:
    """Every disk lets go what the buckets have."""
    for bucket in buckets:
        for base in range(0, SEGMENTS * RECORDS, RECORDS):
            upload(world, bucket, base, base + RECORDS)
    until_same(world)
    enable(world, local_retention_ms=0, remote_buckets=buckets)
    world.until(lambda: all(start > 0 for start in local_starts(world)), every_ms=500)


def local_starts(world: ClusterWorld) -> list[int]:
    return [one.local_log_start_offset for one in world.replicas_of("t").values()]


def expected(start: int = 0) -> list[bytes]:
    return [f"{at:03}".encode() for at in range(start, (SEGMENTS + 1) * RECORDS)]


def read_all(world: ClusterWorld, *, at: int = 0, start: int = 0) -> list[bytes | None]:
    """All records from `start` on, as a consumer reads them."""
    seen: list[bytes | None] = []
    while start + len(seen) < len(expected()):
        found = fetch(world, "t", at=at, offset=start + len(seen))
        # A batch has one record.
        assert found, f"nothing at {start + len(seen)}"
        seen += found
    return seen


def list_offset(world: ClusterWorld, timestamp: int) -> tuple[int, int]:
    """(error, offset), by the leader."""
    asked = ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(timestamp=timestamp)])
    request = ListOffsetsRequest(topics=[asked])
    answer = world.ask(world.leader_of("t"), request, ListOffsetsResponse, 11)
    (one,) = answer.topics[0].partitions
    return one.error_code, one.offset


def test_every_broker_serves_the_whole_history(world: ClusterWorld) -> None:
    let_go(world)
    assert list_offset(world, -2) == (0, 0)
    assert list_offset(world, -4)[1] > 0
    for broker in (0, 1, 2, 3):
        assert read_all(world, at=broker) == expected()


def test_a_bucket_that_lost_its_objects_is_passed_over(world: ClusterWorld) -> None:
    let_go(world)
    store = world.broker(1).services.buckets.store("eu")
    world.do(1, store.delete([f"c/t/0/eu-{base}" for base in range(0, 40, 10)]))
    for broker in (1, 2, 3):
        assert read_all(world, at=broker) == expected()


def test_times_lead_to_the_same_records_as_before_they_went(world: ClusterWorld) -> None:
    log = leader(world).log
    found = [
        log.offset_for_time(0, Offset(1 << 40), start_offset=Offset(at)) for at in range(0, 50, 7)
    ]
    times = [-3, *(one[0] + delta for one in found if one is not None for delta in (-1, 0, 1))]
    before = [list_offset(world, time) for time in times]
    assert len({offset for _, offset in before}) > 10
    let_go(world)
    assert [list_offset(world, time) for time in times] == before


def test_records_are_deleted_below_the_local_start(world: ClusterWorld) -> None:
    let_go(world)
    request = DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=13)]
            )
        ],
        timeout_ms=30_000,
    )
    answer = world.ask(world.leader_of("t"), request, DeleteRecordsResponse, 2)
    assert answer.topics[0].partitions[0].error_code == Error.NONE
    assert list_offset(world, -2) == (0, 13)
    for broker in (1, 2, 3):
        assert read_all(world, at=broker, start=13) == expected(13)


def test_a_restart_serves_the_history_again(world: ClusterWorld) -> None:
    let_go(world)
    assert read_all(world) == expected()
    world.lose_power()
    world.until_started(*VOTERS)
    world.until(lambda: world.leader_of("t") != 0)
    for broker in (0, *VOTERS):
        assert read_all(world, at=broker) == expected()


def cached(world: ClusterWorld, broker: int) -> int:
    log = world.broker(broker).services.remote_log
    assert log is not None
    return log.reader.cache.size_bytes


def test_cached_records_of_a_deleted_topic_go_soon_and_others_stay(world: ClusterWorld) -> None:
    let_go(world)
    for broker in VOTERS:
        assert read_all(world, at=broker) == expected()
    before = {broker: cached(world, broker) for broker in VOTERS}
    assert all(before.values())
    world.create_topic("other", configs=CONFIGS)
    world.advance(2 * SWEEP_MS)
    assert {broker: cached(world, broker) for broker in VOTERS} == before
    delete_topic(world, "t")
    world.advance(2 * SWEEP_MS)
    assert {broker: cached(world, broker) for broker in VOTERS} == dict.fromkeys(VOTERS, 0)


def test_a_restart_keeps_the_cached_records_of_topics_that_are_there(world: ClusterWorld) -> None:
    let_go(world)
    for broker in VOTERS:
        assert read_all(world, at=broker) == expected()
    before = {broker: cached(world, broker) for broker in VOTERS}
    for broker in VOTERS:
        world.hosts[broker].kill()
        world.advance(3_000)
        world.hosts[broker].start()
        world.until_started(broker)
        world.until(lambda: world.leader_of("t") != 0)
    world.advance(4 * SWEEP_MS)
    assert {broker: cached(world, broker) for broker in VOTERS} == before
