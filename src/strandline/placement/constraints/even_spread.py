"""Even spread, soft: replicas in distinct regions, zones, racks, hosts; then as even as can be.

How:    the cost is the share of pairs of replicas that share a domain. It is least exactly when the
        replicas are as even as the domains allow, and a replica more adds what its domain holds."""

import heapq
from dataclasses import dataclass

from strandline.placement.constraints.contract import COST_MAX, Seats, Shape, SoftEvaluator
from strandline.placement.constraints.counting import held_by_domain


@dataclass(frozen=True, slots=True)
class EvenSpread:
    """The replicas of `scope` over the domains of `label`."""

    label: str
    scope: int
    weight: int = 1

    def prepare(self, shape: Shape) -> SoftEvaluator:
        """The evaluator for the scope's replicas."""
        return _EvenSpread(shape, self)


class _EvenSpread(SoftEvaluator):
    def __init__(self, shape: Shape, spec: EvenSpread) -> None:
        super().__init__(shape, spec.scope, spec.weight)
        self.name = f"even over {spec.label}s"
        self.labels = (spec.label,)
        self._domains = self.universe.domains(spec.label)
        self._pairs_max = self.total * (self.total - 1) // 2

    def cost(self, seats: Seats) -> int:
        held = held_by_domain(seats, self.scope, self._domains)
        return self._cost(sum(count * (count - 1) // 2 for count in held.values()))

    def bound(self, seats: Seats, allowed: int) -> int:
        held = held_by_domain(seats, self.scope, self._domains)
        pairs = sum(count * (count - 1) // 2 for count in held.values())
        room = [
            (held.get(domain, 0), (mask & allowed).bit_count())
            for domain, mask in enumerate(self._domains.masks)
            if held.get(domain, 0) < (mask & allowed).bit_count()
        ]
        heapq.heapify(room)
        for _ in range(self.total - sum(held.values())):
            if not room:
                break
            count, size = room[0]
            pairs += count
            if count + 1 < size:
                heapq.heapreplace(room, (count + 1, size))
            else:
                heapq.heappop(room)
        return self._cost(pairs)

    def prefer(self, seats: Seats, group: int, mask: int) -> int:
        if not self.scope >> group & 1:
            return mask
        masks = self._domains.masks
        held = held_by_domain(seats, self.scope, self._domains)
        fresh = mask
        for domain in held:
            fresh &= ~masks[domain]
        if fresh:
            return fresh
        for count in sorted(set(held.values())):
            least = 0
            for domain, number in held.items():
                if number == count:
                    least |= masks[domain]
            if least & mask:
                return least & mask
        return mask

    def _cost(self, pairs: int) -> int:
        return pairs * COST_MAX // self._pairs_max if self._pairs_max else 0
