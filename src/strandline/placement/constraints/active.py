"""Active: a broker that is down, in maintenance or leaving gets no replica."""

from dataclasses import dataclass

from strandline.placement.constraints.contract import HardEvaluator, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.constraints.static import StaticEvaluator
from strandline.placement.topology.universe import BrokerState, Candidate

_CODES = {
    BrokerState.DOWN: "down",
    BrokerState.MAINTENANCE: "maintenance",
    BrokerState.DECOMMISSIONING: "decommissioning",
}


@dataclass(frozen=True, slots=True)
class Active:
    """`may_be`: states that are eligible although they are not ACTIVE."""

    may_be: frozenset[BrokerState] = frozenset()

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for all replicas."""
        title = "brokers that are not in service get no replica"
        return StaticEvaluator(shape, shape.everyone, "active", self._judge, title=title)

    def _judge(self, one: Candidate) -> Reason | None:
        is_eligible = one.state is BrokerState.ACTIVE or one.state in self.may_be
        return None if is_eligible else because(_CODES[one.state])
