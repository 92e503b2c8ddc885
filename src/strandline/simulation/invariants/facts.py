"""The facts that the world observes of brokers and clients, and that invariants judge.

Why:    an invariant should read like the promise it checks, and not depend on the source of its
        facts.
How:    plain values, made by `member.py` (actions of replicas), `producers.py` and `consumers.py`
        (answers to clients) and `audit.py` (contents of logs).
Source: design section 10."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from strandline.controller.outages.marks import Marks
from strandline.model.cluster import Domain
from strandline.model.ids import NO_BROKER, BrokerId, Epoch, GroupId, Index, Offset
from strandline.raft.group.configuration import Configuration

NO_EPOCH = Epoch(-1)


@dataclass(frozen=True, slots=True)
class Subject:
    """The place of a broken promise, as far as it is known: the group, the position in its log by
    offset or by index, and the records."""

    group: GroupId | None = None
    offset: Offset | None = None
    index: Index | None = None
    values: tuple[bytes, ...] = ()


NOWHERE = Subject()
BEGINNING = Offset(0)


@dataclass(frozen=True, slots=True)
class Produced:
    """A producer sent a batch to `broker`, for the `attempt`-th time."""

    group: GroupId
    producer: str
    broker: BrokerId
    attempt: int
    values: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class LeaderKnown:
    """`broker` came to know that `leader` leads `group` in `epoch`."""

    broker: BrokerId
    group: GroupId
    epoch: Epoch
    leader: BrokerId


@dataclass(frozen=True, slots=True)
class LeaderElected:
    """`broker` leads `group` in `epoch` from now on; its log is `start_index` to `last_index`."""

    broker: BrokerId
    group: GroupId
    epoch: Epoch
    start_index: Index
    last_index: Index
    epoch_of: Callable[[Index], Epoch]
    end_offset: Offset | None = None
    """Where its records end; None if not reported."""
    index_of: Callable[[Offset], Index] | None = None
    """Where the record of an offset is in its log; None if not reported."""
    at_us: int = 0


@dataclass(frozen=True, slots=True)
class MarksMoved:
    """The marks of a replica, in the `life`-th process of its host."""

    broker: BrokerId
    life: int
    group: GroupId
    epoch: Epoch
    commit: Index
    commit_epoch: Epoch
    """The epoch of the entry at `commit`; 0 when that is not in the log."""
    high_watermark: Offset
    log_end_offset: Offset


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A leader said that a batch with these records is at `base_offset`."""

    group: GroupId
    producer: str
    is_idempotent: bool
    acks: int
    base_offset: Offset
    values: Sequence[bytes]
    broker: BrokerId = NO_BROKER
    epoch: Epoch = NO_EPOCH
    """The epoch in which that broker leads as it answers."""


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """A replica answered a consumer that asked for `position`.

    `committed_end`: the end of the committed records, as this replica knew; `visible_end`: the end
    of the records that consumers may see. `is_leader_read`: the replica leads and answered for the
    partition. `start_offset`: its log start offset; `deleted_before`: the part of it that
    DeleteRecords requested; `epoch`: the replica's epoch."""

    consumer: str
    broker: BrokerId
    life: int
    group: GroupId
    position: Offset
    records: Sequence[tuple[Offset, bytes]]
    committed_end: Offset
    visible_end: Offset
    high_watermark: Offset
    is_leader_read: bool
    start_offset: Offset = BEGINNING
    deleted_before: Offset = BEGINNING
    epoch: Epoch = NO_EPOCH


@dataclass(frozen=True, slots=True)
class TableRead:
    """A consumer has read all of a compacted log from one replica, up to `end`; in order
    `records`, {offset: value}."""

    consumer: str
    broker: BrokerId
    group: GroupId
    end: Offset
    records: Mapping[Offset, bytes]


@dataclass(frozen=True, slots=True)
class DeletionAsked:
    """A client is about to send DeleteRecords for the records below `before`."""

    group: GroupId
    before: Offset


@dataclass(frozen=True, slots=True)
class Deleted:
    """A leader said that the records below `before` are deleted, and that the group begins at
    `low_watermark`."""

    group: GroupId
    before: Offset
    low_watermark: Offset


@dataclass(frozen=True, slots=True)
class LogShortened:
    """A replica's log is about to begin at `start_offset`, empty where it `begins_anew`.

    `kept_bytes`: of batches, from there on. `retention_bytes`: the topic's; -1 for all.
    `expired_before`: with remote storage, the total retention takes all records below it."""

    broker: BrokerId
    group: GroupId
    start_offset: Offset
    begins_anew: bool
    kept_bytes: int
    retention_bytes: int
    expired_before: Offset = BEGINNING


@dataclass(frozen=True, slots=True)
class TierSeen:
    """The state of the tier that a replica knows to be committed, after the marker at `index`.

    `covered_end`: buckets have all records up to there, or a Retire has given them up."""

    broker: BrokerId
    group: GroupId
    index: Index
    lineage: bytes
    covered_end: Offset


