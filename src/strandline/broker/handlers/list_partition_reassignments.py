"""ListPartitionReassignments: which replicas move, from where to where.

How:    answered from what this broker knows of the cluster, as Metadata is. If a move is cancelled
        or redirected on its way, replicas granted meanwhile are among the removed.
Source: KIP-455; docs/decisions/0009-moving-replicas.md."""

from collections.abc import Iterable

from strandline.broker.context import RequestContext, Services
from strandline.broker.partitions import find_partition
from strandline.model.cluster import Partition
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)


async def handle(
    request: ListPartitionReassignmentsRequest, context: RequestContext
) -> ListPartitionReassignmentsResponse:
    """Describe what moves, of the partitions asked for or of all."""
    topics: dict[str, dict[int, OngoingPartitionReassignment]] = {}
    for one in _requested(request, context.services):
        if one.is_moving:
            topics.setdefault(one.topic, {})[one.index] = OngoingPartitionReassignment(
                partition_index=one.index,
                replicas=list(one.hosts),
                adding_replicas=list(one.adding),
                removing_replicas=list(one.removing),
            )
    return ListPartitionReassignmentsResponse(
        error_message=None,
        topics=[
            OngoingTopicReassignment(name=name, partitions=list(partitions.values()))
            for name, partitions in topics.items()
        ],
    )


def _requested(
    request: ListPartitionReassignmentsRequest, services: Services
) -> Iterable[Partition]:
    cluster = services.cluster
    if request.topics is None:
        moving = (cluster.groups[group] for group in cluster.moving)
        return sorted(moving, key=lambda one: (one.topic, one.index))
    found = (
        find_partition(cluster.topics.get(topic.name), index)
        for topic in request.topics
        for index in topic.partition_indexes
    )
    return [one for one in found if one is not None]
