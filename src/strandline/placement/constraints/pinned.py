"""Pinned: replicas only on these brokers, as when a client chose them."""

from collections.abc import Collection
from dataclasses import dataclass

from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import HardEvaluator, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.constraints.static import StaticEvaluator
from strandline.placement.topology.universe import Candidate


@dataclass(frozen=True, slots=True)
class Pinned:
    """The replicas of `scope` are on some of `brokers`."""

    brokers: Collection[BrokerId]
    scope: int

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the scope's replicas."""
        title = f"replicas on the brokers [{self._ids}] only"
        return StaticEvaluator(shape, self.scope, "pinned", self._judge, title=title)

    @property
    def _ids(self) -> str:
        return ", ".join(map(str, sorted(self.brokers)))

    def _judge(self, one: Candidate) -> Reason | None:
        if one.id in self.brokers:
            return None
        return because("not-pinned", values=self._ids)
