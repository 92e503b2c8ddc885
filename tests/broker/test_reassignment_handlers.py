"""AlterPartitionReassignments and ListPartitionReassignments on the wire. Source: KIP-455, 860."""

from collections.abc import Iterator

import pytest
from tests.broker.moving_world import OLD, TOPIC, MovingWorld, moving_world

from strandline.protocol.errors import Error
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.protocol.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
    OngoingPartitionReassignment,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

ANY_BROKER = 5
"""No voter of the controller: it carries on what it is asked."""


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingWorld]:
    """One topic on brokers 1 to 3 of 5."""
    with moving_world(monkeypatch) as made:
        yield made


def alter(
    world: MovingWorld,
    replicas: list[int] | None,
    *,
    topic: str = TOPIC,
    index: int = 0,
    version: int = 1,
    may_change: bool = True,
) -> tuple[int, str | None]:
    """Error code and message for one partition."""
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=5_000,
        allow_replication_factor_change=may_change,
        topics=[ReassignableTopic(topic, [ReassignablePartition(index, replicas)])],
    )
    answer = world.ask(ANY_BROKER, request, AlterPartitionReassignmentsResponse, version)
    assert (answer.error_code, answer.error_message) == (0, None)
    (found,) = answer.responses
    (one,) = found.partitions
    assert (found.name, one.partition_index) == (topic, index)
    return one.error_code, one.error_message


def listed(
    world: MovingWorld, topics: list[ListPartitionReassignmentsTopics] | None = None
) -> dict[str, list[OngoingPartitionReassignment]]:
    request = ListPartitionReassignmentsRequest(topics=topics)
    answer = world.ask(ANY_BROKER, request, ListPartitionReassignmentsResponse, 0)
    assert answer.error_code == 0
    return {one.name: one.partitions for one in answer.topics}


@pytest.mark.parametrize("version", [0, 1])
def test_a_move_is_listed_until_it_is_over(world: MovingWorld, version: int) -> None:
    assert listed(world) == {}
    assert alter(world, [4, 2, 3], version=version) == (0, None)
    moving = OngoingPartitionReassignment(0, [4, 2, 3, 1], [4], [1])
    assert listed(world) == {TOPIC: [moving]}
    assert listed(world, [ListPartitionReassignmentsTopics(TOPIC, [0])]) == {TOPIC: [moving]}
    assert listed(world, [ListPartitionReassignmentsTopics(TOPIC, [1, -1])]) == {}
    assert listed(world, [ListPartitionReassignmentsTopics("other", [0])]) == {}
    world.finish(4, 2, 3)
    assert listed(world) == {}


def test_while_they_move_clients_are_told_old_and_new_replicas(world: MovingWorld) -> None:
    world.hosts[4].kill()
    alter(world, [4, 2, 3])
    world.until(lambda: world.known.is_moving and bool(world.leader_of(TOPIC)))
    leader = world.leader_of(TOPIC)
    metadata = world.ask(
        leader, MetadataRequest([MetadataRequestTopic(name=TOPIC)]), MetadataResponse, 12
    )
    one = metadata.topics[0].partitions[0]
    assert (one.replica_nodes, one.isr_nodes) == ([4, 2, 3, 1], [1, 2, 3])
    described = world.ask(
        leader,
        DescribeTopicPartitionsRequest([TopicRequest(TOPIC)], 10),
        DescribeTopicPartitionsResponse,
        0,
    )
    same = described.topics[0].partitions[0]
    assert (same.replica_nodes, same.isr_nodes) == ([4, 2, 3, 1], [1, 2, 3])
    world.hosts[4].start()
    world.until_started(4)
    world.finish(4, 2, 3)


def test_a_cancel_ends_it_and_a_second_one_says_that_nothing_moves(world: MovingWorld) -> None:
    assert alter(world, None)[0] == Error.NO_REASSIGNMENT_IN_PROGRESS
    alter(world, [4, 2, 3])
    assert alter(world, None) == (0, None)
    assert listed(world) == {}
    assert alter(world, None)[0] == Error.NO_REASSIGNMENT_IN_PROGRESS
    world.finish(*OLD)


def test_what_cannot_be_is_refused_with_the_codes_of_kafka(world: MovingWorld) -> None:
    assert alter(world, [1, 2, 9])[0] == Error.INVALID_REPLICA_ASSIGNMENT
    assert alter(world, [1, 2, 2])[0] == Error.INVALID_REPLICA_ASSIGNMENT
    assert alter(world, [])[0] == Error.INVALID_REPLICA_ASSIGNMENT
    assert alter(world, [1], topic="no")[0] == Error.UNKNOWN_TOPIC_OR_PARTITION
    assert alter(world, [1], index=1)[0] == Error.UNKNOWN_TOPIC_OR_PARTITION
    code, message = alter(world, [1, 2], may_change=False)
    assert code == Error.INVALID_REPLICATION_FACTOR
    assert message is not None and "from 3 to 2" in message
    # Version 0 does not know that it could be forbidden.
    assert alter(world, [1, 2], version=0, may_change=True)[0] == 0
    world.finish(1, 2)
