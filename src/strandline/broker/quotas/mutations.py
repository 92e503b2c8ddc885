"""The quota of changes of topics: partitions made and removed.

Why:    each partition that is made or removed costs the controller and its brokers much more than
        the request that asks for it.
How:    a topic counts as many tokens as it has, gets or loses partitions. A client in debt is
        refused topic by topic (THROTTLING_QUOTA_EXCEEDED) in versions that know the error; older
        ones are served. Either is told how long to wait, and is muted for so long.
Source: KIP-599; Kafka 4.3's ControllerMutationQuotaManager; decision 0070."""

from strandline.base.errors import ApiError
from strandline.broker.context import RequestContext
from strandline.config.cluster import ClusterConfig
from strandline.controller.decision import PARTITIONS_PER_COMMAND_MAX
from strandline.protocol.errors import Error

STRICT_SINCE = {"CreateTopics": 6, "DeleteTopics": 5, "CreatePartitions": 3}
"""{API: the first version whose clients know THROTTLING_QUOTA_EXCEEDED}; an API that is not here
knows it in no version, and does not make what its client has no tokens for."""
EXCEEDED = "The throttling quota has been exceeded."


def spend_mutations(context: RequestContext, count: int, *, asked_before: int = 0) -> None:
    """The request makes or removes `count` partitions, beside those that it has `asked_before` to
    make. What the controller refuses in any case takes no tokens: a client could leave a debt of
    years to all that share its quota. Raises ApiError if its client is in debt."""
    limits = context.limits
    if limits is None or count <= 0 or asked_before + count > PARTITIONS_PER_COMMAND_MAX:
        return
    since = STRICT_SINCE.get(context.api.name, 0)
    if not limits.spend_mutations(context, count, is_strict=context.api_version >= since):
        raise ApiError(Error.THROTTLING_QUOTA_EXCEEDED, EXCEEDED)


def default_partitions(context: RequestContext) -> int:
    """The partitions of a new topic that names none."""
    return ClusterConfig.from_values(context.services.cluster.cluster_configs).num_partitions
