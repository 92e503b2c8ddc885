"""The cluster as the controller's log has it: brokers, topics, partitions, configuration.

Why:    every broker replays the controller's log into one `Cluster` and answers from it, without
        asking other brokers.
Owns:   nothing by itself. `controller.state` builds it, one record at a time; other rooms only
        read it.
Source: design sections 2 and 3."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from strandline.model.access import Access
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.model.networks import narrowest

NAMED_LABELS = ("region", "zone", "rack", "host", "upgrade_domain")
"""The labels that every broker may have, the levels of the topology first, widest first."""


ONLY_LISTENER = "PLAINTEXT"
"""The name of the listener of a broker whose configuration does not name one."""


@dataclass(frozen=True, slots=True)
class Labels:
    """Where a broker is: region > zone > rack > host. An empty string means unknown."""

    region: str = ""
    zone: str = ""
    rack: str = ""
    host: str = ""
    upgrade_domain: str = ""
    """Brokers that are upgraded, and hence down, together."""
    free: tuple[tuple[str, str], ...] = ()
    """Labels of the operator's own, ((name, value), ...), sorted by name, none of the above."""

    @classmethod
    def of(cls, values: Mapping[str, str]) -> "Labels":
        """Labels by their names; an empty value is unknown."""
        named = {name: values.get(name, "") for name in NAMED_LABELS}
        free = ((name, value) for name, value in values.items() if name not in NAMED_LABELS)
        return cls(**named, free=tuple(sorted(one for one in free if one[1])))

    def as_dict(self) -> dict[str, str]:
        """{name: value} of the known labels, the levels of the topology first."""
        named = {name: self.get(name) for name in NAMED_LABELS if self.get(name)}
        return named | dict(self.free)

    def get(self, label: str) -> str:
        """The value of a label by its name; empty if unknown."""
        if label in NAMED_LABELS:
            value: str = getattr(self, label)
            return value
        return next((value for name, value in self.free if name == label), "")

    def kafka_rack(self) -> str | None:
        """The `broker.rack` that Kafka clients see: the region, or None if unknown."""
        return self.region or None


@dataclass(frozen=True, slots=True)
class StoredLabels:
    """The labels of a broker, and its configured labels at its last start. They differ if an
    operator changed labels while it ran (decision 0015)."""

    labels: Labels
    configured: Labels


@dataclass(frozen=True, slots=True)
class Address:
    """A host name or IP address, and a TCP port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class NearAddress:
    """Where clients of a network connect. `network`: as 10.1.0.0/16 or 2001:db8::/32."""

    network: str
    address: Address


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A listener for Kafka clients: its name, where clients connect, and its protocol. `near`:
    where clients of certain networks connect instead; releases that do not know it leave it out."""

    name: str
    address: Address
    protocol: str
    near: tuple[NearAddress, ...] = ()

    def address_for(self, host: str) -> Address:
        """Where a client connects, by its own address; empty for one that is not known."""
        if not self.near or not host:
            return self.address
        place = narrowest([one.network for one in self.near], host)
        return self.address if place is None else self.near[place].address


@dataclass(frozen=True, slots=True)
class Broker:
    """A registered broker. `incarnation` changes with every start of its process.

    `kafka`: the address of its first listener. `endpoints`: all listeners; empty if there is one
    only, without a name of its own.

    `configured`: the labels in its configuration at that start; None if its registration did not
    tell them apart from `labels`."""

    id: BrokerId
    incarnation: str
    rpc: Address
    kafka: Address
    labels: Labels
    configured: Labels | None = None
    endpoints: tuple[Endpoint, ...] = ()

    def address_at(self, listener: str, host: str = "") -> Address | None:
        """Where a client of a listener connects; None if the broker has no listener of this name.
        `host`: the client's own address."""
        if not self.endpoints:
            return self.kafka if listener == ONLY_LISTENER else None
        return next((one.address_for(host) for one in self.endpoints if one.name == listener), None)


