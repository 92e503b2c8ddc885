"""The first few names of a list, and how many more there are.

Why:    a refusal is one line, whatever the number of topics that it concerns."""

from collections.abc import Sequence

NAMED_MAX = 3


def listed(texts: Sequence[str], *, noun: str = "") -> str:
    """`a, b, c and 2 more`; with a noun, in the plural: `a, b, c and 2 more partitions`."""
    shown = ", ".join(texts[:NAMED_MAX])
    more = len(texts) - NAMED_MAX
    if more <= 0:
        return shown
    return f"{shown} and {more} more {noun}".rstrip()
