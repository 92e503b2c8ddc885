"""What a loss does to a partition: it continues by itself, needs an operator, or has lost data.

Why:    an operator who learns in an outage that a partition needs help could have known it at the
        beginning, and chosen other replicas.
How:    For each class of loss all choices of such domains are tried, over the brokers of the voters
        and of the controller's voters; the worst one counts. Of N voters s are left, M is a
        majority, W the write quorum:

            s >= W                      the others elect a leader                        ELECTION
            M <= s < W                  acks=all waits for the lost voters               RETURN
            s = N - M + 1, half         the controller seats the best log of them        ARBITRATION
                                        where voters may leave; else it may be let       LET_LEAVE
            the same, where voters may leave, and acks=all wants more than s:
                                        observers that are left make up the number       STANDS_IN
                                        they do not: only after                          LOWER
            the same                    where the controller has no majority either      RETURN
            N - W < s < N - M + 1       the same, where voters may leave: leaders promise W
                                        then (decision 0041), but not with write.caching
                                        else all acknowledged writes are on them, without
                                        a leader                                     RETURN
            0 < s <= N - W              no survivor may have the last of them            MAY_LACK
            s = 0                       no voter is left                                 GONE

        A network cut is the same for each of its two sides, except that it loses nothing: the
        brokers on the other side live. An observer counts if the policy promotes by the number of
        voters left; with "region-lost", for each voter of a region that the controller takes for
        down. If only the link between two regions is cut, `cut_links` says which side continues:
        the worst of that counts, and no region is down.
Source: design section 6; decisions 0016, 0020, 0025 and 0026."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations, product

import msgspec

from strandline.model.ids import BrokerId
from strandline.placement.explain.cut_links import cases
from strandline.placement.explain.regions import Regions, lost_with_their_region
from strandline.placement.policy.document import Goal, Promotion, goal_levels
from strandline.placement.policy.goals import format_goal
from strandline.placement.survival.replicas import Placement, Quorum, Replica, domain_at
from strandline.placement.survival.report import common_goals, loss_levels
from strandline.placement.topology.labels import BROKER_LABEL

REGION = "region"
LINK = "link between 2 regions"
COUNTED: tuple[Promotion, ...] = ("under-min-isr", "under-replicated")
"""Promotions that go by how many voters are left, and nothing else."""
REGION_LOST: Promotion = "region-lost"


class Course(StrEnum):
    """What becomes of a partition, the harmless first."""

    ELECTION = "election"
    ARBITRATION = "arbitration"
    STANDS_IN = "stands-in"
    """The same, or a majority is left; acks=all is refused until observers have been promoted."""
    LOWER = "lower-min-insync"
    """Somebody leads; acks=all is refused until `min.insync.replicas` is lowered."""
    LET_LEAVE = "let-voters-leave"
    """Nobody leads until the topic's voters may leave (`voters.shrink.enable`)."""
    RETURN = "return"
    """Nothing is lost, and acks=all waits until enough are back."""
    MAY_LACK = "may-lack"
    """Nobody leads, and who is left may lack acknowledged writes."""
    GONE = "gone"
    """No voter is left."""

    @property
    def acts_alone(self) -> bool:
        """Whether writes continue without help."""
        return self in (Course.ELECTION, Course.ARBITRATION, Course.STANDS_IN)

    @property
    def keeps_data(self) -> bool:
        """Whether all that was acknowledged is on survivors, or on brokers that are only cut
        off."""
        return self not in (Course.MAY_LACK, Course.GONE)


