"""DescribeProducers: who wrote what last. Source: KIP-664."""

from tests.broker.broker_world import NOW_MS, OTHER, BrokerWorld, ObedientReplica

from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    TopicRequest,
)
from strandline.records.batch import read_header
from strandline.records.record import Record, build_batch


def write(replica: ObedientReplica, producer_id: int, epoch: int, sequence: int) -> None:
    """Append two records of a producer."""
    records = [Record(offset_delta=n, timestamp=NOW_MS, key=None, value=b"v") for n in range(2)]
    batch = build_batch(
        records, producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence
    )
    header = read_header(batch)
    assert header is not None
    header.stamp(batch, base_offset=replica.log.end_offset, epoch=replica.epoch)
    replica.log.append([batch], [header])


def describe(world: BrokerWorld, *indexes: int, topic: str = "t") -> list[PartitionResponse]:
    request = DescribeProducersRequest(topics=[TopicRequest(topic, list(indexes))])
    answer = world.ask(request, DescribeProducersResponse, 0)
    (answered,) = answer.topics
    assert answered.name == topic
    return answered.partitions


def test_every_producer_of_a_partition_is_told_with_its_last_sequence(world: BrokerWorld) -> None:
    first, _ = world.add_topic("t", 2)
    first.write(b"of a client without idempotence")
    write(first, 7, 0, 0)
    write(first, 7, 0, 2)
    write(first, 8, 3, 2**31 - 1)
    one, other = describe(world, 0, 1)
    found = {
        each.producer_id: (each.producer_epoch, each.last_sequence) for each in one.active_producers
    }
    assert found == {7: (0, 3), 8: (3, 0)}
    assert {each.last_timestamp for each in one.active_producers} == {NOW_MS}
    for each in one.active_producers:
        assert (each.coordinator_epoch, each.current_txn_start_offset) == (-1, -1)
    assert (one.error_code, one.error_message, other.active_producers) == (0, None, [])


def test_any_replica_tells(world: BrokerWorld) -> None:
    (replica,) = world.add_topic("t")
    write(replica, 7, 0, 0)
    replica.follow(OTHER, epoch=2)
    (one,) = describe(world, 0)
    assert [each.producer_id for each in one.active_producers] == [7]
    replica.failed = OSError(5, "the disk failed")
    assert describe(world, 0)[0].error_code == Error.KAFKA_STORAGE_ERROR


def test_a_topic_that_is_named_again_is_told_once(world: BrokerWorld) -> None:
    for replica in world.add_topic("t", 2):
        write(replica, 7, 0, 0)
    topics = [TopicRequest("t", [0]), TopicRequest("u", [0]), *[TopicRequest("t", [1, 0])] * 100]
    answer = world.ask(DescribeProducersRequest(topics=topics), DescribeProducersResponse, 0)
    told = [(one.name, [each.partition_index for each in one.partitions]) for one in answer.topics]
    assert told == [("t", [0, 1]), ("u", [0])]


def test_what_is_not_here_is_an_error(world: BrokerWorld) -> None:
    world.add_remote_topic("elsewhere")
    (one,) = describe(world, 0, topic="elsewhere")
    assert one.error_code == Error.NOT_LEADER_OR_FOLLOWER
    (missing,) = describe(world, 9, topic="elsewhere")
    assert (missing.partition_index, missing.error_code) == (9, Error.UNKNOWN_TOPIC_OR_PARTITION)
    (unknown,) = describe(world, 0, topic="none")
    assert unknown.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert unknown.error_message == "there is no topic 'none'"
