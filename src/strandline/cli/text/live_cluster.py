"""A running cluster as the solver sees it: brokers with labels, round trips, topics with policies.

Why:    explanations must use the cluster's own state, in the same structures that the controller
        decides on.
How:    labels and round trips from the brokers; topics, replicas and leaders from Metadata;
        policies from the topics' configuration; decommissions, maintenance and disk usage from the
        controller, if there is one. A moving partition counts by its current voters and observers.
Source: decision 0008."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from strandline.base.errors import OperatorError, StrandlineError
from strandline.client.cluster import Client
from strandline.client.operations.balance import describe_balance
from strandline.client.operations.broker_configs import VOTERS_SHRINK, ConfigView, is_on
from strandline.client.operations.configs import describe_configs
from strandline.client.operations.in_sync import in_sync_replicas
from strandline.client.operations.observers import AllObserved, Observed, describe_observers
from strandline.client.operations.reassignments import moving_partitions
from strandline.client.operations.topology import Topology, describe_topology
from strandline.client.views import ClusterView, PartitionView, TopicView
from strandline.config.effective import ConfigSource
from strandline.config.topic import TOPIC_KEYS_BY_NAME
from strandline.controller.placing.policies import CLUSTER_POLICY_KEYS, TOPIC_POLICY_KEYS, policy_of
from strandline.model.cluster import Labels
from strandline.model.ids import NO_BROKER, BrokerId
from strandline.placement.explain.topics import PartitionState
from strandline.placement.policy.document import Policy, with_observers
from strandline.placement.solver.request import Request
from strandline.placement.topology.round_trips import RoundTrips
from strandline.placement.topology.universe import BrokerState, Candidate
from strandline.protocol.messages.describe_balance import BalanceBroker
from strandline.protocol.messages.list_partition_reassignments import (
    OngoingPartitionReassignment,
)

MIN_INSYNC = "min.insync.replicas"
CACHING = "write.caching"
DEFAULT_REPLICAS = "default.replication.factor"
DISK_FULL = "placement.disk.full.percent"
DISK_HIGH = "balancer.disk.high.percent"
THE_CLUSTER = ""
SHRINK_DEFAULT = TOPIC_KEYS_BY_NAME[VOTERS_SHRINK].cluster_name


@dataclass(frozen=True, slots=True)
class LiveTopic:
    """A topic. `policy_key`: the key that gives its policy, of the topic or of the cluster; empty
    where it has none."""

    name: str
    policy_key: str
    request: Request
    partitions: tuple[PartitionState, ...]
    own: Mapping[str, str]
    """Placement keys that are set on the topic itself."""
    shrinks: bool = False
    """Whether voters that are lost leave."""
    caches: bool = False
    """Whether acks=all does not wait for flushes (`write.caching`)."""
    shrinks_derived: bool = False
    """Whether `shrinks` follows from the policy."""

    def shrinks_by(self, policy: Policy) -> bool:
        """Whether voters that are lost would leave if the topic had this policy."""
        return bool(policy.promotion) if self.shrinks_derived else self.shrinks


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """The state of a cluster. `led`: {broker: partitions it leads}; `moving`: {(topic,
    partition): added and removed replicas} and `observed`: observers, of all topics;
    `disk_used_percent`: by the controller."""

    cluster_id: str
    controller: BrokerId
    candidates: tuple[Candidate, ...]
    round_trips: RoundTrips
    led: Mapping[BrokerId, int]
    topics: tuple[LiveTopic, ...]
    moving: Mapping[tuple[str, int], OngoingPartitionReassignment] = field(default_factory=dict)
    observed: AllObserved = field(default_factory=dict)
    disk_used_percent: Mapping[BrokerId, int] = field(default_factory=dict)

    def candidates_with_room(self) -> tuple[Candidate, ...]:
        """The candidates for new partitions, which mind how full disks are."""
        return tuple(
            replace(one, disk_used_percent=self.disk_used_percent.get(one.id, 0))
            for one in self.candidates
        )


@dataclass(frozen=True, slots=True)
class TopicDefaults:
    """What a topic gets that says nothing; and how full the disks of those that get new partitions
    may be."""

    min_insync_replicas: int
    replicas: int
    disk_full_percent: int
    disk_high_percent: int
    shrinks: bool | None = None
    """Whether voters that are lost leave; None if it follows from the policy."""

    def shrinks_by(self, policy: Policy) -> bool:
        """Whether they leave in a topic with this policy."""
        return bool(policy.promotion) if self.shrinks is None else self.shrinks


def look(client: Client, names: Sequence[str] | None, *, asks_leaders: bool = False) -> LiveCluster:
    """Ask a cluster for its brokers and these topics, or all. `asks_leaders`: ask each
    partition's leader for in-sync replicas; otherwise replicas on live brokers count as in sync."""
    for name in names or ():
        client.topic(name)  # Says what is wrong with it.
    topology = describe_topology(client)
    view = client.metadata(None)
    for name in names or ():
        if name not in view.topics or not view.topics[name].partitions:
            raise OperatorError(f"topic {name} is being created or deleted: try again")
    whole = sorted(name for name, one in view.topics.items() if one.partitions)
    wanted = whole if names is None else names
    moving = moving_partitions(client)
    adding = {place: one.adding_replicas for place, one in moving.items()}
    observed = describe_observers(client)
    told = _told(client, view.controller)
    candidates = _candidates(topology, view, told)
    regions = {one.id: one.labels.region for one in candidates}
    round_trips = RoundTrips.measured(topology.round_trips_ms, regions)
    configs = (
        describe_configs(client, wanted, (*TOPIC_POLICY_KEYS, MIN_INSYNC, VOTERS_SHRINK, CACHING))
        if wanted
        else {}
    )
    return LiveCluster(
        cluster_id=view.cluster_id,
        controller=view.controller,
        candidates=candidates,
        round_trips=round_trips,
        led=Counter(one.leader for topic in view.topics.values() for one in topic.partitions),
        topics=tuple(
            _topic(
                view.topics[name],
                configs[name],
                adding=adding,
                observed=observed,
                in_sync=in_sync_replicas(client, view.topics[name]) if asks_leaders else None,
                round_trips=round_trips,
            )
            for name in wanted
        ),
        moving=moving,
        observed=observed,
        disk_used_percent={
            id: one.disk_used_percent for id, one in told.items() if one.disk_used_percent >= 0
        },
    )


