"""The topic that stands for a group of a scenario, where whole brokers run.

Owns:   nothing.
Source: design section 10; `placement.policy.confluent` for the JSON."""

import json
from collections import Counter
from collections.abc import Sequence

from strandline.controller.placing.policies import SHRINK
from strandline.model.ids import BrokerId
from strandline.placement.policy.document import Policy, Role, Rule, Selector
from strandline.placement.policy.text import encode_policy
from strandline.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
)
from strandline.simulation.scenarios.scenario import GroupPlan, Scenario


def topic_of(plan: GroupPlan, scenario: Scenario) -> CreatableTopic:
    """One partition on these brokers, or, by a policy, on those in the same regions."""
    values = [*scenario.topic_configs]
    if scenario.shrinks_voters and not plan.promotion:  # Which says it by itself.
        values.append((SHRINK, "true"))
    values.append(("min.insync.replicas", str(plan.min_insync)))
    is_placed = bool(plan.observers) or plan.placement != "pinned"
    if is_placed:
        values.append(_policy(plan, scenario))
    by_hand = [CreatableReplicaAssignment(0, list(plan.voters))]
    return CreatableTopic(
        name=plan.name,
        num_partitions=1 if is_placed else -1,
        replication_factor=-1,
        assignments=[] if is_placed else by_hand,
        configs=[CreatableTopicConfig(key, value) for key, value in values],
    )


def _policy(plan: GroupPlan, scenario: Scenario) -> tuple[str, str]:
    """(key, value)"""

    def regions(brokers: Sequence[BrokerId]) -> list[tuple[str, int]]:
        return sorted(Counter(scenario.regions[one - 1] for one in brokers).items())

    if plan.placement == "confluent":
        document: dict[str, object] = {
            "version": 2,
            "replicas": _constraints(regions(plan.voters)),
        }
        if plan.observers:
            document["observers"] = _constraints(regions(plan.observers))
        if plan.promotion:
            document["observerPromotionPolicy"] = plan.promotion
        return "confluent.placement.constraints", json.dumps(document)
    rules: list[Rule] = []
    roles: list[tuple[Role, Sequence[BrokerId]]] = [("voter", plan.voters)]
    if plan.observers:
        roles.append(("observer", plan.observers))
    for role, brokers in roles:
        if plan.placement == "anywhere":
            rules.append(Rule(role=role, count=len(brokers)))
            continue
        if plan.placement == "pinned":
            here = Selector("broker", "in", tuple(map(str, brokers)))
            rules.append(Rule(role=role, count=len(brokers), where=(here,)))
            continue
        for region, count in regions(brokers):
            there = Selector("region", "in", (region,))
            rules.append(Rule(role=role, count=count, where=(there,)))
    policy = Policy(rules=tuple(rules), promotion=plan.promotion)
    return "placement.policy", encode_policy(policy)


def _constraints(counts: list[tuple[str, int]]) -> list[dict[str, object]]:
    return [{"count": count, "constraints": {"rack": region}} for region, count in counts]
