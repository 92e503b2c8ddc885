"""Checks that a changed policy can be met, before the controller accepts the change.

Why:    if a policy cannot be met, the operator gets the reason and the nearest policy that can, as
        for a new topic.
How:    This solves the new policy for one partition, with down brokers as candidates. A change that
        requires no more than before is always accepted, also in an outage. A default of the cluster
        changes every topic that has no policy of its own.
Owns:   its solutions, for one command.
Source: decisions 0008 and 0010."""

from collections.abc import Collection, Mapping

from strandline.base.errors import ApiError
from strandline.config.topic import TopicConfig
from strandline.controller.decision import Draft, Facts, refuse
from strandline.controller.listing import listed
from strandline.controller.placing.policies import (
    CLUSTER_POLICY_KEYS,
    MIN_INSYNC,
    OFFSETS_CONSTRAINTS,
    TOPIC_POLICY_KEYS,
    candidates_of,
    policy_of,
    require_networks,
    unknown_to,
)
from strandline.model.cluster import Topic
from strandline.model.ids import BrokerId
from strandline.placement.policy.confluent import CONFIG as CONSTRAINTS
from strandline.placement.policy.document import Policy
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.placement.topology.universe import Candidate
from strandline.protocol.errors import Error

Changes = Mapping[str, str | None]
"""New values by key; None for a removed key."""


class PolicyChecks:
    """The checks of one command, which solves each question once. `leaving`: the brokers in
    decommissioning, if not the present ones."""

    def __init__(self, facts: Facts, *, leaving: Collection[BrokerId] | None = None) -> None:
        self._facts = facts
        self._leaving = leaving
        self._values = facts.state.cluster.cluster_configs
        self._candidates: list[Candidate] = []
        self._solved: dict[tuple[Policy, int, int], str] = {}
        self._others: dict[tuple[tuple[str, str], ...], bool] = {}

    def check_topic(self, topic: Topic, changes: Changes) -> None:
        """Refuse changes that leave a topic with a policy that cannot be met; raises ApiError."""
        own = _changed(topic.configs, changes)
        before = TopicConfig.from_overrides(self._values, topic.configs)
        after = TopicConfig.from_overrides(self._values, own)
        is_policy_changed = any(
            own.get(name) != topic.configs.get(name) for name in TOPIC_POLICY_KEYS
        )
        if is_policy_changed:
            require_networks(policy_of(own, self._values), self._values)
        if is_policy_changed or after.min_insync_replicas > before.min_insync_replicas:
            key, refusal = self._solve(topic, own, self._values)
            if refusal:
                raise refusal_of({topic.name: (key, refusal)})

    def present(self, topic: Topic) -> tuple[str, str]:
        """(the key of the topic's present policy, why it cannot be met); an empty key if the topic
        has none, an empty reason if it can."""
        return self._solve(topic, topic.configs, self._values)

    def check_default(self, changes: Changes) -> None:
        """The same for the cluster's defaults and the topics without their own policy; the refusal
        names the topics."""
        after = _changed(self._values, changes)
        require_networks(policy_of({}, after), after)
        is_policy_changed = any(
            after.get(name, "") != self._values.get(name, "") for name in CLUSTER_POLICY_KEYS
        )
        least, least_after = (
            TopicConfig.from_overrides(values, {}).min_insync_replicas
            for values in (self._values, after)
        )
        offsets = after.get(OFFSETS_CONSTRAINTS, "")
        if offsets != self._values.get(OFFSETS_CONSTRAINTS, ""):
            self._check_offsets(offsets, after)
        refused: dict[str, tuple[str, str]] = {}
        for topic in self._facts.state.cluster.topics.values():
            is_dearer = least_after > least and MIN_INSYNC not in topic.configs
            if is_dearer or (is_policy_changed and self._is_other(topic, after)):
                key, refusal = self._solve(topic, topic.configs, after)
                if refusal:
                    refused[topic.name] = key, refusal
        if refused:
            raise refusal_of(refused)

    def _check_offsets(self, constraints: str, values: Mapping[str, str]) -> None:
        """Refuse constraints that prevent the creation of the offsets topic."""
        found = policy_of({CONSTRAINTS: constraints}, {})
        if found is None:
            return
        least = TopicConfig.from_overrides(values, {}).min_insync_replicas
        refusal = self._refusal(
            found[1], least, self._facts.config.offsets_topic_replication_factor
        )
        if refusal:
            raise refuse(Error.POLICY_VIOLATION, f"{OFFSETS_CONSTRAINTS}: {refusal}")

    def _is_other(self, topic: Topic, after: Mapping[str, str]) -> bool:
        """Whether a topic has another policy with these defaults of the cluster."""
        configs = topic.configs
        own = tuple((name, configs[name]) for name in TOPIC_POLICY_KEYS if name in configs)
        if own not in self._others:
            values = dict(own)
            self._others[own] = policy_of(values, after) != policy_of(values, self._values)
        return self._others[own]

    def _solve(
        self, topic: Topic, own: Mapping[str, str], inherited: Mapping[str, str]
    ) -> tuple[str, str]:
        """(the key of the policy, why it cannot be met); an empty key if there is none, an empty
        reason if it can."""
        found = policy_of(own, inherited)
        if found is None:
            return "", ""
        key, policy = found
        least = TopicConfig.from_overrides(inherited, own).min_insync_replicas
        return key, self._refusal(policy, least, len(topic.partitions[0].replicas))

    def _refusal(self, policy: Policy, least: int, voters: int) -> str:
        """Why the policy cannot be met; empty if it can. `voters` applies if it names no number."""
        if (policy, least, voters) in self._solved:
            return self._solved[policy, least, voters]
        if not self._candidates:
            self._candidates = candidates_of(self._facts, Draft(self._facts.state), self._leaving)
        request = Request(
            policy=policy,
            min_insync_replicas=least,
            default_voters=voters,
            takes_down_brokers=True,
        )
        answer = solve(request, self._candidates, rng=self._facts.rng)
        refusal = ""
        if isinstance(answer, Refusal):
            refusal = f"{answer.text()}{unknown_to(self._candidates, policy)}"
        self._solved[policy, least, voters] = refusal
        return refusal


def refusal_of(refused: Mapping[str, tuple[str, str]]) -> ApiError:
    """{topic: (the key of its policy, why it cannot be met)}: the first reason in full."""
    (name, (key, refusal)), *others = refused.items()
    text = f"{key} of topic {name}: {refusal}"
    if others:
        text += f"\nnor could that of {listed([other for other, _ in others])}"
    return refuse(Error.POLICY_VIOLATION, text)


def _changed(values: Mapping[str, str], changes: Changes) -> dict[str, str]:
    after = {**values, **changes}
    return {name: value for name, value in after.items() if value is not None}
