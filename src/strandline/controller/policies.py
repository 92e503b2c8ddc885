"""Placement policies where topics are created: read, checked, and followed.

Why:    what a user types is refused when the topic is made, with the reason and what could be met;
        what was accepted is kept in one spelling, so that every broker reads the same.
How:    a topic's own `placement.policy` or `confluent.placement.constraints` wins; then the
        cluster's default; without any, placement spreads evenly.
Owns:   nothing.
Source: design section 7; decision 0008."""

import json
from collections.abc import Collection, Mapping

from strandline.base.errors import ApiError, OperatorError
from strandline.config.topic import TOPIC_KEYS_BY_NAME, TopicConfig
from strandline.controller.decision import Draft, Facts, refuse
from strandline.model.ids import BrokerId
from strandline.placement.policy.confluent import CONFIG as CONSTRAINTS
from strandline.placement.policy.confluent import check_replication_factor, import_confluent
from strandline.placement.policy.document import Policy
from strandline.placement.policy.text import decode_policy, encode_policy, read_document
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.placement.spread import Replicas
from strandline.placement.topology.universe import BrokerState, Candidate
from strandline.protocol.errors import Error

POLICY = "placement.policy"
MIN_INSYNC = "min.insync.replicas"
NETWORKS = "client.networks"
TOPIC_POLICY_KEYS = (POLICY, CONSTRAINTS)
CLUSTER_POLICY_KEYS = tuple(TOPIC_KEYS_BY_NAME[name].cluster_name for name in TOPIC_POLICY_KEYS)
"""The cluster's defaults of these, in the same order."""
_READERS = {
    name: read
    for names in (TOPIC_POLICY_KEYS, CLUSTER_POLICY_KEYS)
    for name, read in zip(names, (decode_policy, import_confluent), strict=True)
}
"""{key: what reads its value}."""
PARTITIONS_BY_POLICY_MAX = 2_000
"""So many are placed in a fifth of a second: the controller must not fall silent for longer."""


def canonical_policy(name: str, text: str) -> str:
    """The text that is kept for a key of a topic or of the cluster: one line of JSON for a policy.

    Raises ApiError INVALID_CONFIG."""
    text = text.strip()
    if not text or name not in _READERS:
        return text
    policy = _decode(name, text)
    if _READERS[name] is decode_policy:
        return encode_policy(policy)
    return json.dumps(read_document(text, source=name), separators=(",", ":"))


def policy_of(own: Mapping[str, str], cluster: Mapping[str, str]) -> tuple[str, Policy] | None:
    """The key that gives a topic its policy, and the policy; None where it has none.

    `own`: what is set on the topic; `cluster`: what is set for the cluster. Raises ApiError."""
    for names, values in ((TOPIC_POLICY_KEYS, own), (CLUSTER_POLICY_KEYS, cluster)):
        given = [name for name in names if values.get(name)]
        if len(given) > 1:
            raise refuse(Error.INVALID_CONFIG, f"{given[0]} and {given[1]} are both set: keep one")
        if given:
            return given[0], _decode(given[0], values[given[0]])
    return None


def require_networks(policy: tuple[str, Policy] | None, cluster: Mapping[str, str]) -> None:
    """Refuse a policy, given with its key, that the cluster knows too little for; raises ApiError.

    `cluster`: what is set for the cluster."""
    if policy is not None and policy[1].leaders.follow and not cluster.get(NETWORKS):
        raise refuse(
            Error.INVALID_CONFIG,
            f"{policy[0]}: leaders cannot follow writers, for where clients are is not known: set "
            f"{NETWORKS} for the cluster, as in east=10.1.0.0/16,west=10.2.0.0/16",
        )


def choose_by_policy(
    facts: Facts,
    draft: Draft,
    *,
    policy: tuple[str, Policy],
    configs: Mapping[str, str],
    partitions: int,
    replication_factor: int | None,
) -> list[Replicas]:
    """Place new partitions as the policy asks, which is given with its key; raises ApiError.

    `configs`: what is set on the topic. `replication_factor`: what the client asked for; None
    leaves it to the policy, and to the cluster's default where that says nothing."""
    key, wanted = policy
    cluster = facts.state.cluster.cluster_configs
    if partitions > PARTITIONS_BY_POLICY_MAX:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"one request may place {PARTITIONS_BY_POLICY_MAX} partitions by a policy: create the "
            "topic with fewer, and add the others after that",
        )
    draft.require_room(partitions)
    if replication_factor is not None:
        try:
            check_replication_factor(wanted, replication_factor, config=key)
        except OperatorError as error:
            raise refuse(Error.INVALID_REPLICATION_FACTOR, str(error)) from None
    default = facts.capped(facts.config.default_replication_factor)
    request = Request(
        policy=wanted,
        min_insync_replicas=TopicConfig.from_overrides(cluster, configs).min_insync_replicas,
        default_voters=default if replication_factor is None else replication_factor,
        takes_down_brokers=True,
    )
    found = solve(request, candidates_of(facts, draft), partitions=partitions, rng=facts.rng)
    if isinstance(found, Refusal):
        raise refuse(Error.POLICY_VIOLATION, f"{key}: {found}")
    placed = [one.voters for one in found.partitions]
    voters = len(placed[0])
    if replication_factor is not None and voters != replication_factor:
        raise refuse(
            Error.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor}, but {key} needs {voters} replicas to "
            "survive what it names: leave the replication factor at -1",
        )
    _require_majorities(facts, placed)
    return placed


def _decode(name: str, text: str) -> Policy:
    try:
        policy = _READERS[name](text, source=name)
    except OperatorError as error:
        raise ApiError(int(Error.INVALID_CONFIG), str(error)) from None
    reason = ""
    if policy.observer_rules():
        reason = "observers of topics are not there yet: leave them out"
    if reason:
        raise refuse(Error.INVALID_CONFIG, f"{name}: {reason}")
    return policy


def candidates_of(
    facts: Facts, draft: Draft, leaving: Collection[BrokerId] | None = None
) -> list[Candidate]:
    """The registered brokers as the solver sees them. `leaving`: who is being decommissioned, if
    not as it is now."""
    load = draft.load
    gone, maintained = facts.leaving if leaving is None else leaving, facts.maintained

    def state(broker: BrokerId) -> BrokerState:
        if broker in gone:
            return BrokerState.DECOMMISSIONING
        is_there = broker in facts.alive and broker not in maintained
        return BrokerState.ACTIVE if is_there else BrokerState.DOWN

    return [
        Candidate(
            id=broker.id,
            labels=broker.labels,
            state=state(broker.id),
            replicas=load.replicas[broker.id],
            leaders=load.leaders[broker.id],
        )
        for broker in facts.brokers
    ]


def _require_majorities(facts: Facts, placed: list[Replicas]) -> None:
    """A majority of each partition must be up, or it could not take its first record."""
    alive = set(facts.alive)
    down: set[BrokerId] = set()
    for replicas in placed:
        missing = set(replicas) - alive
        if len(missing) > len(replicas) // 2:
            down |= missing
    if down:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"brokers {', '.join(map(str, sorted(down)))} are down, and without them no partition "
            "placed like this could take a record: wait for them, or ask for less",
        )
