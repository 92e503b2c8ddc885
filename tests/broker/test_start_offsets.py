"""A restored topic's partitions begin at given offsets, on every replica, whatever crashes.

Source: decision 0063."""

from collections.abc import Iterator

import pytest
from tests.broker.cluster_world import ClusterWorld
from tests.broker.test_broker_in_a_cluster import fetch, produce
from tests.broker.test_lost_disk import lose_disk
from tests.controller.controller_world import World

from strandline.controller.commands import (
    CreatePartitions,
    DeleteTopics,
    MorePartitions,
    NewTopic,
    TopicResult,
    TopicToDelete,
)
from strandline.controller.placing.start_offsets import HISTORY, STARTS, TOPIC_ID
from strandline.model.cluster import BucketRange, Labels
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error


@pytest.fixture
def world() -> Iterator[ClusterWorld]:
    """A cluster with topic t, of which partition 0 begins at 1000."""
    made = ClusterWorld()
    made.until_started()
    made.until(lambda: made.broker(1).controller.leader_id > 0)
    made.advance(1_000)
    made.create_topic("t", partitions=2, replicas=3, configs=((STARTS, "1000,0"),))
    yield made
    made.close()


def starts(world: ClusterWorld, index: int = 0) -> set[tuple[int, int]]:
    """(first offset, first index) of all replicas."""
    return {
        (one.log.start_offset, one.log.start_index)
        for one in world.replicas_of("t", index).values()
    }


def test_the_first_record_has_the_first_offset(world: ClusterWorld) -> None:
    assert starts(world) == {(1_000, 1_000)}
    assert starts(world, 1) == {(0, 0)}
    answer = produce(world, "t", b"x")
    assert (answer.error_code, answer.base_offset) == (Error.NONE, 1_000)
    assert world.replicas_of("t")[world.leader_of("t")].log_start_offset == 1_000


def test_it_stays_so_after_the_power_failed(world: ClusterWorld) -> None:
    world.lose_power()
    world.until(lambda: world.leader_of("t") != 0)
    assert starts(world) == {(1_000, 1_000)}
    assert produce(world, "t", b"x").base_offset == 1_000
    world.lose_power()
    world.until(lambda: world.leader_of("t") != 0)
    assert produce(world, "t", b"y").base_offset == 1_001


def test_a_replica_that_lost_its_disk_begins_there_again(world: ClusterWorld) -> None:
    assert produce(world, "t", b"x").error_code == 0
    broker = next(one for one in world.replicas_of("t") if one != world.leader_of("t"))
    lose_disk(world, broker)
    world.advance(3_000)
    world.hosts[broker].start()
    world.until_started(broker)
    world.until(lambda: world.replicas_of("t")[broker].high_watermark == 1_001)
    assert starts(world) == {(1_000, 1_000)}
    assert fetch(world, "t", at=broker, offset=1_000) == [b"x"]


def test_later_partitions_begin_at_zero(world: ClusterWorld) -> None:
    world.submit(CreatePartitions((MorePartitions(topic="t", count=3),)))
    world.until(lambda: world.leader_of("t", 2) != 0)
    assert starts(world, 2) == {(0, 0)}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("1", "1 offsets for 2"),
        ("1,2,3", "3 offsets for 2"),
        ("1,x", "one offset"),
        ("-1,2", "one"),
    ],
)
def test_offsets_that_do_not_fit_are_refused(value: str, message: str) -> None:
    (result,) = World().create(
        NewTopic(name="t", partitions=2, replication_factor=3, configs=((STARTS, value),))
    )
    assert result.error_code == Error.INVALID_CONFIG
    assert message in result.message


ID = "00000000-0000-0000-0000-00000000000b"


def restored(world: World, value: str, topic_id: str = ID, **configs: str) -> TopicResult:
    keys = {"remote.storage.enable": "true", **configs, HISTORY: value, TOPIC_ID: topic_id}
    topic = NewTopic(name="t", partitions=2, replication_factor=3, configs=tuple(keys.items()))
    (result,) = world.create(topic)
    return result


def tiered_world() -> World:
    world = World()
    world.buckets = {"east": Labels("east"), "west": Labels("west")}
    return world


def test_a_partition_begins_behind_what_a_bucket_has() -> None:
    world = tiered_world()
    result = restored(world, "east:5:120:3,-")
    assert result.error_code == Error.NONE
    topic = world.state.cluster.topics["t"]
    assert topic.configs == {"remote.storage.enable": "true"} and str(topic.id) == ID
    first, second = (one.group for one in topic.partitions)
    assert world.state.history(first) == (BucketRange("east", 5, 120),)
    assert (world.state.first_offset(first), world.state.first_grant(first)) == (120, 3)
    assert (world.state.first_offset(second), world.state.history(second)) == (0, ())
    assert topic.partitions[0].grant == 3
    assert world.replayed().cluster == world.state.cluster
    again = restored(world, "-,-")
    assert again.error_code == Error.TOPIC_ALREADY_EXISTS


def test_a_partition_whose_records_are_all_deleted_goes_on_at_its_end() -> None:
    world = tiered_world()
    assert restored(world, ":120:120:3,-").error_code == Error.NONE
    group = world.state.cluster.topics["t"].partitions[0].group
    assert (world.state.first_offset(group), world.state.first_grant(group)) == (120, 3)
    assert world.state.history(group) == ()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("east:5:120:3", "1 offsets for 2"),
        ("east:5:5:3,-", "out of bounds"),
        (":5:9:3,-", "out of bounds"),
        (":0:0:3,-", "out of bounds"),
        ("east:5:9:0,-", "out of bounds"),
        ("east:5:9:2048,-", "out of bounds"),
        ("east:5:9,-", "is not BUCKET:START:END:GRANT"),
        ("north:5:9:1,-", "may not have a bucket north"),
    ],
)
def test_a_history_that_does_not_fit_is_refused(value: str, message: str) -> None:
    result = restored(tiered_world(), value)
    assert result.error_code == Error.INVALID_CONFIG
    assert message in result.message


def test_a_history_needs_tiered_storage_and_a_bucket_that_the_policy_allows() -> None:
    off = restored(tiered_world(), "east:5:9:1,-", **{"remote.storage.enable": "false"})
    assert "needs remote.storage.enable=true" in off.message
    residency = '{"residency":{"allow":[{"label":"region","op":"in","values":["west"]}]}}'
    elsewhere = restored(tiered_world(), "east:5:9:1,-", **{"placement.policy": residency})
    assert "may not have a bucket east in this cluster" in elsewhere.message
    both = restored(tiered_world(), "-,-", **{STARTS: "1,2"})
    assert "not both" in both.message
    assert "is no UUID" in restored(tiered_world(), "-,-", "x").message


def test_the_id_of_a_deleted_topic_is_not_used_again() -> None:
    world = tiered_world()
    assert restored(world, "-,-").error_code == Error.NONE
    world.run(DeleteTopics((TopicToDelete(name="t"),)))
    assert restored(world, "-,-").error_code == Error.INCONSISTENT_TOPIC_ID


def test_they_are_no_configuration() -> None:
    world = World()
    (result,) = world.create(
        NewTopic(
            name="t",
            partitions=2,
            replication_factor=3,
            configs=((STARTS, "5,6"), ("retention.ms", "7")),
        )
    )
    assert result.error_code == Error.NONE
    topic = world.state.cluster.topics["t"]
    assert topic.configs == {"retention.ms": "7"}
    assert [world.state.first_offset(one.group) for one in topic.partitions] == [5, 6]
    assert BrokerId(1) in world.alive
