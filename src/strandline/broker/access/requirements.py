"""What a client must be allowed to do for each request: a table.

Why:    a handler that forgets to ask would open its API to everyone. So every API that is offered
        has a row here, or the router refuses to start.
How:    WHOLE      one right is needed for the request as a whole: the router asks, and answers
        BY_PART    the handler asks for each part of the request, and answers for each
        OPEN       nothing is needed
Source: Kafka 4.3's KafkaApis and ControllerApis; decision 0069."""

from typing import NamedTuple

from strandline.base.errors import ApiError
from strandline.broker.access.authorisation import RULES_OFF
from strandline.broker.context import RequestContext
from strandline.model.access import CLUSTER_NAME, Kind, Operation
from strandline.protocol.errors import Error
from strandline.protocol.table import Message

REFUSALS: dict[Kind, Error] = {
    Kind.TOPIC: Error.TOPIC_AUTHORIZATION_FAILED,
    Kind.GROUP: Error.GROUP_AUTHORIZATION_FAILED,
    Kind.CLUSTER: Error.CLUSTER_AUTHORIZATION_FAILED,
    Kind.TRANSACTIONAL_ID: Error.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
}
"""{kind of a resource: the error for a client without the right}"""
REFUSED = "Authorization failed."


class Requirement(NamedTuple):
    """The right that a request needs. `field`: that of the request that names the resource; empty
    for the cluster."""

    operation: Operation
    kind: Kind
    field: str = ""


_READS_GROUP = Requirement(Operation.READ, Kind.GROUP, "group_id")
_DESCRIBES = Requirement(Operation.DESCRIBE, Kind.CLUSTER)
_DESCRIBES_CONFIGS = Requirement(Operation.DESCRIBE_CONFIGS, Kind.CLUSTER)
_ALTERS = Requirement(Operation.ALTER, Kind.CLUSTER)
_ACTS = Requirement(Operation.CLUSTER_ACTION, Kind.CLUSTER)

WHOLE: dict[str, Requirement] = {
    "JoinGroup": _READS_GROUP,
    "SyncGroup": _READS_GROUP,
    "Heartbeat": _READS_GROUP,
    "LeaveGroup": _READS_GROUP,
    "OffsetDelete": Requirement(Operation.DELETE, Kind.GROUP, "group_id"),
    "AlterPartitionReassignments": _ALTERS,
    "ElectLeaders": _ALTERS,
    "UnregisterBroker": _ALTERS,
    "UpdateFeatures": _ALTERS,
    "DescribeLogDirs": _DESCRIBES,
    "DescribeQuorum": _DESCRIBES,
    "DescribeUserScramCredentials": _DESCRIBES,
    "DescribeClientQuotas": _DESCRIBES_CONFIGS,
    "ListConfigResources": _DESCRIBES_CONFIGS,
    "ListPartitionReassignments": _DESCRIBES,
    "DescribeTopology": _DESCRIBES,
    "DescribeBalance": _DESCRIBES,
    "DescribeWriters": _DESCRIBES,
    "DescribeLeadership": _DESCRIBES,
    "DescribeReplicaStatus": _DESCRIBES,
    "DescribeExports": _DESCRIBES,
    "DescribeZones": _DESCRIBES,
    "DescribeReplicaLogs": _DESCRIBES,
    "DescribeStatus": _DESCRIBES,
    "DescribeTier": _DESCRIBES,
    "DigestReplica": _DESCRIBES,
    "AlterBrokerLabels": _ALTERS,
    "RuleZone": _ALTERS,
    "DeclareLost": _ALTERS,
    "RecoverPartition": _ALTERS,
    "IdentifyBucket": _ALTERS,
    "RepairObject": _ALTERS,
    "IsolateBroker": _ACTS,
}
"""{API: the right that each request needs}"""

