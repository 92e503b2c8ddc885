"""What each choice of losses does to one partition: the one model that every answer reads.

Why:    commands report what survives in a line, as a table of losses, by domains, and as the
        smallest sets that stop writes. They agree because all of them come from here.
How:    Brokers that matter are bits: voters, observers, the controller's voters and, where a
        promotion goes by regions, all others. A loss is a mask; `Fates.of` says what it does, once.
        What is down or behind before counts as lost as well.
Owns:   nothing; results are kept for each mask.
Source: design section 6; decisions 0016, 0020, 0025 and 0026."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations, product

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Goal, goal_levels
from strandline.placement.survival.course import BADNESS, Course
from strandline.placement.survival.courses import (
    COUNTED,
    REGION_LOST,
    Rules,
    course_of,
    elects,
    keeps_data,
)
from strandline.placement.survival.cut_links import cases
from strandline.placement.survival.losses import LostDomains, worst_mask
from strandline.placement.survival.regions import Regions, lost_with_their_region
from strandline.placement.survival.replicas import (
    LOSS_LEVELS,
    Placement,
    Quorum,
)
from strandline.placement.topology.labels import BROKER_LABEL
from strandline.placement.topology.universe import domain_of

Domain = tuple[str, ...]
PATHS_MAX = 10_000
"""Labels whose domains are remembered."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What one choice of lost brokers does to one partition."""

    course: Course
    left: int
    quorum: Quorum
    without_controller: bool = False
    is_inside: bool = False
    """Whether, after a cut, the side that was cut off goes on."""
    stand_ins: int = 0
    observers: int = 0
    ready: int = 0
    """The observers that may be promoted, whichever voters return."""
    decides_after: int = 0
    """So many of the voters that are lost have to return, whichever, before the controller has a
    majority with them; more than are lost where it has none then, or is only cut off."""

    @property
    def badness(self) -> tuple[int, bool, int, int]:
        """Orders fates, the harmless first."""
        return BADNESS[self.course], self.without_controller, -self.left, -self.observers