def topic_defaults(client: Client) -> TopicDefaults:
    """What the cluster's configuration gives to a topic that says nothing."""
    keys = (MIN_INSYNC, DEFAULT_REPLICAS, DISK_FULL, DISK_HIGH)
    configs = describe_configs(client, [THE_CLUSTER], (*keys, SHRINK_DEFAULT))[THE_CLUSTER]
    values = {one.name: int(one.value) for one in configs if one.name in keys}
    is_set = any(
        one.name == SHRINK_DEFAULT and one.source == ConfigSource.CLUSTER for one in configs
    )
    least, replicas, full, high = (values[key] for key in keys)
    return TopicDefaults(
        least,
        replicas,
        full,
        high,
        shrinks=is_on(SHRINK_DEFAULT, configs) if is_set else None,
    )


def _told(client: Client, controller: BrokerId) -> Mapping[BrokerId, BalanceBroker]:
    """What the controller reports of each broker; empty if there is no controller."""
    if controller == NO_BROKER:
        return {}
    try:
        found = describe_balance(client, client.look_deadline())
    except StrandlineError:
        return {}
    return {BrokerId(one.broker_id): one for one in found.brokers}


def _state(told: BalanceBroker | None, *, is_alive: bool) -> BrokerState:
    """The state for placement: a broker that is being decommissioned gets nothing, whether it is
    up or not."""
    if told is not None and told.is_leaving:
        return BrokerState.DECOMMISSIONING
    if not is_alive:
        return BrokerState.DOWN
    is_maintained = told is not None and told.maintenance_until_ms
    return BrokerState.MAINTENANCE if is_maintained else BrokerState.ACTIVE


