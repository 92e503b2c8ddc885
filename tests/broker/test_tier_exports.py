"""Leaders export what is committed of their partitions' tiers, and nothing else.

Source: decisions 0057 and 0061."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld, joined
from tests.broker.tiering_world import BUCKET, retire, upload, write_segments

from strandline.broker.tier_exports import exporting
from strandline.config.tiered_section import TieredSection
from strandline.controller.commands import CreatePartitions, MorePartitions
from strandline.model.ids import BrokerId
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.heads import hints_of, read_heads
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.exports.reading import find_topic, list_numbers, read_newest
from strandline.tiered.objects.claim import claim_bucket

INTERVAL_MS = 1_000
CHECK_MS = 4_000
SECTION = TieredSection(
    buckets=(f"{BUCKET}=file:///buckets/eu",),
    check_interval_ms=100,
    export_interval_ms=INTERVAL_MS,
    delete_grace_ms=10_000,
)
CONFIGS = (
    ("retention.ms", "-1"),
    ("remote.storage.enable", "true"),
    ("remote.log.copy.disable", "true"),  # The test uploads.
)


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterWorld]:
    """Three brokers with a bucket, topic t with three closed segments of ten records."""
    monkeypatch.setattr(exporting, "CHECK_MS", CHECK_MS)
    with joined(ClusterWorld(VOTERS, tiered=SECTION)) as cluster:
        cluster.create_topic("t", configs=CONFIGS)
        write_segments(cluster, 3)
        yield cluster


def place(world: ClusterWorld) -> PartitionPlace:
    cluster = world.broker(1).controller.cluster
    return PartitionPlace(cluster.cluster_id, cluster.topics["t"].id, 0)


def newest(world: ClusterWorld) -> Export | None:
    store = world.broker(1).services.buckets.store(BUCKET)
    found = world.do(1, read_newest(store, place(world)))
    return None if found is None else found.export


def ends_at(world: ClusterWorld, end: int) -> bool:
    found = newest(world)
    return found is not None and found.end_offset == end


def until_exported(world: ClusterWorld, end: int) -> Export:
    world.until(lambda: ends_at(world, end), every_ms=200)
    found = newest(world)
    assert found is not None
    return found


def names_of(world: ClusterWorld) -> list[str]:
    store = world.broker(1).services.buckets.store(BUCKET)

    async def listed() -> list[str]:
        return [one.name async for one in store.list("")]

    return world.do(1, listed())


def count(world: ClusterWorld) -> int:
    store = world.broker(1).services.buckets.store(BUCKET)
    return len(world.do(1, list_numbers(store, place(world))))


def test_a_topic_without_uploads_is_exported_so_that_others_find_it(world: ClusterWorld) -> None:
    found = until_exported(world, 0)
    assert (found.topic, found.live, found.partition_count) == ("t", (), 1)
    assert found.topic_config == dict(CONFIGS)
    store = world.broker(1).services.buckets.store(BUCKET)
    topic = world.do(1, find_topic(store, place(world).cluster_id, "t"))
    assert topic == place(world).topic_id


def test_what_is_live_is_exported_and_an_idle_partition_is_not_again(world: ClusterWorld) -> None:
    upload(world, 0, 10)
    upload(world, 10, 20)
    found = until_exported(world, 20)
    assert [(one.base_offset, one.end_offset) for one in found.live] == [(0, 10), (10, 20)]
    assert found.high_watermark == 30
    before = count(world)
    world.advance(20 * INTERVAL_MS)
    assert count(world) == before
    retire(world, 10)
    found = until_exported(world, 20)
    world.until(lambda: (newest(world) or found).start_offset == 10, every_ms=200)


def test_heads_name_the_newest_export_and_confirm_an_idle_partition(world: ClusterWorld) -> None:
    upload(world, 0, 10)
    found = until_exported(world, 10)
    store = world.broker(1).services.buckets.store(BUCKET)
    seen = set()
    for _ in range(4):
        world.advance(4 * INTERVAL_MS)
        hints = hints_of(world.do(1, read_heads(store, place(world).cluster_id)))
        hint = hints[place(world).topic_id, 0]
        assert hint.number == found.number
        seen.add(hint.as_of_ms)
    assert len(seen) == 4


def test_a_new_leader_goes_on_where_the_last_one_stopped(world: ClusterWorld) -> None:
    upload(world, 0, 10)
    before = until_exported(world, 10)
    numbers = count(world)
    old = world.leader_of("t")
    world.hosts[old].kill()
    world.until(lambda: world.leader_of("t") not in (0, old))
    world.advance(10 * INTERVAL_MS)
    other = world.leader_of("t")
    store = world.broker(other).services.buckets.store(BUCKET)
    found = world.do(other, read_newest(store, before.place))
    assert found is not None and found.export == before, "it had nothing new to say"
    world.hosts[old].start()
    world.until_started(old)
    world.until(lambda: world.leader_of("t") != 0)
    upload(world, 10, 20)
    after = until_exported(world, 20)
    assert after.number > before.number
    assert count(world) == numbers + 1


def test_an_object_may_be_deleted_once_an_export_does_not_count_it(world: ClusterWorld) -> None:
    upload(world, 0, 10)
    upload(world, 10, 20)
    until_exported(world, 20)
    leader = world.leader_of("t")
    exporting = world.broker(leader).services.exporting
    group = world.replicas_of("t")[leader].group
    assert not exporting.has_no_live(group, BUCKET, "0-10")
    retire(world, 10)
    assert not exporting.has_no_live(group, BUCKET, "0-10"), "it is not exported yet"
    world.until(lambda: exporting.has_no_live(group, BUCKET, "0-10"))
    assert not exporting.has_no_live(group, BUCKET, "10-20")
    other = next(one for one in VOTERS if one != leader)
    assert not world.broker(other).services.exporting.has_no_live(group, BUCKET, "0-10")


def test_nothing_is_exported_into_a_bucket_of_another_cluster() -> None:
    world = ClusterWorld(VOTERS, tiered=SECTION)
    bucket = world.buckets[BUCKET]
    with joined(world):
        store = world.broker(1).services.buckets.store(BUCKET)
        world.do(1, claim_bucket(store, bucket=BUCKET, cluster_id="another"))
        world.create_topic("t", configs=CONFIGS)
        world.advance(20 * INTERVAL_MS)
        assert bucket.names() == ["claim.json"]


def test_an_export_that_the_bucket_has_lost_is_put_there_again(
    world: ClusterWorld,
) -> None:
    upload(world, 0, 10)
    before = until_exported(world, 10)
    store = world.broker(1).services.buckets.store(BUCKET)
    world.do(1, store.delete([one for one in names_of(world) if "/manifest/" in one]))
    assert newest(world) is None
    world.advance(CHECK_MS + 2_000)
    found = newest(world)
    assert found is not None
    assert (found.number, found.live) == (before.number, before.live)
    world.advance(CHECK_MS)
    assert count(world) == 1


def test_nothing_is_put_again_into_a_bucket_without_a_claim(
    world: ClusterWorld,
) -> None:
    upload(world, 0, 10)
    until_exported(world, 10)
    store = world.broker(1).services.buckets.store(BUCKET)
    world.do(1, store.delete([one for one in names_of(world) if not one.endswith(".segment")]))
    world.advance(2 * CHECK_MS)
    assert [one for one in names_of(world) if "/manifest/" in one] == []


def test_a_changed_topic_is_exported_though_its_log_is_idle(world: ClusterWorld) -> None:
    upload(world, 0, 10)
    until_exported(world, 10)
    world.submit(CreatePartitions((MorePartitions(topic="t", count=3),)))

    def has_three() -> bool:
        found = newest(world)
        return found is not None and found.partition_count == 3

    world.until(has_three, every_ms=200)


def test_a_bucket_that_fails_is_exported_to_later(world: ClusterWorld) -> None:
    until_exported(world, 0)
    bucket = world.buckets[BUCKET]
    bucket.faults.is_gone = True
    upload(world, 0, 10)
    world.advance(5 * INTERVAL_MS)
    bucket.faults.is_gone = False
    until_exported(world, 10)
    assert BrokerId(world.leader_of("t")) in VOTERS


def test_a_paused_leader_writes_no_newer_truth_than_its_successor(world: ClusterWorld) -> None:
    """ExportNeverGoesBack, in a cluster: it goes on where it stopped, and finds out late."""
    upload(world, 0, 10)
    until_exported(world, 10)
    old = world.leader_of("t")
    world.hosts[old].pause()
    world.until(lambda: world.leader_of("t") not in (0, old))
    upload(world, 10, 20)
    other = world.leader_of("t")
    store = world.broker(other).services.buckets.store(BUCKET)
    where = PartitionPlace(
        world.broker(other).controller.cluster.cluster_id,
        world.broker(other).controller.cluster.topics["t"].id,
        0,
    )

    def ends() -> list[int]:
        found = world.do(other, read_newest(store, where))
        return [] if found is None else [found.export.end_offset]

    world.until(lambda: ends() == [20], every_ms=200)
    world.hosts[old].resume()
    for _ in range(40):
        world.advance(INTERVAL_MS // 4)
        assert ends() == [20]


def test_a_bucket_that_hangs_holds_up_no_other_and_is_asked_now_and_then() -> None:
    tiered = TieredSection(
        buckets=(f"{BUCKET}=file:///buckets/eu", "us=file:///buckets/us"),
        check_interval_ms=100,
        export_interval_ms=INTERVAL_MS,
    )
    with joined(ClusterWorld(VOTERS, tiered=tiered)) as world:
        hanging = world.buckets["us"]
        hanging.faults.lost_before_share = 1.0
        world.create_topic("t", partitions=12, configs=CONFIGS)
        world.advance(5 * INTERVAL_MS)
        names = [one for one in world.buckets[BUCKET].names() if "/manifest/" in one]
        assert len(names) == 12
        before = hanging.counters.request_count
        world.advance(20 * INTERVAL_MS)
        assert hanging.counters.request_count - before < 100, "of 12 partitions, over 20 intervals"
        hanging.faults.lost_before_share = 0.0
        world.advance(10 * INTERVAL_MS)
        assert len([one for one in hanging.names() if "/manifest/" in one]) == 12
