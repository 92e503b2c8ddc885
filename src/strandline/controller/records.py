"""What the controller's log says: one small JSON object a record, told apart by its `kind`.

Why:    every broker replays these into the cluster it answers from; they outlive every version of
        the program, so they state facts ("topic created, with these replicas") and no intentions.
How:    the values of the records of group 0. Fields may be added with a default; a kind is never
        given another meaning.
Source: design section 3; STYLE, rule 4."""

from typing import Literal
from uuid import UUID

import msgspec

from strandline.base.errors import OperatorError
from strandline.model.cluster import NO_END_MS, Address, Domain, Labels, Loss, Ruling
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.group.configuration import PromisedQuorum

Scope = Literal["topic", "broker", "cluster"]


class ClusterNamed(msgspec.Struct, frozen=True, tag_field="kind", tag="cluster_named"):
    """The cluster has an id; the first record of every controller's log."""

    cluster_id: str


class BrokerRegistered(msgspec.Struct, frozen=True, tag_field="kind", tag="broker_registered"):
    """A broker is registered so: its process has started, or its labels were changed meanwhile, or
    it fell silent, or is heard again.

    `directory_id` names its data directory; `configured`: the labels that its configuration gave
    it at its start; `silent_ms`: for how long, or longer, the controller has not heard it, None
    where it does. Versions that do not know of those read the rest, and are right."""

    id: BrokerId
    incarnation: str
    directory_id: str
    rpc: Address
    kafka: Address
    labels: Labels
    configured: Labels | None = None
    silent_ms: int | None = None


class BrokerUnregistered(msgspec.Struct, frozen=True, tag_field="kind", tag="broker_unregistered"):
    """A broker that held nothing is gone for good, with what was wanted of it."""

    id: BrokerId


class Assignment(msgspec.Struct, frozen=True):
    """A partition's Raft group and voters, the preferred leader first, and its observers."""

    group: GroupId
    replicas: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...] = ()


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
    """A zone or region is down or not, and this is what a person has said of it; `until_ms`: until
    when that holds, in milliseconds since 1970, -1 without an end."""

    domain: Domain
    is_down: bool
    ruling: Ruling = Ruling.NONE
    until_ms: int = NO_END_MS


class ReplicasRejoined(msgspec.Struct, frozen=True):
    """The replicas of these groups on a broker take part again, with what its present data
    directory has; what an earlier one remembers of them counts no more (decision 0030)."""

    broker: BrokerId
    groups: tuple[GroupId, ...]


class ConfigsChanged(msgspec.Struct, frozen=True, tag_field="kind", tag="configs_changed"):
    """Configuration was set, or removed where the value is None.

    `name` is the topic's name, the broker's id as text, or empty for the cluster. `outages`:
    the state of zones and regions from now on; `rejoined`: replicas that take part again.
    Versions that do not know of those read an empty change, which is right."""

    scope: Scope
    name: str
    values: dict[str, str | None]
    outages: tuple[DomainRuled, ...] = ()
    rejoined: ReplicasRejoined | None = None


class ProducerIdsAllocated(
    msgspec.Struct, frozen=True, tag_field="kind", tag="producer_ids_allocated"
):
    """A broker may hand out the producer ids first .. first + count - 1; no other broker ever
    will."""

    broker: BrokerId
    first: int
    count: int


class ReassignmentSet(msgspec.Struct, frozen=True, tag_field="kind", tag="reassignment_set"):
    """These voters are wanted, the preferred leader first, and these observers; no voters: what
    there is stays.

    `by_balancer`: no person asked for it, and the balancer may change its mind."""

    group: GroupId
    target: tuple[BrokerId, ...]
    by_balancer: bool = False
    observers: tuple[BrokerId, ...] = ()


class VotersGranted(msgspec.Struct, frozen=True, tag_field="kind", tag="voters_granted"):
    """The group may go to these voters and observers, from those of the version before."""

    group: GroupId
    version: int
    voters: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...] = ()


class VotersStable(msgspec.Struct, frozen=True, tag_field="kind", tag="voters_stable"):
    """The configuration that was granted as `version` is committed in the group.

    `floor`: the `min.insync.replicas` to which it keeps (`raft.configuration`); versions that do
    not know of it count on a majority, and are right. Unset it takes no room."""

    group: GroupId
    version: int
    floor: PromisedQuorum = msgspec.UNSET


class GrantBegun(msgspec.Struct, frozen=True, tag_field="kind", tag="grant_begun"):
    """The group lives in no epoch before those of this grant, and has no leader until one is
    appointed."""

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