@dataclass(frozen=True, slots=True)
class LocalLogCut:
    """A replica's log is about to begin at `start_offset`, in a run with tiered storage.

    `needed_from`: where the partition begins; `held`: {bucket: ranges of records that it has in
    truth, and that the partition's log says it has}."""

    broker: BrokerId
    group: GroupId
    start_offset: Offset
    needed_from: Offset
    held: Mapping[str, Sequence[tuple[Offset, Offset]]]


@dataclass(frozen=True, slots=True)
class BucketSeen:
    """What a replica knows of a bucket: the ranges of its live objects, in order; and the end of
    the last one."""

    broker: BrokerId
    group: GroupId
    bucket: str
    ranges: Sequence[tuple[Offset, Offset]]
    end_offset: Offset


@dataclass(frozen=True, slots=True)
class BucketRead:
    """The records of a live object for [start, end), as the bucket has them."""

    group: GroupId
    bucket: str
    start: Offset
    end: Offset
    records: Sequence[tuple[Offset, bytes]]


@dataclass(frozen=True, slots=True)
class ConfigurationCommitted:
    """A replica knows that the configuration at `index` is committed."""

    group: GroupId
    index: Index
    configuration: Configuration


@dataclass(frozen=True, slots=True)
class VotersRecorded:
    """A broker has replayed a record about the voters or the appointed leader of a group.

    `state_version`: how many records the controller's log had up to this one; `possible`: all
    voters that may be in force from then on, the stable ones first; `own`: the voters that
    placement requests; `leader`: the broker that the record appoints, or None."""

    group: GroupId
    what: Literal["granted", "stable", "grant", "appointed", "declared"]
    state_version: int
    grant: int
    possible: tuple[tuple[BrokerId, ...], ...]
    own: tuple[BrokerId, ...]
    leader: BrokerId | None = None


@dataclass(frozen=True, slots=True)
class Declaration:
    """An operator declared that the replicas at `lost` are gone for good. By `grant` the group
    continues with the log of `leader`, which ends at `end`. Offsets from `at_risk_from` on are at
    risk."""

    group: GroupId
    grant: int
    lost: tuple[BrokerId, ...]
    leader: BrokerId
    at_risk_from: Offset
    end: Offset


@dataclass(frozen=True, slots=True)
class LossConfirmed:
    """An operator saw this, typed the name, and is about to declare it."""

    declaration: Declaration


@dataclass(frozen=True, slots=True)
class LossRecorded:
    """The controller's log has this from now on. `version`: of the last voters granted before."""

    declaration: Declaration
    version: int


@dataclass(frozen=True, slots=True)
class StateReached:
    """The controller's state on a broker has so many records applied (`version`): replayed, or
    adopted with a snapshot. `digest`: of all of it."""

    broker: BrokerId
    version: int
    digest: int


@dataclass(frozen=True, slots=True)
class ReplicaRemoved:
    """A broker begins to remove its replica; `first_voters`: those that the group began with.
    `life` counts the processes of its host."""

    group: GroupId
    broker: BrokerId
    life: int
    first_voters: tuple[BrokerId, ...]
    has_state: bool = True
    """False if the disk was lost since, or the log is outdated: there is nothing to delete."""


@dataclass(frozen=True, slots=True)
class AuditedBatch:
    """One batch in a log, over the offsets [base_offset, next_offset). A marker has no records; in
    a compacted log other batches may lack some, too."""

    index: Index
    index_count: int
    epoch: Epoch
    checksum: int
    base_offset: Offset
    next_offset: Offset
    records: Sequence[tuple[Offset, bytes]]


@dataclass(frozen=True, slots=True)
class LogAudited:
    """A whole log as it lies on the disk of a living broker. `is_final`: nothing more happens.

    `commit`, `committed_end`: the committed part, as its replica knows. Consumers may see more, if
    producers do not wait (`write.caching`, acks=1)."""

    broker: BrokerId
    group: GroupId
    start_index: Index
    start_offset: Offset
    end_offset: Offset
    commit: Index
    committed_end: Offset
    batches: Sequence[AuditedBatch]
    is_final: bool


@dataclass(frozen=True, slots=True)
class PlacementKnown:
    """The placement of a partition with a policy, as of a version of the controller's state.

    `question`: the policy, and everything else that the judgement depends on; `may_break`: whether
    a replica without another place may break the policy."""

    group: GroupId
    state_version: int
    replicas: tuple[BrokerId, ...]
    is_moving: bool
    is_right: bool
    question: tuple[str, str]
    may_break: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """A zone or region of a broker, and the brokers that count there; `idle`: those of them without
    a replica."""

    broker: BrokerId
    domain: Domain
    members: frozenset[BrokerId]
    marks: Marks
    idle: frozenset[BrokerId] = frozenset()


