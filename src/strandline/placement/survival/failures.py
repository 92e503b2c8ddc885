"""The smallest sets of failures that stop a partition's writes or lose what it acknowledged.

Source: decision 0008."""

from itertools import combinations

import msgspec

from strandline.placement.survival.replicas import Placement, format_domain

LISTED_MAX = 16


class FailureSets(msgspec.Struct, frozen=True):
    """The fewest domains of one level that do it."""

    level: str
    size: int
    """How many have to be lost at the same time; 0 when all together do not do it, or nothing more
    has to be."""
    sets: tuple[tuple[str, ...], ...]
    """Which ones, by their paths; at most LISTED_MAX of them."""
    count: int
    """How many such sets there are."""


def smallest_failures(placement: Placement, level: str, voters_lost: int) -> FailureSets:
    """The fewest domains of a level whose loss takes so many voters."""
    if voters_lost <= 0:
        return FailureSets(level=level, size=0, sets=(), count=0)
    domains = placement.domains(level)
    counts = {format_domain(domain): mask.bit_count() for domain, mask in domains.items()}
    fullest = sorted(counts.values(), reverse=True)
    size = next(
        (size for size in range(1, len(fullest) + 1) if sum(fullest[:size]) >= voters_lost), 0
    )
    sets = [
        names
        for names in combinations(sorted(counts), size)
        if size and sum(counts[name] for name in names) >= voters_lost
    ]
    return FailureSets(level=level, size=size, sets=tuple(sets[:LISTED_MAX]), count=len(sets))
