"""The input and the result of a decision.

Why:    a decision depends on committed state and on two inputs that no log has: which brokers are
        alive now, and random numbers for ids and ties. The caller passes both, so deciding is pure.
Source: STYLE, rule 1."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple
from uuid import UUID

from strandline.base.errors import ApiError
from strandline.base.rng import Rng
from strandline.config.broker_life import BrokerLife
from strandline.config.cluster import ClusterConfig
from strandline.controller.commands import NO_UUID, Answer
from strandline.controller.names import INTERNAL_TOPICS, collision_key
from strandline.controller.records import Assignment, Record
from strandline.controller.reports import Reports
from strandline.controller.state import ControllerState
from strandline.model.cluster import Broker, BucketRange, Cluster, Labels, Roles
from strandline.model.ids import BrokerId, GroupId
from strandline.placement.spread import Load
from strandline.protocol.errors import Error

PARTITIONS_PER_COMMAND_MAX = 10_000


class Beginning(NamedTuple):
    """How a partition's group begins; see `Assignment`."""

    start_offset: int = 0
    first_grant: int = 0
    history: tuple[BucketRange, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """Append `records`, all or none of them; give `answer` once they are committed."""

    answer: Answer
    records: tuple[Record, ...] = ()


@dataclass(frozen=True)
class Facts:
    """The inputs of a decision. `alive`: the brokers heard now, the controller's leader included;
    `voters`: the voters of the controller's group; `reports`: the brokers' reports for this
    command; `room`: their latest reports of disk space; `buckets`: {bucket: where it is}, of all
    the cluster's; `without_tiering`: {broker whose release is not known to have tiered storage:
    whether it is known to lack it}. The state does not change during a decision, so values that
    follow from it are computed once."""

    state: ControllerState
    rng: Rng
    alive: Collection[BrokerId]
    voters: Collection[BrokerId] = ()
    reports: Reports = field(default_factory=dict)
    room: Reports = field(default_factory=dict)
    buckets: Mapping[str, Labels] = field(default_factory=dict)
    without_tiering: Mapping[BrokerId, bool] = field(default_factory=dict)

    @cached_property
    def config(self) -> ClusterConfig:
        """The cluster-wide configuration."""
        return ClusterConfig.from_values(self.state.cluster.cluster_configs)

    @cached_property
    def brokers(self) -> tuple[Broker, ...]:
        """Every registered broker."""
        return tuple(self.state.cluster.brokers.values())

    @cached_property
    def leaving(self) -> frozenset[BrokerId]:
        """The registered brokers in decommissioning: they get no replicas."""
        return leaving_of(self.state.cluster)

    @cached_property
    def staying(self) -> tuple[Broker, ...]:
        """Every registered broker that may get replicas."""
        return tuple(one for one in self.brokers if one.id not in self.leaving)

    @cached_property
    def maintained(self) -> frozenset[BrokerId]:
        """The registered brokers that are in maintenance: they may go down at any time."""
        return maintained_of(self.state.cluster)

    @cached_property
    def down(self) -> frozenset[BrokerId]:
        """The registered brokers that the controller does not hear."""
        return frozenset(self.state.cluster.brokers.keys() - set(self.alive))

    @cached_property
    def nearly_full(self) -> frozenset[BrokerId]:
        """The brokers with disks so full that new partitions rather go elsewhere."""
        return self._as_full_as(self.config.balancer_disk_high_percent)

    @cached_property
    def full(self) -> frozenset[BrokerId]:
        """The brokers with disks so full that no new partition goes there."""
        return self._as_full_as(self.config.placement_disk_full_percent)

    def _as_full_as(self, percent: int) -> frozenset[BrokerId]:
        return frozenset(one for one, report in self.room.items() if report.used_percent >= percent)

    def capped(self, replication_factor: int) -> int:
        """A default if the command gives no number of replicas: no more than there are brokers."""
        return min(replication_factor, max(len(self.staying), 1))

    def new_uuid(self) -> UUID:
        """A topic id, never one of Kafka's two reserved ones."""
        while (identity := UUID(int=self.rng.getrandbits(128), version=4)).int <= 1:
            pass
        assert identity != NO_UUID
        return identity


class Draft:
    """The results of a command so far: its later parts see the earlier ones."""

    def __init__(self, state: ControllerState) -> None:
        self.records: list[Record] = []
        self.load = Load.of(partition.hosts for partition in state.cluster.groups.values())
        self._topics = state.cluster.topics
        self._next_group = state.cluster.next_group
        self._count = 0
        # {collision key: topic}, of all topics before the command and the brokers' own; made when
        # the first new name can collide.
        self._keys: dict[str, str] | None = None

    def colliding(self, name: str) -> str | None:
        """The topic that a new name collides with, if it is there already or is the brokers' own.

        As in Kafka, names of the same request do not collide."""
        key = collision_key(name)
        if key is None:
            return None
        if self._keys is None:
            topics = (*self._topics, *INTERNAL_TOPICS)
            keys = ((collision_key(topic), topic) for topic in topics)
            self._keys = {known: topic for known, topic in keys if known is not None}
        other = self._keys.get(key)
        return None if other == name else other

    def require_room(self, partitions: int) -> None:
        """Refuse more partitions than one command may make; raises ApiError POLICY_VIOLATION."""
        if self._count + partitions > PARTITIONS_PER_COMMAND_MAX:
            raise refuse(
                Error.POLICY_VIOLATION,
                f"one request may create {PARTITIONS_PER_COMMAND_MAX} partitions: send several",
            )

    def assign(
        self, placed: list[Roles], beginnings: Sequence[Beginning] = ()
    ) -> tuple[Assignment, ...]:
        """Give each new partition its Raft group, and count its load. `beginnings`: how each
        begins; none: at offset 0."""
        assignments = []
        for one, begins in zip(placed, beginnings or (Beginning(),) * len(placed), strict=True):
            self.load.add(one.all)
            group = GroupId(self._next_group)
            assignments.append(Assignment(group, one.voters, one.observers, *begins))
            self._next_group += 1
        self._count += len(placed)
        return tuple(assignments)


def leaving_of(cluster: Cluster) -> frozenset[BrokerId]:
    """The registered brokers that are being decommissioned."""
    return frozenset(
        broker
        for broker, values in cluster.broker_configs.items()
        if broker in cluster.brokers and BrokerLife.from_values(values).broker_decommission
    )


def maintained_of(cluster: Cluster) -> frozenset[BrokerId]:
    """The registered brokers that are in maintenance."""
    return frozenset(
        broker
        for broker, values in cluster.broker_configs.items()
        if broker in cluster.brokers and BrokerLife.from_values(values).is_maintained
    )


def refuse(code: Error, message: str) -> ApiError:
    """An error that answers one part of a command."""
    return ApiError(int(code), message)
