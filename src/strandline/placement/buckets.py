"""Which buckets may hold the data of a topic, by its placement policy.

Why:    a residency binds every holder of the bytes, and a bucket is one. A policy whose replicas
        are all in given places says as well where the data is: Confluent's language has no other
        way.
How:    a bucket is allowed if the residency allows its labels, and if some rule lets a replica be
        there. Of a rule only the labels count that the bucket has: a rule about racks or disks is
        about machines. Without a policy every bucket is allowed.
Source: design section 11; decision 0058."""

from collections.abc import Mapping

from strandline.model.cluster import Labels
from strandline.model.ids import NO_BROKER
from strandline.placement.constraints.residency import banned_by
from strandline.placement.constraints.selectors import refused_by
from strandline.placement.policy.document import Policy, Rule


def allowed_buckets(policy: Policy | None, buckets: Mapping[str, Labels]) -> tuple[str, ...]:
    """The names of the buckets that may hold the topic's data, in the order given."""
    if policy is None:
        return tuple(buckets)
    return tuple(
        name
        for name, labels in buckets.items()
        if banned_by(policy.residency, labels) is None and _may_have_replica(policy, labels)
    )


def _may_have_replica(policy: Policy, labels: Labels) -> bool:
    rules = policy.voter_rules() + policy.observer_rules()
    return any(_allows(rule, labels) for rule in rules)


def _allows(rule: Rule, labels: Labels) -> bool:
    if rule.level != "hard":
        return True
    known = tuple(one for one in rule.where if labels.get(one.label))
    return refused_by(known, NO_BROKER, labels) is None
