"""Uploads of whole clusters in virtual time, over stores that fail as real ones do.

Source: decisions 0057 to 0059; reference 2.6 for the faults."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import pytest
from tests.broker.broker_world import batch_of
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined
from tests.broker.test_broker_in_a_cluster import delete as delete_topic
from tests.broker.test_broker_in_a_cluster import produce
from tests.broker.test_damaged_logs import rot
from tests.broker.test_delete_records import delete

from strandline.broker.tiering import deleted_topics
from strandline.broker.tiering import tiering as tiering_module
from strandline.config.tiered_section import TieredSection
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    ConfigOperation,
    ResourceChanges,
    ResourceResults,
    ResourceType,
)
from strandline.model.ids import Offset
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.batch import iterate_headers
from strandline.replication.replica.replica import Replica
from strandline.simulation.buckets.bucket import BucketFaults
from strandline.tiered.objects.claim import CLAIM
from strandline.tiered.segments.trailer import Trailer
from strandline.tiered.state.tier import TierState

REGIONS = {1: "east", 2: "west", 3: "south"}
BUCKETS = tuple(REGIONS.values())


@contextmanager
def tiered_cluster(
    *, regions: Mapping[int, str] = REGIONS, **section: int
) -> Iterator[ClusterWorld]:
    """Three brokers in three regions, each with a bucket, and topic t with small segments."""
    tiered = TieredSection(
        buckets=tuple(f"{name}=file:///{name}" for name in BUCKETS),
        **{
            "check_interval_ms": 200,
            "upload_stall_timeout_ms": 10_000,
            "delete_grace_ms": 5_000,
            **section,
        },
    )
    with joined(ClusterWorld(VOTERS, regions=regions, tiered=tiered)) as world:
        world.create_topic(
            "t",
            configs=(
                ("remote.storage.enable", "true"),
                ("internal.segment.bytes", "2000"),
                ("retention.ms", "-1"),
            ),
        )
        yield world


def write(world: ClusterWorld, count: int = 60) -> None:
    for at in range(count):
        world.until(lambda: world.leader_of("t") > 0)
        assert produce(world, "t", b"%d" % at * 40).error_code == 0


def set_configs(world: ClusterWorld, topic: str, values: dict[str, str]) -> None:
    changes = tuple(ConfigChange(key, ConfigOperation.SET, value) for key, value in values.items())
    answer = world.submit(AlterConfigs((ResourceChanges(ResourceType.TOPIC, topic, changes),)))
    assert isinstance(answer, ResourceResults)
    assert answer.resources[0].error_code == 0, answer


def leader(world: ClusterWorld) -> Replica:
    return world.replicas_of("t")[world.leader_of("t")]


def state(world: ClusterWorld) -> TierState:
    return leader(world).tier.state


def has_all(world: ClusterWorld, *buckets: str) -> Callable[[], bool]:
    """Whether all closed segments of the leader are live in these buckets, or all."""

    def check() -> bool:
        leaders = [one for one in world.replicas_of("t").values() if one.is_serving]
        return any(
            all(
                one.tier.state.live_end(bucket) >= one.log.closed.end_offset > 0
                for bucket in buckets or BUCKETS
            )
            for one in leaders
        )

    return check


def check_objects(world: ClusterWorld, *buckets: str) -> None:
    """What is live tiles the log from its start, and is its bytes."""
    replica = leader(world)
    for bucket in buckets or BUCKETS:
        data = b""
        offset = 0
        for entry in replica.tier.state.live(bucket):
            content = world.buckets[bucket].get(entry.name)
            assert content is not None
            assert len(content) == entry.size_bytes
            assert entry.base_offset == offset
            Trailer.parse(content[entry.data_bytes :], crc=entry.trailer_crc)
            data += content[: entry.data_bytes]
            offset = entry.end_offset
        parts = replica.log.closed.file_ranges(Offset(0), Offset(offset))
        assert data == b"".join(part.read() for part in parts)
        assert [one.base_offset for one in iterate_headers(data)] == list(range(offset))


def test_each_region_uploads_to_its_own_bucket() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        check_objects(world)
        for broker, region in REGIONS.items():
            tiering = world.broker(broker).services.tiering
            assert tiering is not None
            assert set(tiering.figures.uploaded_bytes) == {(region, region)}
        for bucket in world.buckets.values():
            assert bucket.get(CLAIM) is not None


def test_a_region_that_is_down_has_its_bucket_served_by_another() -> None:
    with tiered_cluster() as world:
        lost = next(one for one in VOTERS if one != world.leader_of("t"))
        world.hosts[lost].kill()
        world.advance(3_000)
        write(world)
        world.until(has_all(world), every_ms=200)
        check_objects(world)
        world.hosts[lost].start()
        world.until_started(lost)


@pytest.mark.parametrize("seed", range(3))
def test_uploads_go_on_through_failures_of_leader_and_power(seed: int) -> None:
    with tiered_cluster() as world:
        for _ in range(4):
            write(world, 20)
            world.advance(50 + 37 * seed)
            world.until(lambda: world.leader_of("t") > 0)
            world.lose_power_of(world.leader_of("t"), for_ms=500)
        world.lose_power()
        write(world, 20)
        world.until(has_all(world), every_ms=200)
        check_objects(world)
        world.advance(1_000)
        assert len({one.tier.state.lineage for one in world.replicas_of("t").values()}) == 1


FAULTS = {
    "slow": BucketFaults(slow_factor=50),
    "throttled": BucketFaults(throttled_share=0.5),
    "applied and refused": BucketFaults(applied_error_share=0.5),
    "not answered": BucketFaults(lost_before_share=0.2, lost_after_share=0.2),
    "late": BucketFaults(late_share=0.3),
    "claimed by nobody": BucketFaults(taken_share=0.7),
    "wrong bytes": BucketFaults(wrong_bytes_share=0.4),
    "half an answer": BucketFaults(half_body_share=0.4),
    "missing": BucketFaults(missing_share=0.3),
    "lists late": BucketFaults(list_lag_us=20_000_000),
    "wrong clock": BucketFaults(clock_skew_ms=20 * 60_000),
}

PATIENCE_MS = 300_000
"""A request that is throttled half of the time is tried again later each time."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_store_that_fails_delays_uploads_and_spoils_none(fault: str) -> None:
    with tiered_cluster() as world:
        world.buckets["west"].faults = FAULTS[fault]
        write(world, 30)
        world.until(has_all(world, "east", "south"), every_ms=200)
        world.until(has_all(world), every_ms=500, limit_ms=PATIENCE_MS)
        world.buckets["west"].faults = BucketFaults()
        write(world, 10)
        world.until(has_all(world), every_ms=500)
        check_objects(world)


