"""DescribeReplicaStatus: the progress of every replica of partitions led here, and the log start
offset of all replicas here.

Source: reference observers 4.4 (the fields of kafka-replica-status)."""

from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_leader, find_partition, find_replica
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_replica_status import (
    DescribeReplicaStatusRequest,
    DescribeReplicaStatusResponse,
    PartitionReplicaStatus,
    ReplicaStatus,
    TopicReplicaStatus,
)
from strandline.replication.leader.replica_status import Standing, leading_ms, standings


async def handle(
    request: DescribeReplicaStatusRequest, context: RequestContext
) -> DescribeReplicaStatusResponse:
    """Describe partitions led here; for others an error, and the log start offset here."""
    return DescribeReplicaStatusResponse(
        topics=[
            TopicReplicaStatus(
                topic.name,
                [describe(context.services, topic.name, one) for one in topic.partition_indexes],
            )
            for topic in request.topics
        ]
    )


def describe(services: Services, topic: str, index: int) -> PartitionReplicaStatus:
    """One partition, or the error."""
    partition = find_partition(services.cluster.topics.get(topic), index)
    if partition is None:
        return PartitionReplicaStatus(index, Error.UNKNOWN_TOPIC_OR_PARTITION)
    found, _ = find_replica(services, partition)
    start = -1 if found is None else found.log_start_offset
    replica, error = find_leader(services, partition)
    if replica is None:
        return PartitionReplicaStatus(index, error, log_start_offset=start)
    return PartitionReplicaStatus(
        partition_index=index,
        leader_epoch=replica.epoch,
        leading_ms=leading_ms(replica),
        replicas=[_status(one) for one in standings(replica)],
        log_start_offset=start,
    )


def _status(one: Standing) -> ReplicaStatus:
    return ReplicaStatus(
        broker_id=one.broker,
        is_leader=one.is_leader,
        is_observer=one.is_observer,
        is_isr_eligible=one.is_isr_eligible,
        is_in_isr=one.is_in_isr,
        is_caught_up=one.is_caught_up,
        last_caught_up_lag_ms=one.caught_up_lag_ms,
        last_fetch_lag_ms=one.heard_lag_ms,
        log_start_offset=one.log_start_offset,
        log_end_offset=one.log_end_offset,
    )
