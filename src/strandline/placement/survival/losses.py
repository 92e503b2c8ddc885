"""The worst choice of domains: the most voters that so many lost domains of each level take along.

Why:    "survives a region and one more broker" is a promise over every choice of region and broker.
How:    voters are bits. Domains of one level do not overlap, so of the last level the fullest are
        the worst; of the levels before it every choice is tried. Narrow levels come last.
Owns:   nothing.
Source: decision 0008."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations


@dataclass(frozen=True, slots=True)
class LostDomains:
    """So many domains of one level are lost; `masks` are its domains over the voters' bits."""

    masks: Sequence[int]
    count: int


def worst_loss(levels: Sequence[LostDomains], brokers: int, voters: int) -> int:
    """How many of `voters` voters are lost at most with these domains and `brokers` more brokers.

    Domains of different levels may overlap."""
    return min(worst_mask(levels).bit_count() + brokers, voters)


def worst_mask(levels: Sequence[LostDomains], lost: int = 0) -> int:
    """The voters that are lost in the worst choice; the first of equals."""
    if not levels:
        return lost
    level, *others = levels
    masks = [left for mask in level.masks if (left := mask & ~lost)]
    if len(masks) <= level.count:
        for mask in masks:
            lost |= mask
        return worst_mask(others, lost)
    if not others:
        masks.sort(key=int.bit_count, reverse=True)
        for mask in masks[: level.count]:
            lost |= mask
        return lost
    best = lost
    for chosen in combinations(masks, level.count):
        union = lost
        for mask in chosen:
            union |= mask
        union = worst_mask(others, union)
        if union.bit_count() > best.bit_count():
            best = union
    return best
