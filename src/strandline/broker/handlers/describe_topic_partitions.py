"""DescribeTopicPartitions: topics in pages, for administrators' tools.

How:    topics by name, partitions by index; at most `response_partition_limit` partitions in one
        answer, and a cursor to the next page. Only voters are eligible to lead, so the lists of
        KIP-966 are empty.
Source: KIP-966; spark reference 2."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.handlers.metadata import in_sync_replicas, offline_replicas
from strandline.broker.partitions import NO_EPOCH, present_leader
from strandline.broker.read_replicas.hosting import is_read_replica
from strandline.controller.names import check_topic_name, is_internal
from strandline.model.access import Kind, Operation
from strandline.model.cluster import Partition
from strandline.model.ids import NO_BROKER
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

PARTITION_COUNT_MAX = 2_000


async def handle(
    request: DescribeTopicPartitionsRequest, context: RequestContext
) -> DescribeTopicPartitionsResponse:
    """One page."""
    services = context.services
    left = max(1, min(request.response_partition_limit, PARTITION_COUNT_MAX))
    cursor = request.cursor
    if cursor is not None and cursor.partition_index < 0:
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(
                    error_code=Error.INVALID_REQUEST, name=one.name
                )
                for one in request.topics
            ]
        )
    requested = {one.name for one in request.topics} or {
        one for one in services.cluster.topics if context.sees(Operation.DESCRIBE, Kind.TOPIC, one)
    }
    names = sorted(one for one in requested if cursor is None or one >= cursor.topic_name)
    response = DescribeTopicPartitionsResponse()
    for name in names:
        first = cursor.partition_index if cursor is not None and name == cursor.topic_name else 0
        if left == 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=first)
            break
        topic = _describe(context, name, first, first + left)
        response.topics.append(topic)
        left -= len(topic.partitions)
        known = services.cluster.topics.get(name)
        end = first + len(topic.partitions)
        if known is not None and topic.error_code == Error.NONE and end < len(known.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return response


def _describe(
    context: RequestContext, name: str, first: int, end: int
) -> DescribeTopicPartitionsResponseTopic:
    if not context.may(Operation.DESCRIBE, Kind.TOPIC, name):
        return DescribeTopicPartitionsResponseTopic(
            error_code=Error.TOPIC_AUTHORIZATION_FAILED, name=name
        )
    services = context.services
    operations = services.access.operations(context.session, Kind.TOPIC, name)
    topic = services.cluster.topics.get(name)
    if topic is None:
        try:
            check_topic_name(name)
            code: int = Error.UNKNOWN_TOPIC_OR_PARTITION
        except ApiError as refusal:
            code = refusal.code
        return DescribeTopicPartitionsResponseTopic(
            error_code=code, name=name, topic_authorized_operations=operations
        )
    return DescribeTopicPartitionsResponseTopic(
        name=topic.name,
        topic_id=topic.id,
        is_internal=is_internal(topic.name),
        partitions=[
            _describe_partition(services, one, is_copy=is_read_replica(topic))
            for one in topic.partitions[first:end]
        ],
        topic_authorized_operations=operations,
    )


def _describe_partition(
    services: Services, partition: Partition, *, is_copy: bool
) -> DescribeTopicPartitionsResponsePartition:
    leader, epoch = present_leader(services, partition)
    return DescribeTopicPartitionsResponsePartition(
        error_code=Error.LEADER_NOT_AVAILABLE if leader == NO_BROKER else Error.NONE,
        partition_index=partition.index,
        leader_id=leader,
        leader_epoch=NO_EPOCH if is_copy else epoch,
        replica_nodes=list(partition.hosts),
        isr_nodes=in_sync_replicas(services, partition, leader),
        eligible_leader_replicas=[],
        last_known_elr=[],
        offline_replicas=offline_replicas(services, partition),
    )
