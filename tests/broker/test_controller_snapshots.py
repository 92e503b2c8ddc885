"""Brokers start from a snapshot of the controller's state, cut the log behind it, and send it to
brokers whose log ends before the others' begins.

Source: decision 0062."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import DATA_DIRECTORY, ClusterWorld
from tests.broker.test_lost_disk import lose_disk

from strandline.base.disk import Disk
from strandline.broker.snapshots import transfer
from strandline.broker.snapshots.snapshots import DIRECTORY
from strandline.controller.commands import (
    AlterConfigs,
    ConfigChange,
    DeleteTopics,
    ResourceChanges,
    TopicToDelete,
)
from strandline.controller.snapshots.image import capture
from strandline.model.ids import BrokerId

SNAPSHOT_BYTES = "metadata.log.max.record.bytes.between.snapshots"
INTERVAL_MS = "metadata.log.max.snapshot.interval.ms"
CLUSTER = 4
"""Kafka's number of the resource "broker", which is the cluster without a name."""


@pytest.fixture
def cluster() -> Iterator[ClusterWorld]:
    """Four brokers that take a snapshot after every 2,000 bytes."""
    world = ClusterWorld()
    world.until_started()
    configure(world, SNAPSHOT_BYTES, "2000")
    yield world
    world.close()


def configure(world: ClusterWorld, key: str, value: str) -> None:
    change = ResourceChanges(CLUSTER, "", (ConfigChange(key, 0, value),))
    world.submit(AlterConfigs((change,)))


def decide_much(world: ClusterWorld, *, count: int = 24) -> None:
    """Some thousands of bytes of decisions that leave almost nothing."""
    for number in range(count):
        configure(world, "alarm.webhook.url", f"http://alarms/{'x' * 300}{number}")


def until_cut(world: ClusterWorld, *brokers: int, behind: int = 0) -> None:
    """Until the controller's log of these brokers begins behind that offset."""
    world.until(
        lambda: all(world.controller(one).log.start_offset > behind for one in brokers),
        every_ms=100,
    )


def snapshots_of(world: ClusterWorld, broker: int) -> list[str]:
    return disk_of(world, broker).list_directory(f"{DATA_DIRECTORY}/{DIRECTORY}")


def disk_of(world: ClusterWorld, broker: int) -> Disk:
    return world.broker(broker).replication.disk


def rot_snapshots(world: ClusterWorld, broker: int, *, newest_only: bool = False) -> None:
    """Flip a bit in the middle of the snapshots on a broker's disk."""
    files = [one for one in world.hosts[broker].disk.tree.files() if one[0].endswith(".checkpoint")]
    assert len(files) == 2
    for _, image in sorted(files)[newest_only:]:
        image.flip_bit(4 * image.durable.size)


def states_are_equal(world: ClusterWorld, *brokers: int) -> bool:
    images = [capture(world.broker(one).controller.state) for one in brokers]
    return all(one == images[0] for one in images)


def test_the_log_is_cut_behind_the_older_of_two_snapshots(cluster: ClusterWorld) -> None:
    decide_much(cluster)
    until_cut(cluster, 1, 2, 3, 4)
    for broker in (1, 2, 3, 4):
        names = [one for one in snapshots_of(cluster, broker) if one.endswith(".checkpoint")]
        assert len(names) == 2
        older = int(names[0].split("-")[0])
        assert 0 < cluster.controller(broker).log.start_offset <= older
        assert 0 <= cluster.broker(broker).controller.snapshots.age_ms < 60_000


