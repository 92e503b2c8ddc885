"""Compares the digests of one range on several replicas.

Why:    who differs is a matter of counting: a digest says that two replicas differ, not which one
        is right.
How:    replicas with equal digests form a group. The largest group is taken for right; between
        groups of equal size, the one with the leader."""

from collections.abc import Mapping

from strandline.pipeline.audit.tasks import Digest


def groups_of(digests: Mapping[int, Digest]) -> list[tuple[int, ...]]:
    """The brokers with equal digests, the largest group first; one group if all are equal."""
    found: dict[tuple[bytes, int, int], list[int]] = {}
    for broker in sorted(digests):
        one = digests[broker]
        found.setdefault((one.digest, one.records, one.markers), []).append(broker)
    return sorted((tuple(one) for one in found.values()), key=lambda one: (-len(one), one))


def odd_brokers(digests: Mapping[int, Digest], leader: int) -> tuple[int, ...]:
    """The brokers outside the group that is taken for right; none if all are equal."""
    groups = groups_of(digests)
    if len(groups) < 2:
        return ()
    largest = [one for one in groups if len(one) == len(groups[0])]
    right = next((one for one in largest if leader in one), largest[0])
    return tuple(sorted(broker for broker in digests if broker not in right))


def describe(digests: Mapping[int, Digest]) -> str:
    """What each group has, in one line."""
    told = []
    for group in groups_of(digests):
        one = digests[group[0]]
        names = ("broker " if len(group) == 1 else "brokers ") + ", ".join(map(str, group))
        verb = "has" if len(group) == 1 else "have"
        told.append(f"{names} {verb} {_content(one)}")
    return "; ".join(told)


def _content(one: Digest) -> str:
    if not one.records and not one.markers and not one.batches:
        return "nothing"
    words = "record" if one.records == 1 else "records"
    return f"{one.records} {words}, digest {one.digest.hex()[:12]}"
