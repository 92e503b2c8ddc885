"""The records of the controller's log: one small JSON object each, with its `kind`.

Why:    every broker replays these into the cluster it answers from; they outlive every version of
        the program, so they state facts ("topic created, with these replicas") and no intentions.
How:    the values of the records of group 0. Fields may be added with a default; a kind is never
        given another meaning.
Source: design section 3; STYLE, rule 4."""

from typing import Literal
from uuid import UUID

import msgspec

from strandline.base.errors import OperatorError
from strandline.model.access import QuotaEntity, Rule, ScramSecret
from strandline.model.cluster import (
    NO_END_MS,
    UNKNOWN_MS,
    Address,
    BucketRange,
    Domain,
    Endpoint,
    Labels,
    Loss,
    Ruling,
)
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.group.configuration import PromisedQuorum

Scope = Literal["topic", "broker", "cluster"]


class ClusterNamed(msgspec.Struct, frozen=True, tag_field="kind", tag="cluster_named"):
    """The cluster has an id; the first record of every controller's log."""

    cluster_id: str


class BrokerRegistered(msgspec.Struct, frozen=True, tag_field="kind", tag="broker_registered"):
    """The registration of a broker: its process has started, its labels have changed, it fell
    silent, or the controller hears it again.

    `endpoints`: its listeners, empty for one without a name. `directory_id` names its data
    directory; `configured`: the labels of its configuration at its
    start; `silent_ms`: how long, at least, the controller has not heard it, None if it hears it;
    `silent_since_ms`: since when, in milliseconds since 1970, for people only. Earlier versions
    ignore these fields, which is right."""

    id: BrokerId
    incarnation: str
    directory_id: str
    rpc: Address
    kafka: Address
    labels: Labels
    configured: Labels | None = None
    silent_ms: int | None = None
    silent_since_ms: int | None = None
    endpoints: tuple[Endpoint, ...] = ()


class BrokerUnregistered(msgspec.Struct, frozen=True, tag_field="kind", tag="broker_unregistered"):
    """A broker that held no replica is gone for good, with its configuration."""

    id: BrokerId


class Assignment(msgspec.Struct, frozen=True):
    """A partition's Raft group and voters, the preferred leader first, and its observers.
    `start_offset`: where its log begins, of a partition that is restored (decision 0063).
    `first_grant`: the grant with which its epochs begin; `history`: the records before its log, in
    buckets (decision 0067)."""

    group: GroupId
    replicas: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...] = ()
    start_offset: int = 0
    first_grant: int = 0
    history: tuple[BucketRange, ...] = ()


class TopicCreated(msgspec.Struct, frozen=True, tag_field="kind", tag="topic_created"):
    """A topic exists, with all its partitions; `partitions[i]` is partition i."""

    name: str
    id: UUID
    partitions: tuple[Assignment, ...]
    configs: dict[str, str] = {}


class TopicDeleted(msgspec.Struct, frozen=True, tag_field="kind", tag="topic_deleted"):
    """A topic is gone, with its partitions and its configuration."""

    name: str
    id: UUID


class PartitionsAdded(msgspec.Struct, frozen=True, tag_field="kind", tag="partitions_added"):
    """A topic has more partitions; the first of them has index `first`."""

    topic: str
    first: int
    partitions: tuple[Assignment, ...]


class DomainRuled(msgspec.Struct, frozen=True):
    """Whether a zone or region is down, and the operator's ruling on it; `until_ms`: the end of the
    ruling, in milliseconds since 1970, -1 without an end; `since_ms`: since when it is down, in
    milliseconds since 1970, -1 if it is not or the version that wrote this did not say."""

    domain: Domain
    is_down: bool
    ruling: Ruling = Ruling.NONE
    until_ms: int = NO_END_MS
    since_ms: int = UNKNOWN_MS


class ReplicasRejoined(msgspec.Struct, frozen=True):
    """The replicas of these groups on a broker take part again, with the state of its present data
    directory; the state in an earlier directory does not count any more (decision 0030)."""

    broker: BrokerId
    groups: tuple[GroupId, ...]


class BucketIdentified(msgspec.Struct, frozen=True):
    """This bucket has this identity from now on; `generation`: how often it was replaced."""

    bucket: str
    id: str
    generation: int


class QuotaSet(msgspec.Struct, frozen=True):
    """Quotas of one entity: {key: its value from now on, None for no more}."""

    entity: QuotaEntity
    values: dict[str, float | None]


