"""DescribeTier: what buckets hold of the partitions that this broker leads.

How:    the leader's committed state, which only a leader with a lease may give away: collectors of
        orphans delete by it. That a topic was deleted, only the controller may say, and only if it
        remembers the deletion: one that it does not know may be of another cluster, or lost.
        The whole state has digests of records, by which a client could test guesses of them: it
        takes `read` on the topic, as the records do.
Source: decision 0058."""

import asyncio

from strandline.broker.access.requirements import REFUSED
from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_leader, find_partition, topic_by_id
from strandline.controller.placing.policies import policy_in_force
from strandline.model.access import Kind, Operation
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import Offset
from strandline.placement.buckets import allowed_buckets
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_tier import (
    NO_TOPIC_ID,
    DescribeTierRequest,
    DescribeTierResponse,
    TierBucketStatus,
    TierBucketTraffic,
    TierPartitionStatus,
)
from strandline.replication.replica.replica import Replica
from strandline.storage.log.log import Log
from strandline.tiered.state.bucket import BucketState
from strandline.tiered.state.encoding import encode

STEP = 500
"""After so many partitions other work of the loop has its turn."""


async def handle(request: DescribeTierRequest, context: RequestContext) -> DescribeTierResponse:
    """Describe one partition with its state, or all that this broker leads of some topics."""
    services = context.services
    answer = DescribeTierResponse(
        cluster_id=services.cluster.cluster_id, broker_id=services.broker_id
    )
    if request.topic_id != NO_TOPIC_ID:
        answer.error_code = _tell_one(context, request, answer)
    else:
        await _tell_topics(services, request.topics, answer)
        answer.traffic = [
            TierBucketTraffic(
                bucket=bucket,
                put_count=one.put_count,
                get_count=one.get_count,
                list_count=one.list_count,
                delete_count=one.delete_count,
                sent_bytes=one.sent_bytes,
                received_bytes=one.received_bytes,
            )
            for bucket, one in services.buckets.traffic.items()
        ]
    return answer


def _tell_one(
    context: RequestContext, request: DescribeTierRequest, answer: DescribeTierResponse
) -> Error:
    services = context.services
    topic = topic_by_id(services, request.topic_id)
    if topic is None:
        if not services.controller.knows_everything:
            return Error.NOT_CONTROLLER
        is_deleted = request.topic_id in services.cluster.deleted_tiered
        return Error.UNKNOWN_TOPIC_ID if is_deleted else Error.UNKNOWN_TOPIC_OR_PARTITION
    if not context.may(Operation.READ, Kind.TOPIC, topic.name):
        answer.error_message = REFUSED
        return Error.TOPIC_AUTHORIZATION_FAILED
    partition = find_partition(topic, request.partition)
    if partition is None:
        return Error.UNKNOWN_TOPIC_OR_PARTITION
    replica, error = find_leader(services, partition)
    if replica is None:
        return error
    tier = replica.tier
    if not (replica.can_serve_reads and tier.is_known and tier.is_settled):
        return Error.NOT_LEADER_OR_FOLLOWER
    row = _row(topic, partition, replica, _wanted(services, topic))
    row.state = encode(tier.state.checkpoint())
    answer.partitions.append(row)
    return Error.NONE


async def _tell_topics(services: Services, names: list[str], answer: DescribeTierResponse) -> None:
    topics = services.cluster.topics
    position = 0
    for name in names or list(topics):
        topic = topics.get(name)
        wanted = () if topic is None else _wanted(services, topic)
        for partition in () if topic is None else topic.partitions:
            assert topic is not None
            position += 1
            if position % STEP == 0:
                await asyncio.sleep(0)
            replica, _ = find_leader(services, partition)
            if replica is not None and (wanted or not replica.tier.state.is_blank):
                answer.partitions.append(_row(topic, partition, replica, wanted))


def _wanted(services: Services, topic: Topic) -> tuple[str, ...]:
    """The buckets that the topic's segments go to."""
    cluster = services.cluster
    config = services.topic_configs.of(topic, cluster)
    if not config.remote_storage_enable or config.remote_log_copy_disable:
        return ()
    policy = policy_in_force(topic.configs, cluster.cluster_configs)
    return allowed_buckets(policy, services.config.tiered.labels_of_buckets)


def _row(
    topic: Topic, partition: Partition, replica: Replica, wanted: tuple[str, ...]
) -> TierPartitionStatus:
    log, state = replica.log, replica.tier.state
    names = dict.fromkeys((*wanted, *sorted(state.buckets)))
    return TierPartitionStatus(
        topic=topic.name,
        topic_id=topic.id,
        partition=partition.index,
        leader_epoch=replica.epoch,
        log_start_offset=replica.log_start_offset,
        local_start_offset=log.start_offset,
        high_watermark=replica.committed_end,
        buckets=[
            _bucket(name, state.buckets.get(name) or BucketState(), log, is_wanted=name in wanted)
            for name in names
        ],
    )


def _bucket(name: str, state: BucketState, log: Log, *, is_wanted: bool) -> TierBucketStatus:
    status = TierBucketStatus(
        bucket=name,
        is_wanted=is_wanted,
        start_offset=state.start_offset,
        end_offset=state.end_offset,
        object_count=len(state.live),
        size_bytes=state.size_bytes,
        upload_count=len(state.intents),
        removal_count=len(state.removals),
        removal_bytes=sum(one.size_bytes for one in state.removals.values()),
    )
    end = Offset(max(state.next_offset, log.start_offset))
    closed = log.closed
    if is_wanted and end < closed.end_offset:
        status.pending_bytes = closed.bytes_from(end) - closed.bytes_from(closed.end_offset)
        status.pending_since_ms = closed.oldest_after(end)
    return status
