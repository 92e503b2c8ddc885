"""What rules allow: Kafka's cases one by one, and any rules against a reading of the definition.

Source: Kafka 4.3's StandardAuthorizer and its tests; KIP-11, KIP-290; decision 0069."""

import gc
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.model import access as access_module
from strandline.model.access import Kind, Operation, PatternType, Permission, Rule, caller_of
from strandline.security.acls.authoriser import RuleAuthoriser
from strandline.security.session import Principal, Session

ALICE, BOB = "User:alice", "User:bob"
HOST, OTHER_HOST = "10.0.0.1", "10.0.0.2"
READ, WRITE, DESCRIBE = Operation.READ, Operation.WRITE, Operation.DESCRIBE
DENY, ALLOW = Permission.DENY, Permission.ALLOW


def rule(
    operation: Operation,
    permission: Permission = ALLOW,
    *,
    name: str = "orders",
    pattern: PatternType = PatternType.LITERAL,
    principal: str = ALICE,
    host: str = "*",
    kind: Kind = Kind.TOPIC,
) -> Rule:
    return Rule(kind, pattern, name, principal, host, operation, permission)


def prefix(operation: Operation, permission: Permission = ALLOW, *, name: str) -> Rule:
    return rule(operation, permission, name=name, pattern=PatternType.PREFIXED)


def judge(*rules: Rule, region: str = "", **options: bool) -> RuleAuthoriser:
    authoriser = RuleAuthoriser(super_users=["User:root"], **options)
    authoriser.set_rules(rules, region=region)
    return authoriser


def allows(
    authoriser: RuleAuthoriser,
    operation: Operation,
    name: str = "orders",
    *,
    principal: str = ALICE,
    host: str = HOST,
    groups: Iterable[str] = (),
) -> bool:
    caller = caller_of(principal, host, groups)
    return authoriser.judge(caller, operation, Kind.TOPIC, name).is_allowed


def test_without_rules_all_is_denied_but_to_super_users() -> None:
    authoriser = judge()
    assert not allows(authoriser, READ)
    assert allows(authoriser, READ, principal="User:root")


def test_resources_without_rules_may_be_open_to_all() -> None:
    authoriser = judge(rule(READ), allows_without_rules=True)
    assert allows(authoriser, WRITE, "payments", principal=BOB)
    assert not allows(authoriser, READ, principal=BOB)
    assert not allows(authoriser, WRITE)


def test_a_denial_precedes_every_permission_but_a_super_user() -> None:
    authoriser = judge(
        rule(Operation.ALL, name="*"),
        rule(READ, DENY, principal="User:*"),
        rule(READ, principal="User:root"),
    )
    assert not allows(authoriser, READ)
    assert allows(authoriser, READ, principal="User:root")
    assert allows(authoriser, READ, "payments")


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_what_includes_describe(operation: Operation) -> None:
    assert allows(judge(rule(operation)), DESCRIBE)
    assert not allows(judge(rule(operation)), Operation.DESCRIBE_CONFIGS)
    assert allows(judge(rule(DESCRIBE), rule(operation, DENY)), DESCRIBE)


def test_altering_configs_includes_describing_them() -> None:
    authoriser = judge(rule(Operation.ALTER_CONFIGS))
    assert allows(authoriser, Operation.DESCRIBE_CONFIGS)
    assert not allows(authoriser, DESCRIBE)


def test_all_is_every_operation_and_a_denial_of_all_too() -> None:
    assert all(allows(judge(rule(Operation.ALL)), one) for one in (READ, DESCRIBE, WRITE))
    assert not allows(judge(rule(READ), rule(Operation.ALL, DENY)), READ)


def test_hosts_and_principals() -> None:
    authoriser = judge(rule(READ, host=HOST), rule(WRITE, principal="User:*"))
    assert allows(authoriser, READ) and not allows(authoriser, READ, host=OTHER_HOST)
    assert not allows(authoriser, READ, principal=BOB)
    assert allows(authoriser, WRITE, principal=BOB, host=OTHER_HOST)


def test_prefixes_of_one_letter_and_whole_names() -> None:
    authoriser = judge(prefix(READ, name="o"), prefix(READ, DENY, name="order-secret"))
    assert allows(authoriser, READ, "orders") and allows(authoriser, READ, "o")
    assert not allows(authoriser, READ, "payments")
    assert not allows(authoriser, READ, "order-secrets")


def test_a_literal_star_is_all_and_a_prefix_star_is_a_name() -> None:
    assert allows(judge(rule(READ, name="*")), READ, "payments")
    authoriser = judge(prefix(READ, name="*"))
    assert not allows(authoriser, READ, "payments") and allows(authoriser, READ, "*x")