_WORSE = {course: number for number, course in enumerate(Course)}


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


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules beside the placement. `shrinks`: `voters.shrink.enable` of the topic;
    `controllers`: the controller's voters, empty if unknown; `promotion`: the policy's;
    `regions`: when they are down, never if unknown; `promises`: whether leaders promise a
    write quorum above a majority, if voters may leave."""

    min_insync_replicas: int = 1
    shrinks: bool = False
    controllers: Sequence[Replica] = ()
    promotion: Promotion = ""
    regions: Regions = field(default_factory=Regions)
    promises: bool = True

    def lacking(self, quorum: Quorum, left: int) -> int:
        """How many voters more acks=all asks for."""
        return max(0, min(self.min_insync_replicas, quorum.voters) - left)


@dataclass(frozen=True, slots=True)
class _Fate:
    """What one choice of lost brokers does to one partition."""

    course: Course
    left: int
    quorum: Quorum
    without_controller: bool = False
    is_inside: bool = False
    stand_ins: int = 0
    observers: int = 0
    ready: int = 0
    """The observers that may be promoted, whoever of the voters returns."""
    decides_after: int = 0
    """So many of the voters that are lost have to return, whichever, before the controller has a
    majority with them; more than are lost where it has none then, or is only cut off."""

    @property
    def badness(self) -> tuple[int, bool, int, int]:
        return _WORSE[self.course], self.without_controller, -self.left, -self.observers


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
    levels = loss_levels(only)
    found = [Goal(**{level: 1}) for level in levels]
    if len(levels) > 1:
        found += [Goal(**{levels[0]: 2}), Goal(**{levels[0]: 1, BROKER_LABEL: 1})]
    found += common_goals([(one, one.quorum.stops_at - 1) for one in only], levels)
    found += common_goals([(one, one.quorum.loses_at - 1) for one in only], levels)
    found += goals
    found += [
        Goal(**{BROKER_LABEL: count})
        for count in (
            min(one.quorum.stops_at for one in only),
            min(one.quorum.loses_at for one in only),
        )
    ]
    kinds = [(goal, False) for goal in dict.fromkeys(found) if _is_possible(goal, only)]
    if REGION in levels and any(len(one.domains(REGION)) > 1 for one in only):
        kinds.append((Goal(region=1), True))
    told = [_outcome(goal, placements, rules, is_cut=is_cut) for goal, is_cut in kinds]
    linked = [
        (fates, partitions)
        for one, partitions in placements
        if (fates := _fates_of_links(one, rules))
    ]
    if linked:
        cut = _worst(Goal(region=2), linked, rules, is_cut=True)
        told.append(msgspec.structs.replace(cut, loss=LINK, is_link=True))
    return tuple(told)


def _is_possible(goal: Goal, placements: Sequence[Placement]) -> bool:
    """Whether some placement has so many domains with voters, and as many voters."""
    wanted = goal_levels(goal)
    return any(
        all(count <= len(one.domains(level)) for level, count in wanted.items())
        and sum(wanted.values()) <= len(one.voters)
        for one in placements
    )


def _outcome(
    goal: Goal,
    placements: Sequence[tuple[Placement, tuple[int, ...]]],
    rules: Rules,
    *,
    is_cut: bool,
) -> Outcome:
    fates = [
        (frozenset(_fates(one, goal, rules, is_cut=is_cut)), partitions)
        for one, partitions in placements
    ]
    return _worst(goal, fates, rules, is_cut=is_cut)


def _worst(
    goal: Goal,
    fates: Sequence[tuple[Collection[_Fate], tuple[int, ...]]],
    rules: Rules,
    *,
    is_cut: bool,
) -> Outcome:
    """`fates`: [(what each choice of such domains does to some partitions, these)]."""
    worst_of = [(max(some, key=lambda fate: fate.badness), indexes) for some, indexes in fates]
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
        # Of all choices that end so: who has more left may need the controller first.
        back=max(_back(one, rules) for some, _ in fates for one in some if one.course == course),
        without_controller=worst.without_controller,
        is_inside=worst.is_inside,
        partitions=tuple(
            sorted(index for fate, some in worst_of if fate.course == course for index in some)
        ),
        stand_ins=worst.stand_ins,
        awaits_region=worst.stand_ins > 0 and rules.promotion == REGION_LOST,
        observers=worst.observers,
    )


def _back(fate: _Fate, rules: Rules) -> int:
    """How many voters have to return, whichever."""
    if fate.course.acts_alone:
        return 0
    quorum = fate.quorum
    return next(
        back
        for back in range(1, quorum.voters - fate.left + 1)
        if course_of(
            quorum,
            fate.left + back,
            fate.ready,
            rules,
            without_controller=back < fate.decides_after,
        ).acts_alone
    )


def _decides_after(placement: Placement, lost: frozenset[BrokerId], rules: Rules) -> int:
    """See `_Fate`, of a controller that lost its majority."""
    seeds = {one.broker for one in rules.controllers}
    voters = {one.broker for one in placement.voters} & lost
    short = len(seeds) // 2 + 1 - len(seeds - lost)
    return len(voters - seeds) + short if short <= len(voters & seeds) else len(voters) + 1


def _fates(placement: Placement, goal: Goal, rules: Rules, *, is_cut: bool) -> Iterator[_Fate]:
    for lost in _choices(placement, goal, rules):
        yield _fate_of_cut(placement, lost, rules) if is_cut else _fate(placement, lost, rules)


def _choices(placement: Placement, goal: Goal, rules: Rules) -> Iterator[frozenset[BrokerId]]:
    """Every choice of such domains, of those with a broker that matters, as the brokers that it
    takes."""
    mattering = (*placement.voters, *rules.controllers, *_observers(placement))
    by_level = []
    for level, count in goal_levels(goal).items():
        domains: dict[tuple[str, ...], set[BrokerId]] = {}
        for one in mattering:
            domains.setdefault(domain_at(one, level), set()).add(one.broker)
        for one in rules.regions.brokers:
            domains.get(domain_at(one, level), set()).add(one.broker)
        by_level.append(combinations(domains.values(), min(count, len(domains))))
    for chosen in product(*by_level):
        yield frozenset().union(*(domain for some in chosen for domain in some))


def _observers(placement: Placement) -> tuple[Replica, ...]:
    return tuple(one for one in placement.replicas if one.role == "observer")


def _promotable(
    placement: Placement, lost: frozenset[BrokerId], observers: int, rules: Rules
) -> int:
    """How many of the observers that are left would be promoted where too few voters are left, and
    voters may leave."""
    if rules.promotion in COUNTED:
        return observers
    if rules.promotion != REGION_LOST:
        return 0
    down = rules.regions.down(lost)
    return min(observers, lost_with_their_region(placement.voters, lost, down))


def _fate(placement: Placement, lost: frozenset[BrokerId], rules: Rules) -> _Fate:
    if _has_controller(rules, lost, is_lost=True):
        return _fate_without(placement, lost, rules, without_controller=False)
    fate = _fate_without(placement, lost, rules, without_controller=True)
    return replace(fate, decides_after=_decides_after(placement, lost, rules))


def _fate_of_cut(placement: Placement, inside: frozenset[BrokerId], rules: Rules) -> _Fate:
    quorum = placement.quorum
    within = sum(1 for one in placement.voters if one.broker in inside)
    outside = quorum.voters - within
    if max(within, outside) > quorum.voters // 2:
        is_inside = within > outside
        without = not _has_controller(rules, inside, is_lost=not is_inside)
    else:  # Halves: that one goes on which reaches the controller.
        is_inside = not _has_controller(rules, inside, is_lost=True)
        without = is_inside and not _has_controller(rules, inside, is_lost=False)
    others = frozenset(one.broker for one in placement.replicas) - inside
    lost = others | rules.regions.all_but(inside) if is_inside else inside
    fate = _fate_without(placement, lost, rules, without_controller=without)
    return replace(fate, is_inside=is_inside)


def _fates_of_links(placement: Placement, rules: Rules) -> Collection[_Fate]:
    """Nothing where there is no such link."""
    heard = replace(rules, regions=Regions())  # By others: nobody takes a region for down.
    return [
        min(
            (
                _fate_without(
                    placement, side.lost, heard, without_controller=side.without_controller
                )
                for side in case
            ),
            key=lambda fate: fate.badness,
        )
        for case in cases(placement, rules.controllers, shrinks=rules.shrinks)
    ]


def _fate_without(
    placement: Placement, lost: frozenset[BrokerId], rules: Rules, *, without_controller: bool
) -> _Fate:
    quorum = placement.quorum
    left = sum(1 for one in placement.voters if one.broker not in lost)
    observers = sum(1 for one in _observers(placement) if one.broker not in lost)
    promotable = _promotable(placement, lost, observers, rules)
    course = course_of(quorum, left, promotable, rules, without_controller=without_controller)
    return _Fate(
        course,
        left,
        quorum,
        without_controller,
        stand_ins=_stand_ins(course, rules.lacking(quorum, left), promotable),
        observers=observers,
        ready=observers if rules.promotion in COUNTED else 0,
        decides_after=quorum.voters + 1 if without_controller else 0,
    )


def _stand_ins(course: Course, lacking: int, observers: int) -> int:
    may = course in (Course.STANDS_IN, Course.LET_LEAVE)
    return lacking if may and observers >= lacking else 0


def _has_controller(rules: Rules, brokers: frozenset[BrokerId], *, is_lost: bool) -> bool:
    """Whether the controller has a majority without these brokers, or of them alone. It is taken to
    have one where its voters are not known."""
    known = rules.controllers
    there = sum(1 for one in known if (one.broker in brokers) != is_lost)
    return not known or there > len(known) // 2


def course_of(
    quorum: Quorum, left: int, observers: int, rules: Rules, *, without_controller: bool
) -> Course:
    """What becomes of a partition. `left`: voters, `observers`: of those that may be promoted, so
    many are left."""
    if left >= quorum.write_quorum:
        return Course.ELECTION
    majority = quorum.voters // 2 + 1
    if left == 0:
        return Course.GONE
    if left <= quorum.voters - quorum.write_quorum:
        return Course.MAY_LACK
    if without_controller:
        return Course.RETURN
    is_half = quorum.voters - majority < left < majority
    if not rules.shrinks:
        return Course.LET_LEAVE if is_half else Course.RETURN
    if left < majority and not is_half and not rules.promises:
        return Course.RETURN
    lacking = rules.lacking(quorum, left)
    if lacking:
        return Course.STANDS_IN if observers >= lacking else Course.LOWER
    return Course.ARBITRATION
