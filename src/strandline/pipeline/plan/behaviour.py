"""What a partition does while some brokers are absent: the code of `placement` and `controller`,
each question asked once.

Why:    100,000 losses ask the same few questions: which of seven replicas are absent, and which
        vote. An answer of `placement.survival.fates` costs some 100 us, a look-up 1 us.
How:    A replica is a position among the replicas of its partition, so a set of them is a small
        mask. `Behaviour.after(acting, absent)` gives who leads on, what waits, and who votes next:

            fate       `Fates.of` for the present voters, with the absent ones lost at once
            waits      `explain.stopping.lacks_of`
            next vote  voters that may leave do; observers join and leave by `decide_promotion`

        *Folding is exact.* `Fates`, `decide_promotion` and the rates of losses read of a replica
        its role, its order, and which others share each of its domains; never a name. So partitions
        with the same pattern of shared domains (`signature_of`) share a `Behaviour`. The
        controller's voters are part of the pattern, where they are known; if a promotion goes by
        regions, nothing folds, and of brokers elsewhere it matters only whether their region is
        down (`shapes`). A test compares folded answers with `Fates` on the partition itself.
Owns:   its answers.
Source: decisions 0020, 0025, 0026 and 0053."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.controller.arbitration.promotion import (
    Bounds,
    Code,
    Observer,
    Situation,
    decide_promotion,
)
from strandline.model.cluster import Roles
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.pipeline.plan.domains import LossDomain
from strandline.placement.explain.acting import as_voting
from strandline.placement.explain.stopping import Lacks, lacks_of
from strandline.placement.explain.topics import placement_of
from strandline.placement.solver.request import Request
from strandline.placement.survival.course import Course
from strandline.placement.survival.courses import REGION_LOST, Rules
from strandline.placement.survival.fates import Fates
from strandline.placement.survival.replicas import LOSS_LEVELS
from strandline.placement.topology.universe import Universe, bits_of
from strandline.replication.host.nearness import Nearness

BOUNDS = Bounds()
_CAUGHT_UP_MS = BOUNDS.ready_ms
_HEALED_MS = BOUNDS.demote_ms
"""An outage lasts long enough for every step of a promotion, and so does the time after it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a partition does. Masks are over its positions; rates are per year."""

    course: Course
    is_writable: bool
    """Whether acks=all goes on, once the steps of `course` are done."""
    is_readable: bool
    """Whether there is a leader."""
    acting: int
    """The replicas that vote from then on."""
    is_thin: bool
    """Whether the loss of one more voter's disk could lose acknowledged records."""
    stops_a_year: float
    """How often a further loss comes that stops writes; 0 if they have stopped."""


@dataclass(frozen=True, slots=True)
class Danger:
    """What is lost for good if disks are. `is_short`: whether the disks lost so far may have taken
    acknowledged records; `fatal`: numbers of the domains whose disks would, as a mask."""

    is_short: bool
    fatal: int


@dataclass(frozen=True, slots=True)
class Around:
    """What decides beside the replicas. `controllers`: the controller's voters; `everyone`: all
    brokers, if a promotion goes by regions that are down; else none."""

    domains: tuple[LossDomain, ...]
    controllers: tuple[BrokerId, ...] = ()
    everyone: tuple[BrokerId, ...] = ()

    @classmethod
    def of(cls, domains: tuple[LossDomain, ...], universe: Universe, rules: Rules) -> "Around":
        """Of topics with these rules."""
        by_region = rules.promotion == REGION_LOST
        return cls(
            domains=domains,
            controllers=tuple(one.broker for one in rules.controllers),
            everyone=tuple(one.id for one in universe.candidates) if by_region else (),
        )

    def positions(self, roles: Roles) -> tuple[BrokerId, ...]:
        """The brokers that matter to a partition: its replicas, voters first, then these."""
        return tuple(dict.fromkeys((*roles.all, *self.controllers, *self.everyone)))

    def local_domains(self, roles: Roles, universe: Universe) -> list[tuple[int, int]]:
        """[(positions, number of the domain)] of the domains that hold any position."""
        places = {universe.index[one]: bit for bit, one in enumerate(self.positions(roles))}
        mine = universe.mask(places)
        return [
            (sum(1 << places[bit] for bit in bits_of(one.mask & mine)), number)
            for number, one in enumerate(self.domains)
            if one.mask & mine
        ]


def signature_of(roles: Roles, universe: Universe, around: Around) -> object:
    """Equal for partitions that behave alike, position by position: see the module."""
    if around.everyone:
        return roles
    bits = [universe.index[one] for one in around.positions(roles)]
    patterns = []
    for level in dict.fromkeys((*LOSS_LEVELS, *(one.level for one in around.domains))):
        domains = universe.domains(level)
        ids = [domains.of[bit] for bit in bits]
        firsts = {one: number for number, one in enumerate(dict.fromkeys(ids))}
        patterns.append(tuple((firsts[one], bool(domains.values[one])) for one in ids))
    controllers = tuple(map(universe.index.__getitem__, around.controllers))
    places = tuple(bit in controllers for bit in bits)
    return len(roles.voters), len(roles.observers), places, tuple(patterns)


