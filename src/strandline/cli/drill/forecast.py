"""What the loss of some brokers would stop, by the voters and write quorums that there are now.

How:    a partition takes writes while a write quorum of its voters is up and in sync; an
        acknowledged write is in jeopardy where as many voters go as a write needs.
Source: docs/decisions/0019-drills.md; `placement.survival.replicas` for the quorum."""

from collections.abc import Collection
from dataclasses import dataclass

from strandline.cli.live_cluster import LiveCluster
from strandline.cli.restarts import controller_group
from strandline.client.cluster import Client
from strandline.model.ids import BrokerId
from strandline.placement.survival.replicas import Quorum


@dataclass(frozen=True, slots=True)
class TopicForecast:
    """One topic: how many of its partitions there are, have leaders that would go, would take no
    writes, and would have acknowledged writes nowhere else."""

    topic: str
    partitions: int
    led: int
    stopped: int
    exposed: int


def loses_controller(client: Client, cluster: LiveCluster, gone: Collection[BrokerId]) -> bool:
    """Whether nothing could be decided any more: topics created, replicas moved, and new producers
    given ids."""
    up = frozenset(one.id for one in cluster.candidates if one.is_up)
    group = controller_group(client, up)
    return len(group.ready - set(gone)) < group.quorum


def forecast(cluster: LiveCluster, gone: Collection[BrokerId]) -> list[TopicForecast]:
    """Every topic, by name."""
    down = {one.id for one in cluster.candidates if not one.is_up}
    found = []
    for topic in cluster.topics:
        stopped = exposed = 0
        for one in topic.partitions:
            quorum = Quorum.of(len(one.voters), topic.request.min_insync_replicas)
            left = set(one.voters) - set(gone) - down - set(one.behind)
            stopped += len(left) < quorum.write_quorum
            exposed += len(set(one.voters) & set(gone)) >= quorum.loses_at
        found.append(
            TopicForecast(
                topic=topic.name,
                partitions=len(topic.partitions),
                led=sum(1 for one in topic.partitions if one.leader in gone),
                stopped=stopped,
                exposed=exposed,
            )
        )
    return sorted(found, key=lambda one: one.topic)
