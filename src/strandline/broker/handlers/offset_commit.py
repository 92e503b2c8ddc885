"""OffsetCommit: records how far a group has consumed.

How:    Partitions that do not exist are refused here; the rest go to the group's coordinator, and
        every partition is answered for itself, in the request's order.
Source: KIP-211 (no retention from version 5), KIP-320, KIP-516 (topic ids, version 10)."""

from uuid import UUID

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_partition, topic_by_id
from strandline.coordinator.answers import CommitAnswer
from strandline.coordinator.requests import CommitOffsets, OffsetToCommit
from strandline.model.access import Kind, Operation
from strandline.model.cluster import Topic
from strandline.protocol.errors import Error
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

TOPIC_IDS_SINCE_VERSION = 10


async def handle(request: OffsetCommitRequest, context: RequestContext) -> OffsetCommitResponse:
    """Commit the offsets of known partitions."""
    services = context.services
    response = OffsetCommitResponse()
    reads_group = context.may(Operation.READ, Kind.GROUP, request.group_id)
    taken: list[OffsetToCommit] = []
    rows: list[OffsetCommitResponsePartition] = []
    for requested in request.topics:
        topic = _find_topic(services, requested, context.api_version)
        name = requested.name if topic is None else topic.name
        is_allowed = context.may(Operation.READ, Kind.TOPIC, name) or not name
        answered = OffsetCommitResponseTopic(name=requested.name, topic_id=requested.topic_id)
        response.topics.append(answered)
        for partition in requested.partitions:
            row = OffsetCommitResponsePartition(partition_index=partition.partition_index)
            answered.partitions.append(row)
            if not reads_group:
                row.error_code = Error.GROUP_AUTHORIZATION_FAILED
            elif not is_allowed:
                row.error_code = Error.TOPIC_AUTHORIZATION_FAILED
            elif topic is None and context.api_version >= TOPIC_IDS_SINCE_VERSION:
                row.error_code = Error.UNKNOWN_TOPIC_ID
            elif topic is None or find_partition(topic, partition.partition_index) is None:
                row.error_code = Error.UNKNOWN_TOPIC_OR_PARTITION
            else:
                rows.append(row)
                taken.append(
                    OffsetToCommit(
                        topic=topic.name,
                        partition=partition.partition_index,
                        offset=partition.committed_offset,
                        leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.committed_metadata,
                        topic_id=topic.id,
                    )
                )
    for row, code in zip(rows, await _commit(context, request, tuple(taken)), strict=True):
        row.error_code = code
    return response


def _find_topic(
    services: Services, requested: OffsetCommitRequestTopic, version: int
) -> Topic | None:
    if version >= TOPIC_IDS_SINCE_VERSION:
        topic_id: UUID = requested.topic_id
        return topic_by_id(services, topic_id)
    return services.cluster.topics.get(requested.name)


async def _commit(
    context: RequestContext, request: OffsetCommitRequest, offsets: tuple[OffsetToCommit, ...]
) -> list[int]:
    """One error code for each of the offsets."""
    if not offsets:
        return []
    coordinator = context.services.coordinator
    try:
        answer = await coordinator.ask(
            CommitOffsets(
                token=coordinator.new_token(),
                group=request.group_id,
                offsets=offsets,
                generation=request.generation_id_or_member_epoch,
                member_id=request.member_id,
                instance_id=request.group_instance_id,
                retention_ms=request.retention_time_ms,
                connection=context.sink.number,
            )
        )
    except ApiError as error:
        return [error.code] * len(offsets)
    assert isinstance(answer, CommitAnswer)
    return [one.error_code for one in answer.partitions]
