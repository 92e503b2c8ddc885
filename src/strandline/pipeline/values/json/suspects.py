"""Finds the records that the fast way may have changed, without reading them twice.

Why:    msgspec keeps the last of duplicate members and cuts the digits of a DOUBLE, in silence.
How:    numpy over the bytes of many records at once:
        - members: each has a colon after its name's closing quote, with only white space between.
          Counting these pairs gives at least the members, for texts may have such pairs, too. If
          the pairs are as many as the values account for, no member was lost.
        - digits: a number of more than 15 digits is a run of 16 bytes out of `./0-9`. A record that
          has as many runs as BIGINTs of 16 digits has no other: an id beside a DOUBLE costs
          nothing. Most other runs are the shortest text of a DOUBLE, and lose nothing.
        - exponents: a DOUBLE that became 0 or subnormal, in a record that has an exponent or -0.
        A suspect is never wrong by itself: it goes the exact way."""

import re
from typing import Any

import msgspec
import numpy as np

_COLON, _QUOTE, _SPACE = ord(":"), ord('"'), ord(" ")
_NO_ZERO = re.compile(rb"[:,\[\s](?:-0|-?[0-9]+(?:\.[0-9]+)?[eE])")
_LONG_NUMBER = re.compile(rb"-?[0-9][0-9.]{14,}(?:[eE][+-]?[0-9]+)?")
DIGITS_RUN = 16


def count_pairs(data: Any, offsets: Any) -> Any:
    """At least the members of each record. `data`: its bytes; `offsets`: where records begin."""
    colons = np.flatnonzero(data == _COLON)
    before = data[colons - 1]
    ends = colons[(before == _QUOTE) | (before <= _SPACE)]
    return np.diff(np.searchsorted(ends, offsets))


def count_long_numbers(data: Any, offsets: Any) -> Any:
    """At least the numbers of more than 15 digits in each record."""
    run = (data - ord(".")) <= ord("9") - ord(".")
    width = 1
    while width < DIGITS_RUN:
        run = run[width:] & run[:-width]
        width *= 2
    starts = np.flatnonzero(run)
    if len(starts):
        starts = starts[np.diff(starts, prepend=-2) > 1]
    return np.diff(np.searchsorted(starts, offsets))


def may_be_no_zero(data: bytes) -> bool:
    """Whether a number of the record may have an exponent, or be -0 (which is 0 for msgspec)."""
    return _NO_ZERO.search(data) is not None


def has_lost_digits(data: bytes) -> bool:
    """Whether a long number of the record may be no DOUBLE's shortest text."""
    try:
        return any(repr(float(one)) != one.decode() for one in _LONG_NUMBER.findall(data))
    except ValueError:
        return True


def count_distinct(data: bytes) -> int:
    """The members of a record that is JSON, duplicates counted once."""
    return _count(msgspec.json.decode(data))


def _count(found: Any) -> int:
    if isinstance(found, dict):
        return len(found) + sum(map(_count, found.values()))
    if isinstance(found, list):
        return sum(map(_count, found))
    return 0