@dataclass(frozen=True, slots=True)
class Roles:
    """The replicas of a partition: voters, the preferred leader first; and observers, which receive
    the log, serve reads, and count in no quorum."""

    voters: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...] = ()

    @property
    def all(self) -> tuple[BrokerId, ...]:
        """Both, voters first."""
        return self.voters + self.observers

    def exchanged(self, one: BrokerId, other: BrokerId) -> "Roles":
        """The same, with `other` in the place of `one`."""
        voters, observers = (
            tuple(other if each == one else each for each in some)
            for some in (self.voters, self.observers)
        )
        return Roles(voters, observers)

    def acted_by(self, voters: tuple[BrokerId, ...]) -> "Roles":
        """The same brokers, of whom only these vote."""
        return Roles(voters, tuple(one for one in self.all if one not in voters))

    def has_same_members(self, other: "Roles") -> bool:
        """Whether the same brokers hold the log, in whatever roles."""
        return set(self.all) == set(other.all)

    def is_alike(self, other: "Roles") -> bool:
        """Whether all replicas have the same role there, in any order."""
        mine, others = (self.voters, self.observers), (other.voters, other.observers)
        return all(set(one) == set(two) for one, two in zip(mine, others, strict=True))


@dataclass(frozen=True, slots=True)
class Appointment:
    """The broker chosen to lead the first epoch of a grant, and where its log ended then."""

    leader: BrokerId
    last_epoch: Epoch
    last_index: Index


@dataclass(frozen=True, slots=True)
class LostReplica:
    """A replica that was declared lost, and its broker's last registration before that."""

    broker: BrokerId
    directory_id: str = ""
    incarnation: str = ""


