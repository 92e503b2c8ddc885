"""What the loss of some brokers would stop, by the current voters and write quorums.

How:    a partition accepts writes while a write quorum of its voters is up and in sync. If voters
        may leave, those that have left do not count; if too few are left, the partition continues
        with fewer, or with observers that stand in, as the controller would decide. An
        acknowledged write is at risk if as many voters are lost as a write needs.
Source: docs/decisions/0019-drills.md; `placement.survival.courses` for what becomes of a partition,
        `placement.survival.replicas` for the quorum."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from strandline.cli.text.live_cluster import LiveCluster, LiveTopic
from strandline.cli.text.restarts import controller_group
from strandline.client.cluster import Client
from strandline.model.ids import BrokerId
from strandline.placement.explain.topics import PartitionState
from strandline.placement.survival.course import Course
from strandline.placement.survival.courses import COUNTED, Rules, course_of
from strandline.placement.survival.replicas import Quorum


@dataclass(frozen=True, slots=True)
class TopicForecast:
    """One topic: counts of all partitions, of those led by lost brokers, of those without
    writes, and of those whose acknowledged writes are at risk. Of the partitions that continue:
    how many only after voters have left, and after observers stand in."""

    topic: str
    partitions: int
    led: int
    stopped: int
    exposed: int
    voters_leave: int = 0
    stand_ins: int = 0


def loses_controller(client: Client, cluster: LiveCluster, gone: Collection[BrokerId]) -> bool:
    """Whether nothing could be decided any more: topics created, replicas moved, and new producers
    given ids."""
    up = frozenset(one.id for one in cluster.candidates if one.is_up)
    group = controller_group(client, up)
    return len(group.ready - set(gone)) < group.quorum


def forecast(
    cluster: LiveCluster, gone: Collection[BrokerId], *, decides: bool = True
) -> list[TopicForecast]:
    """Every topic, by name. `decides`: whether the controller keeps its majority."""
    down = {one.id for one in cluster.candidates if not one.is_up}
    found = []
    for topic in cluster.topics:
        courses = Counter(
            course(topic, one, gone, down, decides=decides) for one in topic.partitions
        )
        found.append(
            TopicForecast(
                topic=topic.name,
                partitions=len(topic.partitions),
                led=sum(1 for one in topic.partitions if one.leader in gone),
                stopped=sum(count for each, count in courses.items() if not each.acts_alone),
                exposed=sum(_is_exposed(topic, one, gone, down) for one in topic.partitions),
                voters_leave=courses[Course.ARBITRATION],
                stand_ins=courses[Course.STANDS_IN],
            )
        )
    return sorted(found, key=lambda one: one.topic)


def course(
    topic: LiveTopic,
    partition: PartitionState,
    gone: Collection[BrokerId],
    down: Collection[BrokerId],
    *,
    decides: bool,
) -> Course:
    """The course of one partition without `gone` and the brokers that are down."""
    promotion = topic.request.policy.promotion
    rules = Rules(
        topic.request.min_insync_replicas,
        topic.shrinks,
        promotion=promotion,
        promises=not topic.caches,
    )
    voters = _in_force(topic, partition, down)
    left = len(set(voters) - set(gone) - set(down) - set(partition.behind))
    counts = topic.shrinks and promotion in COUNTED
    idle = set(partition.observers).difference(voters, gone, down)
    observers = len(idle) if counts else 0
    quorum = Quorum.of(len(voters), rules.min_insync_replicas)
    found = course_of(quorum, left, observers, rules, without_controller=not decides)
    # Voters that have left do not count for the quorum, but still for acks=all.
    lacking = rules.lacking(Quorum.of(len(partition.voters), 1), left)
    if found.acts_alone and topic.shrinks and lacking:
        stands_in = decides and observers >= lacking
        return Course.STANDS_IN if stands_in else Course.LOWER
    return found


def _in_force(
    topic: LiveTopic, partition: PartitionState, down: Collection[BrokerId]
) -> tuple[BrokerId, ...]:
    """The voters, without those that have left, and with observers that stand in."""
    if partition.acting:
        return partition.acting
    if not topic.shrinks:
        return partition.voters
    left = {*down, *partition.behind}
    return tuple(one for one in partition.voters if one not in left)


def _is_exposed(
    topic: LiveTopic,
    partition: PartitionState,
    gone: Collection[BrokerId],
    down: Collection[BrokerId],
) -> bool:
    voters = _in_force(topic, partition, down)
    quorum = Quorum.of(len(voters), topic.request.min_insync_replicas)
    return len(set(voters) & set(gone)) >= quorum.loses_at
