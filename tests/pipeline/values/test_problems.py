"""Summaries count problems by kind, whatever the fields and values are called."""

import pytest

from strandline.pipeline.values.problems import at, kind, shown

KINDS = {
    "trailing bytes": "trailing bytes",
    "field a.b: 12.3456 has more than 2 decimals": "more decimals than fit",
    "unknown field c": "unknown field",
    "field s: ends too early": "ends too early",
    "schema 7 is not in the registry": "unknown schema",
    "schema 7 does not resolve: field a: string into int": "a schema that does not resolve",
    "field a: a boolean of 2": "malformed boolean",
    "field e: 7 is no value of its enum": "unknown symbol",
    "field e: symbol 9 of an enum of 2": "unknown symbol",
    "field e: branch 9 of a union of 2": "malformed union",
    "field expected: is null": "null in a required field",
}


@pytest.mark.parametrize("reason", KINDS)
def test_a_kind_has_neither_field_nor_value(reason: str) -> None:
    assert kind(reason) == KINDS[reason]


def test_values_in_reasons_are_short_and_can_be_stored() -> None:
    assert shown("x" * 50) == "x" * 40 + "…"
    assert at("f", shown("\ud800")).encode() == b"field f: \\ud800"
