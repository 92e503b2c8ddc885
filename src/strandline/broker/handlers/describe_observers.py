"""DescribeObservers: which replicas of partitions are observers, and which ones vote now.

How:    answered from what this broker knows of the cluster, as Metadata is.
Source: docs/decisions/0017-observers.md."""

from strandline.broker.context import RequestContext
from strandline.protocol.messages.describe_observers import (
    DescribeObserversRequest,
    DescribeObserversResponse,
    ObservedPartition,
)


async def handle(
    request: DescribeObserversRequest, context: RequestContext
) -> DescribeObserversResponse:
    """Describe partitions that have observers, or other voters than usual; unknown topics,
    and those that the client may not describe, are left out."""
    topics = context.services.cluster.topics
    asked = topics.keys() if request.topics is None else topics.keys() & set(request.topics)
    names = sorted(filter(context.may_describe, asked))
    return DescribeObserversResponse(
        partitions=[
            ObservedPartition(
                topic=name,
                partition=one.index,
                observers=list(one.observers),
                is_moving=one.is_moving,
                target_observers=list(one.target_observers),
                acting=sorted(one.acting),
            )
            for name in names
            for one in topics[name].partitions
            if one.observers or one.target_observers or one.acting
        ]
    )
