"""The clients of the table, each with its rules.

How:    one client for each single right; one that may do everything but that; some with the two
        rights that one request needs; some whose rules have prefixes, hosts and wildcards. Rules
        are about the names of `RULED`; nothing but a wildcard covers the names of `HIDDEN`."""

from dataclasses import dataclass

from strandline.model.access import CLUSTER_NAME, Kind, Operation, PatternType, Permission, Rule
from strandline.security.acls.included import OPERATIONS_OF

TOPIC, ABSENT_TOPIC, NEW_TOPIC = "orders", "absent", "new"
HIDDEN_TOPIC, OPEN_TOPIC, CLOSED_TOPIC = "hidden", "open", "closed"
GROUP, ABSENT_GROUP, HIDDEN_GROUP = "readers", "idle", "others"
TOPICS = (TOPIC, HIDDEN_TOPIC, OPEN_TOPIC, CLOSED_TOPIC)
"""The topics that exist: under rules of single clients, of no one, open and closed to everyone."""
RULED: dict[Kind, tuple[str, ...]] = {
    Kind.TOPIC: (TOPIC, ABSENT_TOPIC, NEW_TOPIC),
    Kind.GROUP: (GROUP, ABSENT_GROUP),
    Kind.CLUSTER: (CLUSTER_NAME,),
}
"""{kind: the names that rules are about}; the first one exists."""
HERE, ELSEWHERE = "127.0.0.1", "10.9.9.9"
EVERYONE, EVERY_HOST, EVERYTHING = "User:*", "*", "*"
ADMIN, ROOT, ANONYMOUS = "admin", "root", "ANONYMOUS"
SUPER_USERS = (ADMIN, ROOT)


@dataclass(frozen=True, slots=True)
class Subject:
    """A client. `title`: its rights, in words; `user`: its name; `rules`: its own."""

    title: str
    user: str
    rules: tuple[Rule, ...]


def rules_of(
    user: str,
    operation: Operation,
    kind: Kind,
    *names: str,
    permission: Permission = Permission.ALLOW,
    pattern: PatternType = PatternType.LITERAL,
    host: str = EVERY_HOST,
) -> tuple[Rule, ...]:
    """A rule for each name; without names for those that rules are about."""
    return tuple(
        Rule(kind, pattern, name, f"User:{user}", host, operation, permission)
        for name in names or RULED[kind]
    )


def word(operation: Operation, kind: Kind) -> str:
    """A right, in words."""
    return f"{operation.name} {kind.name.lower()}"


RIGHTS = (
    *((operation, kind) for kind in RULED for operation in (*OPERATIONS_OF[kind], Operation.ALL)),
    (Operation.DELETE, Kind.CLUSTER),
)
"""Every right there is; the last one is about all topics, and no answer lists it."""
PAIRS = (
    ((Operation.READ, Kind.TOPIC), (Operation.READ, Kind.GROUP)),
    ((Operation.DESCRIBE, Kind.TOPIC), (Operation.DESCRIBE, Kind.GROUP)),
    ((Operation.READ, Kind.TOPIC), (Operation.DELETE, Kind.GROUP)),
    ((Operation.WRITE, Kind.TOPIC), (Operation.IDEMPOTENT_WRITE, Kind.CLUSTER)),
    ((Operation.CREATE, Kind.TOPIC), (Operation.DESCRIBE, Kind.TOPIC)),
    ((Operation.CREATE, Kind.TOPIC), (Operation.DESCRIBE_CONFIGS, Kind.TOPIC)),
    ((Operation.CREATE, Kind.CLUSTER), (Operation.DESCRIBE, Kind.TOPIC)),
    ((Operation.ALTER, Kind.CLUSTER), (Operation.DESCRIBE, Kind.TOPIC)),
    ((Operation.DESCRIBE, Kind.CLUSTER), (Operation.DESCRIBE, Kind.TOPIC)),
)
"""Two rights that some request takes together."""


def _everything(user: str) -> tuple[Rule, ...]:
    return tuple(
        rule
        for kind in RULED
        for rule in rules_of(
            user, Operation.ALL, kind, CLUSTER_NAME if kind is Kind.CLUSTER else EVERYTHING
        )
    )


