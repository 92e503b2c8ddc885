"""The cluster, rebuilt from the controller's log; `replay` is the only way it changes.

Why:    brokers that have replayed the same records know the same cluster.
How:    one method per record kind. Decisions were checked before their records were written, so a
        record that does not fit is a programmer's error and fails an assertion.
Owns:   the `Cluster` that all parts of this broker read, and state for the controller alone.
Source: design sections 2 and 3."""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

from strandline.config.topic import is_compacted
from strandline.controller.access import change_access
from strandline.controller.displaced import (
    note_configs,
    note_deleted,
    note_move,
    note_unregistered,
)
from strandline.controller.records import (
    Assignment,
    BrokerRegistered,
    BrokerUnregistered,
    ClusterNamed,
    ConfigsChanged,
    GrantBegun,
    LeaderAppointed,
    PartitionRecovered,
    PartitionsAdded,
    ProducerIdsAllocated,
    ReassignmentSet,
    Record,
    ReplicasDeclaredLost,
    ReplicasRejoined,
    TopicCreated,
    TopicDeleted,
    VotersGranted,
    VotersStable,
)
from strandline.model.cluster import (
    Appointment,
    Broker,
    BucketIdentity,
    BucketRange,
    Cluster,
    Outage,
    Partition,
    Roles,
    Topic,
)
from strandline.model.ids import BrokerId, GroupId, Offset
from strandline.raft.group.configuration import promised_quorum_of

DELETED_TIERED_MAX = 10_000
"""Deleted topics with tiered storage that are remembered: about 100 bytes each."""


@dataclass(frozen=True, slots=True)
class Directory:
    """A broker's data directory, and the cluster's version before it was first registered."""

    id: str
    since_version: int


@dataclass(frozen=True, slots=True)
class GroupBootstrap:
    """The beginning of a group: the cluster's version before it, its first voters, in order, and
    its first observers.

    `holders`: the replicas that have held the log ever since. A voter that became an observer is
    not among them: a release without observers has removed its log. `start_offset`: where the log
    began; `first_grant`: its first epochs are of this grant; `history`: the records before, in
    buckets."""

    since_version: int
    roles: Roles
    holders: frozenset[BrokerId]
    start_offset: int = 0
    first_grant: int = 0
    history: tuple[BucketRange, ...] = ()


