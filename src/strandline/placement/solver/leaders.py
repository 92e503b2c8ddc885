"""Chooses each partition's leader: where leaders should be, then evenly.

How:    Of a partition's voters, those may lead that meet the best preference that any of them
        meets, and of these those that are up. First each partition takes the one that leads fewest;
        between equals, one in the region that leads fewest. Then leaderships are handed on in
        chains, until no broker leads two more than another that a chain reaches (`chains`).
Owns:   the counts of the call.
Source: design section 7; decision 0008."""

from collections.abc import Sequence

from strandline.base.rng import Rng
from strandline.placement.constraints.least_allocated import LeastAllocated
from strandline.placement.solver.chains import Chains
from strandline.placement.solver.plan import Plan
from strandline.placement.topology.universe import BrokerState, bits_of

EXCHANGES_MAX = 1_000


class LeaderChoice:
    """The leaders of the partitions of one call."""

    def __init__(self, plan: Plan, *, rng: Rng) -> None:
        universe = plan.universe
        self._tiers = plan.leader_tiers
        self._up = universe.mask(
            bit for bit, one in enumerate(universe.candidates) if one.state is BrokerState.ACTIVE
        )
        self._rng = rng
        self._regions = universe.domains("region")
        self._region_given = [0] * len(self._regions.masks)
        before = [one.leaders for one in universe.candidates]
        self.leaders = LeastAllocated(before)
        self._region_before = [
            sum(before[bit] for bit in bits_of(mask)) for mask in self._regions.masks
        ]

    def may_lead(self, voters: int) -> int:
        """Those of a partition's voters that should lead it."""
        for tier in self._tiers:
            if voters & tier & self._up:
                return voters & tier & self._up
        return voters & self._up or voters

    def choose(self, partitions: Sequence[int]) -> list[int]:
        """The leader of each partition, given its voters as a mask."""
        masks = [self.may_lead(voters) for voters in partitions]
        chosen = []
        for mask in masks:
            bit = self._fewest(self.leaders.prefer(mask))
            self._give(bit)
            chosen.append(bit)
        given = [self.leaders.given(bit) for bit in range(len(self._regions.of))]
        chains = Chains(masks, chosen, given)
        for _ in range(EXCHANGES_MAX):
            if not chains.exchange():
                break
        return chosen

    def _give(self, bit: int) -> None:
        self.leaders.give(bit)
        self._region_given[self._regions.of[bit]] += 1

    def _fewest(self, mask: int) -> int:
        """Of equal brokers one in the region that leads fewest."""
        if not mask & (mask - 1):
            return mask.bit_length() - 1
        of = self._regions.of
        given, before = self._region_given, self._region_before
        bits = list(bits_of(mask))
        least = min((given[of[bit]], before[of[bit]]) for bit in bits)
        return self._rng.choice([b for b in bits if (given[of[b]], before[of[b]]) == least])