@dataclass(frozen=True, slots=True)
class BalancerMoved:
    """The balancer has set a target, as of a version of the controller's state.

    `leaving`: the brokers that lose a replica; `held`: the silent brokers of zones and regions that
    are down in that state and that no operator has released. `places`: the zones and regions of the
    brokers that lose a replica, without those that an operator has ruled on."""

    group: GroupId
    state_version: int
    target: tuple[BrokerId, ...]
    leaving: frozenset[BrokerId] = frozenset()
    held: frozenset[BrokerId] = frozenset()
    places: tuple[Place, ...] = ()
    patience_ms: int = 0
    """How long a controller itself must have missed a broker."""
    at_us: int = field(default=0, compare=False)
    """When this broker received it."""


@dataclass(frozen=True, slots=True)
class Disturbed:
    """A host died or started, or another fault began or ended. `gone`: the brokers without a
    process; `has_other_faults`: whether anything else may keep brokers from reaching each other, or
    change which brokers count."""

    at_us: int
    gone: frozenset[BrokerId]
    has_other_faults: bool


@dataclass(frozen=True, slots=True)
class ServiceAwaited:
    """After the last fault clients requested service for up to `limit_ms`; `what`: a client that
    got none, and the request; empty if all got an answer."""

    what: str
    limit_ms: int
    subject: Subject = NOWHERE


@dataclass(frozen=True, slots=True)
class BalanceAwaited:
    """After the last fault the balancer had up to `limit_ms`; `left`: its unfinished work."""

    left: str
    limit_ms: int


@dataclass(frozen=True, slots=True)
class RestAwaited:
    """No client produced any more, and the cluster had time to come to rest; `left`: what is still
    under way, or empty."""

    left: str
    subject: Subject = NOWHERE


@dataclass(frozen=True, slots=True)
class DamageAwaited:
    """The scrub had time to go round; `left`: damage that it did not find, or did not repair."""

    left: str
    limit_ms: int
    subject: Subject = NOWHERE


@dataclass(frozen=True, slots=True)
class IdlePassed:
    """No client produced or consumed for a while, and every group was at rest.

    `control_counts` and `bulk_counts`: {(from, to): messages sent meanwhile}."""

    duration_ms: int
    heartbeat_interval_ms: int
    control_counts: Mapping[tuple[BrokerId, BrokerId], int]
    bulk_counts: Mapping[tuple[BrokerId, BrokerId], int]

    def noise(self) -> str:
        """Messages beyond three each way in an interval: a heartbeat of its own, and two answers,
        because the other's heartbeats join those to further brokers after half an interval."""
        intervals = self.duration_ms // self.heartbeat_interval_ms + 1
        for (source, target), count in self.control_counts.items():
            if count > 3 * intervals:
                return f"{count} messages from {source} to {target} in {intervals} intervals"
        for (source, target), count in self.bulk_counts.items():
            if count:
                return f"{count} appends from {source} to {target}"
        return ""


@dataclass(frozen=True, slots=True)
class EntriesSent:
    """A leader gave entries to a connection. `connection`: its number; None if the leader ordered
    another replica to send them."""

    leader: BrokerId
    peer: BrokerId
    connection: int | None
    group: GroupId
    epoch: Epoch
    first_index: Index
    last_index: Index
    at_us: int


@dataclass(frozen=True, slots=True)
class EntriesPassed:
    """A broker gave entries to a connection to another one: as leader, as catch-up source, or as
    relay."""

    sender: BrokerId
    receiver: BrokerId
    group: GroupId
    epoch: Epoch
    first_index: Index
    last_index: Index


@dataclass(frozen=True, slots=True)
class RegionsInStep:
    """In a history without faults all members of a group are in step with the leader of `epoch`,
    which sends them all entries from `first_index` on as usual."""

    group: GroupId
    epoch: Epoch
    first_index: Index


@dataclass(frozen=True, slots=True)
class AnswerReceived:
    """An answer of `peer` to an append has reached `leader`."""

    leader: BrokerId
    peer: BrokerId
    group: GroupId
    epoch: Epoch
    is_accepted: bool
    at_us: int


@dataclass(frozen=True, slots=True)
class WayChanged:
    """A connection from `here` to `peer` came up or broke."""

    here: BrokerId
    peer: BrokerId
    at_us: int


@dataclass(frozen=True, slots=True)
class CommitBegun:
    """A member of the consumer group is about to commit its offset in a topic."""

    group: GroupId
    offset: Offset


@dataclass(frozen=True, slots=True)
class CommitEnded:
    """The commit of this number was acknowledged, or certainly refused."""

    group: GroupId
    number: int
    is_applied: bool


@dataclass(frozen=True, slots=True)
class OffsetFetched:
    """A member got the committed offset of its group; -1 for none. `begun`: the moment before it
    asked."""

    group: GroupId
    offset: int
    begun: int
