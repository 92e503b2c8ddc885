"""Places many partitions: each as good as can be, and the replicas evenly over equal brokers.

Why:    the exact search finds the cost of the best placement. Ten thousand searches would take
        minutes, and would all give the same one.
How:    The best cost is found once. Then for each partition, the first that reaches it counts:
        1. Descend without looking back: eligible, then preferred, then least allocated, then by
           chance. If several rules could have their replica where leaders should be, descend for
           each (`turns`), and take the one to the least loaded brokers.
        2. Search with that order of picks, a few times with few steps and different chances.
        3. Repeat the best placement elsewhere: its image under an exchange of interchangeable nodes
           costs the same.
        If brokers fill up, so that the best cost is out of reach, it is found anew. If the result
        is not even, all is placed once more from all best placements (`patterns`), each where its
        image loads the brokers no more than the average image does; the more even one of the two is
        the answer.
Owns:   the counts of the call, and which brokers are full.
Source: decision 0008."""

from collections.abc import Sequence

from strandline.base.rng import Rng
from strandline.placement.constraints.contract import Seat
from strandline.placement.constraints.least_allocated import LeastAllocated
from strandline.placement.solver.orbits import Orbits
from strandline.placement.solver.patterns import Patterns, patterns_of
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import (
    NODES_MAX,
    Found,
    Search,
    group_order,
    orbits_of,
)
from strandline.placement.solver.turns import Turns
from strandline.placement.topology.universe import bits_of

RESTARTS = 4
RESTART_NODES_MAX = 200
STEPS_MAX = 5_000
"""Steps of all restarts of one call; where they run out, images of the best placement do."""
EVEN_PERCENT = 5
"""Brokers whose counts are no further apart than this, or than 1, are even."""


def place_many(plan: Plan, best: Found, *, partitions: int, rng: Rng) -> "Placer":
    """Place so many partitions; `best` is what the exact search found. Fewer are placed where the
    brokers are full."""
    orbits = orbits_of(plan)
    placer = Placer(plan, best, orbits, rng=rng)
    placer.place(partitions)
    everyone = plan.scope_allowed(plan.shape.everyone, plan.allowed)
    if placer.is_even(everyone):
        return placer
    patterns = patterns_of(plan, best, orbits)
    if patterns is None:
        return placer
    if patterns.count == 1 and all(placer.is_even(orbits.peers(bit)) for bit in bits_of(everyone)):
        # What each kind of brokers holds together is given.
        return placer
    other = Placer(plan, best, orbits, rng=rng, patterns=patterns)
    other.place(partitions)
    return min(placer, other, key=lambda one: (-len(one.placed), one.unevenness()))


