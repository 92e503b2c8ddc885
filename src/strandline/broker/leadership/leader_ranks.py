"""How much a topic's policy prefers each broker as a leader, and what else it says of leaders.

Why:    elections and hand-overs choose among the replicas that happen to be in sync: a policy's
        `leaders` orders them beyond the first replica.
How:    A broker's rank is the number of the first preference that it meets: 0 is best; without a
        match, the number of all preferences.
            If leaders follow the writers, regions rank in the order of the partition's replicas:
        that is where the writers are, or were. Observers rank after all voters.
            Each policy is read once, until policies or labels change.
Owns:   the cache; one per broker.
Source: decisions 0012, 0014 and 0025."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.controller.placing.policies import (
    CLUSTER_POLICY_KEYS,
    TOPIC_POLICY_KEYS,
    policy_in_force,
)
from strandline.model.cluster import Cluster, Labels, Partition, Topic
from strandline.model.ids import BrokerId
from strandline.placement.constraints.selectors import refused_by
from strandline.placement.policy.document import Leaders, Promotion

_POLICIES_MAX = 1_000
"""The cache is emptied beyond so many entries."""


@dataclass(frozen=True, slots=True)
class Preference:
    """What a topic asks of its leaders. `failback_delay_ms`: None if no policy sets it."""

    ranks: Mapping[BrokerId, int] = field(default_factory=dict)
    """{broker: rank, lower is better}; one that is not in it has rank 0."""
    failback_delay_ms: int | None = None
    follows_writers: bool = False
    promotion: Promotion = ""
    """When its observers become voters for a while."""


NO_PREFERENCE = Preference()


class LeaderRanks:
    """See the module."""

    def __init__(self) -> None:
        self._labels: dict[BrokerId, Labels] = {}
        self._known: dict[tuple[str | None, ...], Preference] = {}
        self._version = -1

    def of(self, topic: Topic, cluster: Cluster) -> Preference:
        """What the topic asks for now."""
        if cluster.version != self._version:
            self._version = cluster.version
            labels = {one.id: one.labels for one in cluster.brokers.values()}
            if labels != self._labels or len(self._known) > _POLICIES_MAX:
                self._labels = labels
                self._known.clear()
        configs, defaults = topic.configs, cluster.cluster_configs
        key = (
            *(configs.get(name) for name in TOPIC_POLICY_KEYS),
            *(defaults.get(name) for name in CLUSTER_POLICY_KEYS),
        )
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(topic, cluster)
        return found

    def ranks(self, preference: Preference, partition: Partition) -> Mapping[BrokerId, int]:
        """The ranks for one partition of a topic with this preference."""
        ranks = self._ranks(preference, partition)
        if not partition.observers:
            return ranks
        last = 1 + max((ranks.get(one, 0) for one in partition.replicas), default=0)
        return {one: ranks.get(one, 0) for one in partition.replicas} | dict.fromkeys(
            partition.observers, last
        )

    def _ranks(self, preference: Preference, partition: Partition) -> Mapping[BrokerId, int]:
        if not preference.follows_writers:
            return preference.ranks
        unknown = Labels()
        regions = [self._labels.get(one, unknown).region for one in partition.replicas]
        order = {region: rank for rank, region in enumerate(dict.fromkeys(regions))}
        return {one: order[region] for one, region in zip(partition.replicas, regions, strict=True)}

    def _read(self, topic: Topic, cluster: Cluster) -> Preference:
        policy = policy_in_force(topic.configs, cluster.cluster_configs)
        if policy is None:
            return NO_PREFERENCE
        leaders = policy.leaders
        ranks = {one: _rank(leaders, one, labels) for one, labels in self._labels.items()}
        return Preference(
            ranks if leaders.prefer else {},
            leaders.failback_delay_ms,
            follows_writers=leaders.follow == "writers",
            promotion=policy.promotion,
        )


def _rank(leaders: Leaders, broker: BrokerId, labels: Labels) -> int:
    for number, where in enumerate(leaders.prefer):
        if refused_by(where, broker, labels) is None:
            return number
    return len(leaders.prefer)
