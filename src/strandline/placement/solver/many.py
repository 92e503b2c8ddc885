"""Places many partitions: each as good as can be, and the replicas evenly over equal brokers.

Why:    the exact search finds what the best placement costs; ten thousand of them would take
        minutes, and would all be the same.
How:    the best cost is found once. Then each partition descends without looking back: eligible,
        then preferred, then least allocated, then by chance. Where that does not reach the best
        cost, it searches with that order of picks, a few times with few steps and different
        chances, then once with all steps. When brokers fill up meanwhile, so that the best cost
        is out of reach, it is found anew.
Owns:   the counts of the call, and who is full.
Source: decision 0008."""

import random

from strandline.placement.constraints.contract import Seat
from strandline.placement.constraints.least_allocated import LeastAllocated
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import (
    Found,
    Search,
    group_order,
    orbits_of,
)

RESTARTS = 4
RESTART_NODES_MAX = 200


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
            found = self._run(good_enough=self._best.cost, nodes_max=RESTART_NODES_MAX)
            if found.seats is not None and found.cost <= self._best.cost:
                return found.seats
            if found.is_proved:
                break
        found = self._run(good_enough=self._best.cost)
        if found.seats is None:
            found = self._run(good_enough=None)
            if found.seats is not None and found.cost > self._best.cost:
                self._best = found
        return found.seats

    def _run(self, **limits: int | None) -> Found:
        return Search(
            self._plan,
            self._orbits,
            allowed=self._allowed,
            pick=self._pick,
            **limits,  # type: ignore[arg-type]
        ).run()

    def _pick(self, mask: int) -> int:
        mask = self.replicas.prefer(mask)
        # The first bit from a random place on.
        shift = int(self._draw() * self._width)
        above = mask >> shift
        if above:
            return shift + (above & -above).bit_length() - 1
        return (mask & -mask).bit_length() - 1