BY_PART: dict[str, str] = {
    "Produce": "`write` on each topic",
    "Fetch": "`read` on each topic",
    "ListOffsets": "`describe` on each topic",
    "Metadata": "`describe` on each topic; others are left out of a list of all. To create a topic"
    " so: `create` on it, or on the cluster",
    "OffsetCommit": "`read` on the group and on each topic",
    "OffsetFetch": "`describe` on each group and on each topic",
    "OffsetForLeaderEpoch": "`describe` on each topic, or `cluster-action` on the cluster",
    "FindCoordinator": "`describe` on each group",
    "DescribeGroups": "`describe` on each group",
    "ListGroups": "`describe` on a group, or on the cluster; others are left out",
    "DeleteGroups": "`delete` on each group",
    "CreateTopics": "`create` on each topic, or on the cluster; the answer has the configuration"
    " with `describe-configs` on the topic. A copy of another cluster's topic, or one that is"
    " restored out of buckets: `alter` on the cluster",
    "DeleteTopics": "`delete` on each topic, or on the cluster",
    "CreatePartitions": "`alter` on each topic",
    "DeleteRecords": "`delete` on each topic",
    "InitProducerId": "`write` on some topic, or `idempotent-write` on the cluster",
    "DescribeConfigs": "`describe-configs` on each topic and group; for brokers and loggers on the"
    " cluster",
    "AlterConfigs": "`alter-configs` on each topic; for brokers on the cluster. A key that names a"
    " bucket: `alter` on the cluster",
    "IncrementalAlterConfigs": "`alter-configs` on each topic and group; for brokers and loggers on"
    " the cluster. A key that names a bucket: `alter` on the cluster",
    "AlterReplicaLogDirs": "`alter` on the cluster",
    "DescribeProducers": "`read` on each topic",
    "DescribeTopicPartitions": "`describe` on each topic; others are left out of a list of all",
    "DescribeCluster": "none; with `describe` on the cluster the answer has the operations that"
    " the client may do",
    "DescribeObservers": "`describe` on the topic, or on the cluster; others are left out",
    "DescribeReadReplicas": "`describe` on the topic, or on the cluster; others are left out",
    "DescribeLosses": "`describe` on the topic, or on the cluster; others are left out",
    "AlterUserScramCredentials": "`alter` on the cluster",
    "AlterClientQuotas": "`alter-configs` on the cluster",
    "DescribeAcls": "`describe` on the cluster",
    "CreateAcls": "`alter` on the cluster",
    "DeleteAcls": "`alter` on the cluster",
}
"""{API that asks for each part of a request: the rights, in words}"""

OPEN = frozenset(
    {
        "ApiVersions",
        "SaslHandshake",
        "SaslAuthenticate",
        # No connection can have a token: each request is refused.
        "CreateDelegationToken",
        "RenewDelegationToken",
        "ExpireDelegationToken",
        "DescribeDelegationToken",
    }
)
"""The APIs that need no right."""


_BESIDES = {
    "OffsetDelete": " and `read` on each topic",
    "DescribeTier": "; for the whole state of a partition also `read` on the topic",
    "DigestReplica": " and `read` on the topic",
}
"""{API that needs a right as a whole: what its handler asks for besides}"""


def rights_of(api: str) -> str:
    """What an API needs, in words, for the page of APIs."""
    if api in BY_PART:
        return BY_PART[api]
    needed = WHOLE.get(api)
    if needed is None:
        return "none"
    word = needed.operation.name.lower().replace("_", "-")
    return f"`{word}` on the {needed.kind.name.lower()}{_BESIDES.get(api, '')}"


def require_row(api: str) -> None:
    """Fail if an API has no row: a programmer's error."""
    assert api in WHOLE or api in BY_PART or api in OPEN, f"{api} has no requirement"


def require(context: RequestContext, request: Message) -> None:
    """Refuse a request that needs a right as a whole, which the session lacks. Raises ApiError."""
    needed = WHOLE.get(context.api.name)
    if needed is None:
        return
    operation, kind, field = needed
    name = getattr(request, field) if field else CLUSTER_NAME
    if not context.may(operation, kind, name):
        raise ApiError(REFUSALS[kind], REFUSED)


def require_rules(context: RequestContext, operation: Operation) -> None:
    """Refuse a request about rules unless the session may do the operation with the cluster, and
    rules are in force. Raises ApiError."""
    if not context.may(operation, Kind.CLUSTER, CLUSTER_NAME):
        raise ApiError(Error.CLUSTER_AUTHORIZATION_FAILED, REFUSED)
    if not context.services.access.is_enforced:
        raise ApiError(Error.SECURITY_DISABLED, RULES_OFF)
