"""Prefers the broker with the fewest replicas or leaders, among otherwise equal brokers.

How:    A level is a mask of the candidates with one count. Two lists of levels exist: by the count
        that this call gave, then by the count held before. The lowest level that has a candidate of
        the given mask wins: a few `&`, however many candidates there are."""

from collections.abc import Sequence

from strandline.placement.topology.universe import bits_of

LEVELS_MAX = 64
"""Levels of counts held before. If there are more counts, neighbouring ones share a level."""


class LeastAllocated:
    """Counts of replicas, or of leaders, by candidate. `before[bit]`: the count held before."""

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
        """The candidates of `mask` that hold fewest: a mask, empty only if `mask` is."""
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
        """Add `count`, which may be negative, to a candidate's count."""
        given = self._given[bit]
        assert given + count >= 0, "a broker gives away no more than it got"
        while len(self._levels) <= given + count:
            self._levels.append(0)
        self._levels[given] &= ~(1 << bit)
        self._levels[given + count] |= 1 << bit
        self._given[bit] = given + count
        self._lowest = min(self._lowest, given + count)
        while not self._levels[self._lowest]:
            self._lowest += 1

    def given(self, bit: int) -> int:
        """The count that this call gave a candidate so far."""
        return self._given[bit]

    def held(self, bit: int) -> int:
        """The count held before, plus the count given."""
        return self._before[bit] + self._given[bit]

    def fullest(self, mask: int) -> int:
        """The candidate of a mask that got most; of equals, the lowest broker id."""
        return max(bits_of(mask), key=lambda bit: (self._given[bit], -bit))
