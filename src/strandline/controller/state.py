"""The cluster, rebuilt from the controller's log; `replay` is the only way it changes.

Why:    a broker that has replayed the same records knows the same cluster, whoever leads.
How:    one method per record kind. Decisions were checked before their records were written, so a
        record that does not fit is a programmer's error and fails an assertion.
Owns:   the `Cluster` that everybody on this broker reads, and what only the controller needs.
Source: design sections 2 and 3."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from strandline.controller.records import (
    Assignment,
    BrokerRegistered,
    ClusterNamed,
    ConfigsChanged,
    PartitionsAdded,
    ProducerIdsAllocated,
    Record,
    TopicCreated,
    TopicDeleted,
)
from strandline.model.cluster import Broker, Cluster, Partition, Topic
from strandline.model.ids import BrokerId, GroupId


@dataclass(frozen=True, slots=True)
class Directory:
    """A broker's data directory, and the cluster's version before it was first registered."""

    id: str
    since_version: int


class ControllerState:
    """See the module. Readers keep `cluster`; it is the same object for ever."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.directories: dict[BrokerId, Directory] = {}
        """{broker: the data directory it was last registered with}"""
        self._group_since: dict[GroupId, int] = {}
        """{group: the cluster's version before it was created}"""
        self._replays: dict[type, Callable[[Any], None]] = {
            ClusterNamed: self._on_cluster_named,
            BrokerRegistered: self._on_broker_registered,
            TopicCreated: self._on_topic_created,
            TopicDeleted: self._on_topic_deleted,
            PartitionsAdded: self._on_partitions_added,
            ConfigsChanged: self._on_configs_changed,
            ProducerIdsAllocated: self._on_producer_ids_allocated,
        }

    def replay(self, record: Record) -> None:
        """Apply one committed record, in log order."""
        self._replays[type(record)](record)
        self.cluster.version += 1

    def has_lost(self, broker: BrokerId, group: GroupId) -> bool:
        """Whether this broker's replica of a partition is gone with an earlier data directory.

        Then what is in the present directory began empty and has forgotten what it acknowledged."""
        directory = self.directories.get(broker)
        since = self._group_since.get(group)
        return directory is not None and since is not None and since < directory.since_version

    def _on_cluster_named(self, record: ClusterNamed) -> None:
        assert not self.cluster.cluster_id, "a cluster is named once"
        self.cluster.cluster_id = record.cluster_id

    def _on_broker_registered(self, record: BrokerRegistered) -> None:
        known = self.directories.get(record.id)
        if known is None or known.id != record.directory_id:
            self.directories[record.id] = Directory(record.directory_id, self.cluster.version)
        self.cluster.brokers[record.id] = Broker(
            id=record.id,
            incarnation=record.incarnation,
            rpc=record.rpc,
            kafka=record.kafka,
            labels=record.labels,
        )

    def _on_topic_created(self, record: TopicCreated) -> None:
        assert record.name not in self.cluster.topics, record.name
        topic = Topic(name=record.name, id=record.id, configs=dict(record.configs))
        self.cluster.topics[topic.name] = topic
        self.cluster.topic_names[topic.id] = topic.name
        self._add_partitions(topic, record.partitions)

    def _on_topic_deleted(self, record: TopicDeleted) -> None:
        topic = self.cluster.topics.pop(record.name)
        assert topic.id == record.id, record.name
        del self.cluster.topic_names[topic.id]
        for partition in topic.partitions:
            del self.cluster.groups[partition.group]
            del self._group_since[partition.group]

    def _on_partitions_added(self, record: PartitionsAdded) -> None:
        topic = self.cluster.topics[record.topic]
        assert record.first == len(topic.partitions), record.topic
        self._add_partitions(topic, record.partitions)

    def _on_configs_changed(self, record: ConfigsChanged) -> None:
        values = self._configs_of(record)
        for name, value in record.values.items():
            if value is None:
                values.pop(name, None)
            else:
                values[name] = value

    def _on_producer_ids_allocated(self, record: ProducerIdsAllocated) -> None:
        assert record.first == self.cluster.next_producer_id, record.first
        self.cluster.next_producer_id = record.first + record.count

    def _configs_of(self, record: ConfigsChanged) -> dict[str, str]:
        match record.scope:
            case "topic":
                return self.cluster.topics[record.name].configs
            case "broker":
                return self.cluster.broker_configs.setdefault(BrokerId(int(record.name)), {})
            case "cluster":
                return self.cluster.cluster_configs

    def _add_partitions(self, topic: Topic, assignments: tuple[Assignment, ...]) -> None:
        for assignment in assignments:
            partition = Partition(
                topic=topic.name,
                index=len(topic.partitions),
                group=assignment.group,
                replicas=assignment.replicas,
            )
            assert partition.group not in self.cluster.groups, partition.group
            topic.partitions.append(partition)
            self.cluster.groups[partition.group] = partition
            self._group_since[partition.group] = self.cluster.version
            next_group = max(self.cluster.next_group, partition.group + 1)
            self.cluster.next_group = GroupId(next_group)
