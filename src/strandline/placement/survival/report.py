"""Lists what a placement survives: each level by itself, and combinations of two.

Why:    a user reads "a region, or a zone and one more broker", and not a table of all cases.
How:    Goals are tried from the small to the large; what another goal implies is left out: a
        placement that survives a region survives any zone in it. Twice: for writes that continue by
        themselves, and for acknowledged writes that are not lost.
Source: decision 0008."""

from collections.abc import Collection, Iterable
from itertools import combinations

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Goal, goal_levels
from strandline.placement.survival.failures import (
    FailureSets,
    smallest_failures,
)
from strandline.placement.survival.replicas import LOSS_LEVELS, Placement
from strandline.placement.topology.labels import BROKER_LABEL
from strandline.placement.topology.universe import LEVELS


class LevelSurvival(msgspec.Struct, frozen=True):
    """How many domains of one level may be lost at the same time, whichever they are."""

    level: str
    domains: int
    """That hold voters."""
    writes: int
    """Lost, and writes go on by themselves."""
    data: int
    """Lost, and no acknowledged write is."""
    unlabelled: tuple[BrokerId, ...] = ()
    """Voters' brokers that do not say where they are: counted as one domain."""


class Survival(msgspec.Struct, frozen=True):
    """What a placement survives and what it does not."""

    voters: int
    write_quorum: int
    levels: tuple[LevelSurvival, ...]
    """Widest first; levels on which no voter has a label are left out."""
    writes: tuple[Goal, ...]
    """The largest losses with which writes go on by themselves; none implies another."""
    data: tuple[Goal, ...]
    """The largest losses with which no acknowledged write is lost."""
    stopping: tuple[FailureSets, ...]
    """By level: the fewest domains whose loss stops writes."""
    losing: tuple[FailureSets, ...]
    """By level: the fewest domains whose loss may take an acknowledged write along."""
    lost: tuple[BrokerId, ...] = ()
    """Voters that are counted as lost already: all of the above is about the others."""
    has_stopped: bool = False
    """Whether so many are lost already that writes have stopped."""


def survival_of(placement: Placement, *, lost: Collection[BrokerId] = ()) -> Survival:
    """All of it, for one placement with at least one voter, when these brokers are lost already."""
    quorum = placement.quorum
    gone = tuple(one.broker for one in placement.voters if one.broker in lost)
    if gone:
        placement = placement.without(gone)
    levels = loss_levels([placement])
    writes_max, data_max = quorum.stops_at - 1 - len(gone), quorum.loses_at - 1 - len(gone)
    return Survival(
        voters=quorum.voters,
        write_quorum=quorum.write_quorum,
        levels=tuple(
            LevelSurvival(
                level=level,
                domains=len(placement.domains(level)),
                writes=_most(placement, level, writes_max),
                data=_most(placement, level, data_max),
                unlabelled=placement.unlabelled(level),
            )
            for level in levels
        ),
        writes=largest_goals(placement, levels, lost_max=writes_max),
        data=largest_goals(placement, levels, lost_max=data_max),
        stopping=tuple(smallest_failures(placement, level, writes_max + 1) for level in levels),
        losing=tuple(smallest_failures(placement, level, data_max + 1) for level in levels),
        lost=gone,
        has_stopped=writes_max < 0,
    )


def loss_levels(placements: Iterable[Placement]) -> list[str]:
    """The levels on which some voter says where it is, widest first."""
    placements = list(placements)
    return [
        level
        for level in LOSS_LEVELS
        if level == BROKER_LABEL
        or any(len(one.unlabelled(level)) < len(one.voters) for one in placements)
    ]


def largest_goals(placement: Placement, levels: list[str], *, lost_max: int) -> tuple[Goal, ...]:
    """The goals over at most two levels that take at most `lost_max` voters; none implied."""
    return common_goals([(placement, lost_max)], levels)


def common_goals(
    placements: Collection[tuple[Placement, int]], levels: list[str]
) -> tuple[Goal, ...]:
    """The goals over at most two levels that hold for all of these placements, each with the most
    voters that it may lose; none implied.

    Of those whose voters are together in the same way, one is looked at."""
    placements = list(
        {
            (lost_max, *(tuple(one.domains(level).values()) for level in levels)): (one, lost_max)
            for one, lost_max in placements
        }.values()
    )
    most = min((lost_max for _, lost_max in placements), default=0)
    held: list[Goal] = []
    pairs = [(level,) for level in levels] + list(combinations(levels, 2))
    for pair in pairs:
        for counts in _counts(len(pair), most):
            goal = Goal(**dict(zip(pair, counts, strict=True)))
            if all(one.survives(goal, lost_max=lost_max) for one, lost_max in placements):
                held.append(goal)
    return tuple(
        goal for goal in held if not any(other != goal and implies(other, goal) for other in held)
    )


def implies(survived: Goal, other: Goal) -> bool:
    """Whether a placement that survives `survived` survives `other`: each of its losses lies
    within one. A domain of a nested level holds those of the narrower ones, and every domain
    holds brokers."""
    left = goal_levels(survived)
    wanted = goal_levels(other)
    for level in LOSS_LEVELS:
        for _ in range(wanted.get(level, 0)):
            cover = next((one for one in _covering(level) if left.get(one)), None)
            if cover is None:
                return False
            left[cover] -= 1
    return True


def _covering(level: str) -> tuple[str, ...]:
    """The levels whose domains hold those of this one, the narrowest first."""
    if level == "upgrade_domain":
        return ("upgrade_domain",)
    if level == BROKER_LABEL:
        return tuple(reversed(LOSS_LEVELS))
    return tuple(reversed(LEVELS[: LEVELS.index(level) + 1]))


def _most(placement: Placement, level: str, lost_max: int) -> int:
    counts = sorted((mask.bit_count() for mask in placement.domains(level).values()), reverse=True)
    most = lost = 0
    for count in counts:
        lost += count
        if lost > lost_max:
            break
        most += 1
    return most


def _counts(levels: int, lost_max: int) -> list[tuple[int, ...]]:
    """So many losses of each level; each takes a voter at least, so no more than `lost_max`."""
    if levels == 1:
        return [(count,) for count in range(1, lost_max + 1)]
    return [(a, b) for a in range(1, lost_max) for b in range(1, lost_max - a + 1)]