class ControllerState:
    """See the module. Readers keep `cluster`; it is the same object for ever."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.directories: dict[BrokerId, Directory] = {}
        """{broker: the data directory it was last registered with}"""
        self.started: dict[BrokerId, int] = {}
        """{broker: the cluster's version before its present start was registered}"""
        self.bootstraps: dict[GroupId, GroupBootstrap] = {}
        self.rejoins: dict[GroupId, dict[BrokerId, int]] = {}
        """{group: {broker whose replica took part again, or was passed over when a loss was
        declared: the cluster's version after that}}"""
        self._replays: dict[type, Callable[[Any], None]] = {
            ClusterNamed: self._on_cluster_named,
            BrokerRegistered: self._on_broker_registered,
            BrokerUnregistered: self._on_broker_unregistered,
            TopicCreated: self._on_topic_created,
            TopicDeleted: self._on_topic_deleted,
            PartitionsAdded: self._on_partitions_added,
            ConfigsChanged: self._on_configs_changed,
            ProducerIdsAllocated: self._on_producer_ids_allocated,
            ReassignmentSet: self._on_reassignment_set,
            VotersGranted: self._on_voters_granted,
            VotersStable: self._on_voters_stable,
            GrantBegun: self._on_grant_begun,
            LeaderAppointed: self._on_leader_appointed,
            ReplicasDeclaredLost: self._on_replicas_declared_lost,
            PartitionRecovered: self._on_partition_recovered,
        }

    def replay(self, record: Record) -> None:
        """Apply one committed record, in log order."""
        self._replays[type(record)](record)
        self.cluster.version += 1

    def adopt(self, other: "ControllerState") -> None:
        """Become the same as `other`, which is not used any more; `cluster` stays the object."""
        for each in fields(Cluster):
            setattr(self.cluster, each.name, getattr(other.cluster, each.name))
        self.directories = other.directories
        self.started = other.started
        self.bootstraps = other.bootstraps
        self.rejoins = other.rejoins

    def has_lost(self, broker: BrokerId, group: GroupId) -> bool:
        """Whether a replica that begins empty on this broker takes no part until it has
        rejoined.

        Its log may be gone with an earlier data directory. Or the broker has not held a replica all
        the time since the group began, and no record shows whether an earlier one lost its log."""
        directory = self.directories.get(broker)
        bootstrap = self.bootstraps.get(group)
        if directory is None or bootstrap is None:
            return False
        return bootstrap.since_version < directory.since_version or broker not in bootstrap.holders

    def rejoined(self, broker: BrokerId, group: GroupId) -> int:
        """The number of the last rejoin of a broker's replica of a group after it lost its state:
        later starts have greater numbers; 0 for never."""
        return self.rejoins.get(group, {}).get(broker, 0)

    def registration(self, broker: BrokerId) -> BrokerRegistered:
        """The registration of a broker, to be written again with a change."""
        known = self.cluster.brokers[broker]
        return BrokerRegistered(
            id=broker,
            incarnation=known.incarnation,
            directory_id=self.directories[broker].id,
            rpc=known.rpc,
            kafka=known.kafka,
            labels=known.labels,
            configured=known.configured,
            silent_ms=self.cluster.silent_ms.get(broker),
            silent_since_ms=self.cluster.silent_since_ms.get(broker),
            endpoints=known.endpoints,
        )

    def first_roles(self, group: GroupId) -> Roles:
        """The first voters and observers of a group: in force where its log begins."""
        return self.bootstraps[group].roles

    def first_offset(self, group: GroupId) -> Offset:
        """Where the log of a group began."""
        return Offset(self.bootstraps[group].start_offset)

    def first_grant(self, group: GroupId) -> int:
        """The grant of a group's first epochs."""
        return self.bootstraps[group].first_grant

    def history(self, group: GroupId) -> tuple[BucketRange, ...]:
        """The records before a group's log, in buckets."""
        return self.bootstraps[group].history

    def _on_cluster_named(self, record: ClusterNamed) -> None:
        assert not self.cluster.cluster_id, "a cluster is named once"
        self.cluster.cluster_id = record.cluster_id

    def _on_broker_registered(self, record: BrokerRegistered) -> None:
        known = self.directories.get(record.id)
        if known is None or known.id != record.directory_id:
            self.directories[record.id] = Directory(record.directory_id, self.cluster.version)
        before = self.cluster.brokers.get(record.id)
        if before is None or before.incarnation != record.incarnation:
            self.started[record.id] = self.cluster.version
        if before is None or before.labels != record.labels:
            self.cluster.rules_version = self.cluster.version + 1
        self.cluster.brokers[record.id] = Broker(
            id=record.id,
            incarnation=record.incarnation,
            rpc=record.rpc,
            kafka=record.kafka,
            labels=record.labels,
            configured=record.configured,
            endpoints=record.endpoints,
        )
        if self.cluster.silent_ms.pop(record.id, None) != record.silent_ms:
            self.cluster.outages_version = self.cluster.version + 1
        self.cluster.silent_since_ms.pop(record.id, None)
        if record.silent_ms is not None:
            self.cluster.silent_ms[record.id] = record.silent_ms
            if record.silent_since_ms is not None:
                self.cluster.silent_since_ms[record.id] = record.silent_since_ms

    def _on_broker_unregistered(self, record: BrokerUnregistered) -> None:
        # A broker that registers this id later begins anew, with any data directory.
        del self.cluster.brokers[record.id]
        del self.directories[record.id]
        del self.started[record.id]
        self.cluster.broker_configs.pop(record.id, None)
        note_unregistered(self.cluster, record.id)
        self.cluster.silent_ms.pop(record.id, None)
        self.cluster.silent_since_ms.pop(record.id, None)

    def _on_topic_created(self, record: TopicCreated) -> None:
        assert record.name not in self.cluster.topics, record.name
        assert record.id not in self.cluster.topic_names, "a topic's id is used once"
        topic = Topic(name=record.name, id=record.id, configs=dict(record.configs))
        self.cluster.topics[topic.name] = topic
        self.cluster.topic_names[topic.id] = topic.name
        self._note_compaction(topic)
        self._add_partitions(topic, record.partitions)

    def _on_topic_deleted(self, record: TopicDeleted) -> None:
        topic = self.cluster.topics.pop(record.name)
        assert topic.id == record.id, record.name
        del self.cluster.topic_names[topic.id]
        if topic.configs.get("remote.storage.enable") == "true":
            deleted = self.cluster.deleted_tiered
            deleted[topic.id] = topic.name
            if len(deleted) > DELETED_TIERED_MAX:
                del deleted[next(iter(deleted))]
        for partition in topic.partitions:
            self._remove_group(partition.group)

    def _remove_group(self, group: GroupId) -> None:
        del self.cluster.groups[group]
        del self.bootstraps[group]
        self.rejoins.pop(group, None)
        self.cluster.moving.discard(group)
        note_deleted(self.cluster, group)

    def _on_partitions_added(self, record: PartitionsAdded) -> None:
        topic = self.cluster.topics[record.topic]
        assert record.first == len(topic.partitions), record.topic
        self._add_partitions(topic, record.partitions)

    def _on_configs_changed(self, record: ConfigsChanged) -> None:
        if record.outages:
            self.cluster.outages_version = self.cluster.version + 1
        for ruled in record.outages:
            outage = Outage(ruled.is_down, ruled.ruling, ruled.until_ms, ruled.since_ms)
            self.cluster.outages[ruled.domain] = outage
            if outage == Outage():
                del self.cluster.outages[ruled.domain]
        if record.rejoined is not None:
            self._note_rejoined(record.rejoined)
        if record.identified is not None:
            one = record.identified
            self.cluster.buckets[one.bucket] = BucketIdentity(one.id, one.generation)
        if record.access is not None:
            change_access(self.cluster.access, record.access, version=self.cluster.version + 1)
        values = self._configs_of(record)
        if record.values and record.scope == "topic":
            self.cluster.topics[record.name].rules_version = self.cluster.version + 1
        elif record.values and record.scope == "cluster":
            self.cluster.rules_version = self.cluster.version + 1
        for name, value in record.values.items():
            if value is None:
                values.pop(name, None)
            else:
                values[name] = value
        if record.scope == "broker":
            note_configs(self.cluster, BrokerId(int(record.name)), record.values)
        elif record.scope == "topic" and "cleanup.policy" in record.values:
            self._note_compaction(self.cluster.topics[record.name])
        elif record.scope == "cluster" and "log.cleanup.policy" in record.values:
            for topic in self.cluster.topics.values():
                self._note_compaction(topic)

    def _note_compaction(self, topic: Topic) -> None:
        """A policy may change again; replicas that it removed stay away."""
        if is_compacted(self.cluster.cluster_configs, topic.configs):
            topic.was_compacted = True

    def _note_rejoined(self, noted: ReplicasRejoined) -> None:
        """A start has one data directory, and repeats its request if the answer is late. The first
        answer counts; otherwise its state would have a smaller number than this one."""
        broker = noted.broker
        for group in noted.groups:
            known = self.rejoins.setdefault(group, {})
            assert known.get(broker, 0) <= self.cluster.version + 1, "no later than this record"
            if known.get(broker, 0) <= self.started.get(broker, self.cluster.version):
                known[broker] = self.cluster.version + 1

    def _on_producer_ids_allocated(self, record: ProducerIdsAllocated) -> None:
        assert record.first == self.cluster.next_producer_id, record.first
        assert record.count > 0, "producer ids are never handed out twice"
        self.cluster.next_producer_id = record.first + record.count

    def _on_reassignment_set(self, record: ReassignmentSet) -> None:
        partition = self.cluster.groups[record.group]
        assert record.target or not partition.pending, partition.name
        note_move(self.cluster, record)
        by_balancer = record.by_balancer and bool(record.target)
        observers = record.observers if record.target else ()
        aimed = replace(partition, target=record.target, target_observers=observers)
        self._put(_settled(replace(aimed, by_balancer=by_balancer)))

    def _on_voters_granted(self, record: VotersGranted) -> None:
        partition = self.cluster.groups[record.group]
        assert record.version == partition.last_version + 1, partition.name
        granted = replace(
            partition,
            doubtful=partition.possible[1:],
            pending=record.voters,
            pending_observers=record.observers,
        )
        self._put(granted)

    def _on_voters_stable(self, record: VotersStable) -> None:
        partition = self.cluster.groups[record.group]
        assert partition.pending and record.version == partition.last_version, partition.name
        bootstrap = self.bootstraps[record.group]
        demoted = {one for voters in partition.possible for one in voters}
        demoted.difference_update(partition.pending)
        self.bootstraps[record.group] = replace(bootstrap, holders=bootstrap.holders - demoted)
        stable = replace(_stable(partition), floor=promised_quorum_of(record.floor))
        self._put(_settled(stable))

    def _on_grant_begun(self, record: GrantBegun) -> None:
        partition = self.cluster.groups[record.group]
        assert record.grant == partition.grant + 1, partition.name
        self._put(replace(partition, grant=record.grant, is_fenced=True, appointment=None))

    def _on_leader_appointed(self, record: LeaderAppointed) -> None:
        partition = self.cluster.groups[record.group]
        assert partition.is_fenced and record.grant == partition.grant, partition.name
        assert record.version == partition.last_version + 1, partition.name
        assert record.leader in record.voters, partition.name
        appointed = replace(
            partition,
            doubtful=partition.possible[1:],
            pending=record.voters,
            pending_observers=record.observers,
            is_fenced=False,
            appointment=Appointment(record.leader, record.last_epoch, record.last_index),
        )
        self._put(appointed)

    def _on_replicas_declared_lost(self, record: ReplicasDeclaredLost) -> None:
        partition, loss = self.cluster.groups[record.group], record.loss
        assert loss.grant == partition.grant + 1, partition.name
        declared = replace(
            partition,
            version=partition.last_version,
            acting=() if set(loss.survivors) == set(partition.replicas) else loss.survivors,
            pending=(),
            pending_observers=(),
            doubtful=(),
            grant=loss.grant,
            is_fenced=True,
            appointment=None,
            losses=(*partition.losses, loss),
            is_declared=True,
            floor=0,
        )
        bootstrap = self.bootstraps[record.group]
        lost = {one.broker for one in loss.lost}
        assert lost.isdisjoint(loss.survivors), partition.name
        self.bootstraps[record.group] = replace(bootstrap, holders=bootstrap.holders - lost)
        # A voter that is neither had lost its state. A data directory from before that may come
        # back, and counts as one from before a rejoin: a majority of such voters would elect each
        # other as if nothing had been declared.
        known = self.rejoins.setdefault(record.group, {})
        for broker in {one for each in partition.possible for one in each}:
            if broker not in lost and broker not in loss.survivors:
                known[broker] = self.cluster.version + 1
        self._put(declared)

    def _on_partition_recovered(self, record: PartitionRecovered) -> None:
        """Another group takes the partition's place; replicas of the earlier one are removed."""
        before, new, loss = self.cluster.groups[record.group], record.assignment, record.loss
        assert loss.grant == new.first_grant == before.grant + 1, before.name
        assert record.voters, before.name
        self._remove_group(record.group)
        topic = self.cluster.topics[before.topic]
        partition = _first_of(topic.name, before.index, new)
        assert set(record.voters) <= set(partition.hosts), before.name
        if set(record.voters) != set(partition.replicas):
            partition = replace(partition, acting=record.voters)
        topic.partitions[before.index] = replace(partition, losses=(*before.losses, loss))
        self._add_group(topic, before.index, new, partition.roles.acted_by(record.voters))

    def _put(self, partition: Partition) -> None:
        """A partition has changed."""
        group = partition.group
        before = self.cluster.groups[group]
        assert partition.grant >= before.grant, "a grant never goes back: one leader an epoch"
        assert partition.last_version >= before.last_version, "nor does the voters' version"
        self.cluster.groups[group] = partition
        self.cluster.topics[partition.topic].partitions[partition.index] = partition
        bootstrap = self.bootstraps[group]
        self.bootstraps[group] = replace(
            bootstrap, holders=bootstrap.holders & set(partition.hosts)
        )
        if partition.is_moving:
            self.cluster.moving.add(group)
        else:
            self.cluster.moving.discard(group)

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
            partition = _first_of(topic.name, len(topic.partitions), assignment)
            topic.partitions.append(partition)
            self._add_group(topic, partition.index, assignment, partition.roles)

    def _add_group(self, topic: Topic, index: int, assignment: Assignment, roles: Roles) -> None:
        """The group of a partition begins, with these voters and observers."""
        partition = topic.partitions[index]
        group = partition.group
        assert group not in self.cluster.groups, group
        self.cluster.groups[group] = partition
        self.bootstraps[group] = GroupBootstrap(
            self.cluster.version,
            roles,
            frozenset(partition.hosts),
            assignment.start_offset,
            assignment.first_grant,
            assignment.history,
        )
        self.cluster.next_group = GroupId(max(self.cluster.next_group, group + 1))


def _first_of(topic: str, index: int, assignment: Assignment) -> Partition:
    """A partition as its group begins."""
    return Partition(
        topic=topic,
        index=index,
        group=assignment.group,
        replicas=assignment.replicas,
        observers=assignment.observers,
        grant=assignment.first_grant,
        first_grant=assignment.first_grant,
    )


def _stable(partition: Partition) -> Partition:
    """The partition, with its last grant certainly in force.

    If the controller appointed the leader, or the same brokers hold the log, only other voters than
    usual vote. Otherwise the grant was for a whole target, even if the present target differs."""
    granted, roles = partition.granted, partition.roles
    is_target = partition.is_moving and granted.is_alike(partition.wanted)
    is_chosen = partition.appointment is not None
    if not is_chosen and (is_target or not granted.has_same_members(roles)):
        roles = granted
    return replace(
        partition,
        replicas=roles.voters,
        observers=roles.observers,
        version=partition.last_version,
        pending=(),
        pending_observers=(),
        acting=() if set(granted.voters) == set(roles.voters) else granted.voters,
        doubtful=(),
        appointment=None,
        is_declared=False,
    )


def _settled(partition: Partition) -> Partition:
    """The partition, at its target if its voters and observers are the target's."""
    if partition.pending or not partition.wanted.is_alike(partition.roles):
        return partition
    return replace(
        partition,
        replicas=partition.target,
        observers=partition.target_observers,
        target=(),
        target_observers=(),
        by_balancer=False,
    )