def test_a_bucket_that_is_gone_for_long_costs_few_markers_and_catches_up() -> None:
    with tiered_cluster() as world:
        write(world, 30)
        world.until(has_all(world), every_ms=200)
        world.buckets["west"].faults.is_gone = True
        index = state(world).index
        write(world, 30)
        world.until(has_all(world, "east", "south"), every_ms=200)
        world.advance(60_000)
        world.until(lambda: world.leader_of("t") > 0)
        assert 2 <= state(world).buckets["west"].counters.abandoned_count <= 6
        assert state(world).index > index
        assert state(world).live_end("west") < state(world).live_end("east")
        world.buckets["west"].faults.is_gone = False
        world.until(has_all(world), every_ms=500)
        check_objects(world)


def test_a_bucket_outside_of_a_topics_residency_never_gets_a_byte_of_it() -> None:
    regions = {1: "east", 2: "east", 3: "east"}
    with tiered_cluster(regions=regions) as world:
        policy = '{"residency":{"deny":[{"label":"region","op":"in","values":["west","south"]}]}}'
        configs = (
            ("remote.storage.enable", "true"),
            ("internal.segment.bytes", "2000"),
            ("placement.policy", policy),
        )
        world.create_topic("here", configs=configs)
        for at in range(60):
            assert produce(world, "here", b"%d" % at * 40).error_code == 0
        replica = world.replicas_of("here")[world.leader_of("here")]
        world.until(
            lambda: replica.tier.state.live_end("east") == replica.log.closed.end_offset > 0,
            every_ms=200,
        )
        world.advance(15_000)
        topic_id = str(world.broker(1).services.cluster.topics["here"].id)
        for bucket in ("west", "south"):
            assert not any(topic_id in name for name in world.buckets[bucket].versions)
        assert any(topic_id in name for name in world.buckets["east"].versions)


