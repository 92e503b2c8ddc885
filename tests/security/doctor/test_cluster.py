"""`strandline doctor security` of a running cluster: rules, users, and what strangers may do.

Source: docs/operating/security.md, "What is open"."""

import pytest

from strandline.model.access import CLUSTER_NAME, Kind, Operation, PatternType, Permission, Rule
from strandline.security.doctor.cluster import (
    ClusterAccess,
    Stranger,
    access_findings,
    stranger_findings,
)

ALLOW, DENY = Permission.ALLOW, Permission.DENY
TOPIC, GROUP, CLUSTER = Kind.TOPIC, Kind.GROUP, Kind.CLUSTER
READ, DESCRIBE, ALL = Operation.READ, Operation.DESCRIBE, Operation.ALL
GOOD = 8_192


def rule(
    kind: Kind, name: str, principal: str, operation: Operation, permission: Permission = ALLOW
) -> Rule:
    return Rule(kind, PatternType.LITERAL, name, principal, "*", operation, permission)


MIA = rule(TOPIC, "orders", "User:mia", READ)


def told(*rules: Rule, users: dict[str, dict[str, int]] | None = None) -> list[tuple[str, str]]:
    """(level, what) of a cluster whose user mia has a rule."""
    access = ClusterAccess(
        rules=[MIA, *rules],
        users={"mia": {"SCRAM-SHA-256": GOOD}, **(users or {})},
        super_users=["User:mia"],
        has_default_quota=True,
    )
    return [(one.level.value, one.what) for one in access_findings(access)]


def test_a_cluster_in_order_has_no_finding() -> None:
    assert told() == []
    assert told(rule(TOPIC, "*", "User:*", ALL, DENY)) == []


RULES = [
    (rule(TOPIC, "*", "User:*", READ), "open", "every user may read topic *"),
    (rule(TOPIC, "*", "User:*", DESCRIBE), "weak", "every user may describe topic *"),
    (rule(TOPIC, "news", "User:*", READ), "note", "every user may read topic news"),
    (rule(GROUP, "*", "User:*", READ), "open", "every user may read group *"),
    (
        rule(CLUSTER, CLUSTER_NAME, "User:*", ALL),
        "open",
        "every user may do everything with cluster kafka-cluster",
    ),
    (
        rule(TOPIC, "news", "User:ANONYMOUS", READ),
        "open",
        "clients without a login may read topic news",
    ),
    (
        rule(TOPIC, "news", "User:ANONYMOUS", DESCRIBE),
        "weak",
        "clients without a login may describe topic news",
    ),
    (
        rule(CLUSTER, CLUSTER_NAME, "User:mia", Operation.ALTER),
        "note",
        "User:mia may change users and rules, and so everything",
    ),
    (
        rule(CLUSTER, CLUSTER_NAME, "Group:staff", ALL),
        "note",
        "Group:staff may change users and rules, and so everything",
    ),
    (
        rule(TOPIC, "orders", "User:gone", READ),
        "note",
        "rules name principal User:gone without a password in the cluster",
    ),
]


@pytest.mark.parametrize(("wide", "level", "what"), RULES)
def test_wide_rules_are_named(wide: Rule, level: str, what: str) -> None:
    assert told(wide) == [(level, what)]


def test_users_without_rules_or_with_few_iterations_are_named() -> None:
    found = told(users={name: {"SCRAM-SHA-512": 4_096} for name in "abcdefg"})
    assert found[0] == ("note", "no rule is about users a, b, c, d, e and 2 more")
    assert found[1] == ("weak", "SCRAM-SHA-512 of user a has 4096 iterations")
    assert len(found) == 1 + 7


def test_a_command_that_is_advised_quotes_a_users_name() -> None:
    access = ClusterAccess(rules=[], users={"a;reboot": {"SCRAM-SHA-512": 4_096}}, super_users=[])
    advice = [one.advice for one in access_findings(access) if "iterations" in one.what]
    assert advice == ["give the password again: `strandline user create 'a;reboot'`"]


def test_super_users_without_a_login_and_a_missing_default_quota_are_named() -> None:
    access = ClusterAccess(rules=[], users={}, super_users=["User:root"], has_default_quota=False)
    assert [one.what for one in access_findings(access)] == [
        "User:root has no password in the cluster",
        "users without a quota of their own have none",
    ]


def test_what_a_stranger_may_do_is_named_by_its_operations() -> None:
    seen = Stranger(
        address="h:9092",
        is_served=True,
        cluster=frozenset({DESCRIBE, Operation.ALTER}),
        topics={
            "a": frozenset({READ}),
            "b": frozenset({READ}),
            "c": frozenset({DESCRIBE}),
            "d": frozenset(),
        },
    )
    way = "a client without a login (without TLS) may do"
    assert [(one.level.value, one.what) for one in stranger_findings(seen)] == [
        ("open", f"{way} alter with the cluster"),
        ("open", f"{way} read with topics a, b"),
        ("weak", f"{way} describe with topic c"),
    ]


def test_a_stranger_who_is_served_nothing_is_weak_and_one_who_is_not_served_is_none() -> None:
    (found,) = stranger_findings(Stranger(address="h:9092", is_served=True, is_tls=True))
    assert found.level == "weak"
    assert stranger_findings(Stranger(address="h:9092")) == []


def test_groups_of_tokens_have_no_password() -> None:
    access = ClusterAccess(rules=[], users={}, super_users=["Group:staff"])
    assert [one.what for one in access_findings(access)] == [
        "everyone whose token names Group:staff may do everything"
    ]
