"""The controller's state and committed offsets get into the buckets, and rising names say which is
the newest.

Source: decision 0063."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_groups_in_a_cluster import commit, make_cluster
from tests.tiered.exports.stores import MemoryStore

from strandline.broker.snapshots.exporting import HOUR_MS, KEPT_MS, ClusterExports, remove_old
from strandline.config.cluster import WEBHOOK_URL
from strandline.controller.names import OFFSETS_TOPIC
from strandline.controller.snapshots import format as snapshot_format
from strandline.controller.snapshots.image import capture
from strandline.coordinator.partitioning import partition_for
from strandline.model.access import ScramSecret
from strandline.model.ids import Epoch, Offset
from strandline.protocol.errors import Error
from strandline.tiered.cluster import names, offsets
from strandline.tiered.cluster.names import ClusterNumber, controller_prefix, offsets_prefix
from strandline.tiered.framing import DamagedObjectError
from strandline.tiered.objects.store import ObjectStore, StoreError

PARTITIONS = 4


class FakeBuckets:
    """Buckets in memory, all claimed."""

    def __init__(self, **stores: MemoryStore) -> None:
        self.stores = stores
        self.claimed = frozenset(stores)

    def generation(self, bucket: str) -> int:
        return 0

    async def confirm(self, bucket: str, generation: int, *, age_ms_max: int = 0) -> None:
        """Every bucket is the right one."""

    def store(self, bucket: str) -> ObjectStore:
        return self.stores[bucket]


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    made = make_cluster()
    yield made
    made.close()


def exports_of(world: ClusterWorld, broker: int, buckets: FakeBuckets) -> ClusterExports:
    made = world.broker(broker)
    return ClusterExports(
        clock=made.services.clock,
        controller=made.controller,
        coordinator=made.coordinator,
        buckets=buckets,
        claims=buckets,
        interval_ms=60_000,
    )


def leader(world: ClusterWorld) -> int:
    return next(one for one in (1, 2, 3) if world.broker(one).controller.is_active)


def coordinator(world: ClusterWorld, group: str) -> int:
    partition = partition_for(group, partition_count=PARTITIONS)
    return world.leader_of(OFFSETS_TOPIC, partition)


def export_all(world: ClusterWorld, buckets: FakeBuckets) -> None:
    for broker in (1, 2, 3, 4):
        world.do(broker, exports_of(world, broker, buckets).export())


def of(store: MemoryStore, prefix: str) -> list[str]:
    return [one for one in store.objects if one.startswith(prefix)]


def test_the_active_controller_writes_its_state_into_every_bucket(world: ClusterWorld) -> None:
    buckets = FakeBuckets(east=MemoryStore(), west=MemoryStore())
    export_all(world, buckets)
    cluster_id = world.broker(1).controller.cluster.cluster_id
    for store in buckets.stores.values():
        (name,) = of(store, controller_prefix(cluster_id))
        head, state = snapshot_format.read(store.objects[name][0])
        known = world.broker(leader(world)).controller.state
        assert capture(state) == capture(known).without_secrets()
        number = names.parse_number(name.rpartition("/")[2])
        assert number is not None
        assert (number.offset, head.cluster_id) == (head.offset, cluster_id)


def test_a_bucket_gets_the_names_of_users_and_nothing_of_their_passwords(
    world: ClusterWorld,
) -> None:
    secret = ScramSecret("alice", "SCRAM-SHA-256", 4_096, b"s" * 24, b"k" * 32, b"v" * 32)
    for broker in (1, 2, 3, 4):
        access = world.broker(broker).controller.cluster.access
        access.secrets["alice", secret.mechanism] = secret
    buckets = FakeBuckets(east=MemoryStore())
    export_all(world, buckets)
    cluster_id = world.broker(1).controller.cluster.cluster_id
    (name,) = of(buckets.stores["east"], controller_prefix(cluster_id))
    _, state = snapshot_format.read(buckets.stores["east"].objects[name][0])
    (told,) = state.cluster.access.secrets.values()
    assert (told.user, told.mechanism) == ("alice", "SCRAM-SHA-256")
    assert (told.salt, told.stored_key, told.server_key) == (b"", b"", b"")


def test_a_bucket_gets_no_webhook(world: ClusterWorld) -> None:
    for broker in (1, 2, 3, 4):
        configs = world.broker(broker).controller.cluster.cluster_configs
        configs |= {WEBHOOK_URL: "https://alarms.example/s3cret", "num.partitions": "7"}
    buckets = FakeBuckets(east=MemoryStore())
    export_all(world, buckets)
    cluster_id = world.broker(1).controller.cluster.cluster_id
    (name,) = of(buckets.stores["east"], controller_prefix(cluster_id))
    content = buckets.stores["east"].objects[name][0]
    _, state = snapshot_format.read(content)
    configs = state.cluster.cluster_configs
    assert configs["num.partitions"] == "7" and WEBHOOK_URL not in configs
    assert b"s3cret" not in bytes(content)


def test_what_a_bucket_has_is_not_written_again(world: ClusterWorld) -> None:
    buckets = FakeBuckets(east=MemoryStore())
    exports = exports_of(world, leader(world), buckets)
    world.do(leader(world), exports.export())
    before = dict(buckets.stores["east"].objects)
    world.advance(5_000)
    world.do(leader(world), exports.export())
    assert buckets.stores["east"].objects == before
    world.create_topic("more")
    world.do(leader(world), exports.export())
    prefix = controller_prefix(world.broker(1).controller.cluster.cluster_id)
    assert len(of(buckets.stores["east"], prefix)) == 2


def test_a_bucket_that_fails_gets_it_at_the_next_look_and_the_others_do_not_wait(
    world: ClusterWorld,
) -> None:
    buckets = FakeBuckets(east=MemoryStore(), west=MemoryStore())
    at = leader(world)
    exports = exports_of(world, at, buckets)

    def fail(operation: str, name: str) -> None:
        raise StoreError("gone for an hour")

    buckets.stores["east"].fail = fail
    world.do(at, exports.export())
    prefix = controller_prefix(world.broker(1).controller.cluster.cluster_id)
    assert not of(buckets.stores["east"], prefix)
    assert len(of(buckets.stores["west"], prefix)) == 1
    buckets.stores["east"].fail = lambda operation, name: None
    world.do(at, exports.export())
    assert len(of(buckets.stores["east"], prefix)) == 1
    assert len(of(buckets.stores["west"], prefix)) == 1


def test_a_bucket_of_another_cluster_gets_nothing(world: ClusterWorld) -> None:
    buckets = FakeBuckets(east=MemoryStore())
    buckets.claimed = frozenset()
    export_all(world, buckets)
    assert not buckets.stores["east"].objects


def test_committed_offsets_are_exported_by_the_leaders_of_their_partitions(
    world: ClusterWorld,
) -> None:
    world.do(1, world.broker(1).coordinator.ensure_topic())
    world.until(lambda: all(world.leader_of(OFFSETS_TOPIC, one) for one in range(PARTITIONS)))
    world.advance(1_000)
    for group, offset in (("a", 1), ("b", 7), ("c", 3)):
        at = coordinator(world, group)
        assert commit(world, at, group, offset, metadata=group) == Error.NONE
    buckets = FakeBuckets(east=MemoryStore())
    export_all(world, buckets)
    store = buckets.stores["east"]
    cluster_id = world.broker(1).controller.cluster.cluster_id
    listed = asyncio.run(names.list_offsets(store, cluster_id))
    found = {}
    for partition, numbers in listed.items():
        name = f"{offsets_prefix(cluster_id, partition)}{numbers[0]}"
        body = offsets.decode(name, store.objects[name][0])
        assert (body.cluster_id, body.partition) == (cluster_id, partition)
        for group in body.groups:
            assert partition == partition_for(group.group, partition_count=PARTITIONS)
            found[group.group] = [(one.topic, one.partition, one.offset) for one in group.offsets]
    assert found == {"a": [("flights", 0, 1)], "b": [("flights", 0, 7)], "c": [("flights", 0, 3)]}


def test_a_time_chooses_the_newest_that_is_not_later() -> None:
    numbers = [ClusterNumber(Epoch(2), Offset(9), 300), ClusterNumber(Epoch(1), Offset(5), 100)]
    assert names.before(numbers, None) == numbers
    assert names.before(numbers, 299) == numbers[1:]
    assert names.before(numbers, 99) == []
    assert [names.parse_number(str(one)) for one in numbers] == numbers
    assert str(numbers[1]) < str(numbers[0])


@pytest.mark.parametrize("text", ["", "1-2-3", "manifest", "0000000001-x-000000000000100"])
def test_what_is_no_number_is_none(text: str) -> None:
    assert names.parse_number(text) is None


def test_old_ones_are_thinned_out_and_the_newest_stays() -> None:
    store, now_ms = MemoryStore(), 100 * KEPT_MS
    ages_ms = (40 * 24 * HOUR_MS, 30 * HOUR_MS, 30 * HOUR_MS - 100, 20 * HOUR_MS, 10, 0)
    written = [now_ms - age_ms for age_ms in ages_ms]
    for offset, written_ms in enumerate(written):
        number = ClusterNumber(Epoch(1), Offset(offset), written_ms)
        store.objects[f"c/controller/{number}"] = b"x", 0
    asyncio.run(remove_old(store, "c/controller/", now_ms=now_ms))
    left = asyncio.run(names.list_numbers(store, "c/controller/"))
    assert [one.offset for one in left] == [5, 4, 3, 2]
    asyncio.run(remove_old(store, "c/controller/", now_ms=now_ms + 3 * KEPT_MS))
    assert [one.offset for one in asyncio.run(names.list_numbers(store, "c/controller/"))] == [5]


def test_damaged_offsets_are_refused() -> None:
    data = offsets.encode(offsets.OffsetsBody("c", 1, ()))
    assert offsets.decode("n", data) == offsets.OffsetsBody("c", 1, ())
    for position in range(len(data)):
        damaged = bytearray(data)
        damaged[position] ^= 0x80
        with pytest.raises(DamagedObjectError):
            offsets.decode("n", bytes(damaged))
    with pytest.raises(DamagedObjectError, match="less than"):
        offsets.decode("n", data[:5])