class Fates:
    """Of one partition. Masks are over the brokers that matter."""

    def __init__(self, placement: Placement, rules: Rules) -> None:
        self.placement = placement
        self.rules = rules
        watching = tuple(one for one in placement.replicas if one.role == "observer")
        mattering = {one.broker: one for one in (*placement.voters, *watching, *rules.controllers)}
        others = {one.broker: one for one in rules.regions.brokers if one.broker not in mattering}
        self._replicas = (*mattering.values(), *others.values())
        self._bits = {one.broker: 1 << bit for bit, one in enumerate(self._replicas)}
        self._voters = self.mask(one.broker for one in placement.voters)
        self._observers = self.mask(one.broker for one in watching)
        self._controllers = self.mask(one.broker for one in rules.controllers)
        self._down = self.mask(placement.down)
        self._absent = self._down | self.mask(placement.behind)
        self._counted = self._voters | (self._observers | self._controllers if rules.shrinks else 0)
        self._deciding = self._voters | self._observers | self._controllers
        self._domains: dict[str, Mapping[Domain, int]] = {}
        self._found: dict[int, Fate] = {}

    @property
    def key(self) -> object:
        """Equal for placements of which every loss becomes the same, brokers and domains apart."""
        levels = tuple(tuple(self.domains(level).values()) for level in LOSS_LEVELS)
        by_region = self.rules.promotion == REGION_LOST
        nowhere = self.mask(one.broker for one in self._replicas if not one.labels.region)
        return (
            self.placement.quorum,
            (self._voters, self._observers, self._controllers, self._down, self._absent, nowhere),
            levels,
            self._replicas if by_region else (),
        )

    def mask(self, brokers: Iterable[BrokerId]) -> int:
        """These brokers, as far as they matter."""
        found = 0
        for one in brokers:
            found |= self._bits.get(one, 0)
        return found

    def domains(self, level: str) -> Mapping[Domain, int]:
        """{domain: its brokers}, of those with a broker that matters and is not down."""
        if level not in self._domains:
            found: dict[Domain, int] = {}
            for one in self._replicas:
                domain = (str(one.broker),) if level == BROKER_LABEL else _paths(one.labels)[level]
                found[domain] = found.get(domain, 0) | self._bits[one.broker]
            there = self._deciding & ~self._down
            self._domains[level] = {one: mask for one, mask in found.items() if mask & there}
        return self._domains[level]

    def counted(self, level: str) -> Mapping[Domain, int]:
        """The same, of those that decide whether writes go on: where voters may not leave, only
        voters do."""
        there = self._counted & ~self._absent
        return {one: mask for one, mask in self.domains(level).items() if mask & there}

    @property
    def voting_key(self) -> object:
        """As `key`, as far as an election and acknowledged writes go: by voters alone."""
        living = self._voters & ~self._absent
        levels = tuple(
            tuple(sorted(mask & living for mask in self.domains(level).values() if mask & living))
            for level in LOSS_LEVELS
        )
        return self.placement.quorum, living.bit_count(), levels

    def losses(self, goal: Goal, *, only_counted: bool = False) -> set[int]:
        """Every choice of such domains. `only_counted`: of those of `counted`."""
        by_level = []
        for level, count in goal_levels(goal).items():
            domains = self.counted(level) if only_counted else self.domains(level)
            masks = domains.values()
            by_level.append([union(some) for some in combinations(masks, min(count, len(masks)))])
        return {union(chosen) for chosen in product(*by_level)}

    def keeps_data(self, goal: Goal) -> bool:
        """Whether no acknowledged write is lost, whatever the choice of such losses."""
        return keeps_data(self.placement.quorum, self._least_left(goal))

    def acts_alone(self, goal: Goal) -> bool:
        """Whether writes go on without help, whatever the choice."""
        quorum, left = self.placement.quorum, self._least_left(goal)
        if elects(quorum, left):
            return True
        if not self.rules.shrinks or not keeps_data(quorum, left):
            return False
        return all(self.of(one).course.acts_alone for one in self.losses(goal, only_counted=True))

    def _least_left(self, goal: Goal) -> int:
        """How many voters the worst choice leaves."""
        living = self._voters & ~self._absent
        lost = worst_mask(
            [
                LostDomains([mask & living for mask in self.domains(level).values()], count)
                for level, count in goal_levels(goal).items()
            ]
        )
        return (living & ~lost).bit_count()

    def of(self, lost: int) -> Fate:
        """What the loss of these brokers does."""
        if self.rules.promotion != REGION_LOST:
            lost &= self._deciding
        if lost not in self._found:
            fate = self._fate(lost, without_controller=not self._has_controller(~lost))
            if fate.without_controller:
                fate = replace(fate, decides_after=self._decides_after(lost))
            self._found[lost] = fate
        return self._found[lost]

    def of_cut(self, inside: int) -> Fate:
        """What it does if these brokers are cut off, and live."""
        left = self._voters & ~self._absent
        within, outside = (left & inside).bit_count(), (left & ~inside).bit_count()
        if max(within, outside) > self.placement.quorum.voters // 2:
            is_inside = within > outside
            without = not self._has_controller(inside if is_inside else ~inside)
        else:  # Halves: that one goes on which reaches the controller.
            is_inside = not self._has_controller(~inside)
            without = is_inside and not self._has_controller(inside)
        fate = self._fate(~inside if is_inside else inside, without_controller=without)
        if not fate.course.keeps_data and self.of(0).course.keeps_data:
            fate = replace(fate, course=Course.RETURN)  # Those on the other side live.
        return replace(fate, is_inside=is_inside)

    def of_links(self) -> Iterator[Fate]:
        """What the cut of a link between two regions does, for each pair and any leader; nothing
        where there is no such link, or something is down or behind before."""
        if self._absent:
            return
        heard = Fates(self.placement, replace(self.rules, regions=Regions()))
        for case in cases(self.placement, self.rules.controllers, shrinks=self.rules.shrinks):
            sides = (
                heard._fate(heard.mask(side.lost), without_controller=side.without_controller)
                for side in case
            )
            yield min(sides, key=lambda fate: fate.badness)

    def back(self, fate: Fate) -> int:
        """How many voters have to return, whichever, before acks=all goes on by itself."""
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
                self.rules,
                without_controller=back < fate.decides_after,
            ).acts_alone
        )

    def _fate(self, lost: int, *, without_controller: bool) -> Fate:
        quorum = self.placement.quorum
        left = (self._voters & ~lost & ~self._absent).bit_count()
        observers = (self._observers & ~lost & ~self._absent).bit_count()
        ready = self._promotable(lost, observers)
        course = course_of(quorum, left, ready, self.rules, without_controller=without_controller)
        lacking = self.rules.lacking(quorum, left)
        may = course in (Course.STANDS_IN, Course.LET_LEAVE)
        return Fate(
            course,
            left,
            quorum,
            without_controller,
            stand_ins=lacking if may and ready >= lacking else 0,
            observers=observers,
            ready=observers if self.rules.promotion in COUNTED else 0,
            decides_after=quorum.voters + 1 if without_controller else 0,
        )

    def _promotable(self, lost: int, observers: int) -> int:
        """How many of the observers that are left would be promoted where too few voters are left,
        and voters may leave."""
        if self.rules.promotion in COUNTED:
            return observers
        if self.rules.promotion != REGION_LOST or not observers:
            return 0
        silent = self._brokers(lost | self._down)
        down = self.rules.regions.down(silent)
        return min(observers, lost_with_their_region(self.placement.voters, silent, down))

    def _has_controller(self, reached: int) -> bool:
        """Whether the controller has a majority among these brokers; it is taken to have one where
        its voters are not known."""
        there = (self._controllers & reached & ~self._down).bit_count()
        return not self._controllers or there > self._controllers.bit_count() // 2

    def _decides_after(self, lost: int) -> int:
        """See `Fate`, of a controller that lost its majority."""
        seeds, gone = self._controllers, lost | self._down
        voters = self._voters & (lost | self._absent)
        short = seeds.bit_count() // 2 + 1 - (seeds & ~gone).bit_count()
        if short > (voters & seeds).bit_count():
            return voters.bit_count() + 1
        return (voters & ~seeds).bit_count() + short

    def _brokers(self, mask: int) -> Collection[BrokerId]:
        return [one.broker for one in self._replicas if self._bits[one.broker] & mask]


@lru_cache(maxsize=PATHS_MAX)
def _paths(labels: Labels) -> Mapping[str, Domain]:
    """{level: the domain that these labels name}, without the broker's own."""
    return {level: domain_of(labels, level) for level in LOSS_LEVELS if level != BROKER_LABEL}


def union(masks: Iterable[int]) -> int:
    """What any of these has."""
    found = 0
    for one in masks:
        found |= one
    return found
