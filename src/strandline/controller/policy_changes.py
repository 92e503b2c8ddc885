"""Whether a policy that is changed can be met, before the change is taken.

Why:    a user who types a policy that cannot be met reads why, and what could be; as when the topic
        was created.
How:    the policy in force after the change is solved for one partition, down brokers included. A
        change that asks for no more than before is always taken: in an outage, too.
Owns:   nothing.
Source: decisions 0008 and 0010."""

from collections.abc import Mapping

from strandline.config.topic import TopicConfig
from strandline.controller.decision import Draft, Facts, refuse
from strandline.controller.policies import (
    CLUSTER_POLICY_KEYS,
    TOPIC_POLICY_KEYS,
    candidates_of,
    policy_of,
)
from strandline.model.cluster import Topic
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.protocol.errors import Error

Changes = Mapping[str, str | None]
"""New values by key; None where a key is no more set."""


def check_topic_policy(facts: Facts, topic: Topic, changes: Changes) -> None:
    """Refuse changes to a topic that leave it with a policy that cannot be met; raises ApiError."""
    own = _changed(topic.configs, changes)
    inherited = facts.state.cluster.cluster_configs
    before = TopicConfig.from_overrides(inherited, topic.configs)
    after = TopicConfig.from_overrides(inherited, own)
    is_policy_changed = any(
        own.get(name, "") != topic.configs.get(name, "") for name in TOPIC_POLICY_KEYS
    )
    if is_policy_changed or after.min_insync_replicas > before.min_insync_replicas:
        _check(facts, own, inherited, [topic])


def check_default_policy(facts: Facts, changes: Changes) -> None:
    """The same for the cluster's default, and the topics that have no policy of their own."""
    values = facts.state.cluster.cluster_configs
    after = _changed(values, changes)
    if all(after.get(name, "") == values.get(name, "") for name in CLUSTER_POLICY_KEYS):
        return
    policy_of({}, after)
    heirs = [
        topic
        for topic in facts.state.cluster.topics.values()
        if not any(topic.configs.get(name) for name in TOPIC_POLICY_KEYS)
    ]
    _check(facts, None, after, heirs)


def _check(
    facts: Facts, own: Mapping[str, str] | None, inherited: Mapping[str, str], topics: list[Topic]
) -> None:
    """Solve each question that these topics ask once. `own`: what is set on the only one."""
    candidates = candidates_of(facts, Draft(facts.state))
    known: set[tuple[int, int]] = set()
    for topic in topics:
        configs = topic.configs if own is None else own
        found = policy_of(configs, inherited)
        if found is None:
            continue
        key, policy = found
        least = TopicConfig.from_overrides(inherited, configs).min_insync_replicas
        voters = len(topic.partitions[0].replicas)
        if (least, voters) in known:
            continue
        known.add((least, voters))
        request = Request(
            policy=policy,
            min_insync_replicas=least,
            default_voters=voters,
            takes_down_brokers=True,
        )
        answer = solve(request, candidates, rng=facts.rng)
        if isinstance(answer, Refusal):
            raise refuse(Error.POLICY_VIOLATION, f"{key} of topic {topic.name}: {answer}")


def _changed(values: Mapping[str, str], changes: Changes) -> dict[str, str]:
    after = {**values, **changes}
    return {name: value for name, value in after.items() if value is not None}
