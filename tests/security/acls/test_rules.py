"""Which rules are legal, and which rules a filter names.

Source: Kafka 4.3's AclControlManager and ResourcePatternFilter."""

import msgspec
import pytest

from strandline.model.access import Kind, Operation, PatternType, Permission, Rule
from strandline.security.acls.legality import why_illegal
from strandline.security.acls.rule_filter import RuleFilter

LEGAL = Rule(Kind.TOPIC, PatternType.LITERAL, "t", "User:a", "*", Operation.READ, Permission.ALLOW)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"kind": Kind.CLUSTER, "name": "kafka-cluster"},
        {"pattern": PatternType.PREFIXED, "name": "*"},
        {"operation": Operation.ALL},
        {"host": "region:eu"},
        {"principal": "User:CN=a,O=b"},
        {"principal": "Group:analysts"},
    ],
)
def test_legal_rules(changes: dict[str, object]) -> None:
    assert why_illegal(msgspec.structs.replace(LEGAL, **changes)) is None


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"kind": Kind.ANY}, "resource type ANY"),
        ({"kind": Kind.UNKNOWN}, "resource type UNKNOWN"),
        ({"pattern": PatternType.MATCH}, "pattern type MATCH"),
        ({"operation": Operation.ANY}, "operation ANY"),
        ({"permission": Permission.ANY}, "permission ANY"),
        ({"name": ""}, "no name"),
        ({"kind": Kind.CLUSTER, "name": "mine"}, "kafka-cluster"),
        ({"principal": "alice"}, "User:NAME"),
        ({"principal": ":alice"}, "User:NAME"),
        ({"principal": "Group:"}, "Group:NAME"),
        ({"principal": "Group:*"}, "User:* is everyone"),
        ({"host": ""}, "host is empty"),
        ({"host": "region:"}, "host is empty"),
        ({"name": "n" * 2_000}, "longer than 1024"),
    ],
)
def test_illegal_rules(changes: dict[str, object], word: str) -> None:
    assert word in (why_illegal(msgspec.structs.replace(LEGAL, **changes)) or "")


PREFIX = msgspec.structs.replace(LEGAL, pattern=PatternType.PREFIXED, name="or")
STAR = msgspec.structs.replace(LEGAL, name="*")
RULES = {"t": LEGAL, "or": PREFIX, "*": STAR}


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        (RuleFilter(), {"t", "or", "*"}),
        (RuleFilter(kind=Kind.GROUP), set()),
        (RuleFilter(pattern=PatternType.LITERAL), {"t", "*"}),
        (RuleFilter(pattern=PatternType.ANY, name="or"), {"or"}),
        (RuleFilter(pattern=PatternType.MATCH, name="orders"), {"or", "*"}),
        (RuleFilter(pattern=PatternType.MATCH, name="t"), {"t", "*"}),
        (RuleFilter(pattern=PatternType.PREFIXED, name="orders"), set()),
        (RuleFilter(principal="User:b"), set()),
        (RuleFilter(principal="User:a", host="*", permission=Permission.ALLOW), {"t", "or", "*"}),
        (RuleFilter(operation=Operation.ALL), set()),
        (RuleFilter(permission=Permission.DENY), set()),
    ],
)
def test_what_a_filter_names(chosen: RuleFilter, found: set[str]) -> None:
    assert {name for name, rule in RULES.items() if chosen.fits(rule)} == found
    assert not chosen.is_unknown


def test_a_filter_with_an_unknown_number_says_so() -> None:
    assert RuleFilter(kind=Kind.UNKNOWN).is_unknown
