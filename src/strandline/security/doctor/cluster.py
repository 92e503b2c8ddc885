"""Findings of a running cluster: its rules, users and configuration, and what strangers may do.

Why:    rules and users are in the cluster, not in a broker's file; and what a client without a
        login may do is best found out by being one.
Owns:   nothing.
Source: docs/operating/security.md, "What is open"."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote

from strandline.model.access import (
    GROUP_PREFIX,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    Kind,
    Operation,
    Permission,
    Rule,
)
from strandline.security.doctor.finding import Finding, Level
from strandline.security.sasl.iterations import ITERATIONS_DEFAULT
from strandline.security.session import ANONYMOUS, USER

NAMES_MAX = 5
"""Names in one finding; the number of others follows."""
_HARMLESS = frozenset({Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS})
_OF_A_RULER = frozenset({Operation.ALL, Operation.ALTER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """What a client without a login and without a certificate gets at one address.

    is_served: whether its requests are answered.
    cluster:   the operations that it may do with the cluster.
    topics:    {topic: the operations that it may do}, of the topics that it sees."""

    address: str
    is_served: bool = False
    is_tls: bool = False
    cluster: frozenset[Operation] = frozenset()
    topics: Mapping[str, frozenset[Operation]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess:
    """What a cluster says about access. `users`: {user: {mechanism: iterations}}, of those with a
    password in the cluster. `has_default_quota`: whether users without a quota of their own have
    one; None if the cluster does not say."""

    rules: Sequence[Rule]
    users: Mapping[str, Mapping[str, int]]
    super_users: Sequence[str]
    has_default_quota: bool | None = None


def stranger_findings(stranger: Stranger) -> list[Finding]:
    """Findings at one address."""
    if not stranger.is_served:
        return []
    way = "over TLS, without a certificate" if stranger.is_tls else "without TLS"
    found = []
    beyond = stranger.cluster - _HARMLESS
    if beyond:
        found.append(
            Finding(
                Level.OPEN,
                "login",
                f"a client without a login ({way}) may do {_words(beyond)} with the cluster",
                "close the listener, or enforce rules ([access] enforce_rules)",
            )
        )
    for operations, names in _by_operations(stranger.topics).items():
        is_bad = bool(operations - _HARMLESS)
        found.append(
            Finding(
                Level.OPEN if is_bad else Level.WEAK,
                "login",
                f"a client without a login ({way}) may do {_words(operations)} with "
                f"{_few('topic', names)}",
                f"close the listener, or remove the rules of {ANONYMOUS} and {WILDCARD_PRINCIPAL}",
            )
        )
    if not found:
        found.append(
            Finding(
                Level.WEAK,
                "login",
                f"a client without a login ({way}) is served, and sees no topic",
                'write protocol = "SASL_SSL" or client_certificates = "required"',
            )
        )
    return found


def access_findings(access: ClusterAccess) -> list[Finding]:
    """Findings of rules, users and quotas."""
    return [
        *_rules(access.rules),
        *_users(access),
        *_super_users(access),
        *_quotas(access),
    ]


def _rules(rules: Iterable[Rule]) -> Iterator[Finding]:
    for rule in sorted(rules):
        if rule.permission is not Permission.ALLOW:
            continue
        is_everything = rule.name == WILDCARD or rule.kind is Kind.CLUSTER
        if rule.principal == str(ANONYMOUS):
            level = Level.WEAK if rule.operation in _HARMLESS else Level.OPEN
            yield Finding(level, "acl", f"clients without a login may {_told(rule)}", _undo(rule))
        elif rule.principal == WILDCARD_PRINCIPAL and is_everything:
            level = Level.WEAK if rule.operation in _HARMLESS else Level.OPEN
            yield Finding(level, "acl", f"every user may {_told(rule)}", _undo(rule))
        elif rule.principal == WILDCARD_PRINCIPAL:
            yield Finding(Level.NOTE, "acl", f"every user may {_told(rule)}", _undo(rule))
        elif rule.kind is Kind.CLUSTER and rule.operation in _OF_A_RULER:
            yield Finding(
                Level.NOTE,
                "acl",
                f"{rule.principal} may change users and rules, and so everything",
                _undo(rule),
            )


def _users(access: ClusterAccess) -> Iterator[Finding]:
    ruled = {one.principal for one in access.rules}
    supers = set(access.super_users)
    if WILDCARD_PRINCIPAL not in ruled:
        idle = [one for one in access.users if f"{USER}:{one}" not in ruled | supers]
        if idle:
            yield Finding(
                Level.NOTE,
                "user",
                f"no rule is about {_few('user', idle)}",
                "give them rules, or remove them: `strandline user delete`",
            )
    known = {f"{USER}:{one}" for one in access.users} | supers
    known |= {WILDCARD_PRINCIPAL, str(ANONYMOUS)}
    unknown = sorted(one for one in ruled - known if not one.startswith(GROUP_PREFIX))
    if unknown:
        yield Finding(
            Level.NOTE,
            "acl",
            f"rules name {_few('principal', unknown)} without a password in the cluster",
            "remove the rules, unless certificates, tokens or a users file have such principals",
        )
    for user, mechanisms in sorted(access.users.items()):
        for mechanism, iterations in mechanisms.items():
            if iterations < ITERATIONS_DEFAULT:
                yield Finding(
                    Level.WEAK,
                    "user",
                    f"{mechanism} of user {user} has {iterations} iterations",
                    f"give the password again: `strandline user create {quote(user)}`",
                )


def _super_users(access: ClusterAccess) -> Iterator[Finding]:
    for principal in access.super_users:
        if principal.startswith(GROUP_PREFIX):
            yield Finding(
                Level.NOTE,
                "[access] super_users",
                f"everyone whose token names {principal} may do everything",
                "see that the identity provider lets no user choose groups",
            )
        elif principal.partition(":")[2] not in access.users:
            yield Finding(
                Level.NOTE,
                "[access] super_users",
                f"{principal} has no password in the cluster",
                "see that a users file, a certificate or a token is this principal, or take it out",
            )


def _quotas(access: ClusterAccess) -> Iterator[Finding]:
    if access.has_default_quota is False:
        yield Finding(
            Level.NOTE,
            "quota",
            "users without a quota of their own have none",
            "`strandline quota set request_percentage=50 --default-user`, for example",
        )


def _by_operations(
    topics: Mapping[str, frozenset[Operation]],
) -> dict[frozenset[Operation], list[str]]:
    found: dict[frozenset[Operation], list[str]] = {}
    for name, operations in sorted(topics.items()):
        if operations:
            found.setdefault(operations, []).append(name)
    return found


def _told(rule: Rule) -> str:
    verb = _word(rule.operation)
    if rule.operation is Operation.ALL:
        verb = "do everything with"
    return f"{verb} {_word(rule.kind)} {rule.name}"


def _undo(rule: Rule) -> str:
    """The command that takes a rule back. Names are quoted: others choose them."""
    name, principal = quote(rule.name), quote(rule.principal)
    verb = _word(rule.operation)
    match rule.kind:
        case Kind.TOPIC:
            line = (
                f"`strandline acl delete --topic {name} --principal {principal} --operation {verb}`"
            )
        case Kind.GROUP:
            line = (
                f"`strandline acl delete --group {name} --principal {principal} --operation {verb}`"
            )
        case Kind.CLUSTER:
            line = f"`strandline acl delete --cluster --principal {principal} --operation {verb}`"
        case _:
            line = f"`strandline acl delete --all --principal {principal} --operation {verb}`"
    return f"{line}, if it may not"


def _words(operations: Iterable[Operation]) -> str:
    return ", ".join(_word(one) for one in sorted(operations))


def _word(value: Kind | Operation) -> str:
    return value.name.lower().replace("_", "-")


def _few(noun: str, names: Sequence[str]) -> str:
    """`topic a`, `topics a, b and 3 more`."""
    told = ", ".join(names[:NAMES_MAX])
    more = f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else ""
    return f"{noun}{'' if len(names) == 1 else 's'} {told}{more}"
