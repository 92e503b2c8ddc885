"""The typed configuration of each topic, ready for every request.

Why:    parsing a topic's texts into values takes longer than a whole produce request may.
How:    A cache by topic; an entry is compared again only after the controller's log has moved on.
        Defaults that come from the placement policy are included.
Owns:   the cache; one per broker.
Source: config.topic."""

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from strandline.broker.produce.produce_terms import ProduceTerms
from strandline.config.topic import TopicConfig
from strandline.controller.placing.policies import derived_defaults
from strandline.model.cluster import Cluster, Topic


@dataclass(slots=True)
class ConfigEntry:
    """A configuration and its sources. `version`: of the cluster, when last compared. `terms`: what
    it asks of producers."""

    topic_id: UUID
    version: int
    overrides: dict[str, str]
    defaults: dict[str, str]
    config: TopicConfig
    terms: ProduceTerms


class TopicConfigs:
    """See the module."""

    def __init__(self) -> None:
        # By name: a string keeps its hash.
        self._entries: dict[str, ConfigEntry] = {}

    def of(self, topic: Topic, cluster: Cluster) -> TopicConfig:
        """The configuration in force."""
        return self.entry(topic, cluster).config

    def entry(self, topic: Topic, cluster: Cluster) -> ConfigEntry:
        """The same, with what follows from it."""
        entry = self._entries.get(topic.name)
        if entry is not None and entry.version == cluster.version and entry.topic_id is topic.id:
            return entry
        if (
            entry is None
            or entry.topic_id != topic.id
            or entry.overrides != topic.configs
            or entry.defaults != cluster.cluster_configs
        ):
            config = _in_force(cluster.cluster_configs, topic.configs)
            entry = ConfigEntry(
                topic_id=topic.id,
                version=cluster.version,
                overrides=dict(topic.configs),
                defaults=dict(cluster.cluster_configs),
                config=config,
                terms=ProduceTerms.of(config),
            )
            self._entries[topic.name] = entry
        entry.topic_id = topic.id
        entry.version = cluster.version
        return entry

    def forget_absent(self, cluster: Cluster) -> None:
        """Drop deleted topics."""
        for name in [one for one in self._entries if one not in cluster.topics]:
            del self._entries[name]


def _in_force(defaults: Mapping[str, str], overrides: Mapping[str, str]) -> TopicConfig:
    derived = derived_defaults(overrides, defaults)
    return TopicConfig.from_overrides(defaults, overrides, derived)
