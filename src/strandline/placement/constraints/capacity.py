"""Capacity: a broker whose disk or count of replicas is full gets no more."""

from dataclasses import dataclass

from strandline.placement.constraints.contract import HardEvaluator, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.constraints.static import StaticEvaluator
from strandline.placement.topology.universe import Candidate

DISK_USED_PERCENT_MAX = 85


@dataclass(frozen=True, slots=True)
class Capacity:
    """`disk_used_percent_max`: a disk as full as that is full."""

    disk_used_percent_max: int = DISK_USED_PERCENT_MAX

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for all replicas."""
        title = "full brokers get no replica"
        return StaticEvaluator(shape, shape.everyone, "capacity", self._judge, title=title)

    def _judge(self, one: Candidate) -> Reason | None:
        if one.disk_used_percent >= self.disk_used_percent_max:
            return because(
                "disk-full", held=one.disk_used_percent, limit=self.disk_used_percent_max
            )
        if one.replicas_max is not None and one.replicas >= one.replicas_max:
            return because("replicas-full", held=one.replicas, limit=one.replicas_max)
        return None
