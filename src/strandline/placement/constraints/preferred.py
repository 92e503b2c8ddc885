"""Preferred, soft: brokers that a rule prefers; those that are up, or have room."""

from collections.abc import Hashable
from dataclasses import dataclass

from strandline.placement.constraints.contract import COST_MAX, Seats, Shape, SoftEvaluator
from strandline.placement.constraints.selectors import matching
from strandline.placement.policy.document import Where
from strandline.placement.topology.universe import BrokerState


@dataclass(frozen=True, slots=True)
class Preferred:
    """The replicas of `scope` rather where all of `where` hold."""

    where: Where
    scope: int
    weight: int = 1

    def prepare(self, shape: Shape) -> SoftEvaluator:
        """The evaluator for the scope's replicas."""
        mask = matching(shape.universe, self.where)
        return _Preferred(shape, "preferred where", self.scope, self.weight, mask)


@dataclass(frozen=True, slots=True)
class PreferUp:
    """All replicas rather on brokers that are up, where others are eligible at all."""

    weight: int = 1

    def prepare(self, shape: Shape) -> SoftEvaluator:
        """The evaluator for all replicas."""
        universe = shape.universe
        mask = universe.mask(
            bit for bit, one in enumerate(universe.candidates) if one.state is BrokerState.ACTIVE
        )
        return _Preferred(shape, "up", shape.everyone, self.weight, mask)


@dataclass(frozen=True, slots=True)
class PreferRoom:
    """All replicas, preferably on brokers whose disks are less full than that."""

    disk_high_percent: int
    weight: int = 1

    def prepare(self, shape: Shape) -> SoftEvaluator:
        """The evaluator for all replicas."""
        universe = shape.universe
        mask = universe.mask(
            bit
            for bit, one in enumerate(universe.candidates)
            if one.disk_used_percent < self.disk_high_percent
        )
        return _Preferred(shape, "room", shape.everyone, self.weight, mask)


class _Preferred(SoftEvaluator):
    def __init__(self, shape: Shape, name: str, scope: int, weight: int, mask: int) -> None:
        super().__init__(shape, scope, weight)
        self.name = name
        self._mask = mask

    def cost(self, seats: Seats) -> int:
        return self._cost(self._missed(seats))

    def bound(self, seats: Seats, allowed: int) -> int:
        least = self.total - (self._mask & allowed).bit_count()
        return self._cost(max(self._missed(seats), least))

    def prefer(self, seats: Seats, group: int, mask: int) -> int:
        if not self.scope >> group & 1:
            return mask
        return mask & self._mask or mask

    def attribute(self, bit: int) -> Hashable:
        return self._mask >> bit & 1

    def _missed(self, seats: Seats) -> int:
        return sum(not self._mask >> bit & 1 for bit, group in seats if self.scope >> group & 1)

    def _cost(self, missed: int) -> int:
        return missed * COST_MAX // self.total if self.total else 0
