"""Turns topic and cluster configuration into settings of the replicas on this broker.

Why:    the controller's state has configuration by topic; a replica needs the configuration of a
        log and of a Raft group.
How:    topic and cluster configuration --> `TopicSettings` --> `GroupSpec`, to open a replica
                                                            --> changes of an open replica
Owns:   nothing.
Source: design sections 3 and 6."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.leadership.draining import first_to_lead
from strandline.broker.leadership.leader_ranks import LeaderRanks, Preference
from strandline.config.broker import BrokerConfig
from strandline.config.cluster import ClusterConfig
from strandline.config.topic import TopicConfig
from strandline.controller.decision import maintained_of
from strandline.controller.placing.policies import policy_in_force
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import CONTROLLER_GROUP, BrokerId
from strandline.placement.buckets import allowed_buckets
from strandline.raft.group.configuration import Configuration
from strandline.replication.host.election_priority import ElectionPriority
from strandline.replication.host.group_spec import GroupSpec
from strandline.replication.replica.replica import Replica
from strandline.replication.replica.snapshot_gate import SnapshotGate
from strandline.storage.config import LogConfig

CONTROLLER_NAME = "@controller"
TOPIC_CHARACTERS_MAX = 200
"""Directory names take this much of a topic's name; the group's id makes them unique."""
FLUSH_MS_MAX = 60_000
"""The upper bound of `flush.ms` here: a record that is never flushed never commits, and compaction
and retention wait for it."""


@dataclass(frozen=True, slots=True)
class TopicSettings:
    """The settings that all partitions of a topic share. `preference`: where its policy prefers
    leaders. `maintained`: the brokers in maintenance."""

    topic: Topic
    config: TopicConfig
    log: LogConfig
    preference: Preference
    maintained: Collection[BrokerId]


class GroupSettings:
    """See the module; one per broker."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        controller: ControllerHost,
        topic_configs: TopicConfigs,
        leader_ranks: LeaderRanks,
    ) -> None:
        self._self_id = config.broker_id
        self._storage = config.storage
        self._buckets = config.tiered.labels_of_buckets
        self._controller = controller
        self._topic_configs = topic_configs
        self._leader_ranks = leader_ranks

    def of_each(self) -> Iterator[TopicSettings]:
        """The settings of all topics."""
        cluster = self._controller.cluster
        values = ClusterConfig.from_values(cluster.cluster_configs)
        maintained = maintained_of(cluster)
        for topic in cluster.topics.values():
            yield self._settings(topic, values, maintained)

    def of(self, partition: Partition) -> TopicSettings:
        """The settings of the partition's topic."""
        cluster = self._controller.cluster
        values = ClusterConfig.from_values(cluster.cluster_configs)
        return self._settings(cluster.topics[partition.topic], values, maintained_of(cluster))

    def config_of(self, partition: Partition) -> TopicConfig:
        """The configuration of the partition's topic."""
        cluster = self._controller.cluster
        return self._topic_configs.of(cluster.topics[partition.topic], cluster)

    def election_priority(self, partition: Partition, settings: TopicSettings) -> ElectionPriority:
        """The order in which replicas of the partition should lead."""
        ranks = self._leader_ranks.ranks(settings.preference, partition)
        return ElectionPriority(first_to_lead(partition, settings.maintained), ranks)

    def spec(self, partition: Partition, settings: TopicSettings) -> GroupSpec:
        """How to open the replica here."""
        state = self._controller.state
        first = state.first_roles(partition.group)
        return GroupSpec(
            group=partition.group,
            name=partition.name,
            directory=directory_of(settings.topic, partition),
            configuration=Configuration(
                voters=first.voters,
                observers=tuple(sorted(first.observers)),
                min_insync=settings.config.min_insync_replicas,
            ),
            log=settings.log,
            election_priority=self.election_priority(partition, settings),
            is_lost=state.has_lost(self._self_id, partition.group),
            grant=partition.grant,
            rejoined=state.rejoined(self._self_id, partition.group),
            voter_count_min=_voter_count_min(partition, settings.config),
            lag_ms_max=settings.config.replica_lag_time_max_ms,
            start_offset=state.first_offset(partition.group),
            first_grant=state.first_grant(partition.group),
            history=state.history(partition.group),
        )

    def _settings(
        self, topic: Topic, values: ClusterConfig, maintained: Collection[BrokerId]
    ) -> TopicSettings:
        cluster = self._controller.cluster
        config = self._topic_configs.of(topic, cluster)
        log = self._log_config(topic, config, values.producer_id_expiration_ms)
        return TopicSettings(topic, config, log, self._leader_ranks.of(topic, cluster), maintained)

    def _log_config(self, topic: Topic, config: TopicConfig, producer_expiry_ms: int) -> LogConfig:
        return LogConfig(
            segment_bytes=config.segment_bytes_max,
            segment_ms=config.segment_ms,
            segment_jitter_ms=config.segment_jitter_ms,
            index_interval_bytes=config.index_interval_bytes,
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            retention_records=config.strandline_retention_records,
            remote_storage=config.remote_storage_enable,
            local_retention_ms=config.tiering.local_retention_ms,
            local_retention_bytes=config.tiering.local_retention_bytes,
            remote_buckets=self._buckets_of(topic, config),
            remote_copies_min=config.remote_copies_min,
            delete=config.is_deleted,
            compacted=config.is_compacted,
            was_compacted=topic.was_compacted,
            delete_retention_ms=config.delete_retention_ms,
            timestamp_after_max_ms=config.message_timestamp_after_max_ms,
            min_compaction_lag_ms=config.min_compaction_lag_ms,
            max_compaction_lag_ms=config.max_compaction_lag_ms,
            min_cleanable_dirty_ratio=config.min_cleanable_dirty_ratio,
            producer_expiry_ms=producer_expiry_ms,
            write_caching=config.write_caching,
            flush_ms=min(config.flush_ms, FLUSH_MS_MAX),
            flush_messages=config.flush_messages,
            trust_ms=self._storage.trust_ms,
            preallocate=self._storage.preallocate,
            preallocate_segment=config.preallocate,
        )

    def _buckets_of(self, topic: Topic, config: TopicConfig) -> tuple[str, ...]:
        """The buckets that may hold the topic's data."""
        if not config.remote_storage_enable or not self._buckets:
            return ()
        policy = policy_in_force(topic.configs, self._controller.cluster.cluster_configs)
        return allowed_buckets(policy, self._buckets)


