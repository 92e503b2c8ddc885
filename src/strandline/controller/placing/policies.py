"""Reads, checks and follows the placement policies of new topics.

Why:    the controller refuses a policy that cannot be met when a client creates the topic, with the
        reason and the nearest policy that can. It stores an accepted policy in one spelling, so
        that every broker reads the same.
How:    A topic's own `placement.policy` or `confluent.placement.constraints` wins; then the
        cluster's default; without any, placement spreads evenly. If a topic's constraints are set
        to nothing, neither its own nor the cluster's default constraints apply; a topic created
        with its own replication factor is such a topic. Redpanda's leader preference adds the place
        of leaders: the topic's own before the cluster's.
Owns:   nothing.
Source: design section 7; decision 0008."""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache

import msgspec

from strandline.base.errors import ApiError, OperatorError
from strandline.config.topic import TOPIC_KEYS_BY_NAME, TopicConfig
from strandline.controller.decision import Draft, Facts, refuse
from strandline.controller.placing.assignments import full_disks
from strandline.model.cluster import Roles
from strandline.model.ids import BrokerId
from strandline.placement.policy.confluent import CONFIG as CONSTRAINTS
from strandline.placement.policy.confluent import check_replication_factor, import_confluent
from strandline.placement.policy.document import Policy
from strandline.placement.policy.redpanda import CONFIG as PREFERENCE
from strandline.placement.policy.redpanda import import_leader_preference
from strandline.placement.policy.text import decode_policy, encode_policy, read_document
from strandline.placement.policy.unknown import unknown_values
from strandline.placement.solver.refusal import Refusal
from strandline.placement.solver.request import Request
from strandline.placement.solver.solve import solve
from strandline.placement.topology.universe import BrokerState, Candidate
from strandline.protocol.errors import Error

POLICY = "placement.policy"
MIN_INSYNC = "min.insync.replicas"
NETWORKS = "client.networks"
SHRINK = "voters.shrink.enable"
TOPIC_POLICY_KEYS = (POLICY, CONSTRAINTS, PREFERENCE)
CLUSTER_POLICY_KEYS = tuple(TOPIC_KEYS_BY_NAME[name].cluster_name for name in TOPIC_POLICY_KEYS)
"""The cluster's defaults of these, in the same order."""
CLUSTER_CONSTRAINTS = TOPIC_KEYS_BY_NAME[CONSTRAINTS].cluster_name
OFFSETS_CONSTRAINTS = "confluent.offsets.topic.placement.constraints"
"""The cluster key with the constraints of `__consumer_offsets`."""


def _read_preference(text: str, *, source: str) -> Policy:
    """The policy requires only a place of leaders: replicas spread as without it."""
    return Policy(leaders=import_leader_preference(text, source=source), distinct_host=False)


_INPUTS: tuple[Callable[..., Policy], ...] = (decode_policy, import_confluent, _read_preference)
_READERS = {
    name: read
    for names in (TOPIC_POLICY_KEYS, CLUSTER_POLICY_KEYS)
    for name, read in zip(names, _INPUTS, strict=True)
}
"""{key: the function that reads its value}"""
_READERS[OFFSETS_CONSTRAINTS] = import_confluent
Said = tuple[str, Policy]
"""A key, and its policy."""
_Texts = tuple[tuple[str, str], ...]
"""Keys, and their values."""
PARTITIONS_BY_POLICY_MAX = 2_000
"""How many partitions placement takes at once: a third of a second, for the controller must not
fall silent for longer."""


def canonical_policy(name: str, text: str) -> str:
    """The stored text for a key of a topic or of the cluster: one line of JSON for a policy.

    Raises ApiError INVALID_CONFIG."""
    text = text.strip()
    if not text or name not in _READERS:
        return text
    policy = _decode(name, text)
    if _READERS[name] is decode_policy:
        return encode_policy(policy)
    if _READERS[name] is _read_preference:
        return text
    return json.dumps(read_document(text, source=name), separators=(",", ":"))


def policy_of(own: Mapping[str, str], cluster: Mapping[str, str]) -> Said | None:
    """The key that gives a topic its policy, and the policy; None if it has none.

    `own`: the topic's own keys; `cluster`: the cluster's. Raises ApiError."""
    *keys, preference = TOPIC_POLICY_KEYS
    *defaults, default_preference = CLUSTER_POLICY_KEYS
    base = _said(keys, own)
    leaders = _preferred(preference, own, beside=base)
    if own.get(CONSTRAINTS) == "":
        defaults.remove(CLUSTER_CONSTRAINTS)
    found = _said(defaults, cluster) if base is None else base
    if leaders is None and not _names_leaders(base):
        leaders = _preferred(default_preference, cluster, beside=found if base is None else None)
    if leaders is None:
        return found
    prefer = leaders[1].leaders.prefer
    if found is None:
        return leaders if prefer else None
    key, policy = found
    where = msgspec.structs.replace(policy.leaders, prefer=prefer, follow="")
    return key, msgspec.structs.replace(policy, leaders=where)


def with_factor(
    own: dict[str, str], cluster: Mapping[str, str], policy: Said | None
) -> tuple[dict[str, str], Said | None]:
    """(the keys of a topic that is created with a replication factor of its own, its policy): the
    cluster's default constraints do not apply then, as on Confluent's brokers. Arguments as for
    `policy_of`, and its result."""
    if policy is None or policy[0] != CLUSTER_CONSTRAINTS:
        return own, policy
    own = {**own, CONSTRAINTS: ""}
    return own, policy_of(own, cluster)


