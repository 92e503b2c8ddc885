"""DescribeQuorum: the controller's log, its leader, its voters and its observers.

How:    the controller's group under the name of Kafka's log, `__cluster_metadata`. An endpoint is
        that of brokers among each other, which serves the controller's group.
Source: KIP-595, KIP-836, KIP-853."""

from uuid import UUID

from strandline.broker.context import RequestContext, Services
from strandline.broker.coordinators.quorum_status import (
    QuorumReplica,
    QuorumStatus,
    quorum_status,
)
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error, message_of
from strandline.protocol.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    Listener,
    Node,
    PartitionData,
    ReplicaState,
    TopicData,
)
from strandline.protocol.table import NO_ID

CONTROLLER_TOPIC = "__cluster_metadata"
LISTENER = "CONTROLLER"
NO_LEADER = -1
UNKNOWN = -1


async def handle(request: DescribeQuorumRequest, context: RequestContext) -> DescribeQuorumResponse:
    """Describe the one partition there is; others are unknown."""
    named = [
        (topic.topic_name, one.partition_index)
        for topic in request.topics
        for one in topic.partitions
    ]
    if named != [(CONTROLLER_TOPIC, 0)]:
        return _unknown(request)
    services = context.services
    status = await quorum_status(services)
    return DescribeQuorumResponse(
        error_message=None,
        topics=[TopicData(CONTROLLER_TOPIC, [_partition(services, status)])],
        nodes=_nodes(services, status),
    )


def _partition(services: Services, status: QuorumStatus) -> PartitionData:
    return PartitionData(
        partition_index=0,
        error_message=None,
        leader_id=status.leader,
        leader_epoch=status.epoch,
        high_watermark=status.high_watermark,
        current_voters=[_replica(services, one) for one in status.replicas if one.is_voter],
        observers=[_replica(services, one) for one in status.replicas if not one.is_voter],
    )


def _replica(services: Services, one: QuorumReplica) -> ReplicaState:
    return ReplicaState(
        replica_id=one.broker,
        replica_directory_id=_directory(services, one.broker),
        log_end_offset=one.log_end_offset,
        last_fetch_timestamp=one.heard_ms,
        last_caught_up_timestamp=one.caught_up_ms,
    )


def _directory(services: Services, broker: BrokerId) -> UUID:
    known = services.controller.state.directories.get(broker)
    try:
        return NO_ID if known is None else UUID(known.id)
    except ValueError:
        return NO_ID


def _nodes(services: Services, status: QuorumStatus) -> list[Node]:
    brokers = services.cluster.brokers
    voters = (brokers.get(one.broker) for one in status.replicas if one.is_voter)
    return [
        Node(one.id, [Listener(LISTENER, one.rpc.host, one.rpc.port)])
        for one in voters
        if one is not None
    ]


def _unknown(request: DescribeQuorumRequest) -> DescribeQuorumResponse:
    code = Error.UNKNOWN_TOPIC_OR_PARTITION
    return DescribeQuorumResponse(
        error_message=None,
        topics=[
            TopicData(
                topic.topic_name,
                [
                    PartitionData(
                        partition_index=one.partition_index,
                        error_code=code,
                        error_message=message_of(code),
                        leader_id=NO_LEADER,
                        leader_epoch=UNKNOWN,
                        high_watermark=UNKNOWN,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )
