"""DescribeReplicaLogs: where a partition's log ends on this broker, and its state.

Source: decision 0026."""

from strandline.broker.context import RequestContext, Services
from strandline.broker.operations.reporting import is_led
from strandline.broker.partitions import find_partition, find_replica
from strandline.model.cluster import Partition
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_replica_logs import (
    DescribeReplicaLogsRequest,
    DescribeReplicaLogsResponse,
    PossibleVoters,
)


async def handle(
    request: DescribeReplicaLogsRequest, context: RequestContext
) -> DescribeReplicaLogsResponse:
    """Answer for the replica here, whatever its role."""
    services = context.services
    partition = find_partition(services.cluster.topics.get(request.topic), request.partition)
    if partition is None:
        return DescribeReplicaLogsResponse(error_code=Error.UNKNOWN_TOPIC_OR_PARTITION)
    return _describe(services, partition)


def _describe(services: Services, partition: Partition) -> DescribeReplicaLogsResponse:
    answer = DescribeReplicaLogsResponse(
        cluster_version=services.cluster.version,
        possible=[PossibleVoters(list(voters)) for voters in partition.possible],
        grant=partition.grant,
        needs_all=partition.is_declared,
        floor=partition.floor,
    )
    replica, error = find_replica(services, partition)
    if replica is None:
        answer.error_code = error
        return answer
    log = replica.log
    answer.is_led = is_led(replica)
    answer.leader_id = replica.leader_id
    answer.epoch = replica.epoch
    answer.last_epoch = log.last_epoch
    answer.last_index = log.last_index
    answer.log_start_offset = replica.log_start_offset
    answer.committed_offset = replica.committed_end
    answer.log_end_offset = replica.log_end_offset
    answer.has_lost = replica.raft.has_lost_state
    return answer
