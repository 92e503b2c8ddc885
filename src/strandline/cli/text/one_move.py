"""What a move of one partition's replicas would break and copy, and what survives afterwards.

Why:    a list of brokers is typed in a second; the balancer would undo what breaks the policy.
How:    the placement after the move, judged by the topic's policy and by the model of what
        survives, as `topic explain` does. Without a policy, the losses that it survives now are
        what counts. What the controller refuses is left to it.
Source: decisions 0008 and 0009."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.cli.text.live_cluster import LiveCluster, LiveTopic, look
from strandline.cli.text.losses import rules_of
from strandline.client.cluster import Client
from strandline.model.ids import BrokerId
from strandline.placement.explain.topics import PartitionState, TopicExplanation, explain_topic
from strandline.placement.policy.document import Goal
from strandline.placement.survival.courses import Rules
from strandline.placement.survival.report import implies


@dataclass(frozen=True, slots=True)
class OneMove:
    """`before`, `after`: what is told of the partition as it is placed, and would be. `coming`:
    the brokers that get a copy; `down`: those of the new replicas that are down."""

    topic: LiveTopic
    before: TopicExplanation
    after: TopicExplanation
    coming: tuple[BrokerId, ...]
    down: tuple[BrokerId, ...]

    @property
    def faults(self) -> tuple[str, ...]:
        """What would not be as the policy wants; nothing without a policy."""
        return self.after.alike[0].faults if self.topic.policy_key else ()

    @property
    def survives_less(self) -> bool:
        """Whether a loss that the partition survives as it is placed would stop its writes or lose
        some. A topic with a policy is judged by that alone."""
        if self.topic.policy_key:
            return False
        before, after = self.before, self.after
        return not (_covers(after.writes, before.writes) and _covers(after.data, before.data))


def _covers(survived: Sequence[Goal], others: Sequence[Goal]) -> bool:
    return all(any(implies(one, other) for one in survived) for other in others)


def look_at_move(
    client: Client, topic: str, partition: int, brokers: Sequence[int]
) -> OneMove | None:
    """None where the controller will refuse the list."""
    cluster = look(client, [topic])
    (found,) = cluster.topics
    known = {one.id for one in cluster.candidates}
    to = tuple(map(BrokerId, brokers))
    if partition >= len(found.partitions) or len(set(to)) != len(to) or not known.issuperset(to):
        return None
    state = found.partitions[partition]
    if state.observers and len(to) != len(state.placed.all):
        return None
    return _judged(cluster, found, state, to, rules_of(client, cluster)[topic])


def _judged(
    cluster: LiveCluster,
    topic: LiveTopic,
    state: PartitionState,
    to: tuple[BrokerId, ...],
    rules: Rules,
) -> OneMove:
    voters = len(state.voters) if state.observers else len(to)
    after = PartitionState(
        index=state.index, voters=to[:voters], leader=to[0], observers=to[voters:]
    )
    before = replace(state, behind=(), acting=(), adding=())

    def told(one: PartitionState) -> TopicExplanation:
        request = replace(topic.request, default_voters=len(one.voters))
        return explain_topic(request, cluster.candidates, [one], rules=rules)

    return OneMove(
        topic=topic,
        before=told(before),
        after=told(after),
        coming=tuple(one for one in to if one not in state.placed.all),
        down=tuple(one.id for one in cluster.candidates if one.id in to and not one.is_up),
    )
