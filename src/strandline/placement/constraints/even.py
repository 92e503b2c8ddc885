"""Even: no two domains of a label differ by more than one replica.

How:    If the fullest domain has m replicas, each domain with fewer lacks those up to m - 1. A
        candidate is eligible if, once it is taken, the seats left are enough for all lacking
        ones."""

from collections.abc import Hashable
from dataclasses import dataclass

from strandline.placement.constraints.contract import HardEvaluator, Seats, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.topology.universe import bits_of


@dataclass(frozen=True, slots=True)
class Even:
    """The replicas of `scope` are spread evenly over the values `over` of a label; if `over` is
    empty, over all its domains that have candidates in `allowed`."""

    label: str
    scope: int
    over: tuple[str, ...] = ()
    allowed: int = -1

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the scope's replicas."""
        return _Even(shape, self)


class _Even(HardEvaluator):
    def __init__(self, shape: Shape, spec: Even) -> None:
        super().__init__(shape, spec.scope)
        self._label = spec.label
        self.name = f"spread by {spec.label}: even"
        if spec.over:
            self.name += f" over {', '.join(spec.over)}"
            self._masks = [self.universe.where(spec.label, (value,)) for value in spec.over]
            self._names = list(spec.over)
        else:
            self.labels = (spec.label,)
            domains = self.universe.domains(spec.label)
            kept = [n for n, mask in enumerate(domains.masks) if mask & spec.allowed]
            self._masks = [domains.masks[n] for n in kept]
            self._names = [domains.names[n] for n in kept]
        self._of = {bit: n for n, mask in enumerate(self._masks) for bit in bits_of(mask)}

    def eligible(self, seats: Seats, group: int) -> int:
        if not self.scope >> group & 1:
            return self.universe.all
        counts, left = self._state(seats)
        most = max(counts, default=0)
        lacking = sum(most - 1 - count for count in counts if count < most - 1)
        # How many would be lacking if the fullest domain got one more.
        lacking_above = sum(most - count for count in counts if count < most)
        after = left - 1
        eligible = self.universe.all if lacking <= after else 0
        for count, mask in zip(counts, self._masks, strict=True):
            then = lacking_above if count == most else lacking - (count < most - 1)
            eligible = eligible | mask if then <= after else eligible & ~mask
        return eligible

    def reason(self, seats: Seats, group: int, bit: int) -> Reason:
        counts, _ = self._state(seats)
        domain = self._of.get(bit)
        name = self.universe.value(bit, self._label) if domain is None else self._names[domain]
        held = 0 if domain is None else counts[domain]
        return because("uneven", label=self._label, domain=name, held=held)

    def attribute(self, bit: int) -> Hashable:
        return None if self.labels else self._of.get(bit)

    def _state(self, seats: Seats) -> tuple[list[int], int]:
        counts = [0] * len(self._masks)
        taken = 0
        for bit, group in seats:
            if self.scope >> group & 1:
                taken += 1
                domain = self._of.get(bit)
                if domain is not None:
                    counts[domain] += 1
        return counts, self.total - taken
