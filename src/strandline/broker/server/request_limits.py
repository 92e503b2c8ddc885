"""Limits how many items a request names, before any of them is looked at.

Why:    a few megabytes can name a million partitions; the answer would hold up every election on
        this broker, and could be a thousand times as long as the request.
How:    Beyond `ITEM_COUNT_MAX` the connection is closed. An item that is named twice is answered
        once, where it could cost much.
Source: reliability reference, "Python traps" (one long handler stalls every election)."""

from collections.abc import Callable, Hashable, Iterable
from functools import cache
from typing import TypeVar

import msgspec

from strandline.base.errors import ProtocolError
from strandline.protocol.table import columns

ITEM_COUNT_MAX = 100_000
"""Topics, partitions, groups and resources, all together, that one request may name."""

T = TypeVar("T")


def require_few(count: int) -> None:
    """Raises ProtocolError for a request that names too many items."""
    if count > ITEM_COUNT_MAX:
        raise ProtocolError(f"a request that names {count} items; the limit is {ITEM_COUNT_MAX}")


def count_items(message: msgspec.Struct) -> int:
    """The elements of all arrays in a message, at every depth; exact up to ITEM_COUNT_MAX."""
    total = 0
    for name, is_nested in _arrays(type(message)):
        elements = getattr(message, name)
        if not elements:
            continue
        total += len(elements)
        if is_nested:
            for element in elements:
                if total > ITEM_COUNT_MAX:
                    break
                total += count_items(element)
    return total


def distinct(items: Iterable[T], key: Callable[[T], Hashable]) -> list[T]:
    """The items, in order, the first of each key."""
    found: dict[Hashable, T] = {}
    for item in items:
        found.setdefault(key(item), item)
    return list(found.values())


@cache
def _arrays(cls: type[msgspec.Struct]) -> tuple[tuple[str, bool], ...]:
    """(name, whether its elements hold arrays themselves) of every array."""
    return tuple(
        (column.name, column.element is not None and bool(_arrays(column.element)))
        for column in columns(cls)
        if column.is_array
    )
