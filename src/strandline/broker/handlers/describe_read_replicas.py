"""DescribeReadReplicas: how far the copies of other clusters' topics on this broker are.

Source: decision 0061."""

from strandline.broker.context import RequestContext, Services
from strandline.broker.read_replicas.hosting import is_read_replica
from strandline.broker.read_replicas.serving import is_too_stale
from strandline.config.topic_read_replica import READ_REPLICA_OF
from strandline.model.cluster import Partition, Topic
from strandline.protocol.messages.describe_read_replicas import (
    CopiedPartition,
    DescribeReadReplicasRequest,
    DescribeReadReplicasResponse,
)
from strandline.tiered.replicas.view import ReplicaView

TOO_STALE = "too stale"


async def handle(
    request: DescribeReadReplicasRequest, context: RequestContext
) -> DescribeReadReplicasResponse:
    """Describe the copies here, of these topics or of all that the client may describe."""
    services = context.services
    topics = services.cluster.topics
    asked = topics.keys() if request.topics is None else topics.keys() & set(request.topics)
    names = sorted(filter(context.may_describe, asked))
    found = []
    for name in names:
        topic = topics[name]
        for one in topic.partitions if is_read_replica(topic) else ():
            view = services.read_replicas.find(topic, one)
            if view is not None and one.group in services.replication.replicas:
                found.append(describe(services, topic, one, view))
    return DescribeReadReplicasResponse(partitions=found)


def describe(
    services: Services, topic: Topic, partition: Partition, view: ReplicaView
) -> CopiedPartition:
    """One partition."""
    state = str(view.state)
    if view.is_ready and is_too_stale(services, topic, view):
        state = TOO_STALE
    export = view.export
    told = CopiedPartition(
        topic=topic.name,
        partition=partition.index,
        is_leader=services.replication.replicas[partition.group].is_leader,
        source=topic.configs[READ_REPLICA_OF],
        state=state,
        failure=view.failure,
        staleness_ms=view.staleness_ms(services.clock.wall_ms()),
    )
    if export is not None:
        told.export = str(export.number)
        told.log_start_offset = view.start_offset
        told.high_watermark = view.high_watermark
        told.source_high_watermark = export.high_watermark
    return told
