"""Compacted topics in buckets, of whole clusters in virtual time.

Source: decision 0066."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from tests.broker.cluster_world import LIMIT_MS, ClusterWorld
from tests.broker.test_tiering_in_a_cluster import (
    BUCKETS,
    FAULTS,
    has_all,
    leader,
    set_configs,
    state,
    tiered_cluster,
)

from strandline.broker.tiering.rewrites import Rewrites
from strandline.protocol.errors import Error
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch, decode_records
from strandline.simulation.buckets.bucket import BucketFaults
from strandline.simulation.world.scheduler import US_PER_MS

Table = dict[bytes, bytes | None]
"""{key: its last value}; None for a tombstone."""


@contextmanager
def compacted_cluster(**configs: str) -> Iterator[ClusterWorld]:
    """Three brokers in three regions, and a compacted topic with small segments."""
    with tiered_cluster(delete_grace_ms=60_000) as world:
        set_configs(
            world,
            "t",
            {
                "cleanup.policy": "compact",
                "min.cleanable.dirty.ratio": "0.1",
                "local.retention.ms": "-1",
                **{name.replace("_", "."): value for name, value in configs.items()},
            },
        )
        yield world


def put(world: ClusterWorld, key: bytes, value: bytes | None) -> None:
    """One record, acknowledged by all."""
    world.until(lambda: world.leader_of("t") > 0)
    broker = world.leader_of("t")
    now_ms = world.broker(broker).services.clock.wall_ms()
    data = PartitionProduceData(records=build_batch([Record(0, now_ms, key, value)]))
    topic = TopicProduceData(name="t", partition_data=[data])
    request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])
    answer = world.ask(broker, request, ProduceResponse, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0


def fill(world: ClusterWorld, table: Table, start: int, count: int, *, keys: int = 10) -> None:
    """Values of so many keys, one after the other."""
    for at in range(start, start + count):
        key, value = b"k%d" % (at % keys), (b"%d/" % at) * 20
        put(world, key, value)
        table[key] = value


def records_of(data: bytes) -> list[tuple[int, bytes, bytes | None]]:
    """(offset, key, value) of every record."""
    found = []
    for header in iterate_headers(data):
        for one in decode_records(data[header.position : header.position + header.size]):
            assert one.key is not None
            found.append((header.base_offset + one.offset_delta, one.key, one.value))
    return found


def read(world: ClusterWorld, *, at: int) -> list[tuple[int, bytes, bytes | None]]:
    """Every record, as a consumer that begins at the start reads them from a broker."""
    found: list[tuple[int, bytes, bytes | None]] = []
    end = leader(world).high_watermark
    limit_us = world.scheduler.now_us + LIMIT_MS * US_PER_MS
    offset = 0
    while offset < end:
        asked = FetchPartition(fetch_offset=offset, partition_max_bytes=2_000)
        request = FetchRequest(
            max_wait_ms=1_000, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[asked])]
        )
        answer = world.ask(at, request, FetchResponse, 12)
        (part,) = answer.responses[0].partitions
        if part.error_code == Error.NOT_LEADER_OR_FOLLOWER:  # Not yet: its leader is new.
            assert world.scheduler.now_us < limit_us
            world.advance(100)
            continue
        assert part.error_code == 0
        assert part.log_start_offset == 0
        data = bytes(part.records or b"")
        headers = list(iterate_headers(data))
        if headers:
            found += [one for one in records_of(data) if one[0] >= offset]
            assert headers[-1].next_offset > offset
            offset = headers[-1].next_offset
    return found


def table_of(records: list[tuple[int, bytes, bytes | None]]) -> Table:
    assert [one[0] for one in records] == sorted({one[0] for one in records})
    return {key: value for _, key, value in records}


def in_bucket(world: ClusterWorld, bucket: str) -> list[tuple[int, bytes, bytes | None]]:
    """The records of the live objects of a bucket."""
    data = b""
    for entry in state(world).live(bucket):
        content = world.buckets[bucket].get(entry.name)
        assert content is not None, f"{entry.name} is not in {bucket}"
        data += content[: entry.data_bytes]
    return records_of(data)


def is_clean(world: ClusterWorld) -> bool:
    """Whether every bucket is compacted as far as it goes, but for a few records."""
    known = state(world).buckets
    return has_all(world)() and all(
        known[one].clean_before >= known[one].end_offset * 9 // 10 for one in BUCKETS
    )


def test_a_consumer_sees_the_last_values_over_the_seam() -> None:
    with compacted_cluster(local_retention_bytes="2000") as world:
        table: Table = {}
        fill(world, table, 0, 150)
        world.until(lambda: is_clean(world), every_ms=500)
        for bucket in BUCKETS:
            assert len(in_bucket(world, bucket)) < 60
        world.until(
            lambda: all(one.log.start_offset > 20 for one in world.replicas_of("t").values()),
            every_ms=500,
        )
        fill(world, table, 150, 13)
        for broker in (1, 2, 3):
            assert table_of(read(world, at=broker)) == table
            assert world.replicas_of("t")[broker].log_start_offset == 0


def test_a_log_compacts_only_what_buckets_have() -> None:
    """Else the bucket could lack both a value and the one that took its place."""
    with compacted_cluster() as world:
        world.buckets["west"].faults.is_gone = True
        table: Table = {}
        fill(world, table, 0, 60)
        world.until(has_all(world, "east", "south"), every_ms=500)
        world.advance(60_000)
        records = read(world, at=world.leader_of("t"))
        assert [one[0] for one in records] == list(range(60)), "nothing was compacted in logs"
        world.buckets["west"].faults = BucketFaults()
        world.until(lambda: is_clean(world), every_ms=500)
        fill(world, table, 60, 20)
        world.until(
            lambda: all(one.log.compacted_index > 50 for one in world.replicas_of("t").values()),
            every_ms=500,
        )
        assert table_of(read(world, at=world.leader_of("t"))) == table


def test_a_deleted_key_stays_deleted_and_its_tombstone_goes() -> None:
    with compacted_cluster(delete_retention_ms="1000", local_retention_bytes="4000") as world:
        table: Table = {}
        fill(world, table, 0, 40)
        put(world, b"k3", None)
        del table[b"k3"]
        at = 40
        while True:
            fill(world, table, at, 10, keys=3)
            at += 10
            world.until(lambda: is_clean(world), every_ms=500)
            world.advance(5_000)
            found = {name: [one[1] for one in in_bucket(world, name)] for name in BUCKETS}
            seen = table_of(read(world, at=world.leader_of("t")))
            assert seen.get(b"k3") is None
            if not any(b"k3" in keys for keys in found.values()):
                break
            assert at < 400, "the tombstone stays"
        for broker in (1, 2, 3):
            seen = table_of(read(world, at=broker))
            assert {key: value for key, value in seen.items() if value is not None} == table


def test_a_log_keeps_a_tombstone_while_a_bucket_may_have_the_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A consumer gets the value out of the bucket, and must not miss its deletion in the log."""
    with compacted_cluster(delete_retention_ms="0") as world:
        table: Table = {}
        with monkeypatch.context() as patch:
            patch.setattr(Rewrites, "next", lambda *_: None)  # No bucket is compacted.
            fill(world, table, 0, 20)
            put(world, b"k3", None)
            at = 21
            for _ in range(4):
                fill(world, table, at, 15, keys=3)
                at += 15
                world.until(has_all(world), every_ms=500)
                world.advance(20_000)
            for broker, replica in world.replicas_of("t").items():
                assert replica.log.compacted_index > 30
                seen = table_of(read(world, at=broker))
                assert seen[b"k3"] is None, "the tombstone is there"
        while b"k3" in table_of(read(world, at=world.leader_of("t"))):
            fill(world, table, at, 15, keys=3)
            at += 15
            assert at < 400, "the tombstone stays"
            world.advance(20_000)


