"""JSON text as it stands: members in order with duplicates, numbers as text.

Why:    a parser that builds dicts and floats has lost duplicates and digits before any check.
How:    the standard library's scanner with hooks. It takes NaN, Infinity and lone surrogates, which
        JSON has not: `values/json/exact.py` refuses them where they stand.
Source: RFC 8259."""

import json
from typing import Any

from strandline.pipeline.values.problems import (
    EMPTY,
    NOT_JSON,
    NOT_UTF8,
    TOO_DEEP,
    UnfitValueError,
)

_SPACE = " \t\n\r"


class Members(list[tuple[str, Any]]):
    """A JSON object: (name, value) in the order of the text."""


class Number(str):
    """The text of a JSON number, or NaN, Infinity, -Infinity."""

    __slots__ = ()


_DECODER = json.JSONDecoder(
    object_pairs_hook=Members, parse_float=Number, parse_int=Number, parse_constant=Number
)


def parse(data: bytes) -> tuple[Any, bool]:
    """(None, bool, str, Number, list or Members; whether other bytes follow). UnfitValueError."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise UnfitValueError(NOT_UTF8) from None
    start = len(text) - len(text.lstrip(_SPACE))
    if start == len(text):
        raise UnfitValueError(EMPTY)
    try:
        found, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise UnfitValueError(TOO_DEEP) from None
    except ValueError:
        raise UnfitValueError(NOT_JSON) from None
    return found, bool(text[end:].strip(_SPACE))
