"""DescribeLosses: the declared losses of topics, as this broker has replayed them.

Source: docs/decisions/0027-declared-losses.md."""

from strandline.broker.context import RequestContext
from strandline.protocol.messages.describe_losses import (
    DeclaredLoss,
    DescribeLossesRequest,
    DescribeLossesResponse,
)


async def handle(request: DescribeLossesRequest, context: RequestContext) -> DescribeLossesResponse:
    """Describe the losses of the topics that this broker knows and the client may describe."""
    cluster = context.services.cluster
    names = request.topics or list(cluster.topics)
    known = [name for name in names if name in cluster.topics]
    topics = [cluster.topics[name] for name in known if context.may_describe(name)]
    return DescribeLossesResponse(
        cluster_version=cluster.version,
        losses=[
            DeclaredLoss(
                topic=topic.name,
                partition=partition.index,
                grant=one.grant,
                broker_ids=[lost.broker for lost in one.lost],
                survivors=list(one.survivors),
                leader_id=one.leader,
                committed_offset=one.committed,
                log_end_offset=one.end,
                by=one.by,
                at_ms=one.at_ms,
                buckets=[each.bucket for each in one.history],
            )
            for topic in topics
            for partition in topic.partitions
            for one in partition.losses
        ],
    )