@pytest.mark.parametrize("fault", ["applied and refused", "not answered", "late", "wrong bytes"])
def test_a_store_that_fails_spoils_no_table(fault: str) -> None:
    with compacted_cluster(local_retention_bytes="2000") as world:
        table: Table = {}
        world.buckets["west"].faults = FAULTS[fault]
        fill(world, table, 0, 80)
        world.until(has_all(world, "east", "south"), every_ms=500)
        world.advance(60_000)
        world.buckets["west"].faults = BucketFaults()
        world.until(lambda: is_clean(world), every_ms=500)
        assert table_of(read(world, at=world.leader_of("t"))) == table
        for bucket in BUCKETS:
            found = table_of(in_bucket(world, bucket))
            end = state(world).live_end(bucket)
            everything: Table = {}
            for at in range(end):
                everything[b"k%d" % (at % 10)] = (b"%d/" % at) * 20
            assert found == everything


@pytest.mark.parametrize("seed", range(2))
def test_leaders_that_lose_power_lose_no_value(seed: int) -> None:
    with compacted_cluster(local_retention_bytes="2000") as world:
        table: Table = {}
        for round_ in range(4):
            fill(world, table, 30 * round_, 30)
            world.advance(1_000 + 700 * seed)
            world.until(lambda: world.leader_of("t") > 0)
            world.lose_power_of(world.leader_of("t"), for_ms=500)
        world.lose_power()
        world.until(lambda: world.leader_of("t") > 0)
        world.until(lambda: is_clean(world), every_ms=500)
        for broker in (1, 2, 3):
            assert table_of(read(world, at=broker)) == table


def test_retention_holds_for_a_topic_with_compact_and_delete() -> None:
    with compacted_cluster(
        cleanup_policy="compact,delete",
        retention_ms="30000",
        local_retention_ms="-2",
        local_retention_bytes="2000",
    ) as world:
        table: Table = {}
        fill(world, table, 0, 60)
        world.advance(40_000)
        fill(world, table, 60, 20)
        world.until(lambda: leader(world).log_start_offset >= 50, every_ms=1_000)
