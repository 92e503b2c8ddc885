"""Chooses who leads each partition: where leaders should be, then evenly.

How:    of a partition's voters those that meet the best preference any of them meets may lead, and
        of these those that are up. First each partition takes the one that leads fewest; between
        equals, one in the region that leads fewest. Then leaderships are handed on in chains,
        until nobody leads two more than another whom a chain reaches (augmenting paths).
Owns:   the counts of the call.
Source: design section 7; decision 0008."""

import random
from collections.abc import Sequence

from strandline.placement.constraints.least_allocated import LeastAllocated
from strandline.placement.solver.plan import Plan
from strandline.placement.topology.universe import BrokerState, bits_of

EXCHANGES_MAX = 1_000


class LeaderChoice:
    """The leaders of the partitions of one call."""

    def __init__(self, plan: Plan, *, rng: random.Random) -> None:
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
            self._give(bit, 1)
            chosen.append(bit)
        led: dict[int, set[int]] = {}
        for number, bit in enumerate(chosen):
            led.setdefault(bit, set()).add(number)
        for _ in range(EXCHANGES_MAX):
            if not self._exchange(masks, chosen, led):
                break
        return chosen

    def _exchange(self, masks: list[int], chosen: list[int], led: dict[int, set[int]]) -> bool:
        """Hand one leadership on, from broker to broker, until it comes to one that leads two less
        than the first; whether there was such a chain. Those that lead most begin."""
        given = self.leaders.given
        stuck = 0
        for first in sorted(led, key=lambda bit: (-given(bit), bit)):
            if stuck >> first & 1:
                continue
            before: dict[int, tuple[int, int]] = {}
            seen = 1 << first
            queue = [first]
            for bit in queue:
                for number in sorted(led.get(bit, ())):
                    for other in bits_of(masks[number] & ~seen):
                        seen |= 1 << other
                        before[other] = (bit, number)
                        queue.append(other)
            least = min(queue, key=lambda bit: (given(bit), bit))
            if given(least) + 1 < given(first):
                self._hand_on(least, first, before, chosen, led)
                return True
            # Whoever can be reached from here reaches no more than was reached.
            stuck |= seen
        return False

    def _hand_on(
        self,
        last: int,
        first: int,
        before: dict[int, tuple[int, int]],
        chosen: list[int],
        led: dict[int, set[int]],
    ) -> None:
        self._give(first, -1)
        self._give(last, 1)
        while last != first:
            bit, number = before[last]
            led[bit].remove(number)
            led.setdefault(last, set()).add(number)
            chosen[number] = last
            last = bit

    def _give(self, bit: int, count: int) -> None:
        self.leaders.give(bit, count)
        self._region_given[self._regions.of[bit]] += count

    def _fewest(self, mask: int) -> int:
        """Of equal brokers one in the region that leads fewest."""
        if not mask & (mask - 1):
            return mask.bit_length() - 1
        of = self._regions.of
        given, before = self._region_given, self._region_before
        bits = list(bits_of(mask))
        least = min((given[of[bit]], before[of[bit]]) for bit in bits)
        return self._rng.choice([b for b in bits if (given[of[b]], before[of[b]]) == least])