def controller_spec(config: BrokerConfig, snapshots: SnapshotGate) -> GroupSpec:
    """How to open the controller's group: its first voters are the `seeds` of the configuration."""
    own = config.broker_id
    voters = tuple(sorted(seed.id for seed in config.seeds))
    return GroupSpec(
        group=CONTROLLER_GROUP,
        name=f"{CONTROLLER_NAME}-0",
        directory=f"{CONTROLLER_NAME}.{CONTROLLER_GROUP}",
        configuration=Configuration(voters=voters, observers=() if own in voters else (own,)),
        log=LogConfig(
            retention_ms=-1,
            delete=False,
            trust_ms=config.storage.trust_ms,
            preallocate=config.storage.preallocate,
        ),
        election_priority=ElectionPriority(voters[0]),
        asks_voters=True,
        snapshots=snapshots,
    )


def bind(replica: Replica, partition: Partition, config: TopicConfig) -> None:
    """Set what the topic requires of an open replica, except the configuration of its log."""
    replica.appender.voter_count_min = _voter_count_min(partition, config)
    replica.lag_ms_max = config.replica_lag_time_max_ms


def directory_of(topic: Topic, partition: Partition) -> str:
    """The name of the directory of the partition's log."""
    return f"{topic.name[:TOPIC_CHARACTERS_MAX]}-{partition.index}.{partition.group}"


def _voter_count_min(partition: Partition, config: TopicConfig) -> int:
    """See `Appender`. It does not depend on `voters.shrink.enable`: that key may have been on a
    moment ago, and voters may have left. If a move to fewer replicas was granted, the lower
    number counts from then on."""
    count = len(partition.replicas)
    if partition.is_moving and partition.granted.is_alike(partition.wanted):
        count = min(count, len(partition.target))
    return min(config.min_insync_replicas, count)