def _candidates(
    topology: Topology, view: ClusterView, told: Mapping[BrokerId, BalanceBroker]
) -> tuple[Candidate, ...]:
    partitions = [one for topic in view.topics.values() for one in topic.partitions]
    held = Counter(broker for one in partitions for broker in one.replicas)
    preferred = Counter(one.replicas[0] for one in partitions if one.replicas)
    found = {
        one.id: Candidate(
            id=one.id,
            labels=one.labels,
            state=_state(told.get(one.id), is_alive=one.is_alive),
            replicas=held[one.id],
            leaders=preferred[one.id],
            is_heard=one.is_alive,
        )
        for one in topology.brokers
    }
    for broker in map(BrokerId, held):
        # Registered since the labels were asked for.
        found.setdefault(broker, Candidate(id=broker, labels=Labels(), state=BrokerState.DOWN))
    return tuple(found[broker] for broker in sorted(found))


def _topic(
    topic: TopicView,
    configs: Sequence[ConfigView],
    *,
    adding: Mapping[tuple[str, int], Sequence[int]],
    observed: AllObserved,
    in_sync: Mapping[int, Sequence[BrokerId]] | None,
    round_trips: RoundTrips,
) -> LiveTopic:
    partitions = tuple(
        _partition(
            one,
            adding.get((topic.name, one.index), ()),
            observed.get((topic.name, one.index), Observed()),
            None if in_sync is None else in_sync.get(one.index),
            is_led=in_sync is None or one.index in in_sync,
        )
        for one in topic.partitions
    )
    own = {one.name: one.value for one in configs if one.source == ConfigSource.TOPIC}
    key, policy = _policy(own, configs)
    if not key:  # There are to be as many as there are.
        policy = with_observers(policy, len(partitions[0].observers))
    min_insync = next(int(one.value) for one in configs if one.name == MIN_INSYNC)
    return LiveTopic(
        name=topic.name,
        policy_key=key,
        request=Request(
            policy=policy,
            min_insync_replicas=min_insync,
            default_voters=len(partitions[0].voters),
            round_trips=round_trips,
            takes_down_brokers=True,
        ),
        partitions=partitions,
        own=own,
        shrinks=is_on(VOTERS_SHRINK, configs),
        caches=is_on(CACHING, configs),
        shrinks_derived=any(
            one.name == VOTERS_SHRINK and one.source == ConfigSource.DEFAULT for one in configs
        ),
    )


def _partition(
    one: PartitionView,
    adding: Sequence[int],
    observed: Observed,
    in_sync: Sequence[BrokerId] | None,
    *,
    is_led: bool,
) -> PartitionState:
    held = [BrokerId(broker) for broker in one.replicas if broker not in adding]
    voters = tuple(broker for broker in held if broker not in observed.present)
    vote = dict.fromkeys((*voters, *observed.acting))
    behind = () if in_sync is None else tuple(broker for broker in vote if broker not in in_sync)
    return PartitionState(
        index=one.index,
        voters=voters,
        leader=one.leader,
        adding=tuple(map(BrokerId, adding)),
        behind=behind,
        observers=tuple(broker for broker in held if broker in observed.present),
        acting=observed.acting,
        is_led=is_led,
    )


def _policy(own: Mapping[str, str], configs: Sequence[ConfigView]) -> tuple[str, Policy]:
    """The key that sets the policy, and the policy. Without one: the default placement, which
    spreads as evenly as it can and forbids nothing."""
    cluster = {
        TOPIC_KEYS_BY_NAME[one.name].cluster_name: one.value
        for one in configs
        if one.source == ConfigSource.CLUSTER
    }
    found = policy_of(own, cluster)
    return ("", Policy(distinct_host=False)) if found is None else found


def key_of_the_cluster(key: str) -> bool:
    """Whether a policy's key is the cluster's default, and not the topic's own."""
    return key in CLUSTER_POLICY_KEYS
