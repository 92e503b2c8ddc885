"""What requests change, for the audit log: a table.

Why:    the log tells who changed what, without values, records or secrets: a change has names only.
How:    one row for each API that changes something; the answer says which resources were changed,
        and which were refused for which reason. A refusal by rules has its own line already
        (`context.may`), and a request that only validates has none.
Source: decision 0069."""

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple

from strandline.broker.access.requirements import REFUSALS
from strandline.broker.context import RequestContext
from strandline.broker.operations.log_levels import BROKER_LOGGER
from strandline.controller.commands import ResourceType
from strandline.model.access import CLUSTER_NAME, Kind, Operation, Permission
from strandline.protocol.errors import name_of
from strandline.protocol.table import Message
from strandline.security.audit.event import EventKind
from strandline.security.quotas.entities import show_entity
from strandline.security.sasl.secrets import MECHANISM_NUMBERS

ALTER, CREATE, DELETE = Operation.ALTER.name, Operation.CREATE.name, Operation.DELETE.name
TOPIC, GROUP, CLUSTER, USER = Kind.TOPIC.name, Kind.GROUP.name, Kind.CLUSTER.name, Kind.USER.name
BROKER, QUOTA = "BROKER", "CLIENT_QUOTA"
CONFIG_KINDS = {int(one): one.name for one in ResourceType} | {BROKER_LOGGER: "BROKER_LOGGER"}
NAMES_MAX = 10
"""How many names of a list a line has."""


class Change(NamedTuple):
    """One resource that a request changes, and the error if it did not."""

    operation: str
    kind: str
    name: str
    code: int = 0
    details: tuple[tuple[str, str], ...] = ()


# Requests and responses of many APIs go through one table, so their fields have no common type.
Changes = Callable[[Any, Any], Iterable[Change]]


def audit_changes(context: RequestContext, request: Message, response: Message) -> None:
    """Tell the audit log what the request has changed."""
    if context.services.audit is None:
        return
    changes = CHANGES.get(context.api.name)
    if changes is None or getattr(request, "validate_only", False):
        return
    for one in changes(request, response):
        if one.code not in REFUSED_CODES:
            _tell(context, one)


def audit_failure(context: RequestContext, request: Message, code: int) -> None:
    """Tell it of a request that failed as a whole."""
    if (
        context.services.audit is not None
        and context.api.name in CHANGES
        and code not in REFUSED_CODES
        and not getattr(request, "validate_only", False)
    ):
        _tell(context, Change(ALTER, CLUSTER, CLUSTER_NAME, code))


def audit_created(context: RequestContext, topic: str) -> None:
    """Tell it of a topic that a request for metadata has created."""
    if context.services.audit is not None:
        _tell(context, Change(CREATE, TOPIC, topic))


def _tell(context: RequestContext, change: Change) -> None:
    context.audit(
        EventKind.CHANGE,
        is_allowed=True,
        operation=change.operation,
        resource_type=change.kind,
        resource_name=change.name,
        error=name_of(change.code) if change.code else "",
        details=change.details,
        groups=context.groups,
    )


def _listed(names: Iterable[object]) -> str:
    texts = [str(one) for one in names]
    more = f", and {len(texts) - NAMES_MAX} more" if len(texts) > NAMES_MAX else ""
    return ", ".join(texts[:NAMES_MAX]) + more


def _code(rows: Iterable[Any]) -> int:
    """The first error of the rows."""
    return next((one.error_code for one in rows if one.error_code), 0)


def _topics_deleted(request: Any, response: Any) -> Iterator[Change]:
    for one in response.responses:
        yield Change(DELETE, TOPIC, one.name or str(one.topic_id), one.error_code)


def _configs(request: Any, response: Any) -> Iterator[Change]:
    keys = {
        (one.resource_type, one.resource_name): _listed(config.name for config in one.configs)
        for one in request.resources
    }
    for one in response.responses:
        kind = CONFIG_KINDS.get(one.resource_type, str(one.resource_type))
        told = keys.get((one.resource_type, one.resource_name), "")
        yield Change(
            Operation.ALTER_CONFIGS.name, kind, one.resource_name, one.error_code, (("keys", told),)
        )


def _rule(operation: str, rule: Any, code: int) -> Change:
    """A rule: its principal, what it says of which operation from which host."""
    texts = (
        ("rule_principal", rule.principal),
        ("rule", f"{_name(Permission, rule.permission_type)} {_name(Operation, rule.operation)}"),
        ("rule_host", rule.host),
    )
    return Change(operation, _name(Kind, rule.resource_type), rule.resource_name, code, texts)


def _name(kind: Callable[[int], Any], number: int) -> str:
    try:
        return str(kind(number).name)
    except ValueError:
        return str(number)


def _rules_created(request: Any, response: Any) -> Iterator[Change]:
    for rule, result in zip(request.creations, response.results, strict=False):
        yield _rule(CREATE, rule, result.error_code)