class Behaviour:
    """Of all partitions whose replicas share their domains in the same way."""

    def __init__(
        self,
        roles: Roles,
        universe: Universe,
        request: Request,
        *,
        rules: Rules,
        around: Around,
    ) -> None:
        self._universe = universe
        self._request = request
        self._rules = rules
        self._roles = roles
        self.positions = around.positions(roles)
        """The brokers that matter; a position is a place in this order."""
        self.domains = [
            (local, around.domains[number])
            for local, number in around.local_domains(roles, universe)
        ]
        """[(positions, domain)], in the order of the domains."""
        self._places = {one: position for position, one in enumerate(self.positions)}
        self._voters = len(roles.voters)
        self._replicas = len(roles.all)
        self._nearness = Nearness()
        self._nearness.place({one.id: one.labels for one in universe.candidates})
        self._fates: dict[int, Fates] = {}
        self._answers: dict[tuple[int, int], Answer] = {}
        self._dangers: dict[tuple[int, int], Danger] = {}

    @property
    def own(self) -> int:
        """The voters of the placement."""
        return (1 << self._voters) - 1

    @property
    def replicas(self) -> int:
        """Voters and observers."""
        return (1 << self._replicas) - 1

    def after(self, acting: int, absent: int) -> Answer:
        """What follows if of the voters `acting` these positions are absent."""
        key = acting, absent
        found = self._answers.get(key)
        if found is None:
            found = self._answers[key] = self._answer(acting, absent)
        return found

    def danger(self, acting: int, emptied: int) -> Danger:
        """What is lost for good if these positions have lost their data. `fatal` counts the domains
        that hold a position, in the order of their numbers."""
        key = acting, emptied
        found = self._dangers.get(key)
        if found is None:
            fates = self._fates_of(acting)
            is_short = not self._keeps(fates, emptied)
            fatal = 0
            for bit, (local, domain) in enumerate(self.domains):
                if domain.rate.destroyed and not is_short:
                    fatal |= (not self._keeps(fates, emptied | local)) << bit
            found = self._dangers[key] = Danger(is_short, fatal)
        return found

    def _answer(self, acting: int, absent: int) -> Answer:
        fates = self._fates_of(acting)
        fate = fates.of(self._mask(fates, absent))
        course = fate.course
        is_writable = course.acts_alone
        after = acting
        if self._rules.shrinks and (is_writable or course is Course.LOWER):
            after = self._votes_next(acting, absent)
        then = self._fates_of(after)
        left = after & ~absent
        return Answer(
            course=course,
            is_writable=is_writable,
            is_readable=is_writable or lacks_of(fate) is Lacks.ACKS_ALL,
            acting=after,
            is_thin=any(not self._keeps(then, absent | 1 << bit) for bit in bits_of(left)),
            stops_a_year=sum(
                self.domains[one][1].rate.per_year
                for one in (self.stopping(after, absent) if is_writable else ())
            ),
        )

    def stopping(self, acting: int, absent: int) -> tuple[int, ...]:
        """Places in `domains` of those whose loss would stop writes."""
        fates = self._fates_of(acting)
        return tuple(
            place
            for place, (local, _) in enumerate(self.domains)
            if not fates.of(self._mask(fates, absent | local)).course.acts_alone
        )

    def _votes_next(self, acting: int, absent: int) -> int:
        """The voters once those that are lost have left and observers have joined or left."""
        own = [one for bit, one in enumerate(self._roles.voters) if not absent >> bit & 1]
        promoted = [
            self.positions[bit]
            for bit in range(self._voters, self._replicas)
            if acting >> bit & 1 and not absent >> bit & 1
        ]
        silent = [self.positions[bit] for bit in bits_of(absent)]
        for _ in range(2 * self._replicas):
            verdict = decide_promotion(self._situation(own, promoted, silent))
            if verdict.code is Code.PROMOTE and verdict.broker is not None:
                promoted.append(verdict.broker)
            elif verdict.code in (Code.DEMOTE, Code.HAND_OVER) and verdict.broker is not None:
                promoted.remove(verdict.broker)
            else:
                break
        found = 0
        for one in (*own, *promoted):
            found |= 1 << self._places[one]
        return found

    def _situation(
        self, own: Sequence[BrokerId], promoted: Sequence[BrokerId], silent: Sequence[BrokerId]
    ) -> Situation:
        candidates, index = self._universe.candidates, self._universe.index
        regions = {one: candidates[index[one]].labels.region for one in self._roles.voters}
        observers = tuple(
            Observer(
                broker=one,
                is_heard=one not in silent,
                kept_up_ms=_CAUGHT_UP_MS,
                lag_count=0,
                lag_ms=0,
                levels={other: self._nearness.levels(one, other) for other in self._roles.voters},
            )
            for one in self._roles.observers
        )
        leading = [*own, *promoted]
        return Situation(
            policy=self._rules.promotion,
            own=self._roles.voters,
            voting=tuple(own),
            promoted=tuple(promoted),
            observers=observers,
            leader=leading[0] if leading else NO_BROKER,
            min_insync=self._rules.min_insync_replicas,
            regions={one: region for one, region in regions.items() if region},
            regions_down=self._rules.regions.down(silent),
            healed_ms=_HEALED_MS,
            bounds=BOUNDS,
        )

    def _fates_of(self, acting: int) -> Fates:
        if acting not in self._fates:
            placed = placement_of(self._universe, self._roles, self._request)
            if acting != self.own:
                voters = [self.positions[bit] for bit in bits_of(acting)]
                placed = as_voting(placed, voters, self._universe, self._request)
            self._fates[acting] = Fates(placed, self._rules)
        return self._fates[acting]

    def _mask(self, fates: Fates, local: int) -> int:
        return fates.mask(self.positions[bit] for bit in bits_of(local))

    def _keeps(self, fates: Fates, local: int) -> bool:
        return fates.of(self._mask(fates, local)).course.keeps_data
