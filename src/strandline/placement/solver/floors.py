"""Lower bounds for costs that the chosen seats alone do not bound: solved on a coarser cluster.

Why:    how near a quorum can be depends on the regions open to the remaining replicas; without a
        bound the search would try every placement in each of them.
How:    The evaluator names the label that its cost depends on. Constraints that count by other
        labels are left out, so brokers that differ only below it are interchangeable, and the rest
        is solved exactly, given the seats so far. A relaxed problem costs no more than the whole
        one. Answers are remembered by the kinds of the seats; there are few.
Owns:   its solutions, for one plan.
Source: decision 0008."""

from collections.abc import Hashable
from dataclasses import replace

from strandline.placement.constraints.contract import COST_MAX, Seats, SoftEvaluator
from strandline.placement.solver.plan import Plan
from strandline.placement.solver.search import Search, orbits_of
from strandline.placement.topology.universe import bits_of

FLOOR_NODES_MAX = 5_000
_IMPOSSIBLE = COST_MAX + 1


def with_floors(plan: Plan) -> Plan:
    """The plan, with such bounds for the soft evaluators that need them."""
    if not any(one.bound_by for one in plan.soft):
        return plan
    soft = tuple(_Floored(plan, one) if one.bound_by else one for one in plan.soft)
    return replace(plan, soft=soft)


class _Floored(SoftEvaluator):
    def __init__(self, plan: Plan, inner: SoftEvaluator) -> None:
        super().__init__(plan.shape, inner.scope, inner.weight)
        self.name = inner.name
        self._inner = inner
        hard = tuple(one for one in plan.hard if set(one.labels) <= {inner.bound_by})
        self._relaxed = replace(plan, hard=hard, soft=(inner,))
        self._orbits = orbits_of(self._relaxed)
        self._known: dict[Hashable, int] = {}

    def cost(self, seats: Seats) -> int:
        return self._inner.cost(seats)

    def bound(self, seats: Seats, allowed: int) -> int:
        kinds = self._orbits.kinds
        key = tuple(sorted((kinds[bit], group) for bit, group in seats))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._solve(seats)
        return known

    def prefer(self, seats: Seats, group: int, mask: int) -> int:
        if not self.scope >> group & 1:
            return mask
        least, best = _IMPOSSIBLE + 1, 0
        left = mask
        while left:
            bit = next(bits_of(left))
            kind = left & self._orbits.peers(bit)
            left &= ~kind
            cost = self.bound([*seats, (bit, group)], 0)
            if cost < least:
                least, best = cost, kind
            elif cost == least:
                best |= kind
        return best

    def attribute(self, bit: int) -> Hashable:
        return self._inner.attribute(bit)

    def _solve(self, seats: Seats) -> int:
        found = Search(self._relaxed, self._orbits, first=seats, nodes_max=FLOOR_NODES_MAX).run()
        if not found.is_proved:
            return 0
        return _IMPOSSIBLE if found.seats is None else found.cost // self.weight
