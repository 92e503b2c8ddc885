"""DescribeProducers: the idempotent producers that the replicas here know.

How:    Any replica answers, as in Kafka: a tool may ask a certain one. The answer comes from the
        state by which repeated batches are recognised. The time is that of the last append. No
        transaction is ever open.
Source: KIP-664."""

from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_partition, find_replica
from strandline.model.access import Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)

NO_COORDINATOR_EPOCH = -1


async def handle(
    request: DescribeProducersRequest, context: RequestContext
) -> DescribeProducersResponse:
    """Describe each partition once: one may have many producers."""
    wanted: dict[str, dict[int, None]] = {}
    for topic in request.topics:
        wanted.setdefault(topic.name, {}).update(dict.fromkeys(topic.partition_indexes))
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=name,
                partitions=[
                    _describe(context.services, name, index)
                    if context.may(Operation.READ, Kind.TOPIC, name)
                    else _refuse(index, Error.TOPIC_AUTHORIZATION_FAILED, REFUSED)
                    for index in indexes
                ],
            )
            for name, indexes in wanted.items()
        ]
    )


def _describe(services: Services, topic: str, index: int) -> PartitionResponse:
    found = services.cluster.topics.get(topic)
    if found is None:
        return _refuse(index, Error.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}")
    partition = find_partition(found, index)
    if partition is None:
        return _refuse(index, Error.UNKNOWN_TOPIC_OR_PARTITION)
    replica, error = find_replica(services, partition)
    if replica is None:
        return _refuse(index, error)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=producer_id,
                producer_epoch=entry.epoch,
                last_sequence=entry.window[-1].last_sequence,
                last_timestamp=entry.last_append_ms,
                coordinator_epoch=NO_COORDINATOR_EPOCH,
            )
            for producer_id, entry in replica.log.producers.items()
        ],
    )


def _refuse(index: int, code: int, message: str | None = None) -> PartitionResponse:
    return PartitionResponse(partition_index=index, error_code=code, error_message=message)
