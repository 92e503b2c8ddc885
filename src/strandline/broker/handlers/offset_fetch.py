"""OffsetFetch: how far groups have consumed, as of their last commit.

How:    read from the coordinator's memory, under the partition's lease. An offset that was
        committed for an earlier topic of the same name does not count. Without transactions every
        committed offset is stable. Before version 8 the error of a group stands at each of its
        partitions, too: version 1 has no other place. aiokafka reads only that one; without it,
        it would take the answer for "nothing committed" and begin at the start of the topic.
Source: KIP-709 (several groups, from version 8), KIP-516 (topic ids, version 10)."""

from collections.abc import Mapping
from uuid import UUID

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import topic_by_id
from strandline.broker.server.request_limits import distinct
from strandline.coordinator.log_records import CommittedOffset
from strandline.model.access import Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from strandline.protocol.table import NO_ID

MANY_GROUPS_SINCE_VERSION = 8
TOPIC_IDS_SINCE_VERSION = 10
NO_OFFSET = CommittedOffset(offset=-1, leader_epoch=-1, metadata="", commit_ms=-1)

Committed = Mapping[tuple[str, int], CommittedOffset]


async def handle(request: OffsetFetchRequest, context: RequestContext) -> OffsetFetchResponse:
    """Answer for each group."""
    if context.api_version >= MANY_GROUPS_SINCE_VERSION:
        return OffsetFetchResponse(
            groups=[_fetch_group(context, one) for one in distinct(request.groups, _question)]
        )
    requested = _as_group(request)
    group = _fetch_group(context, requested)
    if group.error_code != Error.NONE:
        group.topics = [_failed(one, group.error_code) for one in requested.topics or ()]
    return OffsetFetchResponse(
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=one.partition_index,
                        committed_offset=one.committed_offset,
                        committed_leader_epoch=one.committed_leader_epoch,
                        metadata=one.metadata,
                        error_code=one.error_code,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in group.topics
        ],
        error_code=group.error_code,
    )


def _question(requested: OffsetFetchRequestGroup) -> tuple[str, int]:
    """Merge repeated groups: all offsets of a group are a long answer to a short request."""
    return requested.group_id, 0 if requested.topics is None else id(requested)


def _as_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """A request of the form before version 8 as the one group of the form after it."""
    topics: list[OffsetFetchRequestTopic] | None = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [
            OffsetFetchRequestTopics(name=one.name, partition_indexes=one.partition_indexes)
            for one in topics
        ],
    )


def _fetch_group(
    context: RequestContext, requested: OffsetFetchRequestGroup
) -> OffsetFetchResponseGroup:
    services, version = context.services, context.api_version
    try:
        if not context.may(Operation.DESCRIBE, Kind.GROUP, requested.group_id):
            raise ApiError(Error.GROUP_AUTHORIZATION_FAILED)
        shard = services.coordinator.shard_of(requested.group_id)
    except ApiError as error:
        return OffsetFetchResponseGroup(group_id=requested.group_id, error_code=error.code)
    committed = shard.coordinator.committed(requested.group_id)
    by_id = version >= TOPIC_IDS_SINCE_VERSION
    if requested.topics is None:
        topics = [
            one
            for one in _all_topics(services, committed, by_id=by_id)
            if context.sees(Operation.DESCRIBE, Kind.TOPIC, one.name)
        ]
    else:
        topics = [_fetch_topic(context, committed, one, by_id=by_id) for one in requested.topics]
    return OffsetFetchResponseGroup(group_id=requested.group_id, topics=topics)


def _fetch_topic(
    context: RequestContext,
    committed: Committed,
    requested: OffsetFetchRequestTopics,
    *,
    by_id: bool,
) -> OffsetFetchResponseTopics:
    services = context.services
    topic = (
        topic_by_id(services, requested.topic_id)
        if by_id
        else services.cluster.topics.get(requested.name)
    )
    if topic is None and by_id:
        return _failed(requested, Error.UNKNOWN_TOPIC_ID)
    name = requested.name if topic is None else topic.name
    if not context.may(Operation.DESCRIBE, Kind.TOPIC, name):
        return _failed(requested, Error.TOPIC_AUTHORIZATION_FAILED)
    topic_id = NO_ID if topic is None else topic.id
    return OffsetFetchResponseTopics(
        name=requested.name,
        topic_id=requested.topic_id,
        partitions=[
            _row(index, _belonging(committed.get((name, index)), topic_id))
            for index in requested.partition_indexes
        ],
    )


def _all_topics(
    services: Services, committed: Committed, *, by_id: bool
) -> list[OffsetFetchResponseTopics]:
    """Everything committed for topics that exist."""
    found: dict[str, OffsetFetchResponseTopics] = {}
    for (name, index), offset in sorted(committed.items()):
        topic = services.cluster.topics.get(name)
        topic_id = NO_ID if topic is None else topic.id
        if (topic is None and by_id) or not offset.belongs_to(topic_id):
            continue
        answered = found.setdefault(name, OffsetFetchResponseTopics(name=name, topic_id=topic_id))
        answered.partitions.append(_row(index, offset))
    return list(found.values())


def _belonging(offset: CommittedOffset | None, topic_id: UUID) -> CommittedOffset:
    return offset if offset is not None and offset.belongs_to(topic_id) else NO_OFFSET


def _row(index: int, offset: CommittedOffset) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=index,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
    )


def _failed(requested: OffsetFetchRequestTopics, code: int) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=requested.name,
        topic_id=requested.topic_id,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=index, committed_offset=NO_OFFSET.offset, error_code=code
            )
            for index in requested.partition_indexes
        ],
    )
