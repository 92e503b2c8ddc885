"""`strandline acl`: rules that say which user may do what.

How:    the options have the names of kafka-acls.sh's.
Source: docs/operating/security-rules.md; KIP-140, KIP-290; decision 0069."""

from typing import TYPE_CHECKING, Annotated

import typer

from strandline.base.errors import OperatorError
from strandline.base.json_value import Json
from strandline.cli.options import DEFAULT_TIMEOUT_S, AsJson, Bootstrap, Timeout, open_client
from strandline.cli.output import Table, counted, print_line, print_table, show

if TYPE_CHECKING:
    from strandline.model.access import Kind, Operation, PatternType, Permission, Rule
    from strandline.security.acls.rule_filter import RuleFilter

app = typer.Typer(help="Rules: which user may do what (Kafka's ACLs).", no_args_is_help=True)

Allowed = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-principal",
        metavar="User:NAME",
        help="The rule allows it; User:* for all, Group:NAME for users whose tokens name it.",
    ),
]
Denied = Annotated[
    list[str] | None,
    typer.Option(
        "--deny-principal",
        metavar="User:NAME",
        help="The rule denies it, even if another rule allows it.",
    ),
]
Operations = Annotated[
    list[str] | None,
    typer.Option(
        "--operation",
        metavar="NAME",
        help="read, write, create, delete, alter, describe, describe-configs, alter-configs, "
        "cluster-action, idempotent-write or all; may be repeated; default: all.",
    ),
]
Topics = Annotated[list[str] | None, typer.Option("--topic", metavar="NAME", help="A topic, or *.")]
Groups = Annotated[
    list[str] | None, typer.Option("--group", metavar="NAME", help="A consumer group, or *.")
]
OfCluster = Annotated[bool, typer.Option("--cluster", help="The cluster as a whole.")]
Prefixed = Annotated[
    bool, typer.Option("--prefixed", help="Names are beginnings of names.", show_default=False)
]
Hosts = Annotated[
    list[str] | None,
    typer.Option("--host", metavar="ADDRESS", help="Only from this address; default: from all."),
]
Regions = Annotated[
    list[str] | None,
    typer.Option("--region", metavar="NAME", help="Only by way of brokers of this region."),
]
Principals = Annotated[
    str, typer.Option("--principal", metavar="User:NAME", help="Only rules of this one.")
]
EVERY_HOST = "*"
EVERY_TOPIC = "*"


