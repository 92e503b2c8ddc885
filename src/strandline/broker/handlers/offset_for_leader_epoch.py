"""OffsetForLeaderEpoch: where an epoch ended, so that a consumer notices discarded records.

Source: KIP-101, KIP-320 (truncation detection)."""

from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import NO_EPOCH, find_leader, find_partition
from strandline.broker.read_replicas.copied_replica import copy_of
from strandline.model.access import CLUSTER_NAME, Kind, Operation
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
    acts = context.sees(Operation.CLUSTER_ACTION, Kind.CLUSTER, CLUSTER_NAME)
    topics = []
    for requested in request.topics:
        topic = services.cluster.topics.get(requested.topic)
        if acts or context.may(Operation.DESCRIBE, Kind.TOPIC, requested.topic):
            partitions = [await _answer(services, topic, one) for one in requested.partitions]
        else:
            refused = Error.TOPIC_AUTHORIZATION_FAILED
            partitions = [_refuse(one, refused) for one in requested.partitions]
        topics.append(OffsetForLeaderTopicResult(topic=requested.topic, partitions=partitions))
    return OffsetForLeaderEpochResponse(topics=topics)


async def _answer(
    services: Services, topic: Topic | None, requested: OffsetForLeaderPartition
) -> EpochEndOffset:
    partition = find_partition(topic, requested.partition)
    if topic is None or partition is None:
        return _refuse(requested, Error.UNKNOWN_TOPIC_OR_PARTITION)
    replica, error = find_leader(services, partition, requested.current_leader_epoch)
    if replica is None:
        return _refuse(requested, error)
    if not (replica.can_serve_reads and replica.knows_start):
        return _refuse(requested, Error.NOT_LEADER_OR_FOLLOWER)
    if requested.leader_epoch == NO_EPOCH:
        return _refuse(requested, Error.NONE)
    asked = Epoch(requested.leader_epoch)
    copy = copy_of(services, topic, partition, replica)
    if copy is None:
        epoch, end_offset = replica.epoch_end_offset(asked)
    else:
        error = copy.check(NO_EPOCH, serves_as_follower=False)
        if error is not Error.NONE:
            return _refuse(requested, error)
        epoch, end_offset = await copy.epoch_end_offset_for_certain(asked)
    return EpochEndOffset(partition=requested.partition, leader_epoch=epoch, end_offset=end_offset)


def _refuse(requested: OffsetForLeaderPartition, error: Error) -> EpochEndOffset:
    return EpochEndOffset(
        error_code=error, partition=requested.partition, leader_epoch=NO_EPOCH, end_offset=NO_OFFSET
    )
