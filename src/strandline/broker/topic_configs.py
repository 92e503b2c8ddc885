"""The typed configuration of each topic, ready for every request.

Why:    reading a topic's texts into values takes longer than a whole produce request may.
How:    kept by topic id, and looked at anew only when the controller's log has moved on.
Owns:   the cache; one per broker.
Source: config.topic."""

from dataclasses import dataclass
from uuid import UUID

from strandline.config.topic import TopicConfig
from strandline.model.cluster import Cluster, Topic


@dataclass(slots=True)
class _Entry:
    """What a configuration was made of. `version`: of the cluster, when last compared."""

    version: int
    overrides: dict[str, str]
    defaults: dict[str, str]
    config: TopicConfig


class TopicConfigs:
    """See the module."""

    def __init__(self) -> None:
        self._entries: dict[UUID, _Entry] = {}

    def of(self, topic: Topic, cluster: Cluster) -> TopicConfig:
        """The configuration in force."""
        entry = self._entries.get(topic.id)
        if entry is not None and entry.version == cluster.version:
            return entry.config
        if (
            entry is None
            or entry.overrides != topic.configs
            or entry.defaults != cluster.cluster_configs
        ):
            entry = _Entry(
                version=cluster.version,
                overrides=dict(topic.configs),
                defaults=dict(cluster.cluster_configs),
                config=TopicConfig.from_overrides(cluster.cluster_configs, topic.configs),
            )
            self._entries[topic.id] = entry
        entry.version = cluster.version
        return entry.config

    def forget_absent(self, cluster: Cluster) -> None:
        """Drop topics that are no more."""
        for topic_id in [one for one in self._entries if one not in cluster.topic_names]:
            del self._entries[topic_id]
