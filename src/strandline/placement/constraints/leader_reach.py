"""Leader reach, soft: puts a voter where the policy prefers leaders, so that one can lead there.

How:    the cost is the rank of the best preference that some voter meets: 0 for the first one."""

from collections.abc import Hashable
from dataclasses import dataclass

from strandline.placement.constraints.contract import COST_MAX, Seats, Shape, SoftEvaluator
from strandline.placement.constraints.selectors import matching
from strandline.placement.policy.document import Where


@dataclass(frozen=True, slots=True)
class LeaderReach:
    """`prefer`: the policy's preferences, the best first."""

    prefer: tuple[Where, ...]
    weight: int = 1

    def prepare(self, shape: Shape) -> SoftEvaluator:
        """The evaluator for the voters."""
        return _LeaderReach(shape, self)


class _LeaderReach(SoftEvaluator):
    name = "leader preference"

    def __init__(self, shape: Shape, spec: LeaderReach) -> None:
        super().__init__(shape, shape.voters_scope, spec.weight)
        self._masks = [matching(self.universe, where) for where in spec.prefer]

    def cost(self, seats: Seats) -> int:
        return self._cost(self._chosen(seats))

    def bound(self, seats: Seats, allowed: int) -> int:
        chosen = self._chosen(seats)
        return self._cost(chosen | allowed if chosen.bit_count() < self.total else chosen)

    def prefer(self, seats: Seats, group: int, mask: int) -> int:
        if self.scope >> group & 1:
            chosen = self._chosen(seats)
            for wanted in self._masks:
                if chosen & wanted:
                    break
                if mask & wanted:
                    return mask & wanted
        return mask

    def attribute(self, bit: int) -> Hashable:
        return tuple(mask >> bit & 1 for mask in self._masks)

    def _chosen(self, seats: Seats) -> int:
        return self.universe.mask(bit for bit, group in seats if self.scope >> group & 1)

    def _cost(self, brokers: int) -> int:
        places = len(self._masks)
        best = next((n for n, mask in enumerate(self._masks) if mask & brokers), places)
        return best * COST_MAX // places if places else 0
