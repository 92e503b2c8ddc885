"""What a loss does to a partition: it continues by itself, needs an operator, or has lost data.

Why:    an operator who learns in an outage that a partition needs help could have known it at the
        beginning, and chosen other replicas.
How:    For each class of loss all choices of such domains are tried, over the brokers of the voters
        and of the controller's voters; the worst one counts. `survival.courses` has the table of
        what becomes of a partition, `survival.fates` the choices. What is down or behind counts as
        lost before: then the table begins now.

        A network cut is the same for each of its two sides, except that it loses nothing: the
        brokers on the other side live. An observer counts if the policy promotes by the number of
        voters left; with "region-lost", for each voter of a region that the controller takes for
        down. If only the link between two regions is cut, `cut_links` says which side continues:
        the worst of that counts, and no region is down.
Source: design section 6; decisions 0016, 0020, 0025 and 0026."""

from collections.abc import Collection, Iterable, Sequence

import msgspec

from strandline.placement.policy.document import Goal, goal_levels
from strandline.placement.policy.goals import format_goal
from strandline.placement.survival.course import Course
from strandline.placement.survival.courses import REGION_LOST, Rules
from strandline.placement.survival.fates import Fate, Fates
from strandline.placement.survival.replicas import Placement
from strandline.placement.survival.report import loss_levels, survived
from strandline.placement.topology.labels import BROKER_LABEL

REGION = "region"
LINK = "link between 2 regions"


class Outcome(msgspec.Struct, frozen=True):
    """The worst that one class of loss does to the partitions of a topic."""

    loss: str
    """In words: "1 region", "2 brokers", "link between 2 regions"."""
    goal: Goal
    """The same: how many domains of each level are lost at the same time; of a link, those that it
    joins."""
    is_cut: bool
    """Whether they are cut off by the network, and live."""
    course: Course
    acts_alone: bool
    keeps_data: bool
    left: int
    """Voters that are left; after a cut, on the side that goes on, or would."""
    voters: int
    write_quorum: int
    back: int
    """So many voters of those that are lost have to return before acks=all goes on by itself,
    whichever of them, and whichever loss of this class it is that ends like this."""
    without_controller: bool
    """Whether the majority of the controller's voters is lost with them, or not reached."""
    is_inside: bool
    """Whether, after a cut, it is the side that was cut off that goes on."""
    partitions: tuple[int, ...]
    """The partitions that fare so; others fare better."""
    stand_ins: int = 0
    """So many observers are promoted; once voters may leave, where they may not."""
    awaits_region: bool = False
    """Whether they are promoted no sooner than a region is taken for down."""
    observers: int = 0
    """So many are left, whether they may be promoted or not."""
    is_link: bool = False
    """Whether only the link between the regions is cut, and others reach both."""


def outcomes(
    placements: Sequence[tuple[Placement, tuple[int, ...]]],
    rules: Rules,
    *,
    goals: Iterable[Goal] = (),
) -> tuple[Outcome, ...]:
    """What each class of loss does.

    They are one domain of each level that voters tell of, two of the widest, one of these and one
    more broker, the largest losses that are survived, those of `goals`, as many brokers as stop
    writes or lose data, a region that is cut off, and a link between two regions, where others
    reach both.

    `placements`: [(placement, its partitions)], at least one."""
    only = [one for one, _ in placements]
    left = [one.without(one.lost) for one in only]
    goals = tuple(goals)
    levels = loss_levels(left)
    found = [Goal(**{level: 1}) for level in levels]
    if len(levels) > 1:
        found += [Goal(**{levels[0]: 2}), Goal(**{levels[0]: 1, BROKER_LABEL: 1})]
    known = survived(only, rules, goals=goals)
    found += [*known.writes, *known.writes_but_not, *known.data, *goals]
    found += [
        Goal(**{BROKER_LABEL: count})
        for count in (
            min(one.quorum.stops_at - len(one.lost) for one in only),
            min(one.quorum.loses_at - len(one.lost) for one in only),
        )
        if count > 0
    ]
    kinds = [(goal, False) for goal in dict.fromkeys(found) if _is_possible(goal, left)]
    if REGION in levels and any(len(one.domains(REGION)) > 1 for one in left):
        kinds.append((Goal(region=1), True))
    alike: dict[object, tuple[Fates, list[int]]] = {}
    for one, partitions in placements:
        fates = Fates(one, rules)
        alike.setdefault(fates.key, (fates, []))[1].extend(partitions)
    rows = [_outcome(goal, list(alike.values()), is_cut=is_cut) for goal, is_cut in kinds]
    linked = [
        (fates, some, partitions)
        for fates, partitions in alike.values()
        if (some := frozenset(fates.of_links()))
    ]
    if linked:
        cut = _worst(Goal(region=2), linked, rules, is_cut=True)
        rows.append(msgspec.structs.replace(cut, loss=LINK, is_link=True))
    return tuple(rows)


def _is_possible(goal: Goal, placements: Sequence[Placement]) -> bool:
    """Whether some placement has so many domains with voters, and as many voters."""
    wanted = goal_levels(goal)
    return any(
        all(count <= len(one.domains(level)) for level, count in wanted.items())
        and sum(wanted.values()) <= len(one.voters)
        for one in placements
    )


def _outcome(goal: Goal, alike: Sequence[tuple[Fates, list[int]]], *, is_cut: bool) -> Outcome:
    judged = []
    for fates, partitions in alike:
        of = fates.of_cut if is_cut else fates.of
        judged.append((fates, frozenset(map(of, fates.losses(goal))), partitions))
    return _worst(goal, judged, alike[0][0].rules, is_cut=is_cut)


def _worst(
    goal: Goal,
    judged: Sequence[tuple[Fates, Collection[Fate], list[int]]],
    rules: Rules,
    *,
    is_cut: bool,
) -> Outcome:
    """`judged`: [(fates, the effects of all choices of such domains, the partitions)]."""
    worst_of = [(max(some, key=lambda fate: fate.badness), indexes) for _, some, indexes in judged]
    worst = max((fate for fate, _ in worst_of), key=lambda fate: fate.badness)
    course, quorum = worst.course, worst.quorum
    return Outcome(
        loss=format_goal(goal),
        goal=goal,
        is_cut=is_cut,
        course=course,
        acts_alone=course.acts_alone,
        keeps_data=course.keeps_data,
        left=worst.left,
        voters=quorum.voters,
        write_quorum=quorum.write_quorum,
        # Of all choices that end so: one with more voters left may need the controller first.
        back=max(
            fates.back(one) for fates, some, _ in judged for one in some if one.course == course
        ),
        without_controller=worst.without_controller,
        is_inside=worst.is_inside,
        partitions=tuple(
            sorted(index for fate, some in worst_of if fate.course == course for index in some)
        ),
        stand_ins=worst.stand_ins,
        awaits_region=worst.stand_ins > 0 and rules.promotion == REGION_LOST,
        observers=worst.observers,
    )