@dataclass(frozen=True, slots=True)
class BucketRange:
    """A bucket has the records of [start, end) of a partition, which begins with them."""

    bucket: str
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """Replicas that an operator declared lost, by a grant of their own: entries that only they had
    are given up (docs/decisions/0027-declared-losses.md).

    `survivors`: the voters and observers that were left; `ends`, in the same order: the epoch and
    index of the last entry of each. `leader` goes on with its log. Offsets from `committed` on were
    at risk; that log has those below `end`.

    `history`: no log went on, but what these buckets had; then there are no survivors
    (docs/decisions/0067-partitions-out-of-buckets.md)."""

    grant: int
    lost: tuple[LostReplica, ...]
    survivors: tuple[BrokerId, ...]
    ends: tuple[tuple[Epoch, Index], ...]
    leader: BrokerId
    committed: int
    end: int
    by: str
    at_ms: int
    history: tuple[BucketRange, ...] = ()

    @property
    def last(self) -> dict[BrokerId, tuple[Epoch, Index]]:
        """{survivor: the epoch and the index of its last entry}"""
        return dict(zip(self.survivors, self.ends, strict=True))


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition: its Raft group and its voters, the preferred leader first.

    `replicas`: the voters while all are up. `target`: the voters after a move under way; empty
    otherwise. `pending`: voters that were granted and may be in force, as `last_version`; empty
    when the last ones were reported stable. See docs/decisions/0009-moving-replicas.md.

    `observers`, `target_observers` and `pending_observers` go with these three: the replicas that
    receive the log and do not vote (docs/decisions/0017-observers.md).

    `acting`: the voters that were reported stable, as `version`, if they are not `replicas`: other
    replicas vote while some are lost. `doubtful`: voters that were granted between these and
    `pending` and may be in force too, because it is unknown whether their grant began
    (docs/decisions/0029-grants-that-cannot-begin.md). `floor`: the `min.insync.replicas` that the
    stable voters have promised to keep (docs/decisions/0041-promised-write-quorums.md); 0 for none.
    `grant`: the last one that began; `is_fenced`: it has no chosen leader yet; `appointment`: the
    chosen leader, until it reports (docs/decisions/0020-who-votes.md).

    `losses`: the declared losses, in order. `is_declared`: the last of them began the current
    grant, or an earlier one, and no voters were reported stable after it. Then `acting` are all
    replicas that were left.

    `by_balancer`: the balancer set the target, not an operator
    (docs/decisions/0010-the-balancer.md).

    `first_grant`: the grant with which its group began; above 0 if the records before are of an
    earlier group, or of another cluster (docs/decisions/0067-partitions-out-of-buckets.md)."""

    topic: str
    index: int
    group: GroupId
    replicas: tuple[BrokerId, ...]
    version: int = 0
    target: tuple[BrokerId, ...] = ()
    pending: tuple[BrokerId, ...] = ()
    by_balancer: bool = False
    observers: tuple[BrokerId, ...] = ()
    target_observers: tuple[BrokerId, ...] = ()
    pending_observers: tuple[BrokerId, ...] = ()
    acting: tuple[BrokerId, ...] = ()
    doubtful: tuple[tuple[BrokerId, ...], ...] = ()
    grant: int = 0
    is_fenced: bool = False
    appointment: Appointment | None = None
    losses: tuple[Loss, ...] = ()
    is_declared: bool = False
    floor: int = 0
    first_grant: int = 0

    @property
    def is_moving(self) -> bool:
        """Whether other replicas are wanted than there are."""
        return bool(self.target)

    @property
    def roles(self) -> Roles:
        """The voters and observers when all are well."""
        return Roles(self.replicas, self.observers)

    @property
    def voters(self) -> tuple[BrokerId, ...]:
        """The voters of the last report."""
        return self.acting or self.replicas

    @property
    def possible(self) -> tuple[tuple[BrokerId, ...], ...]:
        """All voters that may be in force, in the order in which they were granted."""
        return (self.voters, *self.doubtful, *((self.pending,) if self.pending else ()))

    @property
    def last_version(self) -> int:
        """Of the last voters that were granted."""
        return self.version + len(self.possible) - 1

    @property
    def settled_version(self) -> int:
        """Of the voters, where no others may be in force; -1 where others may be."""
        return -1 if self.pending or self.doubtful or self.is_declared else self.version

    def lost_in(self, broker: BrokerId) -> int:
        """The last grant by which the replica there was declared lost; 0 for none."""
        grants = (
            one.grant
            for one in self.group_losses
            if any(lost.broker == broker for lost in one.lost)
        )
        return max(grants, default=0)

    @property
    def group_losses(self) -> tuple[Loss, ...]:
        """The declared losses of its group; earlier ones are of logs that were given up whole."""
        return tuple(one for one in self.losses if one.grant > self.first_grant)

    @property
    def wanted(self) -> Roles:
        """The voters and observers after the move under way; none without one."""
        return Roles(self.target, self.target_observers)

    @property
    def granted(self) -> Roles:
        """The granted voters and observers; none without a grant."""
        return Roles(self.pending, self.pending_observers)

    @property
    def hosts(self) -> tuple[BrokerId, ...]:
        """Who holds the log: what is wanted first, then who holds it until that is so; of each,
        voters before observers. Where nothing moves, placement's order, whoever votes."""
        if not self.target and not self.acting:  # Asked of every partition for one answer.
            return self.replicas + self.observers if self.observers else self.replicas
        others = [one for voters in self.possible for one in voters]
        first, then = self.roles, self.granted
        if self.target:
            first, then = then, first
        members = (*self.wanted.all, *first.all, *then.all, *others)
        return tuple(dict.fromkeys(members))

    @property
    def adding(self) -> tuple[BrokerId, ...]:
        """The brokers that are getting a replica."""
        return tuple(one for one in self.wanted.all if one not in self.roles.all)

    @property
    def removing(self) -> tuple[BrokerId, ...]:
        """The brokers whose replica is to be removed."""
        return tuple(one for one in self.hosts if self.target and one not in self.wanted.all)

    @property
    def name(self) -> str:
        """The topic and the index, as Kafka's tools write it."""
        return f"{self.topic}-{self.index}"


@dataclass(slots=True)
class Topic:
    """A topic. `partitions[i].index == i`; `configs` holds only what was set on the topic
    itself."""

    name: str
    id: UUID
    partitions: list[Partition] = field(default_factory=list)
    configs: dict[str, str] = field(default_factory=dict)
    rules_version: int = 0
    """The cluster's, since its own configuration is as it is."""
    was_compacted: bool = False
    """Whether its `cleanup.policy` contained compact at some time."""