def test_few_turns_go_round_all_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering_module, "UNDER_WAY_MAX", 1)
    with tiered_cluster() as world:
        configs = (("remote.storage.enable", "true"), ("internal.segment.bytes", "500"))
        world.create_topic("many", partitions=6, configs=configs)
        for index in range(6):
            for _ in range(12):
                world.until(lambda index=index: world.leader_of("many", index) > 0)
                batch = batch_of(b"v" * 100, timestamp=world.broker(1).services.clock.wall_ms())
                data = PartitionProduceData(index=index, records=batch)
                request = ProduceRequest(
                    acks=-1,
                    timeout_ms=30_000,
                    topic_data=[TopicProduceData(name="many", partition_data=[data])],
                )
                world.ask(world.leader_of("many", index), request, ProduceResponse, 9)
        for index in range(6):
            replica = world.replicas_of("many", index)[world.leader_of("many", index)]
            world.until(
                lambda replica=replica: all(
                    replica.tier.state.live_end(one) == replica.log.closed.end_offset > 0
                    for one in BUCKETS
                ),
                every_ms=200,
            )


def test_another_clusters_bucket_is_not_used() -> None:
    with tiered_cluster() as world:
        world.buckets["west"].put(CLAIM, b'{"format":1,"cluster_id":"other"}')
        write(world)
        world.until(has_all(world, "east", "south"), every_ms=200)
        world.advance(10_000)
        names = {one.name for one in world.buckets["west"].listing("")}
        assert names == {CLAIM}
        for broker in VOTERS:
            tiering = world.broker(broker).services.tiering
            assert tiering is not None
            assert "belongs to cluster other" in tiering.claims.wrong["west"]


def test_a_deleted_topic_leaves_every_bucket_after_the_grace_and_others_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(deleted_topics, "LOOK_MS", 1_000)
    with tiered_cluster() as world:
        write(world)
        world.create_topic("kept", configs=(("remote.storage.enable", "true"),))
        world.until(has_all(world), every_ms=200)
        world.advance(12_000)  # Every partition is exported.
        gone = str(world.broker(1).services.cluster.topics["t"].id)
        kept = str(world.broker(1).services.cluster.topics["kept"].id)
        for bucket in world.buckets.values():
            assert any(gone in one for one in bucket.names())
        delete_topic(world, "t")
        world.advance(3_000)
        assert any(gone in one for one in world.buckets["east"].names()), "the grace is not over"
        world.buckets["west"].faults.is_gone = True
        world.until(
            lambda: not any(gone in one for one in world.buckets["east"].names()), every_ms=500
        )
        assert any(gone in one for one in world.buckets["west"].names())
        world.buckets["west"].faults.is_gone = False
        world.until(
            lambda: (
                not any(gone in one for bucket in world.buckets.values() for one in bucket.names())
            ),
            every_ms=500,
        )
        for bucket in world.buckets.values():
            assert any(kept in one for one in bucket.names())


def test_deleted_records_and_total_retention_leave_the_buckets() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        names = {one.name for one in state(world).live("west")}
        before = state(world).live("west")[1].end_offset
        assert delete(world, before).low_watermark == before
        world.until(lambda: state(world).start("west") >= before, every_ms=200)
        world.until(
            lambda: all(not state(world).buckets[one].removals for one in BUCKETS), every_ms=500
        )
        left = {one.name for one in state(world).live("west")}
        stored = {one for one in world.buckets["west"].names() if one.endswith(".segment")}
        assert stored == left < names


def test_a_topic_without_tiered_storage_any_more_leaves_the_buckets() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        change = {"remote.storage.enable": "false", "remote.log.delete.on.disable": "true"}
        set_configs(world, "t", change)
        world.until(
            lambda: (
                not any(
                    name.endswith(".segment")
                    for bucket in world.buckets.values()
                    for name in bucket.names()
                )
            ),
            every_ms=500,
        )
        assert all(not one.live and not one.removals for one in state(world).buckets.values())


def test_a_log_that_rots_is_repaired_before_it_is_uploaded() -> None:
    with tiered_cluster() as world:
        set_configs(world, "t", {"remote.log.copy.disable": "true"})
        write(world)
        here = world.leader_of("t")
        region = REGIONS[here]
        rot(world, here, leader(world), at=80)
        set_configs(world, "t", {"remote.log.copy.disable": "false"})
        world.until(has_all(world, *(one for one in BUCKETS if one != region)), every_ms=200)
        world.until(has_all(world), every_ms=500)
        check_objects(world)
        assert state(world).buckets[region].counters.abandoned_count > 0
