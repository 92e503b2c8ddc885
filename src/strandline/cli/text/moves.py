"""Previews the moves of a running cluster if a topic had another policy.

Why:    one command that changes a policy may copy terabytes.
How:    the controller validates the policy; the client rebuilds the controller's state from the
        brokers' answers and runs the pure balancer over it. This changes nothing. A broker that
        has been up for only a few seconds counts like any other.
Source: decision 0010."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from strandline.cli.text.live_cluster import THE_CLUSTER, LiveCluster, LiveTopic, look
from strandline.cli.text.losses import rules_of_new
from strandline.client.cluster import Client
from strandline.client.operations.balance import describe_balance
from strandline.client.operations.broker_configs import describe_broker_configs
from strandline.client.operations.configs import alter_topic_configs, describe_configs
from strandline.client.operations.log_dirs import log_sizes
from strandline.client.operations.observers import Observed
from strandline.config.broker_life import DECOMMISSION, MAINTENANCE, SENT_RATE, TAKEN_RATE
from strandline.config.effective import ConfigSource
from strandline.controller.balancer.health import SETTLE_MS, Condition
from strandline.controller.balancer.preview import Preview, Step, preview
from strandline.controller.balancer.round import Settings
from strandline.controller.placing.copy_shares import ALL, TO_BROKER
from strandline.controller.placing.policies import POLICY
from strandline.controller.records import (
    Assignment,
    BrokerRegistered,
    ConfigsChanged,
    ReassignmentSet,
    TopicCreated,
)
from strandline.controller.state import ControllerState
from strandline.model.cluster import Address
from strandline.model.ids import NO_BROKER, BrokerId, GroupId
from strandline.placement.explain.copies import Copy, CopyCost, Limit, cost_of
from strandline.placement.explain.topics import PartitionState
from strandline.placement.policy.text import decode_policy
from strandline.placement.survival.courses import Rules
from strandline.protocol.messages.describe_balance import DescribeBalanceResponse

RECOVERY = "replication.recovery_bytes_per_s"
RECOVERY_FAR = "replication.recovery_cross_region_bytes_per_s"
MOVES = "moves.bytes.per.s"
MOVES_FAR = "moves.cross.region.bytes.per.s"
_NOWHERE = Address("", 0)


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """A partition that gets another leader. `before` is NO_BROKER if it has none."""

    partition: int
    before: BrokerId
    after: BrokerId


@dataclass(frozen=True, slots=True)
class TopicMoves:
    """The preview. `steps`: the moves of this topic, each with its copies. `others`: how many
    partitions of other topics would move too. `after`: this topic's partitions afterwards.
    `is_paused`: whether no move begins before the balancer is resumed. `provisos`: assumptions of
    the preview that may turn out wrong, as text. `rules`: by which its partitions go on after
    losses, with that policy."""

    cluster: LiveCluster
    topic: LiveTopic
    preview: Preview
    steps: tuple[tuple[Step, tuple[Copy, ...]], ...]
    cost: CopyCost
    others: int
    leaders: tuple[LeaderChange, ...]
    after: tuple[PartitionState, ...]
    is_paused: bool
    provisos: tuple[str, ...]
    rules: Rules


def look_at_moves(client: Client, name: str, policy: str) -> TopicMoves:
    """Preview the moves if the topic had `policy`, the text of a policy. Raises ApiError if the
    controller would refuse it."""
    wanted = decode_policy(policy)
    alter_topic_configs(client, name, {POLICY: policy}, validate_only=True)
    cluster = look(client, None)
    topic = next(one for one in cluster.topics if one.name == name)
    balance = describe_balance(client)
    state = state_of(client, cluster, balance)
    state.replay(ConfigsChanged("topic", name, {POLICY: policy}))
    settings = replace(Settings.of(state.cluster.cluster_configs), is_enabled=True)
    condition = condition_of(balance)
    found = preview(state, condition, settings, topic=name)
    own = [one for one in found.steps if one.topic == name]
    steps = with_copies(client, cluster, topic, own)
    copies = [copy for _, some in steps for copy in some]
    limits = limits_of(client, balance, {one.source for one in copies})
    after = tuple(
        replace(one, voters=then.replicas, observers=then.observers, adding=(), behind=())
        for one, then in zip(topic.partitions, state.cluster.topics[name].partitions, strict=True)
    )
    return TopicMoves(
        cluster=cluster,
        topic=topic,
        preview=found,
        steps=steps,
        cost=cost_of(copies, limits),
        others=len({(one.topic, one.partition) for one in found.steps if one.topic != name}),
        leaders=tuple(
            LeaderChange(one.index, one.leader, one.voters[0])
            for one in after
            if one.leader != one.voters[0]
        ),
        after=after,
        is_paused=not balance.is_enabled,
        provisos=tuple(_provisos(found, condition)),
        rules=rules_of_new(
            client,
            cluster,
            replace(topic.request, policy=wanted),
            shrinks=topic.shrinks_by(wanted),
        ),
    )


def _provisos(found: Preview, condition: Condition) -> Iterator[str]:
    """Assumptions of the preview that may turn out wrong, as text."""
    if found.arriving:
        noun = "partition" if found.arriving == 1 else "partitions"
        yield f"moves in progress ({found.arriving} {noun}) finish first"
    away = sorted(condition.down_since_ms.keys() | condition.lost)
    if away:
        noun = "broker" if len(away) == 1 else "brokers"
        yield f"{noun} {', '.join(map(str, away))} will remain down or lost"
    if not found.is_by_turns:
        yield "more partitions move at a time than the limit allows"


# ---- the controller's state ------------------------------------------------------------------


def state_of(
    client: Client, cluster: LiveCluster, balance: DescribeBalanceResponse
) -> ControllerState:
    """The part of the controller's state that the balancer reads. Groups are numbered anew, in the
    order of `cluster.topics`."""
    state = ControllerState()
    for one in cluster.candidates:
        state.replay(
            BrokerRegistered(
                id=one.id,
                incarnation="",
                directory_id="",
                rpc=_NOWHERE,
                kafka=_NOWHERE,
                labels=one.labels,
            )
        )
    (values,) = describe_configs(client, [THE_CLUSTER]).values()
    configs = {one.name: one.value for one in values if one.source == ConfigSource.CLUSTER}
    state.replay(ConfigsChanged("cluster", "", dict(configs)))
    for broker in balance.brokers:
        life: dict[str, str | None] = {}
        if broker.is_leaving:
            life[DECOMMISSION] = "true"
        if broker.maintenance_until_ms:
            life[MAINTENANCE] = str(broker.maintenance_until_ms)
        if life and broker.broker_id in state.cluster.brokers:
            state.replay(ConfigsChanged("broker", str(broker.broker_id), life))
    for topic in cluster.topics:
        _add_topic(state, topic)
    _add_moves(state, cluster, balance)
    return state


def _add_topic(state: ControllerState, topic: LiveTopic) -> None:
    first = state.cluster.next_group
    state.replay(
        TopicCreated(
            name=topic.name,
            id=UUID(int=first),
            partitions=tuple(
                Assignment(GroupId(first + number), one.voters, one.observers)
                for number, one in enumerate(topic.partitions)
            ),
            configs=dict(topic.own),
        )
    )


def _add_moves(
    state: ControllerState, cluster: LiveCluster, balance: DescribeBalanceResponse
) -> None:
    """Add the moves that are in progress."""
    own = {(one.topic, one.partition) for one in balance.moves}
    for (topic, index), one in cluster.moving.items():
        known = state.cluster.topics.get(topic)
        target = tuple(
            BrokerId(broker) for broker in one.replicas if broker not in one.removing_replicas
        )
        if known is not None and index < len(known.partitions) and target:
            group = known.partitions[index].group
            observers = cluster.observed.get((topic, index), Observed()).wanted or ()
            state.replay(
                ReassignmentSet(
                    group,
                    tuple(one for one in target if one not in observers),
                    by_balancer=(topic, index) in own,
                    observers=tuple(one for one in observers if one in target),
                )
            )


def condition_of(balance: DescribeBalanceResponse) -> Condition:
    """The brokers' health, from the balancer's report."""
    brokers = {BrokerId(one.broker_id): one for one in balance.brokers}
    down = {id: one for id, one in brokers.items() if one.down_ms or one.condition == "down"}
    spared = frozenset(id for id, one in brokers.items() if one.maintenance_until_ms)
    lost = frozenset(id for id, one in brokers.items() if one.condition == "lost")
    up = frozenset(brokers) - frozenset(down)
    absent_ms = min(SETTLE_MS, balance.lost_after_ms)
    return Condition(
        up=up,
        settled=up - spared - lost,
        lost=lost,
        absent=frozenset(id for id, one in down.items() if one.down_ms >= absent_ms),
        down_since_ms={id: -one.down_ms for id, one in down.items()},
        spared=spared,
        full=frozenset(id for id, one in brokers.items() if one.is_disk_full),
    )


# ---- what it costs ---------------------------------------------------------------------------


def with_copies(
    client: Client, cluster: LiveCluster, topic: LiveTopic, steps: Sequence[Step]
) -> tuple[tuple[Step, tuple[Copy, ...]], ...]:
    """Each step with its copies. The source is the leader, if it is a voter before the step, or
    else the preferred leader."""
    leaders = {one.index: one.leader for one in topic.partitions}
    regions = {one.id: one.labels.region for one in cluster.candidates}
    sizes = _sizes(client, cluster, topic, {one.partition for one in steps if one.coming})
    found = []
    for step in steps:
        leader = leaders[step.partition]
        source = leader if leader in step.before.voters else step.before.voters[0]
        copies = tuple(
            Copy(
                source=source,
                target=one,
                bytes=sizes.get(step.partition),
                crosses=regions.get(one) != regions.get(source),
            )
            for one in step.coming
        )
        found.append((step, copies))
    return tuple(found)


def _sizes(
    client: Client, cluster: LiveCluster, topic: LiveTopic, partitions: set[int]
) -> dict[int, int]:
    """{partition: bytes of its log}: the leader's, or else the largest among the voters."""
    up = {one.id for one in cluster.candidates if one.is_up}
    asked = [one for one in topic.partitions if one.index in partitions]
    found: dict[int, int] = {}
    told: dict[BrokerId, dict[int, int]] = {}
    for broker in sorted({voter for one in asked for voter in one.voters} & up):
        held = [one.index for one in asked if broker in one.voters]
        told[broker] = log_sizes(client, broker, topic.name, held)
    for one in asked:
        known = {voter: told.get(voter, {}).get(one.index) for voter in one.voters}
        sizes = [size for size in known.values() if size is not None]
        if sizes:
            of_leader = known.get(one.leader) if one.leader != NO_BROKER else None
            found[one.index] = max(sizes) if of_leader is None else of_leader
    return found


def limits_of(
    client: Client, balance: DescribeBalanceResponse, sources: set[BrokerId]
) -> list[Limit]:
    """The rate limits of copies: from the configuration files of the sending brokers, and from keys
    of the cluster."""
    found = []
    for source in sorted(sources):
        rows = describe_broker_configs(client, source, (RECOVERY, RECOVERY_FAR, SENT_RATE)) or ()
        values = {one.name: int(one.value) for one in rows}
        for key, crosses in ((RECOVERY, False), (RECOVERY_FAR, True), (SENT_RATE, None)):
            if key in values:
                found.append(Limit(key, values[key], source=source, crosses=crosses))
    for one in balance.rates:
        if one.name.startswith(TO_BROKER):
            target = BrokerId(int(one.name.removeprefix(TO_BROKER)))
            found.append(Limit(TAKEN_RATE, one.bytes_per_s, target=target))
        elif one.name == ALL:
            found.append(Limit(MOVES, one.bytes_per_s))
        else:
            found.append(Limit(MOVES_FAR, one.bytes_per_s, crosses=True))
    return found
