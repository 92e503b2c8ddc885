"""What the stop of some brokers of a running cluster would do.

How:    labels, replicas and in-sync replicas from the brokers, as `topic explain` asks; then the
        pure `placement.explain.stopping`.
Source: decisions 0011 and 0026."""

from collections.abc import Collection
from dataclasses import dataclass

from strandline.cli.text.live_cluster import LiveCluster, look
from strandline.cli.text.losses import at_present, controller_voters, rules_of
from strandline.client.cluster import Client
from strandline.model.ids import BrokerId
from strandline.placement.explain.stopping import Stop, stop_of
from strandline.placement.survival.courses import Rules
from strandline.placement.survival.replicas import Placement
from strandline.placement.topology.universe import Universe, as_staying


@dataclass(frozen=True, slots=True)
class Stops:
    """A cluster as it is now. `partitions`: [(name, its replicas at present, its rules)];
    `leaderless`: those whose leader does not answer."""

    known: frozenset[BrokerId]
    down: frozenset[BrokerId]
    controllers: frozenset[BrokerId]
    partitions: tuple[tuple[str, Placement, Rules], ...]
    leaderless: frozenset[str] = frozenset()

    def stop(self, brokers: Collection[BrokerId]) -> Stop:
        """What it does if these stop together."""
        return stop_of(
            brokers,
            self.partitions,
            controllers=self.controllers,
            down=self.down,
            leaderless=self.leaderless,
        )


def look_at_stops(client: Client) -> Stops:
    """Ask a cluster."""
    cluster = look(client, None, asks_leaders=True)
    return Stops(
        known=frozenset(one.id for one in cluster.candidates),
        down=frozenset(one.id for one in cluster.candidates if not one.is_up),
        controllers=frozenset(one.broker for one in controller_voters(client, cluster)),
        partitions=tuple(_partitions(cluster, rules_of(client, cluster))),
        leaderless=frozenset(
            f"{topic.name}-{one.index}"
            for topic in cluster.topics
            for one in topic.partitions
            if not one.is_led
        ),
    )


def _partitions(
    cluster: LiveCluster, rules: dict[str, Rules]
) -> list[tuple[str, Placement, Rules]]:
    universe = Universe(as_staying(cluster.candidates))
    return [
        (f"{topic.name}-{index}", placement, rules[topic.name])
        for topic in cluster.topics
        for placement, indexes in at_present(topic, cluster, universe)
        for index in indexes
    ]
