"""Selectors: the brokers that a rule's `where` allows; other families ask by selectors, too."""

from dataclasses import dataclass

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import HardEvaluator, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.constraints.static import StaticEvaluator
from strandline.placement.policy.document import Selector, Where
from strandline.placement.topology.labels import BROKER_LABEL
from strandline.placement.topology.universe import Universe


@dataclass(frozen=True, slots=True)
class Selectors:
    """All of `where` must hold for the replicas of `scope`."""

    where: Where
    scope: int

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the scope's replicas."""
        return StaticEvaluator(
            shape, self.scope, "where", lambda one: refused_by(self.where, one.id, one.labels)
        )


def refused_by(where: Where, broker: BrokerId, labels: Labels) -> Reason | None:
    """The first selector that does not hold for a broker, as a reason; None when all hold.

    A label that is not there is in no list, and so `notIn` holds."""
    for selector in where:
        value = str(broker) if selector.label == BROKER_LABEL else labels.get(selector.label)
        if not holds(selector, value):
            return _reason(selector)
    return None


def holds(selector: Selector, value: str) -> bool:
    """Whether a selector holds for the value of its label; "" when there is none."""
    match selector.op:
        case "in":
            return value in selector.values
        case "notIn":
            return value not in selector.values
        case "exists":
            return bool(value)
        case "notExists":
            return not value


def matching(universe: Universe, where: Where) -> int:
    """The candidates for which all selectors hold."""
    return universe.mask(
        bit
        for bit, one in enumerate(universe.candidates)
        if refused_by(where, one.id, one.labels) is None
    )


def _reason(selector: Selector) -> Reason:
    values = ", ".join(selector.values)
    match selector.op:
        case "in":
            return because("not-in", label=selector.label, values=values)
        case "notIn":
            return because("in", label=selector.label, values=values)
        case "exists":
            return because("without", label=selector.label)
        case "notExists":
            return because("with", label=selector.label)
