"""Places many partitions: each as good as can be, and the replicas evenly over equal brokers.

Why:    the exact search finds what the best placement costs; ten thousand of them would take
        minutes, and would all be the same.
How:    the best cost is found once. Then each partition descends without looking back: eligible,
        then preferred, then least allocated, then by chance. Where that does not reach the best
        cost, it searches with that order of picks, a few times with few steps and different
        chances. Where that does not do either, the best placement is repeated elsewhere: its image
        under an exchange of interchangeable nodes costs the same. When brokers fill up meanwhile,
        so that the best cost is out of reach, it is found anew.
Owns:   the counts of the call, and who is full.
Source: decision 0008."""

import random

from strandline.placement.constraints.contract import Seat
from strandline.placement.constraints.least_allocated import LeastAllocated
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import (
    NODES_MAX,
    Found,
    Search,
    group_order,
    orbits_of,
)

RESTARTS = 4
RESTART_NODES_MAX = 200
STEPS_MAX = 5_000
"""Steps of all restarts of one call; where they run out, images of the best placement do."""


class Placer:
    """Places partitions of one plan, one after the other. `best` is what the exact search found."""

    def __init__(self, plan: Plan, best: Found, *, rng: random.Random) -> None:
        assert best.seats is not None, "a plan without a placement places nothing"
        candidates = plan.universe.candidates
        self._plan = plan
        self._draw = rng.random
        self._width = len(candidates)
        self._orbits = orbits_of(plan)
        self._best = best
        self._allowed = list(plan.allowed)
        self._order = group_order(plan, self._allowed)
        self._room = [
            None if one.replicas_max is None else one.replicas_max - one.replicas
            for one in candidates
        ]
        self.replicas = LeastAllocated([one.replicas for one in candidates])
        self._steps_left = STEPS_MAX
        self.searches = 0
        """How often the descent did not do."""

    def place(self) -> list[Seat] | None:
        """The seats of the next partition, counted; None when the brokers are full."""
        seats = self._descend()
        if seats is None or self._plan.cost(seats) > self._best.cost:
            seats = self._search()
        if seats is None:
            return None
        for bit, _ in seats:
            self.replicas.give(bit)
            if self._room[bit] == self.replicas.given(bit):
                self._allowed = [mask & ~(1 << bit) for mask in self._allowed]
        return seats

    def _descend(self) -> list[Seat] | None:
        plan = self._plan
        seats: list[Seat] = []
        taken = 0
        for group in self._order:
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
            image = self._image()
            if image is not None:
                return image
        found = self._run(good_enough=None, nodes_max=NODES_MAX)
        if found.seats is not None:
            self._best = found
        return found.seats

    def _image(self) -> list[Seat] | None:
        """What the exact search found, or the same elsewhere: seat by seat somebody whose place is
        alike, by load. None when they are full."""
        orbits, best = self._orbits, self._best.seats
        assert best is not None
        images: dict[int, int] = {}
        touched = orbits.untouched
        for bit, group in best:
            taken = self._plan.universe.mask(images.values())
            mask = orbits.images(bit, touched, images) & self._allowed[group] & ~taken
            if not mask:
                break
            images[bit] = self._pick(mask)
            touched = orbits.touch(touched, bit)
        else:
            return [(images[bit], group) for bit, group in best]
        is_free = all(self._allowed[group] >> bit & 1 for bit, group in best)
        return list(best) if is_free else None

    def _run(self, *, good_enough: int | None, nodes_max: int) -> Found:
        search = Search(
            self._plan,
            self._orbits,
            allowed=self._allowed,
            pick=self._pick,
            good_enough=good_enough,
            nodes_max=nodes_max,
        )
        return search.run()

    def _pick(self, mask: int) -> int:
        mask = self.replicas.prefer(mask)
        # The first bit from a random place on.
        shift = int(self._draw() * self._width)
        above = mask >> shift
        if above:
            return shift + (above & -above).bit_length() - 1
        return (mask & -mask).bit_length() - 1
