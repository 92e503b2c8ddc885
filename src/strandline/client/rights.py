"""What a client may not do, in one line: who, the operation, and the resource.

Why:    a broker that refuses says "Authorization failed". A job that runs for hours should know at
        its start that it lacks a right, and which.
How:    brokers tell a client which operations it may do (KIP-430). Rules may count in some regions
        only, so each broker is asked that the job will ask. Brokers that do not tell are passed
        over: their refusal comes later.
Source: KIP-430; decision 0069."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from strandline.base.errors import ApiError, OperatorError
from strandline.client.access import AccessTransport
from strandline.client.admin import find_coordinator
from strandline.client.client_config import ANONYMOUS
from strandline.client.cluster import Client
from strandline.client.wire.side_by_side import look_at_each
from strandline.model.access import Kind, Operation
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)
from strandline.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

REFUSALS = frozenset(
    (
        Error.TOPIC_AUTHORIZATION_FAILED,
        Error.GROUP_AUTHORIZATION_FAILED,
        Error.CLUSTER_AUTHORIZATION_FAILED,
    )
)


class MissingRightError(OperatorError):
    """No rule allows what the client wants to do."""


def missing_right(
    client: Client, operation: Operation, kind: Kind, name: str = "", *, by: str = ""
) -> MissingRightError:
    """The error for a right that the client lacks. `by`: the brokers that would refuse, if not all
    would."""
    verb, principal = operation.name.lower().replace("_", "-"), principal_of(client)
    resource = f"{kind.name.lower()} {name}" if name else f"the {kind.name.lower()}"
    who = _quoted(principal)
    allow = {
        Kind.TOPIC: f"strandline acl create --allow-principal {who} --operation {verb} --topic ",
        Kind.GROUP: f"strandline acl create --allow-principal {who} --operation {verb} --group ",
        Kind.CLUSTER: f"strandline acl create --allow-principal {who} --operation {verb} --cluster",
    }
    return MissingRightError(
        f"{principal} may not {verb} {resource}{by}; to allow it: {allow[kind]}{name}"
    )


def principal_of(client: Client) -> str:
    """The user that rules are about."""
    transport = client.transport
    return transport.principal if isinstance(transport, AccessTransport) else ANONYMOUS


@contextmanager
def naming_right(
    client: Client, operation: Operation, kind: Kind, name: str = ""
) -> Iterator[None]:
    """Refusals of the block become errors that name the right."""
    try:
        yield
    except ApiError as error:
        if not is_refused(error):
            raise
        raise missing_right(client, operation, kind, name) from error


def is_refused(error: Exception) -> bool:
    """Whether a broker answered that the client has no right to it."""
    return isinstance(error, ApiError) and error.code in REFUSALS


def require_topics(
    client: Client, topics: Sequence[str], operation: Operation, *, of_replicas: bool = False
) -> None:
    """Raises MissingRightError if the leader of a partition of these topics would refuse; or, with
    `of_replicas`, a broker that has a replica."""
    view = client.metadata(list(topics))
    for name in topics:
        if name in view.topics and view.topics[name].error_code == Error.TOPIC_AUTHORIZATION_FAILED:
            raise missing_right(client, operation, Kind.TOPIC, name)
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=one) for one in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    told = look_at_each(client, view.brokers, request, MetadataResponse)
    refusing: dict[str, set[BrokerId]] = defaultdict(set)
    for broker, answer in told.items():
        for one in answer.topics:
            hidden = one.error_code == Error.TOPIC_AUTHORIZATION_FAILED
            if hidden or _lacks(one.topic_authorized_operations, operation):
                refusing[one.name or ""].add(broker)
    for name, brokers in sorted(refusing.items()):
        partitions = view.topics[name].partitions
        asked = {one.leader for one in partitions}
        if of_replicas:
            asked.update(BrokerId(broker) for one in partitions for broker in one.replicas)
        if asked & brokers:
            broker = min(asked & brokers)
            region = view.brokers[broker].rack
            has = "has a replica" if of_replicas else "leads it"
            where = f" by broker {broker}{f' in {region}' if region else ''}, which {has}"
            by = "" if brokers == told.keys() else where
            raise missing_right(client, operation, Kind.TOPIC, name, by=by)


def require_cluster(client: Client, operation: Operation) -> None:
    """Raises MissingRightError if a broker that is up would refuse."""
    brokers = client.metadata().brokers
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)
    told = look_at_each(client, brokers, request, DescribeClusterResponse)
    lacking = [
        str(broker)
        for broker, answer in told.items()
        if _lacks(answer.cluster_authorized_operations, operation)
    ]
    if lacking:
        several = f" by broker{'s' if len(lacking) > 1 else ''} {', '.join(sorted(lacking))}"
        by = "" if len(lacking) == len(told) else several
        raise missing_right(client, operation, Kind.CLUSTER, by=by)


def require_group(client: Client, group: str) -> None:
    """Raises MissingRightError if the group's coordinator would refuse to commit offsets."""
    with naming_right(client, Operation.READ, Kind.GROUP, group):
        coordinator = client.attempt(lambda until: find_coordinator(client, group, until))
    request = DescribeGroupsRequest(groups=[group], include_authorized_operations=True)
    answer = client.look(coordinator, request, DescribeGroupsResponse)
    for one in () if answer is None else answer.groups:
        hidden = one.error_code == Error.GROUP_AUTHORIZATION_FAILED
        if hidden or _lacks(one.authorized_operations, Operation.READ):
            raise missing_right(client, Operation.READ, Kind.GROUP, group)


_NOT_TOLD = -(2**31)


def _lacks(operations: int, operation: Operation) -> bool:
    return operations != _NOT_TOLD and not operations & 1 << operation


def _quoted(principal: str) -> str:
    plain = principal.replace(":", "").replace("-", "").replace("_", "").replace(".", "")
    return principal if plain.isalnum() else f"'{principal}'"