def test_a_rule_of_a_region_holds_by_way_of_its_brokers_only() -> None:
    rules = rule(READ, host="region:eu"), rule(WRITE), rule(WRITE, DENY, host="region:us")
    eu, us, unknown = (judge(*rules, region=region) for region in ("eu", "us", ""))
    assert allows(eu, READ) and allows(eu, WRITE)
    assert not allows(us, READ) and not allows(us, WRITE)
    assert not allows(unknown, READ) and allows(unknown, WRITE)


def test_a_rule_of_a_group_is_one_of_each_user_in_it() -> None:
    authoriser = judge(rule(READ, principal="Group:analysts"), rule(WRITE))
    assert allows(authoriser, READ, groups=["others", "analysts"])
    assert allows(authoriser, READ, principal=BOB, groups=["analysts"])
    assert not allows(authoriser, WRITE, principal=BOB, groups=["analysts"])
    assert authoriser.allows_any(caller_of(BOB, HOST, ["analysts"]), READ, Kind.TOPIC)
    assert not authoriser.allows_any(caller_of(BOB, HOST, ["others"]), READ, Kind.TOPIC)


def test_answers_of_one_user_with_other_groups_are_others() -> None:
    """The groups are part of what an answer is kept for."""
    authoriser = judge(rule(READ, principal="Group:analysts"))
    for _ in range(2):
        assert allows(authoriser, READ, groups=["analysts"])
        assert not allows(authoriser, READ)
        assert not allows(authoriser, READ, groups=["analyst"])
        assert not allows(authoriser, READ, groups=["others"])
        assert allows(authoriser, READ, groups=["others", "analysts"])


def test_a_denial_of_a_group_counts_whatever_else_allows() -> None:
    authoriser = judge(
        rule(READ, principal="Group:analysts"),
        rule(READ),
        rule(READ, DENY, principal="Group:interns"),
        rule(READ, principal="User:*"),
    )
    assert allows(authoriser, READ) and allows(authoriser, READ, groups=["analysts"])
    assert not allows(authoriser, READ, groups=["analysts", "interns"])
    assert not authoriser.allows_any(caller_of(ALICE, HOST, ["interns"]), READ, Kind.TOPIC)


def test_a_users_name_is_no_group_and_a_groups_name_no_user() -> None:
    authoriser = judge(rule(READ, principal="Group:a"), rule(WRITE, principal="User:g"))
    for user in ("User:a", "User:Group:a", "User:User:g"):
        assert not allows(authoriser, READ, principal=user)
        assert not allows(authoriser, WRITE, principal=user)
    for group in ("User:g", "g", "Group:a", "", "*"):
        assert not allows(authoriser, READ, principal=BOB, groups=[group])
        assert not allows(authoriser, WRITE, principal=BOB, groups=[group])


def test_super_users_may_be_groups_and_are_never_everyone() -> None:
    authoriser = RuleAuthoriser(super_users=["Group:operators", "User:*"])
    authoriser.set_rules([rule(Operation.ALL, DENY, name="*", principal="User:*")])
    assert allows(authoriser, READ, groups=["operators"])
    assert not allows(authoriser, READ) and not allows(authoriser, READ, groups=["*"])


def test_a_verdict_names_the_groups_that_decided_it() -> None:
    authoriser = judge(
        rule(READ, principal="Group:analysts"),
        rule(READ, principal="Group:readers"),
        rule(DESCRIBE),
        rule(WRITE, DENY, principal="Group:readers"),
    )
    alice = caller_of(ALICE, HOST, ["readers", "analysts", "others"])
    told = {
        operation: authoriser.judge(alice, operation, Kind.TOPIC, "orders")
        for operation in (READ, DESCRIBE, WRITE, Operation.ALTER)
    }
    assert told == {
        READ: (True, ("analysts", "readers")),
        DESCRIBE: (True, ()),
        WRITE: (False, ("readers",)),
        Operation.ALTER: (False, ()),
    }


def test_equal_sets_of_groups_are_one_object_until_no_session_has_it() -> None:
    gc.collect()
    before = len(access_module._shared)
    one, other = (
        Session(principal=Principal.user("a"), groups=frozenset(f"g{n}" for n in range(1_000)))
        for _ in range(2)
    )
    assert one.groups is other.groups and one.caller.principals is other.caller.principals
    assert len(access_module._shared) == before + 2
    del one, other
    gc.collect()
    assert len(access_module._shared) == before