class Placer:
    """Places partitions of one plan, one after the other."""

    def __init__(
        self,
        plan: Plan,
        best: Found,
        orbits: Orbits,
        *,
        rng: Rng,
        patterns: Patterns | None = None,
    ) -> None:
        assert best.seats is not None, "a plan without a placement places nothing"
        candidates = plan.universe.candidates
        self._plan = plan
        self._draw = rng.random
        self._width = len(candidates)
        self._orbits = orbits
        self._best = best
        self._patterns = patterns
        self._turns = Turns(plan, best.seats, orbits)
        self._allowed = list(plan.allowed)
        self._order = group_order(plan, self._allowed)
        self._room = [
            None if one.replicas_max is None else one.replicas_max - one.replicas
            for one in candidates
        ]
        self._replicas = LeastAllocated([one.replicas for one in candidates])
        self._steps_left = STEPS_MAX
        self.placed: list[list[Seat]] = []
        """The seats of each partition."""
        self.searches = 0
        """How many partitions needed a search, because the descent found no good placement."""

    def place(self, partitions: int) -> None:
        """Place so many, or as many as can be."""
        for _ in range(partitions):
            seats = self._next()
            if seats is None:
                return
            self.placed.append(seats)
            if self._patterns is not None:
                self._patterns.give(seats)
            for bit, _ in seats:
                self._replicas.give(bit)
                if self._room[bit] == self._replicas.given(bit):
                    self._allowed = [mask & ~(1 << bit) for mask in self._allowed]

    def is_even(self, among: int) -> bool:
        """Whether these brokers were given equally many."""
        given = [self._replicas.given(bit) for bit in bits_of(among)]
        mean = sum(given) / len(given)
        return max(given) - min(given) <= max(1, mean * EVEN_PERCENT / 100)

    def unevenness(self) -> int:
        """The sum of the squares of what the brokers were given."""
        return sum(self._replicas.given(bit) ** 2 for bit in range(self._width))

    def _next(self) -> list[Seat] | None:
        """The seats of the next partition; None when the brokers are full."""
        if self._patterns is not None:
            for load, pattern in self._patterns.by_load():
                image = self._even_image(pattern, load)
                if image is not None:
                    return image
        seats = self._by_turns() or self._descend(())
        if seats is None or self._plan.cost(seats) > self._best.cost:
            seats = self._search()
        return seats

    def _by_turns(self) -> list[Seat] | None:
        """Of the turns that lead to the best cost the one to the least loaded brokers."""
        best: tuple[tuple[int, int], list[Seat]] | None = None
        for group, wanted in self._turns.left():
            seats = self._turn(group, wanted)
            if seats is not None:
                given = sum(self._replicas.given(bit) for bit, _ in seats)
                held = sum(self._replicas.held(bit) for bit, _ in seats)
                if best is None or (given, held) < best[0]:
                    best = (given, held), seats
        return None if best is None else best[1]

    def _turn(self, group: int, wanted: int) -> list[Seat] | None:
        """A placement of the best cost with a replica of the group among those wanted; None where
        none was found."""
        plan = self._plan
        mask = wanted & self._allowed[group]
        for one in plan.hard:
            mask &= one.eligible((), group)
        if not mask:
            return None
        for soft in plan.soft:
            mask = soft.prefer((), group, mask)
        seat = self._pick(mask), group
        seats = self._descend((seat,))
        if seats is not None and plan.cost(seats) <= self._best.cost:
            return seats
        steps = min(RESTART_NODES_MAX, self._steps_left)
        found = self._run(good_enough=self._best.cost, nodes_max=steps, first=(seat,))
        self._steps_left -= min(found.nodes, steps)
        if found.seats is None and found.is_proved:
            self._turns.bar(seat)
        return found.seats

    def _descend(self, first: Sequence[Seat]) -> list[Seat] | None:
        """Seat by seat, where the last ones leave room; `first` is taken already."""
        plan = self._plan
        seats = list(first)
        order = self._order
        taken = 0
        for bit, group in first:
            taken |= 1 << bit
            order = order.copy()
            order.remove(group)
        for group in order:
            mask = self._allowed[group] & ~taken
            for one in plan.hard:
                mask &= one.eligible(seats, group)
            if not mask:
                return None
            for soft in plan.soft:
                mask = soft.prefer(seats, group, mask)
            bit = self._pick(mask)
            seats.append((bit, group))
            taken |= 1 << bit
        return seats

    def _search(self) -> list[Seat] | None:
        self.searches += 1
        for _ in range(RESTARTS):
            steps = min(RESTART_NODES_MAX, self._steps_left)
            found = self._run(good_enough=self._best.cost, nodes_max=steps)
            self._steps_left -= found.nodes
            if found.seats is not None:
                return found.seats
            if found.is_proved:
                break
        else:
            image = self._repeated()
            if image is not None:
                return image
        found = self._run(good_enough=None, nodes_max=NODES_MAX)
        if found.seats is not None:
            self._best = found
            self._turns = Turns(self._plan, found.seats, self._orbits)
            self._patterns = None
        return found.seats

    def _repeated(self) -> list[Seat] | None:
        """The exact search's placement, or its image; None when the brokers are full."""
        best = self._best.seats
        assert best is not None
        image = self._image(best)
        if image is not None:
            return image
        is_free = all(self._allowed[group] >> bit & 1 for bit, group in best)
        return list(best) if is_free else None

    def _even_image(self, seats: Sequence[Seat], load: float) -> list[Seat] | None:
        """An image whose brokers together got no more than `load`, the average; or the one that got
        least. None if a full broker is in the way.

        The first seat takes the least loaded broker; others may have to follow it. So that no seat
        always follows, this tries each one as the first. (As long as no image is above the average,
        the variance among equals grows by less than one for each replica.)"""
        least: tuple[int, list[Seat]] | None = None
        for first in range(len(seats)):
            image = self._image([*seats[first:], *seats[:first]])
            if image is None:
                continue
            given = sum(self._replicas.given(bit) for bit, _ in image)
            if least is None or given < least[0]:
                least = given, image
            if given <= load:
                break
        return None if least is None else least[1]

    def _image(self, seats: Sequence[Seat]) -> list[Seat] | None:
        """The same placement elsewhere: seat by seat a broker whose place is alike, by load;
        None if a full broker is in the way."""
        orbits = self._orbits
        images: dict[int, int] = {}
        touched = orbits.untouched
        taken = 0
        for bit, group in seats:
            mask = orbits.images(bit, touched, images) & self._allowed[group] & ~taken
            if not mask:
                return None
            images[bit] = self._pick(mask)
            taken |= 1 << images[bit]
            touched = orbits.touch(touched, bit)
        return [(images[bit], group) for bit, group in seats]

    def _run(self, *, good_enough: int | None, nodes_max: int, first: Sequence[Seat] = ()) -> Found:
        search = Search(
            self._plan,
            self._orbits,
            allowed=self._allowed,
            pick=self._pick,
            good_enough=good_enough,
            nodes_max=nodes_max,
            first=first,
        )
        return search.run()

    def _pick(self, mask: int) -> int:
        mask = self._replicas.prefer(mask)
        # The first bit from a random place on.
        shift = int(self._draw() * self._width)
        above = mask >> shift
        if above:
            return shift + (above & -above).bit_length() - 1
        return (mask & -mask).bit_length() - 1
