"""The smallest sets of failures that stop a partition's writes or lose what it acknowledged.

Source: decision 0008."""

from collections.abc import Callable
from itertools import combinations

import msgspec

from strandline.placement.survival.course import Course
from strandline.placement.survival.fates import Fates, union
from strandline.placement.survival.replicas import format_domain

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


def smallest_failures(fates: Fates, level: str, holds: Callable[[Course], bool]) -> FailureSets:
    """The fewest domains of a level after whose loss this is so no longer."""
    domains = fates.counted(level)
    names = sorted((format_domain(domain), mask) for domain, mask in domains.items())
    if holds(fates.of(0).course):
        for size in range(1, len(names) + 1):
            sets = [
                tuple(name for name, _ in some)
                for some in combinations(names, size)
                if not holds(fates.of(union(mask for _, mask in some)).course)
            ]
            if sets:
                return FailureSets(level, size, tuple(sets[:LISTED_MAX]), len(sets))
    return FailureSets(level=level, size=0, sets=(), count=0)
