"""The brokers that the solver left out because they lack a label that a rule needs.

Why:    that may be why there is no placement. The user must know which labels to give.
How:    of the brokers that a rule's labels leave out, those that none of their own labels excludes:
        a broker of another region need not say which disks it has.
Source: decision 0008, "Labels that are missing"."""

from strandline.placement.constraints.selectors import holds
from strandline.placement.policy.document import Policy, Rule, labels_of_rule
from strandline.placement.solver.plan import Plan, rule_of
from strandline.placement.topology.labels import BROKER_LABEL, MissingLabel, missing_labels
from strandline.placement.topology.universe import BrokerState, Candidate


def unlabelled(plan: Plan) -> list[MissingLabel]:
    """The labels that brokers lack, by broker id, without brokers that leave."""
    policy = plan.request.policy
    found: dict[MissingLabel, None] = {}
    for group in plan.shape.groups:
        rule = rule_of(policy, group)
        brokers = [
            (one.id, one.labels)
            for one in plan.universe.candidates
            if one.state is not BrokerState.DECOMMISSIONING and not _is_excluded(policy, rule, one)
        ]
        found |= dict.fromkeys(missing_labels(labels_of_rule(policy, rule), brokers))
    return sorted(found, key=lambda one: one.broker)


def _is_excluded(policy: Policy, rule: Rule, one: Candidate) -> bool:
    """Whether a label that the broker has keeps a rule's replicas away from it."""
    required = policy.residency.allow + (rule.where if rule.level == "hard" else ())
    for selectors, wanted in ((required, True), (policy.residency.deny, False)):
        for selector in selectors:
            is_id = selector.label == BROKER_LABEL
            value = str(one.id) if is_id else one.labels.get(selector.label)
            if value and holds(selector, value) != wanted:
                return True
    return False
