"""Lists what placements survive: each level by itself, and combinations of two.

Why:    a user reads "a region, or a zone and one more broker", and not a table of all cases.
How:    Goals are tried from the small to the large; what another goal implies is left out: a
        placement that survives a region survives any zone in it. Twice: for writes that continue by
        themselves, and for acknowledged writes that are not lost. `fates` says what each loss does.
        A promotion by region acts once a whole region is down: there a smaller loss may stop what a
        larger one does not, and is named.
Source: decision 0008."""

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import combinations

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Goal, goal_levels
from strandline.placement.survival.course import Course
from strandline.placement.survival.courses import REGION_LOST, Rules
from strandline.placement.survival.failures import FailureSets, smallest_failures
from strandline.placement.survival.fates import Fates
from strandline.placement.survival.replicas import LOSS_LEVELS, Placement
from strandline.placement.topology.labels import BROKER_LABEL
from strandline.placement.topology.universe import LEVELS


class LevelSurvival(msgspec.Struct, frozen=True):
    """How many domains of one level may be lost at the same time, whichever they are."""

    level: str
    domains: int
    """That hold voters, and what else decides whether writes go on."""
    writes: int
    """Lost, and writes go on by themselves."""
    data: int
    """Lost, and no acknowledged write is."""
    unlabelled: tuple[BrokerId, ...] = ()
    """Voters' brokers that do not say where they are: counted as one domain."""


class Survived(msgspec.Struct, frozen=True):
    """The losses that are survived."""

    writes: tuple[Goal, ...] = ()
    """The largest with which writes go on by themselves; none implies another."""
    data: tuple[Goal, ...] = ()
    """The largest with which no acknowledged write is lost."""
    writes_but_not: tuple[Goal, ...] = ()
    """Losses that lie within one of `writes`, and stop writes all the same."""


class Survival(msgspec.Struct, frozen=True):
    """What a placement survives and what it does not."""

    voters: int
    write_quorum: int
    levels: tuple[LevelSurvival, ...]
    """Widest first; levels on which no voter has a label are left out."""
    writes: tuple[Goal, ...]
    """See `Survived`, and the next two."""
    data: tuple[Goal, ...]
    stopping: tuple[FailureSets, ...]
    """By level: the fewest domains whose loss stops writes."""
    losing: tuple[FailureSets, ...]
    """By level: the fewest domains whose loss may take an acknowledged write along."""
    lost: tuple[BrokerId, ...] = ()
    """Voters that are counted as lost already: all of the above is about the others."""
    has_stopped: bool = False
    """Whether so many are lost already that writes have stopped."""
    writes_but_not: tuple[Goal, ...] = ()


def acts_alone(course: Course) -> bool:
    """Whether writes continue without help."""
    return course.acts_alone


def keeps_data(course: Course) -> bool:
    """Whether no acknowledged write is lost."""
    return course.keeps_data


def survival_of(placement: Placement, rules: Rules | None = None) -> Survival:
    """All of it, for one placement with at least one voter; further losses, where some are down or
    behind. `rules`: where not those by which voters never leave."""
    rules = rules or Rules()
    fates = Fates(placement, rules)
    left = placement.without(placement.lost)
    levels = loss_levels([left])
    found = survived([placement], rules)
    has_stopped = placement.has_stopped
    return Survival(
        voters=placement.quorum.voters,
        write_quorum=placement.quorum.write_quorum,
        levels=tuple(
            LevelSurvival(
                level=level,
                domains=len(fates.counted(level)),
                writes=_most(fates, level, fates.acts_alone),
                data=_most(fates, level, fates.keeps_data),
                unlabelled=left.unlabelled(level),
            )
            for level in levels
        ),
        writes=found.writes,
        data=found.data,
        stopping=tuple(smallest_failures(fates, level, acts_alone) for level in levels),
        losing=tuple(smallest_failures(fates, level, keeps_data) for level in levels),
        lost=placement.lost,
        has_stopped=has_stopped,
        writes_but_not=found.writes_but_not,
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


def survived(
    placements: Collection[Placement], rules: Rules, *, goals: Iterable[Goal] = ()
) -> Survived:
    """What all of these placements survive: losses over at most two levels, and those of `goals`.

    Of placements that are alike, one is looked at."""
    levels = loss_levels(one.without(one.lost) for one in placements)
    every = (Fates(one, rules) for one in placements)
    alike = list({(one.key if rules.shrinks else one.voting_key): one for one in every}.values())
    if not alike:
        return Survived()
    most = max(len(one.placement.voters) - len(one.placement.lost) for one in alike)

    def keeps(goal: Goal) -> bool:
        return all(one.keeps_data(goal) for one in alike)

    data = _holding(levels, most, keeps)
    data += [one for one in dict.fromkeys(goals) if one not in data and keeps(one)]
    # Writes that go on have lost nothing.
    writes = [goal for goal in data if all(one.acts_alone(goal) for one in alike)]
    largest = _largest(writes)
    return Survived(
        writes=largest,
        data=_largest(data),
        writes_but_not=tuple(
            one
            for one in (data if rules.promotion == REGION_LOST else ())
            if one not in writes and any(implies(other, one) for other in largest)
        ),
    )


def _holding(levels: Sequence[str], most: int, holds: Callable[[Goal], bool]) -> list[Goal]:
    """The goals over at most two levels that hold, where a larger one never does if a smaller one
    does not. Each domain takes a voter at least: no more than `most` are lost."""
    found: list[Goal] = []
    reach: dict[str, int] = {}
    for level in levels:
        reach[level] = next(
            (count for count in range(most) if not holds(Goal(**{level: count + 1}))), most
        )
        found += [Goal(**{level: count}) for count in range(1, reach[level] + 1)]
    for a, b in combinations(levels, 2):
        limit = reach[b]
        for count in range(1, reach[a] + 1):
            limit = next(
                (more for more in range(limit) if not holds(Goal(**{a: count, b: more + 1}))),
                limit,
            )
            found += [Goal(**{a: count, b: more}) for more in range(1, limit + 1)]
    return found


def _largest(goals: Sequence[Goal]) -> tuple[Goal, ...]:
    """Those that no other implies."""
    return tuple(
        goal for goal in goals if not any(other != goal and implies(other, goal) for other in goals)
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


def _most(fates: Fates, level: str, holds: Callable[[Goal], bool]) -> int:
    """How many domains of a level may be lost, whichever."""
    every = len(fates.counted(level))
    return next((count for count in range(every) if not holds(Goal(**{level: count + 1}))), every)