Domain = tuple[str, ...]
"""A region, (region,), or a zone, (region, zone)."""


class Ruling(StrEnum):
    """An operator's ruling on a domain."""

    NONE = ""
    HOLD = "hold"
    """Its replicas are not re-created elsewhere, whether it is down or not."""
    RELEASE = "release"
    """Its lost replicas are re-created elsewhere although it is down."""
    LOST = "lost"
    """As RELEASE, and the controller no longer waits for its brokers."""


NO_END_MS = -1
UNKNOWN_MS = -1
"""A time that is not recorded."""


@dataclass(frozen=True, slots=True)
class Outage:
    """The outage state of a domain (docs/decisions/0018-outages.md)."""

    is_down: bool = False
    ruling: Ruling = Ruling.NONE
    until_ms: int = NO_END_MS
    """Until when the ruling holds, in milliseconds since 1970."""
    since_ms: int = UNKNOWN_MS
    """Since when it is down, in milliseconds since 1970, by the clock of the controller that found
    it down. For people only: no decision rests on it."""


@dataclass(frozen=True, slots=True)
class BucketIdentity:
    """Which bucket a bucket's name stands for (docs/decisions/0068-which-bucket.md)."""

    id: str
    """What the bucket's `identity.json` says."""
    generation: int = 0
    """How often an operator has put another bucket in its place."""


@dataclass(slots=True)
class Cluster:
    """The whole cluster. `version` counts the records applied."""

    cluster_id: str = ""
    brokers: dict[BrokerId, Broker] = field(default_factory=dict)
    topics: dict[str, Topic] = field(default_factory=dict)
    topic_names: dict[UUID, str] = field(default_factory=dict)
    groups: dict[GroupId, Partition] = field(default_factory=dict)
    cluster_configs: dict[str, str] = field(default_factory=dict)
    broker_configs: dict[BrokerId, dict[str, str]] = field(default_factory=dict)
    silent_ms: dict[BrokerId, int] = field(default_factory=dict)
    """{broker that its controller does not hear: for how long at least, when that was written}"""
    silent_since_ms: dict[BrokerId, int] = field(default_factory=dict)
    """{such a broker: since when, in milliseconds since 1970, by the clock of the controller that
    missed it first}; for people only."""
    outages: dict[Domain, Outage] = field(default_factory=dict)
    """{domain that is down, or has an operator's ruling}"""
    moving: set[GroupId] = field(default_factory=set)
    """The groups of the partitions whose replicas move."""
    displaced: dict[GroupId, Roles] = field(default_factory=dict)
    """{group: where its partition was before a broker there was being decommissioned}"""
    returning: dict[GroupId, Roles] = field(default_factory=dict)
    """{group: the same, of a decommission that was cancelled: the balancer brings it back}"""
    deleted_tiered: dict[UUID, str] = field(default_factory=dict)
    """{id: name} of deleted topics whose objects may be in buckets still; the newest ones."""
    buckets: dict[str, BucketIdentity] = field(default_factory=dict)
    """{bucket's name: which bucket it is}, of those that a broker has claimed."""
    access: Access = field(default_factory=Access)
    next_group: int = 1
    next_producer_id: int = 0
    version: int = 0
    rules_version: int = 0
    """Since then the labels of brokers, and what topics go by that say nothing, are as they are."""
    outages_version: int = 0
    """Since then it is as it is who is silent, and which zones and regions are down or held."""

    def rules_since(self, topic: str) -> int:
        """The version since which a placement of that topic is judged as it is now."""
        return max(self.rules_version, self.topics[topic].rules_version)

    def given_up(self, partition: Partition) -> frozenset[BrokerId]:
        """Whose replicas were declared lost, where no process of theirs has started since: what
        runs there, if anything does, may go by what was before."""
        return frozenset(
            lost.broker
            for loss in partition.group_losses
            for lost in loss.lost
            if lost.broker not in self.brokers
            or self.brokers[lost.broker].incarnation == lost.incarnation
        )
