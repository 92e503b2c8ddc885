"""Searches one partition's replicas exactly: depth first, with bounds and orbits.

How:    groups in the order of their scarcity, within a group one seat after the other:
            eligible = allowed, not taken, not tried, & each hard evaluator
            too few eligible for the group's open seats, or the bound is too high -> back
            of the eligible, the soft evaluators prefer some; `pick` takes one of these
            when it failed, its whole orbit is tried no more for this group
        A seat of a group is as good as another one, so what was tried for one stays tried for the
        next of the same group.
Owns:   the seats, while it runs.
Source: decision 0008."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from strandline.placement.constraints.contract import HardEvaluator, Seat, SoftEvaluator
from strandline.placement.solver.orbits import Orbits
from strandline.placement.solver.plan import Plan

NODES_MAX = 10_000
"""Steps of one search; an answer beyond them is not proved."""

DEAD_END_NODES_MAX = 100
ANY_COST = 1 << 200
"""Higher than any placement's cost."""

Pick = Callable[[int], int]
"""Takes one bit of a mask that is not empty."""


@dataclass(slots=True)
class Found:
    """What a search found."""

    seats: list[Seat] | None = None
    """The best placement, None when there is none."""
    cost: int = 0
    is_proved: bool = True
    """Whether nothing is better (or, without seats, there is none); else the steps ran out."""
    deepest: list[Seat] = field(default_factory=list)
    """The most seats that could be taken before a dead end, and the group that was next."""
    blocked_group: int = -1
    nodes: int = 0
    good: list[list[Seat]] = field(default_factory=list)
    """What is good enough, as far as it was looked for; one of those that are each other's image
    when interchangeable brokers are exchanged."""


def lowest(mask: int) -> int:
    """The candidate with the lowest broker id."""
    return (mask & -mask).bit_length() - 1


def group_order(plan: Plan, allowed: Sequence[int]) -> list[int]:
    """The group of each seat in the order in which they are taken: the scarcest group first."""
    groups = plan.shape.groups
    slack = {n: allowed[n].bit_count() - group.count for n, group in enumerate(groups)}
    order = sorted(slack, key=lambda n: (not groups[n].is_voter, slack[n], n))
    return [n for n in order for _ in range(groups[n].count)]


def orbits_of(plan: Plan) -> Orbits:
    """The brokers that are interchangeable for the plan's constraints."""
    evaluators: list[HardEvaluator | SoftEvaluator] = [*plan.hard, *plan.soft]
    labels = list(dict.fromkeys(label for one in evaluators for label in one.labels))
    attributes = [
        (
            tuple(mask >> bit & 1 for mask in plan.allowed),
            tuple(one.attribute(bit) for one in evaluators),
        )
        for bit in range(len(plan.universe.candidates))
    ]
    return Orbits(plan.universe, labels, attributes)


def first_block(plan: Plan, allowed: Sequence[int]) -> int | None:
    """A group that cannot be filled for a reason that needs no search; None when there is none."""
    for group, (mask, wanted) in enumerate(zip(allowed, plan.shape.groups, strict=True)):
        if mask.bit_count() < wanted.count:
            return group
    for one in plan.hard:
        if one.most(plan.scope_allowed(one.scope, allowed)) < one.total:
            return lowest(one.scope)
    return None


class Search:
    """One search. `allowed` may be less than the plan's; the orbits must then know of it."""

    def __init__(
        self,
        plan: Plan,
        orbits: Orbits,
        *,
        allowed: Sequence[int] | None = None,
        pick: Pick = lowest,
        good_enough: int | None = None,
        good_max: int = 1,
        nodes_max: int = NODES_MAX,
        first: Sequence[Seat] = (),
    ) -> None:
        """`first`: seats that are taken already. `good_enough`: stop at the first placement (at
        `good_max` of them) that costs no more, look for nothing that costs more. None: look for the
        best."""
        self._plan = plan
        self._orbits = orbits
        self._allowed = plan.allowed if allowed is None else allowed
        self._scoped = [plan.scope_allowed(one.scope, self._allowed) for one in plan.soft]
        self._pick = pick
        self._good_enough = good_enough
        self._good_max = good_max
        self._nodes_max = nodes_max
        self._seats: list[Seat] = list(first)
        self._order = [group for _, group in first]
        left = group_order(plan, self._allowed)
        for group in self._order:
            left.remove(group)
        self._order += left
        self._taken = plan.universe.mask(bit for bit, _ in first)
        self._found = Found()

    def run(self) -> Found:
        """Search; called once."""
        block = first_block(self._plan, self._allowed)
        touched = self._orbits.untouched
        for bit, _ in self._seats:
            touched = self._orbits.touch(touched, bit)
        if block is None:
            self._visit(0, touched)
            return self._found
        self._found.blocked_group = block
        if self._allowed[block].bit_count() >= self._plan.shape.groups[block].count:
            # There is no placement; the deepest point gives the reason.
            self._nodes_max = min(self._nodes_max, DEAD_END_NODES_MAX)
            self._visit(0, touched)
            assert self._found.seats is None, "a bound on the seats held back a placement"
            self._found.is_proved = True
        return self._found

    def _visit(self, tried: int, touched: tuple[int, ...]) -> bool:
        """Take the remaining seats; whether to stop."""
        found, seats = self._found, self._seats
        found.nodes += 1
        if found.nodes > self._nodes_max:
            found.is_proved = False
            return True
        if len(seats) == len(self._order):
            return self._keep()
        if self._is_too_dear():
            return False
        group = self._order[len(seats)]
        if seats and self._order[len(seats) - 1] != group:
            tried = 0
        mask = self._allowed[group] & ~self._taken & ~tried
        for one in self._plan.hard:
            mask &= one.eligible(seats, group)
        open_seats = self._order.count(group) - sum(1 for _, of in seats if of == group)
        if mask.bit_count() < open_seats:
            self._note_dead_end(group)
            return False
        while mask.bit_count() >= open_seats:
            best = mask
            for soft in self._plan.soft:
                best = soft.prefer(seats, group, best)
            bit = self._pick(best)
            orbit = self._orbits.of(bit, touched)
            seats.append((bit, group))
            self._taken |= 1 << bit
            stop = self._visit(tried, self._orbits.touch(touched, bit))
            self._taken ^= 1 << bit
            seats.pop()
            if stop:
                return True
            mask &= ~orbit
            tried |= orbit
            if found.seats is not None and self._is_too_dear():
                return False
        return False

    def _keep(self) -> bool:
        cost = self._plan.cost(self._seats)
        found, limit = self._found, self._good_enough
        if limit is not None and cost > limit:
            # The bound of an earlier step had let it come this far.
            return False
        if found.seats is None or cost < found.cost:
            found.seats, found.cost = list(self._seats), cost
        if limit is None:
            return False
        found.good.append(list(self._seats))
        return len(found.good) >= self._good_max

    def _is_too_dear(self) -> bool:
        """Whether every completion costs too much to be of use."""
        found = self._found
        limit = self._good_enough
        if limit == ANY_COST:
            return False
        if limit is None:
            if found.seats is None:
                return False
            limit = found.cost - 1
        least = 0
        for one, allowed in zip(self._plan.soft, self._scoped, strict=True):
            least += one.weight * one.bound(self._seats, allowed)
            if least > limit:
                return True
        return False

    def _note_dead_end(self, group: int) -> None:
        found = self._found
        if found.blocked_group < 0 or len(self._seats) > len(found.deepest):
            found.deepest, found.blocked_group = list(self._seats), group