def test_users_of_many_groups_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.security.acls.authoriser.KEPT_PRINCIPALS_MAX", 100)
    authoriser = judge(rule(READ, principal="Group:g0"))
    for number in range(50):
        groups = [f"g{one}" for one in range(number % 5, 18)]
        for _ in range(2):
            user = f"User:{number}"
            assert allows(authoriser, READ, principal=user, groups=groups) is ("g0" in groups)
        assert sum(len(one.principals) for one in authoriser._kept) < 100 + 20


def test_new_rules_hold_at_once() -> None:
    authoriser = judge(rule(READ))
    assert allows(authoriser, READ)
    authoriser.set_rules([])
    assert not allows(authoriser, READ)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([rule(WRITE)], True),
        ([rule(WRITE), rule(WRITE, DENY)], False),
        ([rule(WRITE), rule(WRITE, DENY, name="*")], False),
        ([rule(WRITE, name="*"), rule(WRITE, DENY)], True),
        ([prefix(WRITE, name="or"), rule(WRITE, DENY)], True),
        ([prefix(WRITE, name="or"), prefix(WRITE, DENY, name="o")], False),
        ([prefix(WRITE, name="or"), prefix(Operation.ALL, DENY, name="ord")], True),
        ([rule(WRITE), prefix(WRITE, DENY, name="ord")], False),
        ([rule(WRITE, principal=BOB), rule(READ)], False),
        ([rule(Operation.ALL)], True),
    ],
)
def test_writing_to_some_topic(rules: list[Rule], expected: bool) -> None:
    assert judge(*rules).allows_any(caller_of(ALICE, HOST), WRITE, Kind.TOPIC) is expected


# ---- any rules ---------------------------------------------------------------------------------

INCLUDES = {
    DESCRIBE: {READ, WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}
names = st.text("ab", min_size=1, max_size=3)
operations = st.sampled_from([one for one in Operation if one > Operation.ANY])
rules_of_any_kind = st.builds(
    Rule,
    st.sampled_from([Kind.TOPIC, Kind.GROUP]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    names | st.just("*"),
    st.sampled_from([ALICE, BOB, "User:*", "Group:a", "Group:b"]),
    st.sampled_from([HOST, OTHER_HOST, "*", "region:eu", "region:us"]),
    operations,
    st.sampled_from([ALLOW, DENY]),
)


def by_definition(rules: Iterable[Rule], operation: Operation, kind: Kind, name: str) -> bool:
    """Alice, of group a, from HOST by a broker in `eu`, read off Kafka's documentation."""
    covering = [
        one
        for one in rules
        if one.kind is kind
        and (
            name.startswith(one.name)
            if one.pattern is PatternType.PREFIXED
            else one.name in (name, "*")
        )
    ]
    mine = [
        one
        for one in covering
        if one.principal in (ALICE, "User:*", "Group:a") and one.host in (HOST, "*", "region:eu")
    ]
    for one in mine:
        if one.permission is DENY and one.operation in (operation, Operation.ALL):
            return False
    wanted = {operation, Operation.ALL} | INCLUDES.get(operation, set())
    return any(one.permission is ALLOW and one.operation in wanted for one in mine)


@settings(max_examples=100)
@given(st.lists(rules_of_any_kind, max_size=12), operations, names)
def test_any_rules_are_judged_by_the_definition(
    rules: list[Rule], operation: Operation, name: str
) -> None:
    authoriser, alice = judge(*rules, region="eu"), caller_of(ALICE, HOST, ["a"])
    for kind in (Kind.TOPIC, Kind.GROUP):
        expected = by_definition(rules, operation, kind, name)
        for _ in range(2):
            assert authoriser.judge(alice, operation, kind, name).is_allowed is expected


def test_made_up_names_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client may ask about any names, and be refused for each."""
    monkeypatch.setattr("strandline.security.acls.authoriser.KEPT_ANSWERS_MAX", 100)
    authoriser = judge(prefix(READ, name="o"))
    for number in range(60):
        for principal in (ALICE, BOB):
            name = f"o-{number}"
            expected = principal == ALICE
            assert allows(authoriser, READ, name, principal=principal) is expected
            assert allows(authoriser, READ, name, principal=principal) is expected
            assert allows(authoriser, READ, name * 200, principal=principal) is expected
            assert authoriser.kept_count <= 100
    assert authoriser.kept_count == 20


@pytest.mark.parametrize(
    ("written", "client"),
    [
        ("2001:DB8:0:0:0:0:0:5", "2001:db8::5"),  # As Java, and so Kafka, writes it.
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1"),
    ],
)
def test_a_rule_is_about_an_address_in_any_spelling(written: str, client: str) -> None:
    authoriser = judge(rule(READ), rule(READ, DENY, host=written))
    assert not allows(authoriser, READ, host=client)
    assert allows(authoriser, READ, host="2001:db8::6")
