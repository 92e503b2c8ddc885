"""Residency: where data may be. It binds replicas, observers, leaders, relays and buckets alike.

Why:    A law binds every holder of the bytes, whatever its role. A broker that lacks a label of an
        `allow` or `deny` is not eligible, because its place is unknown."""

from dataclasses import dataclass

from strandline.model.cluster import Labels
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.placement.constraints.contract import HardEvaluator, Shape
from strandline.placement.constraints.reasons import Reason, because
from strandline.placement.constraints.selectors import reason_of, refused_by
from strandline.placement.constraints.static import StaticEvaluator
from strandline.placement.policy.document import Residency
from strandline.placement.topology.labels import BROKER_LABEL


@dataclass(frozen=True, slots=True)
class Resident:
    """The policy's residency, for all replicas."""

    residency: Residency

    def prepare(self, shape: Shape) -> HardEvaluator:
        """The evaluator for all replicas."""
        return StaticEvaluator(
            shape,
            shape.everyone,
            "residency",
            lambda one: banned_by(self.residency, one.labels, broker=one.id),
        )


def banned_by(
    residency: Residency, labels: Labels, *, broker: BrokerId = NO_BROKER
) -> Reason | None:
    """Why data may not be where these labels are; None when it may.

    For a relay or a bucket only the labels count."""
    for selector in residency.allow + residency.deny:
        is_compared = selector.op in ("in", "notIn") and selector.label != BROKER_LABEL
        if is_compared and not labels.get(selector.label):
            return because("without", label=selector.label)
    refused = refused_by(residency.allow, broker, labels)
    if refused is not None:
        return refused
    for selector in residency.deny:
        if refused_by((selector,), broker, labels) is None:
            return reason_of(selector, holds=True)
    return None
