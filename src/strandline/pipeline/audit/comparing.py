"""Compares the digests of one range on several replicas, or in several buckets.

Why:    who differs is a matter of counting: a digest says that two replicas differ, not which one
        is right.
How:    holders with equal digests form a group. The largest group is taken for right; between
        groups of equal size, the one with the leader."""

from collections.abc import Iterable, Mapping
from typing import TypeVar

from strandline.pipeline.audit.tasks import Digest, Holder

H = TypeVar("H", bound=Holder)


def groups_of(digests: Mapping[H, Digest]) -> list[tuple[H, ...]]:
    """The holders with equal digests, the largest group first; one group if all are equal."""
    found: dict[tuple[bytes, int, int], list[H]] = {}
    for holder in sorted(digests, key=_order):
        one = digests[holder]
        found.setdefault((one.digest, one.records, one.markers), []).append(holder)
    groups = [tuple(one) for one in found.values()]
    return sorted(groups, key=lambda one: (-len(one), [_order(each) for each in one]))


def odd_holders(digests: Mapping[H, Digest], leader: H) -> tuple[H, ...]:
    """The holders outside the group that is taken for right; none if all are equal."""
    groups = groups_of(digests)
    if len(groups) < 2:
        return ()
    largest = [one for one in groups if len(one) == len(groups[0])]
    right = next((one for one in largest if leader in one), largest[0])
    return tuple(sorted((one for one in digests if one not in right), key=_order))


def describe(digests: Mapping[H, Digest]) -> str:
    """What each group has, in one line."""
    told = []
    for group in groups_of(digests):
        verb = "has" if len(group) == 1 else "have"
        told.append(f"{names_of(group)} {verb} {_content(digests[group[0]])}")
    return "; ".join(told)


def names_of(holders: Iterable[Holder]) -> str:
    """Brokers and buckets, as a sentence names them."""
    chosen = tuple(holders)
    parts = []
    for word, kind in (("broker", int), ("bucket", str)):
        names = [str(one) for one in chosen if isinstance(one, kind)]
        if names:
            parts.append(word + "s" * (len(names) > 1) + " " + ", ".join(names))
    return " and ".join(parts)


def _order(holder: Holder) -> tuple[bool, int, str]:
    """Brokers by their ids, then buckets by name."""
    return (True, 0, holder) if isinstance(holder, str) else (False, holder, "")


def _content(one: Digest) -> str:
    if not one.records and not one.markers and not one.batches:
        return "nothing"
    words = "record" if one.records == 1 else "records"
    return f"{one.records} {words}, digest {one.digest.hex()[:12]}"
