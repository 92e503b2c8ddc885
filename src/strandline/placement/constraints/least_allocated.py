"""Least allocated, soft: the broker that holds fewest, between those that are equal otherwise.

How:    the candidates lie in levels, one mask for each count: of what this call gave them, then
        of what they held before. The lowest level that meets the mask wins: a few `&` whatever the
        number of candidates."""

from collections.abc import Sequence

from strandline.placement.topology.universe import bits_of

LEVELS_MAX = 64
"""Of what was held before; counts are put together where there are more."""


class LeastAllocated:
    """Counts of replicas, or of leaders, by candidate. `before[bit]`: what it held before."""

    def __init__(self, before: Sequence[int]) -> None:
        self._before = before
        self._given = [0] * len(before)
        self._levels = [(1 << len(before)) - 1]
        self._lowest = 0
        counts = sorted(set(before))
        step = -(-len(counts) // LEVELS_MAX) or 1
        level_of = {count: n // step for n, count in enumerate(counts)}
        self._held = [0] * (max(level_of.values(), default=0) + 1)
        for bit, count in enumerate(before):
            self._held[level_of[count]] |= 1 << bit

    def prefer(self, mask: int) -> int:
        """Those of `mask` that hold fewest; not empty unless `mask` is."""
        levels = self._levels
        for number in range(self._lowest, len(levels)):
            if mask & levels[number]:
                mask &= levels[number]
                break
        for level in self._held:
            if mask & level:
                return mask & level
        return mask

    def give(self, bit: int, count: int = 1) -> None:
        """One more (or less, with count -1) for a candidate."""
        given = self._given[bit]
        assert given + count >= 0, "nobody gives more away than it was given"
        while len(self._levels) <= given + count:
            self._levels.append(0)
        self._levels[given] &= ~(1 << bit)
        self._levels[given + count] |= 1 << bit
        self._given[bit] = given + count
        self._lowest = min(self._lowest, given + count)
        while not self._levels[self._lowest]:
            self._lowest += 1

    def given(self, bit: int) -> int:
        """What this call gave a candidate so far."""
        return self._given[bit]

    def held(self, bit: int) -> int:
        """What a candidate holds now, with what it held before."""
        return self._before[bit] + self._given[bit]

    def fullest(self, mask: int) -> int:
        """The candidate of a mask that was given most; the first by broker id of equals."""
        return max(bits_of(mask), key=lambda bit: (self._given[bit], -bit))