def _rules_deleted(request: Any, response: Any) -> Iterator[Change]:
    for wanted, result in zip(request.filters, response.filter_results, strict=False):
        for rule in result.matching_acls:
            yield _rule(DELETE, rule, rule.error_code)
        if result.error_code:
            name = wanted.resource_name_filter or ""
            kind = _name(Kind, wanted.resource_type_filter)
            yield Change(DELETE, kind, name, result.error_code)


def _passwords(request: Any, response: Any) -> Iterator[Change]:
    codes = {one.user: one.error_code for one in response.results}
    for verb, rows in (("set", request.upsertions), ("deleted", request.deletions)):
        for one in rows:
            mechanism = MECHANISM_NUMBERS.get(one.mechanism, str(one.mechanism))
            texts = (("password", verb), ("password_mechanism", mechanism))
            yield Change(ALTER, USER, one.name, codes.get(one.name, 0), texts)


def _quotas(request: Any, response: Any) -> Iterator[Change]:
    for one, result in zip(request.entries, response.entries, strict=False):
        name = show_entity([(entity.entity_type, entity.entity_name) for entity in one.entity])
        keys = _listed(change.key for change in one.ops)
        told = (("keys", keys),)
        yield Change(Operation.ALTER_CONFIGS.name, QUOTA, name, result.error_code, told)


def _moves(request: Any, response: Any) -> Iterator[Change]:
    answered = {one.name: _code(one.partitions) for one in response.responses}
    for one in request.topics:
        numbers = _listed(row.partition_index for row in one.partitions)
        code = response.error_code or answered.get(one.name, 0)
        yield Change(ALTER, TOPIC, one.name, code, (("partitions", numbers),))


def _records_deleted(request: Any, response: Any) -> Iterator[Change]:
    for one in response.topics:
        numbers = _listed(row.partition_index for row in one.partitions)
        yield Change(DELETE, TOPIC, one.name, _code(one.partitions), (("partitions", numbers),))


def _offsets_deleted(request: Any, response: Any) -> Iterator[Change]:
    code = response.error_code or _code(chain(*(one.partitions for one in response.topics)))
    topics = _listed(one.name for one in request.topics)
    yield Change(DELETE, GROUP, request.group_id, code, (("topics", topics),))


def _of_topics(operation: str, rows: str) -> Changes:
    """The topics of an answer, each with its error."""

    def changes(request: Any, response: Any) -> Iterator[Change]:
        for one in getattr(response, rows):
            yield Change(operation, TOPIC, one.name, one.error_code)

    return changes


def _of_request(kind: str, names: Callable[[Any], Iterable[object]], *texts: str) -> Changes:
    """What the request names; `texts`: its fields that the line has, too."""

    def changes(request: Any, response: Any) -> Iterator[Change]:
        details = tuple((one, str(getattr(request, one))) for one in texts)
        for name in names(request):
            yield Change(ALTER, kind, str(name), response.error_code, details)

    return changes


def _partition(request: Any) -> tuple[str]:
    return (f"{request.topic}-{request.partition}",)


CHANGES: dict[str, Changes] = {
    "CreateTopics": _of_topics(CREATE, "topics"),
    "DeleteTopics": _topics_deleted,
    "CreatePartitions": _of_topics(ALTER, "results"),
    "AlterConfigs": _configs,
    "IncrementalAlterConfigs": _configs,
    "CreateAcls": _rules_created,
    "DeleteAcls": _rules_deleted,
    "AlterUserScramCredentials": _passwords,
    "AlterClientQuotas": _quotas,
    "AlterPartitionReassignments": _moves,
    "DeleteRecords": _records_deleted,
    "DeleteGroups": lambda _, response: [
        Change(DELETE, GROUP, one.group_id, one.error_code) for one in response.results
    ],
    "OffsetDelete": _offsets_deleted,
    "ElectLeaders": lambda request, response: [
        Change(ALTER, TOPIC, one.topic, response.error_code or _code(one.partition_result))
        for one in response.replica_election_results
    ],
    "UnregisterBroker": _of_request(BROKER, lambda request: [request.broker_id]),
    "UpdateFeatures": _of_request(
        CLUSTER, lambda request: [one.feature for one in request.feature_updates]
    ),
    "AlterBrokerLabels": lambda request, response: [
        Change(
            ALTER,
            BROKER,
            str(one),
            response.error_code,
            (("labels", _listed(change.name for change in request.changes)),),
        )
        for one in request.broker_ids
    ],
    "RuleZone": _of_request(
        "ZONE", lambda request: [f"{request.region}/{request.zone}".strip("/")], "ruling"
    ),
    "DeclareLost": _of_request("PARTITION", _partition, "by"),
    "RecoverPartition": _of_request("PARTITION", _partition, "by"),
    "IdentifyBucket": lambda request, response: (
        [Change(ALTER, "BUCKET", request.bucket, response.error_code)] if request.bucket_id else []
    ),
    "RepairObject": _of_request("BUCKET", lambda request: [request.bucket], "name"),
    "IsolateBroker": _of_request(CLUSTER, lambda _: [CLUSTER_NAME], "duration_ms", "ends"),
}
"""{API that changes something: what it has changed}"""
REFUSED_CODES = frozenset(int(one) for one in REFUSALS.values())
"""The errors of refusals by rules."""
