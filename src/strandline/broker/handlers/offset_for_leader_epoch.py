"""OffsetForLeaderEpoch: where an epoch ended, so that a consumer notices discarded records.

Source: KIP-101, KIP-320 (truncation detection)."""

from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import NO_EPOCH, find_leader, find_partition
from strandline.model.cluster import Topic
from strandline.model.ids import Epoch
from strandline.protocol.errors import Error
from strandline.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

NO_OFFSET = -1


async def handle(
    request: OffsetForLeaderEpochRequest, context: RequestContext
) -> OffsetForLeaderEpochResponse:
    """Answer for every partition asked about."""
    services = context.services
    topics = []
    for requested in request.topics:
        topic = services.cluster.topics.get(requested.topic)
        topics.append(
            OffsetForLeaderTopicResult(
                topic=requested.topic,
                partitions=[_answer(services, topic, one) for one in requested.partitions],
            )
        )
    return OffsetForLeaderEpochResponse(topics=topics)


def _answer(
    services: Services, topic: Topic | None, requested: OffsetForLeaderPartition
) -> EpochEndOffset:
    partition = find_partition(topic, requested.partition)
    if partition is None:
        return _refuse(requested, Error.UNKNOWN_TOPIC_OR_PARTITION)
    replica, error = find_leader(services, partition, requested.current_leader_epoch)
    if replica is None:
        return _refuse(requested, error)
    if not replica.can_serve_reads:
        return _refuse(requested, Error.NOT_LEADER_OR_FOLLOWER)
    if requested.leader_epoch == NO_EPOCH:
        return _refuse(requested, Error.NONE)
    epoch, end_offset = replica.epoch_end_offset(Epoch(requested.leader_epoch))
    return EpochEndOffset(partition=requested.partition, leader_epoch=epoch, end_offset=end_offset)


def _refuse(requested: OffsetForLeaderPartition, error: Error) -> EpochEndOffset:
    return EpochEndOffset(
        error_code=error, partition=requested.partition, leader_epoch=NO_EPOCH, end_offset=NO_OFFSET
    )