def _patterned(user: str) -> dict[str, tuple[Rule, ...]]:
    read, topic, group = Operation.READ, Kind.TOPIC, Kind.GROUP
    deny, prefixed = Permission.DENY, PatternType.PREFIXED
    return {
        "READ topic ord...": rules_of(user, read, topic, "ord", pattern=prefixed),
        "READ group rea...": rules_of(user, read, group, "rea", pattern=prefixed),
        "READ topic *, READ group *": rules_of(user, read, topic, EVERYTHING)
        + rules_of(user, read, group, EVERYTHING),
        "READ topic from here": rules_of(user, read, topic, host=HERE),
        "READ topic from elsewhere": rules_of(user, read, topic, host=ELSEWHERE),
        "ALL topic, not READ from elsewhere": rules_of(user, Operation.ALL, topic)
        + rules_of(user, read, topic, permission=deny, host=ELSEWHERE),
        "ALL topic, not READ topic ord...": rules_of(user, Operation.ALL, topic)
        + rules_of(user, read, topic, "ord", permission=deny, pattern=prefixed),
        "all but ALL topic": _everything(user)
        + rules_of(user, Operation.ALL, topic, permission=deny),
        "all but DESCRIBE topic *": _everything(user)
        + rules_of(user, Operation.DESCRIBE, topic, EVERYTHING, permission=deny),
        "CREATE topic ne...": rules_of(user, Operation.CREATE, topic, "ne", pattern=prefixed),
    }


def _subjects() -> tuple[Subject, ...]:
    made: list[Subject] = []

    def user() -> str:
        return f"u{len(made)}"

    def add(title: str, rules: tuple[Rule, ...]) -> None:
        made.append(Subject(title, user(), rules))

    add("nothing", ())
    add("all", _everything(user()))
    for operation, kind in RIGHTS:
        add(word(operation, kind), rules_of(user(), operation, kind))
    for operation, kind in RIGHTS:
        if operation is not Operation.ALL:
            denied = rules_of(user(), operation, kind, permission=Permission.DENY)
            add(f"all but {word(operation, kind)}", _everything(user()) + denied)
    for pair in PAIRS:
        title = ", ".join(word(*right) for right in pair)
        add(title, tuple(rule for right in pair for rule in rules_of(user(), *right)))
    for title in _patterned(""):
        add(title, _patterned(user())[title])
    denied = rules_of(ROOT, Operation.ALL, Kind.TOPIC, permission=Permission.DENY)
    made.append(Subject("super user, not ALL topic", ROOT, denied))
    rules = rules_of(ANONYMOUS, Operation.READ, Kind.TOPIC)
    made.append(Subject("READ topic, without a login", ANONYMOUS, rules))
    return tuple(made)


SUBJECTS = _subjects()
FOR_EVERYONE = rules_of("*", Operation.READ, Kind.TOPIC, OPEN_TOPIC) + rules_of(
    "*", Operation.ALL, Kind.TOPIC, CLOSED_TOPIC, permission=Permission.DENY
)
"""Rules that are no client's own."""
OPEN_SUBJECTS = (
    Subject("nothing", "v0", ()),
    Subject("READ topic", "v1", rules_of("v1", Operation.READ, Kind.TOPIC)),
    Subject("READ group", "v2", rules_of("v2", Operation.READ, Kind.GROUP)),
    Subject("DESCRIBE cluster", "v3", rules_of("v3", Operation.DESCRIBE, Kind.CLUSTER)),
    Subject(
        "not READ topic",
        "v4",
        rules_of("v4", Operation.READ, Kind.TOPIC, permission=Permission.DENY),
    ),
)
"""The clients of a cluster with `allow.everyone.if.no.acl.found`; no rule is about `HIDDEN_TOPIC`
and `HIDDEN_GROUP`, some are about the cluster."""
CREATING_SUBJECTS = tuple(
    one
    for one in SUBJECTS
    if one.title in ("nothing", "all", "READ group")
    or " topic" in one.title
    or "CREATE" in one.title
)
"""The clients of a cluster that creates the topics that clients ask for."""
CREATING_SUBJECTS = tuple(
    one
    for one in SUBJECTS
    if one.title in ("nothing", "all", "READ group")
    or " topic" in one.title
    or "CREATE" in one.title
)
"""The clients of a cluster that creates the topics that clients ask for."""
USERS = (ADMIN, *dict.fromkeys(one.user for one in SUBJECTS + OPEN_SUBJECTS))
"""Every user; none of them has a password but its own name."""