def derived_defaults(own: Mapping[str, str], cluster: Mapping[str, str]) -> dict[str, str]:
    """{topic key: its default}, of the keys with a default from the topic's policy; arguments as
    for `policy_of`."""
    policy = policy_in_force(own, cluster)
    return {SHRINK: "true"} if policy is not None and policy.promotion else {}


def policy_in_force(own: Mapping[str, str], cluster: Mapping[str, str]) -> Policy | None:
    """As `policy_of`, for a policy accepted earlier: also None if it cannot be read."""
    return _read_once(
        tuple((name, own[name]) for name in TOPIC_POLICY_KEYS if name in own),
        tuple((name, cluster[name]) for name in CLUSTER_POLICY_KEYS if name in cluster),
    )


@lru_cache(maxsize=1_000)
def _read_once(own: _Texts, cluster: _Texts) -> Policy | None:
    try:
        found = policy_of(dict(own), dict(cluster))
    except ApiError:
        return None
    return None if found is None else found[1]


def require_networks(policy: Said | None, cluster: Mapping[str, str]) -> None:
    """Refuse a policy, given with its key, if the cluster lacks configuration for it; raises
    ApiError.

    `cluster`: the cluster's keys."""
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
) -> list[Roles]:
    """Place new partitions by the policy, given with its key; raises ApiError.

    `configs`: the topic's own keys. `replication_factor`: the client's; None leaves it to the
    policy, or to the cluster's default if the policy has none."""
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
    observers = sum(rule.count or 0 for rule in wanted.observer_rules())
    request = Request(
        policy=wanted,
        min_insync_replicas=TopicConfig.from_overrides(cluster, configs).min_insync_replicas,
        default_voters=(
            default if replication_factor is None else max(1, replication_factor - observers)
        ),
        takes_down_brokers=True,
        disk_used_percent_max=facts.config.placement_disk_full_percent,
        disk_high_percent=facts.config.balancer_disk_high_percent,
    )
    candidates = candidates_of(facts, draft, minds_room=True)
    found = solve(request, candidates, partitions=partitions, rng=facts.rng)
    if isinstance(found, Refusal):
        is_for_room = any(one.reason.code == "disk-full" for one in found.refused)
        room = f"\n{full_disks(facts)}" if is_for_room else ""
        text = f"{key}: {found.text()}{room}{unknown_to(candidates, wanted)}"
        raise refuse(Error.POLICY_VIOLATION, text)
    placed = [Roles(one.voters, one.observers) for one in found.partitions]
    count = len(placed[0].all)
    if replication_factor is not None and count != replication_factor:
        raise refuse(
            Error.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor}, but {key} needs {count} replicas to "
            "survive what it names: leave the replication factor at -1",
        )
    _require_majorities(facts, placed)
    return placed


def unknown_to(candidates: Collection[Candidate], policy: Policy) -> str:
    """The end of a refusal: the values in the policy that no broker has, a line for each."""
    found = unknown_values(policy, [(one.id, one.labels) for one in candidates])
    return "".join(f"\n{one}" for one in found)


def _said(names: Sequence[str], values: Mapping[str, str]) -> Said | None:
    """The one of these keys that gives a policy, and the policy."""
    given = [name for name in names if values.get(name)]
    if len(given) > 1:
        raise refuse(Error.INVALID_CONFIG, f"{given[0]} and {given[1]} are both set: keep one")
    return (given[0], _decode(given[0], values[given[0]])) if given else None


def _preferred(name: str, values: Mapping[str, str], *, beside: Said | None) -> Said | None:
    """The key of a leader preference, if it is set, and its policy. `beside`: the policy of the
    same owner."""
    if not values.get(name):
        return None
    if beside is not None and _names_leaders(beside):
        raise refuse(
            Error.INVALID_CONFIG,
            f"{beside[0]} and {name} both say where leaders should be: keep one",
        )
    return name, _decode(name, values[name])


def _names_leaders(said: Said | None) -> bool:
    return said is not None and bool(said[1].leaders.prefer or said[1].leaders.follow)


def _decode(name: str, text: str) -> Policy:
    try:
        return _READERS[name](text, source=name)
    except OperatorError as error:
        raise ApiError(int(Error.INVALID_CONFIG), str(error)) from None


def candidates_of(
    facts: Facts,
    draft: Draft,
    leaving: Collection[BrokerId] | None = None,
    *,
    minds_room: bool = False,
) -> list[Candidate]:
    """The registered brokers as candidates of the solver. `leaving`: the brokers in
    decommissioning, if not the present ones; `minds_room`: consider the reports of their disks."""
    load = draft.load
    gone, maintained = facts.leaving if leaving is None else leaving, facts.maintained

    def used_percent(broker: BrokerId) -> int:
        report = facts.room.get(broker) if minds_room else None
        return 0 if report is None else report.used_percent

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
            disk_used_percent=used_percent(broker.id),
        )
        for broker in facts.brokers
    ]


def _require_majorities(facts: Facts, placed: list[Roles]) -> None:
    """A majority of each partition must be up, or it could not take its first record."""
    alive = set(facts.alive)
    down: set[BrokerId] = set()
    for one in placed:
        missing = set(one.voters) - alive
        if len(missing) > len(one.voters) // 2:
            down |= missing
    if down:
        raise refuse(
            Error.POLICY_VIOLATION,
            f"brokers {', '.join(map(str, sorted(down)))} are down, and without them no partition "
            "placed like this could take a record: wait for them, or ask for less",
        )
