"""Hands leaderships on in chains, until they are even.

Why:    if a broker leads too many partitions, those that may take over from it may be full too; but
        they could hand one on in turn.
How:    Breadth first from a broker that leads much, over the brokers that may lead what the one
        before leads, to the one that leads least; each on the way gives one and gets one
        (augmenting paths). Each chain lowers the sum of the squares, so the chains end.
Owns:   the counts of the call, and which broker leads each partition.
Source: design section 7; decisions 0008 and 0012."""

from collections.abc import Sequence

from strandline.placement.topology.universe import bits_of


class Chains:
    """See the module. `masks`: by partition, the brokers that may lead it. `chosen`: by
    partition, its leader; changed here. `counts`: by bit, how many it leads, other partitions
    included."""

    def __init__(
        self,
        masks: Sequence[int],
        chosen: list[int],
        counts: Sequence[int],
        *,
        excess_ratio: float = 1.0,
    ) -> None:
        self.chosen = chosen
        self._masks = masks
        self._counts = list(counts)
        self._excess_ratio = excess_ratio
        self._led: dict[int, set[int]] = {}
        for number, bit in enumerate(chosen):
            self._led.setdefault(bit, set()).add(number)

    def exchange(self) -> list[int]:
        """Hand one leadership on, from broker to broker, until it comes to one that leads two less
        than the first, and less by the ratio; the partitions that have other leaders now, none
        where there is no such chain. Those that lead most begin."""
        counts, led = self._counts, self._led
        stuck = 0
        for first in sorted(led, key=lambda bit: (-counts[bit], bit)):
            if stuck >> first & 1:
                continue
            before: dict[int, tuple[int, int]] = {}
            seen = 1 << first
            queue = [first]
            for bit in queue:
                for number in sorted(led.get(bit, ())):
                    for other in bits_of(self._masks[number] & ~seen):
                        seen |= 1 << other
                        before[other] = (bit, number)
                        queue.append(other)
            least = min(queue, key=lambda bit: (counts[bit], bit))
            more, less = counts[first], counts[least]
            if less + 1 < more and less * self._excess_ratio < more:
                return self._hand_on(least, first, before)
            # Brokers that this one reaches reach no others than those known.
            stuck |= seen
        return []

    def _hand_on(self, last: int, first: int, before: dict[int, tuple[int, int]]) -> list[int]:
        self._counts[first] -= 1
        self._counts[last] += 1
        changed = []
        while last != first:
            bit, number = before[last]
            self._led[bit].remove(number)
            self._led.setdefault(last, set()).add(number)
            self.chosen[number] = last
            changed.append(number)
            last = bit
        return changed