def test_all_brokers_start_from_their_snapshots_after_the_power_failed(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("kept", partitions=3, configs=(("retention.ms", "77000"),))
    decide_much(cluster)
    until_cut(cluster, 1, 2, 3, 4)
    cluster.lose_power()
    for broker in (1, 2, 3, 4):
        topic = cluster.broker(broker).services.cluster.topics["kept"]
        assert topic.configs == {"retention.ms": "77000"}
        assert cluster.controller(broker).log.start_offset > 0
    cluster.until(lambda: states_are_equal(cluster, 1, 2, 3, 4))
    cluster.create_topic("later")


def test_a_broker_that_was_away_gets_a_snapshot(cluster: ClusterWorld) -> None:
    """Its log ends before the others' begins."""
    cluster.create_topic("kept", replicas=1)
    cluster.create_topic("gone", replicas=3)
    end = cluster.controller(1).log_end_offset
    for broker in (3, 4):
        cluster.hosts[broker].kill()
        cluster.advance(1_000)
    cluster.submit(DeleteTopics((TopicToDelete("gone"),)))
    decide_much(cluster)
    until_cut(cluster, 1, 2, behind=end)
    for broker in (3, 4):
        cluster.hosts[broker].start()
    cluster.until_started(3, 4)
    cluster.until(lambda: states_are_equal(cluster, 1, 2, 3, 4))
    assert "gone" not in cluster.broker(3).services.cluster.topics
    assert cluster.controller(3).log.start_offset > 0
    assert not cluster.controller(3).raft.has_lost_state


@pytest.mark.parametrize("broker", [1, 4])
def test_a_broker_without_its_disk_gets_a_snapshot(cluster: ClusterWorld, broker: int) -> None:
    cluster.create_topic("kept", partitions=2)
    decide_much(cluster)
    until_cut(cluster, 1, 2, 3)
    lose_disk(cluster, broker)
    cluster.advance(3_000)
    cluster.hosts[broker].start()
    cluster.until_started(broker)
    cluster.until(lambda: states_are_equal(cluster, 1, 2, 3, 4))
    cluster.until(lambda: not cluster.controller(broker).raft.has_lost_state)
    assert cluster.controller(broker).log.start_offset > 0


def test_a_running_broker_that_was_cut_off_adopts_a_snapshot(cluster: ClusterWorld) -> None:
    """It goes on without a restart: topics that were deleted meanwhile go, new ones come."""
    cluster.create_topic("gone", replicas=3)
    others = (1, 2, 3)
    end = cluster.controller(4).log_end_offset
    ways = [way for one in others for way in ((one, 4), (4, one))]
    for source, target in ways:
        cluster.fabric.cut(BrokerId(source), BrokerId(target))
    cluster.submit(DeleteTopics((TopicToDelete("gone"),)))
    decide_much(cluster)
    cluster.create_topic("new", replicas=1)
    until_cut(cluster, *others, behind=end)
    start = cluster.broker(4)
    for source, target in ways:
        cluster.fabric.reset(BrokerId(source), BrokerId(target))
        cluster.fabric.heal(BrokerId(source), BrokerId(target))
    cluster.until(lambda: states_are_equal(cluster, 1, 2, 3, 4), every_ms=100)
    assert cluster.broker(4) is start
    cluster.until(lambda: cluster.controller(4).log.start_offset > 0)
    cluster.until(lambda: not cluster.directories(4), every_ms=100)


def test_a_voter_whose_snapshots_are_damaged_takes_no_part_until_it_has_one(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("kept")
    decide_much(cluster)
    until_cut(cluster, 1, 2, 3)
    for broker in (1, 2, 3):
        cluster.hosts[broker].kill()
    rot_snapshots(cluster, 2)
    cluster.hosts[4].kill()
    cluster.hosts[2].start()
    cluster.advance(20_000)
    assert cluster.controller(2).lacks_snapshot
    epoch = cluster.controller(2).epoch
    rot_snapshots(cluster, 3)
    cluster.hosts[3].start()
    cluster.advance(20_000)
    assert [cluster.controller(one).epoch for one in (2, 3)] == [epoch, epoch], "none stood"
    cluster.hosts[1].start()
    cluster.until_started(1, 2, 3)
    assert not cluster.controller(2).lacks_snapshot
    assert "kept" in cluster.broker(2).services.cluster.topics
    cluster.until(lambda: states_are_equal(cluster, 1, 2, 3))


def test_if_the_newest_snapshot_is_damaged_the_older_one_and_the_log_are_enough(
    cluster: ClusterWorld,
) -> None:
    cluster.create_topic("kept")
    decide_much(cluster)
    until_cut(cluster, 1, 2, 3)
    cluster.hosts[2].kill()
    rot_snapshots(cluster, 2, newest_only=True)
    cluster.hosts[2].start()
    cluster.until_started(2)
    assert not cluster.controller(2).raft.has_lost_state
    cluster.until(lambda: states_are_equal(cluster, 1, 2, 3))


def test_a_copy_goes_on_after_the_sender_has_died(
    cluster: ClusterWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "CHUNK_BYTES", 64)
    decide_much(cluster)
    until_cut(cluster, 1, 2, 3)
    lose_disk(cluster, 4)
    cluster.advance(3_000)
    cluster.hosts[4].start()
    cluster.until(
        lambda: any(one.endswith(".part") for one, _ in cluster.hosts[4].disk.tree.files())
    )
    leader = next(one for one in (1, 2, 3) if cluster.controller(one).is_leader)
    cluster.lose_power_of(leader, for_ms=500)
    cluster.until_started(4)
    cluster.until(lambda: states_are_equal(cluster, 1, 2, 3, 4))


def test_an_interval_makes_snapshots_of_what_is_new(cluster: ClusterWorld) -> None:
    configure(cluster, SNAPSHOT_BYTES, "1000000000")
    configure(cluster, INTERVAL_MS, "2000")
    cluster.advance(15_000)
    before = snapshots_of(cluster, 1)
    assert before
    cluster.advance(15_000)
    assert snapshots_of(cluster, 1) == before
    cluster.create_topic("new")
    cluster.until(lambda: snapshots_of(cluster, 1) != before, every_ms=100)
