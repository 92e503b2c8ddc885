"""Distinct host: no two replicas on one host. Brokers without a host label are not restricted."""

from dataclasses import dataclass

from strandline.placement.constraints.contract import HardEvaluator, Seats, Shape
from strandline.placement.constraints.reasons import Reason, because


@dataclass(frozen=True, slots=True)
class DistinctHost:
    """For all replicas of a partition."""

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for all replicas."""
        return _DistinctHost(shape)


class _DistinctHost(HardEvaluator):
    name = "distinct host"
    labels = ("host",)

    def __init__(self, shape: Shape) -> None:
        super().__init__(shape, shape.everyone)
        self._domains = self.universe.domains("host")

    def eligible(self, seats: Seats, group: int) -> int:
        left = self.universe.all
        domains = self._domains
        for bit, _ in seats:
            domain = domains.of[bit]
            if domains.values[domain]:
                left &= ~domains.masks[domain]
        return left

    def reason(self, seats: Seats, group: int, bit: int) -> Reason:
        return because("host-taken", domain=self._domains.names[self._domains.of[bit]])

    def most(self, allowed: int) -> int:
        domains = self._domains
        counts = [(mask & allowed).bit_count() for mask in domains.masks]
        return sum(
            min(count, 1) if value else count
            for count, value in zip(counts, domains.values, strict=True)
        )
