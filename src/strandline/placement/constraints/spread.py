"""Spread: at most so many replicas in one domain, and at least so many distinct domains."""

from dataclasses import dataclass

from strandline.placement.constraints.contract import HardEvaluator, Seats, Shape
from strandline.placement.constraints.counting import held_by_domain
from strandline.placement.constraints.reasons import Reason, because


@dataclass(frozen=True, slots=True)
class MaxPer:
    """At most `limit` replicas of `scope` in one domain of `label`."""

    label: str
    limit: int
    scope: int

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the scope's replicas."""
        return _MaxPer(shape, self)


@dataclass(frozen=True, slots=True)
class MinDistinct:
    """The replicas of `scope` are in at least `least` distinct domains of `label`."""

    label: str
    least: int
    scope: int

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the scope's replicas."""
        return _MinDistinct(shape, self)


class _MaxPer(HardEvaluator):
    def __init__(self, shape: Shape, spec: MaxPer) -> None:
        super().__init__(shape, spec.scope)
        self.name = f"spread by {spec.label}: at most {spec.limit}"
        self.labels = (spec.label,)
        self._limit = spec.limit
        self._domains = self.universe.domains(spec.label)

    def eligible(self, seats: Seats, group: int) -> int:
        left = self.universe.all
        if self.scope >> group & 1:
            if not self._limit:
                return 0
            for domain, held in held_by_domain(seats, self.scope, self._domains).items():
                if held >= self._limit:
                    left &= ~self._domains.masks[domain]
        return left

    def reason(self, seats: Seats, group: int, bit: int) -> Reason:
        domain = self._domains.of[bit]
        return because(
            "domain-full",
            label=self._domains.label,
            domain=self._domains.names[domain],
            held=held_by_domain(seats, self.scope, self._domains).get(domain, 0),
            limit=self._limit,
        )

    def most(self, allowed: int) -> int:
        return sum(min((mask & allowed).bit_count(), self._limit) for mask in self._domains.masks)


class _MinDistinct(HardEvaluator):
    def __init__(self, shape: Shape, spec: MinDistinct) -> None:
        super().__init__(shape, spec.scope)
        self.name = f"spread by {spec.label}: at least {spec.least} distinct"
        self.labels = (spec.label,)
        self._least = spec.least
        self._domains = self.universe.domains(spec.label)

    def eligible(self, seats: Seats, group: int) -> int:
        if not self.scope >> group & 1:
            return self.universe.all
        held, needed, left = self._state(seats)
        if needed < left or needed <= 0:
            return self.universe.all
        if needed > left:
            return 0
        fresh = self.universe.all
        for domain in held:
            fresh &= ~self._domains.masks[domain]
        return fresh

    def reason(self, seats: Seats, group: int, bit: int) -> Reason:
        _, needed, left = self._state(seats)
        label = self._domains.label
        if needed > left:
            return because("distinct-short", needed=needed, label=label, left=left)
        domain = self._domains.names[self._domains.of[bit]]
        return because("distinct-needed", label=label, domain=domain, needed=needed)

    def most(self, allowed: int) -> int:
        domains = sum(1 for mask in self._domains.masks if mask & allowed)
        return 0 if domains < self._least else allowed.bit_count()

    def _state(self, seats: Seats) -> tuple[dict[int, int], int, int]:
        """Seats by domain, how many fresh domains are needed, how many seats are left."""
        held = held_by_domain(seats, self.scope, self._domains)
        return held, self._least - len(held), self.total - sum(held.values())
