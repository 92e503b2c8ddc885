"""Limits how many items a request names, before any of them is looked at.

Why:    a few megabytes can name a million partitions; to read them, or to answer, would hold up
        every election on this broker and take a hundred times the memory of the request.
How:    The decoder of a client's request stops at `ITEM_COUNT_MAX`, and the connection is closed.
        An item that is named twice is answered once, where it could cost much.
Source: reliability reference, "Python traps" (one long handler stalls every election)."""

from collections.abc import Callable, Hashable, Iterable
from typing import TypeVar

ITEM_COUNT_MAX = 100_000
"""Topics, partitions, groups and resources, all together, that one request may name."""

T = TypeVar("T")


def distinct(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """The items, in order, the first of each key."""
    found: dict[Hashable, T] = {}
    for item in items:
        found.setdefault(key(item), item)
    return list(found.values())