class AccessChanged(msgspec.Struct, frozen=True):
    """What principals may do has changed. Removed are rules, and secrets by (user, mechanism)."""

    rules_added: tuple[Rule, ...] = ()
    rules_removed: tuple[Rule, ...] = ()
    secrets_set: tuple[ScramSecret, ...] = ()
    secrets_removed: tuple[tuple[str, str], ...] = ()
    quotas: tuple[QuotaSet, ...] = ()


class ConfigsChanged(msgspec.Struct, frozen=True, tag_field="kind", tag="configs_changed"):
    """Configuration was set, or removed if the value is None.

    `name` is the topic's name, the broker's id as text, or empty for the cluster. `outages`:
    the state of zones and regions from now on; `rejoined`: replicas that take part again;
    `identified`: which bucket a name stands for; `access`: what principals may do. Earlier versions
    ignore these four and read an empty change, which is right: none of them judges access."""

    scope: Scope
    name: str
    values: dict[str, str | None]
    outages: tuple[DomainRuled, ...] = ()
    rejoined: ReplicasRejoined | None = None
    identified: BucketIdentified | None = None
    access: AccessChanged | None = None


class ProducerIdsAllocated(
    msgspec.Struct, frozen=True, tag_field="kind", tag="producer_ids_allocated"
):
    """A broker may hand out the producer ids first .. first + count - 1; no other broker ever
    will."""

    broker: BrokerId
    first: int
    count: int


class ReassignmentSet(msgspec.Struct, frozen=True, tag_field="kind", tag="reassignment_set"):
    """The target of a move: these voters, the preferred leader first, and these observers; without
    voters the present replicas stay.

    `by_balancer`: the balancer wants it, not an operator, and may change it."""

    group: GroupId
    target: tuple[BrokerId, ...]
    by_balancer: bool = False
    observers: tuple[BrokerId, ...] = ()


class VotersGranted(msgspec.Struct, frozen=True, tag_field="kind", tag="voters_granted"):
    """The group may change to these voters and observers, from those of the version before."""

    group: GroupId
    version: int
    voters: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...] = ()


class VotersStable(msgspec.Struct, frozen=True, tag_field="kind", tag="voters_stable"):
    """The configuration that was granted as `version` is committed in the group.

    `floor`: the `min.insync.replicas` that it keeps (`raft.configuration`); earlier versions assume
    a majority, which is right. Unset it takes no room."""

    group: GroupId
    version: int
    floor: PromisedQuorum = msgspec.UNSET


class GrantBegun(msgspec.Struct, frozen=True, tag_field="kind", tag="grant_begun"):
    """From now on the group lives in the epochs of this grant, and has no leader until the
    controller appoints one."""

    group: GroupId
    grant: int


class LeaderAppointed(
    msgspec.Struct, frozen=True, tag_field="kind", tag="group_seated", kw_only=True
):
    """`leader`, whose log ended there, leads the first epoch of the grant, with these voters and
    observers of `version`."""

    group: GroupId
    grant: int
    version: int
    voters: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...]
    leader: BrokerId
    last_epoch: Epoch
    last_index: Index


class ReplicasDeclaredLost(
    msgspec.Struct, frozen=True, tag_field="kind", tag="replicas_declared_lost"
):
    """An operator gave these replicas up: a grant begins, in which only the survivors of the
    earlier voters are left."""

    group: GroupId
    loss: Loss


class PartitionRecovered(msgspec.Struct, frozen=True, tag_field="kind", tag="partition_recovered"):
    """An operator gave up all logs of a partition, and continues with what buckets have of it. The
    group of `assignment` takes the place of `group`; only `voters` vote at first. `loss.history` is
    that of the assignment."""

    group: GroupId
    assignment: Assignment
    voters: tuple[BrokerId, ...]
    loss: Loss


Record = (
    ClusterNamed
    | BrokerRegistered
    | BrokerUnregistered
    | TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | ConfigsChanged
    | ProducerIdsAllocated
    | ReassignmentSet
    | VotersGranted
    | VotersStable
    | GrantBegun
    | LeaderAppointed
    | ReplicasDeclaredLost
    | PartitionRecovered
)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def encode_record(record: Record) -> bytes:
    """The value of a Kafka record."""
    return _encoder.encode(record)


def decode_record(value: bytes | bytearray | memoryview) -> Record:
    """The record again; raises OperatorError for a kind that this version does not know."""
    try:
        return _decoder.decode(value)
    except msgspec.MsgspecError as error:
        raise OperatorError(
            f"the controller's log holds a record that this version cannot read ({error}): "
            "start a newer version of strandline"
        ) from error
