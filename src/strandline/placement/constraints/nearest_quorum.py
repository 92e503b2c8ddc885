"""Nearest quorum, soft: a write waits for a short way, by measured round trips between regions.

How:    the cost is the round trip from the best leader to its nearest write quorum, of the longest
        round trip there is. A leader is a voter that meets the best preference any voter meets."""

from collections.abc import Hashable
from dataclasses import dataclass

from strandline.placement.constraints.contract import COST_MAX, Seats, Shape, SoftEvaluator
from strandline.placement.constraints.selectors import matching
from strandline.placement.policy.document import Where
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import bits_of


@dataclass(frozen=True, slots=True)
class NearestQuorum:
    """Round trips in ms; `prefer`: where leaders should be, the best first."""

    round_trips: RoundTrips
    prefer: tuple[Where, ...] = ()
    weight: int = 1

    def prepare(self, shape: Shape) -> SoftEvaluator:
        """The evaluator for the voters."""
        return _NearestQuorum(shape, self)


class _NearestQuorum(SoftEvaluator):
    name = "nearest quorum"
    bound_by = "region"

    def __init__(self, shape: Shape, spec: NearestQuorum) -> None:
        super().__init__(shape, shape.voters_scope, spec.weight)
        self._trips = spec.round_trips
        self._longest_ms = max(self._trips.longest_ms, 1)
        self._tiers = [matching(self.universe, where) for where in spec.prefer]
        self._regions = [one.labels.region for one in self.universe.candidates]

    def cost(self, seats: Seats) -> int:
        voters = [bit for bit, group in seats if self.scope >> group & 1]
        mask = self.universe.mask(voters)
        tier = next((tier for tier in self._tiers if tier & mask), mask)
        leaders = [bit for bit in voters if tier >> bit & 1]
        best = min((self._commit_ms(leader, voters) for leader in leaders), default=0)
        return min(best * COST_MAX // self._longest_ms, COST_MAX)

    def prefer(self, seats: Seats, group: int, mask: int) -> int:
        first = next((bit for bit, of in seats if self.scope >> of & 1), None)
        if first is None or not self.scope >> group & 1:
            return mask
        region = self._regions[first]
        near: dict[int, int] = {}
        for bit in bits_of(mask):
            ms = self._ms(region, self._regions[bit])
            near[ms] = near.get(ms, 0) | 1 << bit
        return near[min(near)] if near else mask

    def attribute(self, bit: int) -> Hashable:
        return self._regions[bit], tuple(tier >> bit & 1 for tier in self._tiers)

    def _commit_ms(self, leader: int, voters: list[int]) -> int:
        ways = sorted(
            0 if bit == leader else self._ms(self._regions[leader], self._regions[bit])
            for bit in voters
        )
        return ways[min(self.shape.write_quorum, len(ways)) - 1]

    def _ms(self, a: str, b: str) -> int:
        ms = self._trips.between(a, b)
        return self._longest_ms if ms is None else ms
