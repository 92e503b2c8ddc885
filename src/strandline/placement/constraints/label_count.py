"""Label count: exactly so many replicas where a label has a value."""

from collections.abc import Hashable
from dataclasses import dataclass

from strandline.placement.constraints.contract import HardEvaluator, Seats, Shape
from strandline.placement.constraints.reasons import Reason, because


@dataclass(frozen=True, slots=True)
class ExactCount:
    """Exactly `count` replicas of `scope` where `label` has `value`."""

    label: str
    value: str
    count: int
    scope: int

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the scope's replicas."""
        return _ExactCount(shape, self)


class _ExactCount(HardEvaluator):
    def __init__(self, shape: Shape, spec: ExactCount) -> None:
        super().__init__(shape, spec.scope)
        self.name = f"{spec.count} where {spec.label}={spec.value}"
        self._spec = spec
        self._mask = self.universe.where(spec.label, (spec.value,))

    def eligible(self, seats: Seats, group: int) -> int:
        if not self.scope >> group & 1:
            return self.universe.all
        held, left = self._state(seats)
        needed = self._spec.count - held
        if needed > left or needed < 0:
            return 0
        if needed == left:
            return self._mask
        return self.universe.all if needed else self.universe.all & ~self._mask

    def reason(self, seats: Seats, group: int, bit: int) -> Reason:
        spec = self._spec
        held, left = self._state(seats)
        if spec.count - held > left:
            return because(
                "count-short", needed=spec.count - held, left=left, label=spec.label,
                domain=spec.value,
            )  # fmt: skip
        if self._mask >> bit & 1 or held > spec.count:
            return because(
                "count-full", label=spec.label, domain=spec.value, held=held, limit=spec.count
            )
        return because("count-needed", left=left, label=spec.label, domain=spec.value)

    def most(self, allowed: int) -> int:
        within = (allowed & self._mask).bit_count()
        if within < self._spec.count:
            return 0
        return self._spec.count + (allowed & ~self._mask).bit_count()

    def attribute(self, bit: int) -> Hashable:
        return self._mask >> bit & 1

    def _state(self, seats: Seats) -> tuple[int, int]:
        taken = [bit for bit, group in seats if self.scope >> group & 1]
        return sum(self._mask >> bit & 1 for bit in taken), self.total - len(taken)
