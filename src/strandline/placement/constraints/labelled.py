"""Labelled: a broker that lacks a label which a rule needs gets no replica of it, for its place is
unknown."""

from dataclasses import dataclass

from strandline.placement.constraints.contract import HardEvaluator, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.constraints.static import StaticEvaluator
from strandline.placement.topology.universe import Candidate


@dataclass(frozen=True, slots=True)
class Labelled:
    """`labels`: those that each broker with replicas of `scope` must have."""

    labels: tuple[str, ...]
    scope: int

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the scope's replicas."""
        title = "brokers without a label that the policy needs get no replica"
        return StaticEvaluator(shape, self.scope, "labelled", self._judge, title=title)

    def _judge(self, one: Candidate) -> Reason | None:
        lacking = next((name for name in self.labels if not one.labels.get(name)), None)
        return None if lacking is None else because("without", label=lacking)
