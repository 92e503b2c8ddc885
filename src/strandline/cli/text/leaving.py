"""Previews a decommission: what would move, and what topics survive afterwards.

How:    the controller says whether it would refuse it; then the balancer runs over a copy of the
        controller's state, as for another policy (`moves`).
Source: decisions 0010 and 0011."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.cli.text.live_cluster import LiveCluster, look
from strandline.cli.text.losses import rules_of
from strandline.cli.text.moves import condition_of, limits_of, state_of, with_copies
from strandline.client.cluster import Client
from strandline.client.operations.balance import describe_balance
from strandline.client.operations.configs import alter_broker_configs
from strandline.config.broker_life import DECOMMISSION
from strandline.controller.balancer.preview import Preview, Step, preview
from strandline.controller.balancer.round import Settings
from strandline.controller.records import ConfigsChanged
from strandline.controller.state import ControllerState
from strandline.model.ids import BrokerId
from strandline.placement.explain.copies import Copy, CopyCost, cost_of
from strandline.placement.explain.topics import TopicExplanation, explain_topic


@dataclass(frozen=True, slots=True)
class TopicLeaving:
    """A topic with replicas that would move. `moves`: partitions; `before`, `after`: what is told
    of the topic."""

    name: str
    moves: int
    before: TopicExplanation
    after: TopicExplanation


@dataclass(frozen=True, slots=True)
class Leaving:
    """`held`: replicas that the brokers hold now; `left`: that they would still hold."""

    brokers: tuple[BrokerId, ...]
    held: int
    left: int
    topics: tuple[TopicLeaving, ...]
    cost: CopyCost
    preview: Preview
    is_paused: bool


def look_at_leaving(client: Client, brokers: Sequence[BrokerId]) -> Leaving:
    """What the decommission of these brokers together would do. Raises ApiError if the controller
    would refuse it."""
    change = {DECOMMISSION: "true"}
    alter_broker_configs(client, brokers, change, validate_only=True)
    cluster = look(client, None)
    balance = describe_balance(client)
    state = state_of(client, cluster, balance)
    for broker in brokers:
        state.replay(ConfigsChanged("broker", str(broker), {**change}))
    held = _held(state, brokers)
    settings = replace(Settings.of(state.cluster.cluster_configs), is_enabled=True)
    found = preview(state, condition_of(balance), settings, topic=None)
    copies = _copies(client, cluster, found.steps)
    return Leaving(
        brokers=tuple(brokers),
        held=held,
        left=_held(state, brokers),
        topics=_topics(client, cluster, state, found.steps),
        cost=cost_of(copies, limits_of(client, balance, {one.source for one in copies})),
        preview=found,
        is_paused=not balance.is_enabled,
    )


def _held(state: ControllerState, brokers: Sequence[BrokerId]) -> int:
    groups = state.cluster.groups.values()
    return sum(broker in one.hosts for one in groups for broker in brokers)


def _copies(client: Client, cluster: LiveCluster, steps: Sequence[Step]) -> list[Copy]:
    found: list[Copy] = []
    for topic in cluster.topics:
        own = [one for one in steps if one.topic == topic.name]
        if own:
            for _, copies in with_copies(client, cluster, topic, own):
                found += copies
    return found


def _topics(
    client: Client, cluster: LiveCluster, state: ControllerState, steps: Sequence[Step]
) -> tuple[TopicLeaving, ...]:
    rules = rules_of(client, cluster)
    moves = Counter(topic for topic, _ in {(one.topic, one.partition) for one in steps})
    found = []
    for topic in cluster.topics:
        if not moves[topic.name]:
            continue
        placed = state.cluster.topics[topic.name].partitions
        after = [
            replace(one, voters=then.replicas, observers=then.observers, adding=(), behind=())
            for one, then in zip(topic.partitions, placed, strict=True)
        ]
        before, then = (
            explain_topic(topic.request, cluster.candidates, some, rules=rules[topic.name])
            for some in (topic.partitions, after)
        )
        found.append(TopicLeaving(topic.name, moves[topic.name], before, then))
    return tuple(found)