@app.command()
def create(
    allow_principal: Allowed = None,
    deny_principal: Denied = None,
    operation: Operations = None,
    topic: Topics = None,
    group: Groups = None,
    cluster: OfCluster = False,
    prefixed: Prefixed = False,
    host: Hosts = None,
    region: Regions = None,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Add a rule for each principal, operation, resource and host."""
    from strandline.client.operations.rules import add_rules
    from strandline.model.access import REGION_HOST, PatternType, Permission, Rule
    from strandline.security.acls.legality import why_illegal

    if prefixed and EVERY_TOPIC in (topic or ()):
        raise OperatorError("--prefixed --topic *: no topic begins with *; * alone is every topic")
    principals = [(one, Permission.ALLOW) for one in allow_principal or ()]
    principals += [(one, Permission.DENY) for one in deny_principal or ()]
    if not principals:
        raise OperatorError("name a principal: --allow-principal or --deny-principal")
    resources = _resources(topic, group, is_cluster=cluster)
    if not resources:
        raise OperatorError("name a resource: --topic, --group or --cluster")
    hosts = [*(host or ()), *(REGION_HOST + one for one in region or ())] or [EVERY_HOST]
    pattern = PatternType.PREFIXED if prefixed else PatternType.LITERAL
    rules = [
        Rule(kind, pattern, name, principal, one_host, _operation(one), permission)
        for kind, name in resources
        for principal, permission in principals
        for one in operation or ("all",)
        for one_host in hosts
    ]
    for rule in rules:
        reason = why_illegal(rule)
        if reason is not None:
            raise OperatorError(reason)
    with open_client(bootstrap, timeout) as client:
        add_rules(client, rules)
    _show(rules, as_json=as_json)


@app.command("list")
def list_(
    topic: Topics = None,
    group: Groups = None,
    cluster: OfCluster = False,
    principal: Principals = "",
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """List rules: all, or those that cover the named resources."""
    from strandline.client.operations.rules import list_rules

    with open_client(bootstrap, timeout) as client:
        found: dict[Rule, None] = {}
        for wanted in _filters(topic, group, principal, is_cluster=cluster, is_exact=False):
            found |= dict.fromkeys(list_rules(client, wanted))
    _show(list(found), as_json=as_json)


@app.command()
def delete(
    topic: Topics = None,
    group: Groups = None,
    cluster: OfCluster = False,
    principal: Principals = "",
    operation: Operations = None,
    everything: Annotated[
        bool, typer.Option("--all", help="All rules that fit, also without a resource.")
    ] = False,
    bootstrap: Bootstrap = "",
    timeout: Timeout = DEFAULT_TIMEOUT_S,
    as_json: AsJson = False,
) -> None:
    """Remove the rules on the named resources, and show them."""
    import msgspec

    from strandline.client.operations.rules import remove_rules

    if not everything and not (topic or group or cluster):
        raise OperatorError("name a resource: --topic, --group or --cluster; or give --all")
    filters = _filters(topic, group, principal, is_cluster=cluster, is_exact=True)
    if operation:
        filters = [
            msgspec.structs.replace(one, operation=_operation(name))
            for one in filters
            for name in operation
        ]
    removed: dict[Rule, None] = {}
    with open_client(bootstrap, timeout) as client:
        for wanted in filters:
            removed |= dict.fromkeys(remove_rules(client, wanted))
    _show(list(removed), as_json=as_json, ending=" removed")


# ---- words ---------------------------------------------------------------------------------------


def _operation(name: str) -> "Operation":
    from strandline.model.access import Operation

    spelled = name.upper().replace("-", "_")
    known = {one.name: one for one in Operation if one > Operation.ANY}
    if spelled not in known:
        names = ", ".join(map(_word, known.values()))
        raise OperatorError(f"--operation {name}: must be one of {names}")
    return known[spelled]


def _resources(
    topics: list[str] | None, groups: list[str] | None, *, is_cluster: bool
) -> "list[tuple[Kind, str]]":
    from strandline.model.access import CLUSTER_NAME, Kind

    found = [(Kind.TOPIC, one) for one in topics or ()]
    found += [(Kind.GROUP, one) for one in groups or ()]
    if is_cluster:
        found.append((Kind.CLUSTER, CLUSTER_NAME))
    return found


def _filters(
    topics: list[str] | None,
    groups: list[str] | None,
    principal: str,
    *,
    is_cluster: bool,
    is_exact: bool,
) -> "list[RuleFilter]":
    """A filter for each resource; `is_exact`: rules on this very name, not those that cover it."""
    from strandline.model.access import PatternType
    from strandline.security.acls.rule_filter import RuleFilter

    pattern = PatternType.ANY if is_exact else PatternType.MATCH
    return [
        RuleFilter(kind, pattern, name, principal or None)
        for kind, name in _resources(topics, groups, is_cluster=is_cluster)
    ] or [RuleFilter(principal=principal or None)]


def _show(rules: "list[Rule]", *, as_json: bool, ending: str = "") -> None:
    def print_all() -> None:
        lines = [
            (
                f"{_word(one.kind)} {one.name}",
                _word(one.pattern),
                one.principal,
                one.host,
                _word(one.operation),
                _word(one.permission),
            )
            for one in rules
        ]
        if lines:
            heads = ("RESOURCE", "PATTERN", "PRINCIPAL", "HOST", "OPERATION", "PERMISSION")
            print_table(Table(heads, lines))
        print_line(counted(len(rules), "rule") + ending)

    told: list[Json] = [
        {
            "resource_type": _word(one.kind),
            "resource": one.name,
            "pattern": _word(one.pattern),
            "principal": one.principal,
            "host": one.host,
            "operation": _word(one.operation),
            "permission": _word(one.permission),
        }
        for one in rules
    ]
    show(told, as_json=as_json, people=print_all)


def _word(value: "Kind | PatternType | Operation | Permission") -> str:
    return value.name.lower().replace("_", "-")
