"""The reasons why a value does not fit its type: short, stable, one line.

Why:    people group dead letters by reason, so that the same fault must read the same everywhere.
How:    a reason names the field (`a.b`; `.element` and `.value` lead into arrays and maps) and the
        value where that helps. `kind` takes both away: it is what summaries count."""

from typing import Final

NOT_UTF8: Final = "not UTF-8"
NOT_JSON: Final = "not JSON"
EMPTY: Final = "empty value"
TRAILING: Final = "trailing bytes"
TOO_DEEP: Final = "nested too deeply"

VALUE_CHARS_MAX = 40
"""So much of a value is shown in a reason."""

_KINDS: Final = {
    "duplicate field": "duplicate field",
    "duplicate key": "duplicate key",
    "unknown field": "unknown field",
    "missing field": "missing field",
    "is null": "null in a required field",
    "expected": "wrong type",
    "not exact as": "not exact",
    "is not written as an integer": "not an integer",
    "out of range for": "out of range",
    "decimals of a second": "more decimals of a second than fit",
    "decimals": "more decimals than fit",
    "lone surrogate": "lone surrogate",
    "has no time zone": "timestamp without a time zone",
    "has a time zone": "timestamp with a time zone",
    "is not a date": "not a date",
    "is not a timestamp": "not a timestamp",
    "is not base64": "not base64",
    "ends too early": "ends too early",
    "is not in the registry": "unknown schema",
    "no schema": "no known schema",
    "does not resolve": "a schema that does not resolve",
    "of more than": "malformed number",
    "a boolean of": "malformed boolean",
    "of its enum": "unknown symbol",
    "of an enum": "unknown symbol",
    "of a union": "malformed union",
}
"""{words of a reason: its kind}; the first that a reason has counts."""


class UnfitValueError(Exception):
    """A value does not fit; the message is the reason. It never leaves this room."""


def kind(reason: str) -> str:
    """The reason without the names of fields and values: what a summary counts."""
    head, colon, tail = reason.partition(": ")
    told = tail if colon and head.startswith("field ") else reason
    return next((found for words, found in _KINDS.items() if words in told), told)


def at(path: str, reason: str) -> str:
    """The reason, with the field that it is about."""
    return f"field {path}: {reason}" if path else reason


def shown(text: str) -> str:
    """A value for a reason: short, and encodable as UTF-8."""
    return encodable(text if len(text) <= VALUE_CHARS_MAX else text[:VALUE_CHARS_MAX] + "…")


def encodable(text: str) -> str:
    """The text, with lone surrogates as escapes."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def join(path: str, name: str) -> str:
    """The path of a part."""
    return f"{path}.{name}" if path else name
