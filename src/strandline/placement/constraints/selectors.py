"""Selectors: the brokers that a rule's `where` allows; other families ask by selectors, too."""

from dataclasses import dataclass

from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId
from strandline.placement.constraints.contract import HardEvaluator, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.constraints.static import StaticEvaluator
from strandline.placement.policy.document import Selector, Where
from strandline.placement.policy.words import format_where
from strandline.placement.topology.labels import BROKER_LABEL
from strandline.placement.topology.universe import Universe

_CODES = {
    "in": ("in", "not-in"),
    "notIn": ("not-in", "in"),
    "exists": ("with", "without"),
    "notExists": ("without", "with"),
}
"""{operator: (the code of a reason when it holds, when it does not)}."""


@dataclass(frozen=True, slots=True)
class Selectors:
    """All of `where` must hold for the replicas of `scope`."""

    where: Where
    scope: int

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for the scope's replicas."""
        return StaticEvaluator(
            shape,
            self.scope,
            "where",
            lambda one: refused_by(self.where, one.id, one.labels),
            title=format_where(self.where),
        )


def refused_by(where: Where, broker: BrokerId, labels: Labels) -> Reason | None:
    """The first selector that does not hold for a broker, as a reason; None when all hold.

    A label that is not there is in no list, and so `notIn` holds."""
    for selector in where:
        value = str(broker) if selector.label == BROKER_LABEL else labels.get(selector.label)
        if not holds(selector, value):
            return reason_of(selector, holds=False)
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


def reason_of(selector: Selector, *, holds: bool) -> Reason:
    """The reason for a broker for which a selector holds, or does not."""
    when_it_holds, otherwise = _CODES[selector.op]
    code = when_it_holds if holds else otherwise
    if selector.op in ("in", "notIn"):
        return because(code, label=selector.label, values=", ".join(selector.values))
    return because(code, label=selector.label)
