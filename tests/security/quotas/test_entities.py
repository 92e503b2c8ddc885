"""What may be limited, which values are legal, and which entities a filter names.

Source: Kafka 4.3's ClientQuotaControlManager, ClientQuotasImage and their tests; KIP-546."""

import pytest

from strandline.security.quotas.entities import (
    NAME_LENGTH_MAX,
    entity_of,
    show_entity,
    why_illegal,
    why_illegal_value,
)
from strandline.security.quotas.entity_filter import (
    Condition,
    Match,
    UnknownTypeError,
    check,
    fits,
)

Names = list[tuple[str, str | None]]
ALICE: Names = [("user", "alice")]


@pytest.mark.parametrize(
    "names",
    [
        ALICE,
        [("user", None)],
        [("client-id", "c")],
        [("user", "alice"), ("client-id", None)],
        [("ip", "10.0.0.1")],
        [("ip", "::1")],
        [("ip", None)],
    ],
)
def test_users_client_ids_and_addresses_may_be_limited(names: Names) -> None:
    assert why_illegal(names) is None


@pytest.mark.parametrize(
    "names",
    [
        [],
        [("group", "g")],
        [("user", "")],
        [("user", "a"), ("user", "b")],
        [("user", "a"), ("ip", "10.0.0.1")],
        [("client-id", "a"), ("ip", None)],
        [("ip", "host.example")],
        [("user", "a" * (NAME_LENGTH_MAX + 1))],
    ],
)
def test_nothing_else_may(names: Names) -> None:
    assert why_illegal(names)


@pytest.mark.parametrize(
    ("key", "value", "is_legal"),
    [
        ("producer_byte_rate", 1_024.0, True),
        ("consumer_byte_rate", 1.0, True),
        ("request_percentage", 0.5, True),
        ("request_percentage", 200.0, True),
        ("producer_byte_rate", 0.0, False),
        ("producer_byte_rate", -1.0, False),
        ("producer_byte_rate", 1.5, False),
        ("producer_byte_rate", 1e30, False),
        ("request_percentage", float("nan"), False),
        ("request_percentage", float("inf"), False),
        ("follower_byte_rate", 1.0, False),
    ],
)
def test_values_are_positive_and_bytes_are_whole(key: str, value: float, is_legal: bool) -> None:
    assert (why_illegal_value(entity_of(ALICE), key, value) is None) is is_legal


def test_an_address_has_none_of_these_quotas() -> None:
    assert why_illegal_value(entity_of([("ip", None)]), "producer_byte_rate", 1.0)


def test_an_entity_is_shown_with_its_defaults() -> None:
    entity = entity_of([("user", None), ("client-id", "c")])
    assert show_entity(entity) == "client-id c, user <default>"
    odd = entity_of([("user", "<default>"), ("client-id", "a\n\x1b[1m")])
    assert show_entity(odd) == r"client-id 'a\n\x1b[1m', user '<default>'"


def test_a_filter_names_what_all_its_conditions_hold_for() -> None:
    pair = entity_of([("user", "alice"), ("client-id", None)])
    alone, default = entity_of(ALICE), entity_of([("user", None)])
    any_user = [Condition("user", Match.ANY, None)]
    assert all(fits(one, any_user, is_strict=False) for one in (pair, alone, default))
    assert [fits(one, any_user, is_strict=True) for one in (pair, alone, default)] == [
        False,
        True,
        True,
    ]
    of_alice = [Condition("user", Match.EXACT, "alice")]
    assert [fits(one, of_alice, is_strict=False) for one in (pair, alone, default)] == [
        True,
        True,
        False,
    ]
    of_default = [Condition("client-id", Match.DEFAULT, None)]
    assert [fits(one, of_default, is_strict=False) for one in (pair, alone)] == [True, False]
    assert fits(pair, [], is_strict=False)
    assert not fits(pair, [], is_strict=True)


@pytest.mark.parametrize(
    "conditions",
    [
        [("", 2, None)],
        [("user", 3, None)],
        [("user", 0, None)],
        [("user", 1, "a")],
        [("user", 2, "a")],
        [("user", 0, "a"), ("user", 2, None)],
        [("ip", 2, None), ("user", 2, None)],
    ],
)
def test_a_filter_that_cannot_be_one_is_refused(
    conditions: list[tuple[str, int, str | None]],
) -> None:
    with pytest.raises(ValueError, match=r".+"):
        check([Condition(*one) for one in conditions])


def test_an_unknown_type_has_an_error_of_its_own() -> None:
    with pytest.raises(UnknownTypeError):
        check([Condition("group", 2, None)])
