"""The controller's commands, and its answers to them.

Why:    a client may send a command to any broker, which forwards it to the controller's leader. So
        commands and answers are plain values with one encoding.
How:    tagged structs in MessagePack. Every answer has `error_code` (0 if all went well) for the
        command as a whole; commands about several things answer for each of them.
Source: Kafka's CreateTopics, DeleteTopics, CreatePartitions, IncrementalAlterConfigs,
        AlterPartitionReassignments and BrokerRegistration; design sections 3 and 6 (rule R2)."""

import re
from enum import IntEnum
from typing import TypeVar
from uuid import UUID

import msgspec

from strandline.base.errors import ProtocolError
from strandline.controller.bucket_commands import BucketAnswer, IdentifyBucket
from strandline.controller.loss_commands import DeclareLost, LossDeclared, RecoverPartition
from strandline.controller.outage_commands import (
    DomainAnswer,
    LastSeenNoted,
    NoteLastSeen,
    NoteOutages,
    OutagesNoted,
    RuleDomain,
)
from strandline.controller.quota_commands import AlterQuotas, QuotaResults
from strandline.controller.rule_commands import CreateRules, DeleteRules, RuleResults
from strandline.controller.user_commands import AlterSecrets, UserResults
from strandline.model.cluster import Address, Endpoint, Labels
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.group.configuration import PromisedQuorum

NO_UUID = UUID(int=0)
USE_DEFAULT = -1
"""Stands for the cluster's default number of partitions or replication factor."""

# ---- commands ------------------------------------------------------------------------------------


class RegisterBroker(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """A broker's process has started. `cluster_id` is empty when it belongs to no cluster yet.

    `configured`: the labels of its configuration; `labels`: these and those of its data directory.
    None: the broker does not distinguish them. `endpoints`: its listeners, empty for one without
    a name. `must_be_known`: refuse it if the cluster has forgotten the broker."""

    broker: BrokerId
    incarnation: str
    directory_id: str
    rpc: Address
    kafka: Address
    labels: Labels = Labels()
    configured: Labels | None = None
    cluster_id: str = ""
    endpoints: tuple[Endpoint, ...] = ()
    must_be_known: bool = False


class UnregisterBroker(msgspec.Struct, frozen=True, tag=True):
    """A broker that was emptied and stopped is gone for good."""

    broker: BrokerId


class AlterLabels(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """Change labels of brokers, of all of them or of none. A change is (label, value), None to
    remove the label; `is_forced`: even if policies cannot be met then."""

    brokers: tuple[BrokerId, ...]
    changes: tuple[tuple[str, str | None], ...]
    is_forced: bool = False
    validate_only: bool = False


class NewTopic(msgspec.Struct, frozen=True, kw_only=True):
    """A topic to create: with `partitions` and `replication_factor`, or with `assignments`.

    An assignment is (partition index, brokers, preferred leader first)."""

    name: str
    partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: tuple[tuple[int, tuple[BrokerId, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


class CreateTopics(msgspec.Struct, frozen=True, tag=True):
    """Create topics, each for itself; with `validate_only` only check them."""

    topics: tuple[NewTopic, ...]
    validate_only: bool = False


class TopicToDelete(msgspec.Struct, frozen=True):
    """A topic by its name, or by its id where the name is None."""

    name: str | None = None
    id: UUID = NO_UUID


class DeleteTopics(msgspec.Struct, frozen=True, tag=True):
    """Delete topics, each for itself, with everything in them."""

    topics: tuple[TopicToDelete, ...]


class MorePartitions(msgspec.Struct, frozen=True, kw_only=True):
    """A topic shall have `count` partitions in all; `assignments`: brokers of each new one."""

    topic: str
    count: int
    assignments: tuple[tuple[BrokerId, ...], ...] | None = None


class CreatePartitions(msgspec.Struct, frozen=True, tag=True):
    """Add partitions to topics, each for itself."""

    topics: tuple[MorePartitions, ...]
    validate_only: bool = False


class ResourceType(IntEnum):
    """The kinds of resources with configuration; the numbers are Kafka's. BROKER without a name is
    the cluster. The keys of CLIENT_METRICS and GROUP cannot be altered."""

    TOPIC = 2
    BROKER = 4
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigOperation(IntEnum):
    """The change of one key; the numbers are Kafka's."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(msgspec.Struct, frozen=True):
    """One key. `operation` is a `ConfigOperation`; others are refused."""

    key: str
    operation: int
    value: str | None = None


class ResourceChanges(msgspec.Struct, frozen=True):
    """Changes to one resource. `type` is a `ResourceType`; others are refused. `replaces`: the keys
    of Kafka's that are not named go back to their defaults."""

    type: int
    name: str
    changes: tuple[ConfigChange, ...]
    replaces: bool = False


class AlterConfigs(msgspec.Struct, frozen=True, tag=True):
    """Change configuration, each resource as a whole or not at all."""

    resources: tuple[ResourceChanges, ...]
    validate_only: bool = False


class AllocateProducerIds(msgspec.Struct, frozen=True, tag=True):
    """A broker wants producer ids to hand out."""

    broker: BrokerId


class EnsureInternalTopic(msgspec.Struct, frozen=True, tag=True):
    """Create one of the internal topics, unless it exists."""

    name: str


class WantedReplicas(msgspec.Struct, frozen=True, kw_only=True):
    """The replicas that a partition shall have: the preferred leader first, and as many observers
    as now at the end; None: keep the present ones."""

    topic: str
    index: int
    replicas: tuple[BrokerId, ...] | None


class AlterReassignments(msgspec.Struct, frozen=True, tag=True):
    """Move replicas of partitions, or stop moving them, each partition for itself."""

    partitions: tuple[WantedReplicas, ...]
    may_change_count: bool = True


class BalancedReplicas(msgspec.Struct, frozen=True, kw_only=True):
    """A move that the balancer wants, with the state that it saw: the stable replicas of `version`
    and the target then, each with its observers. Without a `target` the controller gives up the
    present move. `seen_at`: the version of the state with the policies and labels behind the
    target."""

    group: GroupId
    seen_at: int = 0
    version: int
    replicas: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...] = ()
    target_before: tuple[BrokerId, ...] = ()
    target_observers_before: tuple[BrokerId, ...] = ()
    target: tuple[BrokerId, ...]
    target_observers: tuple[BrokerId, ...] = ()


class BalanceReplicas(msgspec.Struct, frozen=True, tag=True):
    """Move replicas to where policies want them, each partition for itself."""

    moves: tuple[BalancedReplicas, ...]


class RequestVoters(msgspec.Struct, frozen=True, tag=True):
    """The leader of a group in `epoch` wants to change to these voters and observers, from those of
    `version`. `superseded`: the granted version that they replace; 0 for none. `floor`: the new
    floor of the write quorum, if the voters stay."""

    group: GroupId
    version: int
    voters: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...] = ()
    epoch: Epoch = Epoch(0)
    superseded: int = 0
    floor: PromisedQuorum = msgspec.UNSET


class ReportVoters(msgspec.Struct, frozen=True, tag=True):
    """The leader of a group in `epoch` has committed the configuration of `version`, in it, which
    has this `floor`."""

    group: GroupId
    version: int
    voters: tuple[BrokerId, ...]
    epoch: Epoch = Epoch(0)
    floor: PromisedQuorum = msgspec.UNSET


class BeginGrant(msgspec.Struct, frozen=True, tag=True):
    """A group cannot continue by itself: fence all its members off by the grant after `grant`."""

    group: GroupId
    grant: int


class AppointLeader(msgspec.Struct, frozen=True, tag="SeatLeader", kw_only=True):
    """These members were fenced by `grant`, and their logs ended there: appoint the best one.

    `ends`: (broker, the epoch and the index of its last entry). `configured`, in the same order:
    see `Fenced`; earlier releases do not send it."""

    group: GroupId
    grant: int
    ends: tuple[tuple[BrokerId, Epoch, Index], ...]
    configured: tuple[Index, ...] = ()


class NoteRejoined(msgspec.Struct, frozen=True, tag=True):
    """A broker, since its present start, asks that its replicas of these groups, which lost their
    state, take part again. It asks before any of them does."""

    broker: BrokerId
    incarnation: str
    groups: tuple[GroupId, ...]


Command = (
    RegisterBroker
    | UnregisterBroker
    | AlterLabels
    | CreateTopics
    | DeleteTopics
    | CreatePartitions
    | AlterConfigs
    | AllocateProducerIds
    | EnsureInternalTopic
    | AlterReassignments
    | BalanceReplicas
    | RequestVoters
    | ReportVoters
    | BeginGrant
    | AppointLeader
    | DeclareLost
    | RecoverPartition
    | NoteLastSeen
    | RuleDomain
    | NoteOutages
    | NoteRejoined
    | IdentifyBucket
    | CreateRules
    | DeleteRules
    | AlterSecrets
    | AlterQuotas
)

# ---- answers -------------------------------------------------------------------------------------


def words_of(command: "Command") -> str:
    """What a command asks for, in words for a log: "request voters of group 7"."""
    words = re.sub(r"(?<!^)(?=[A-Z])", " ", type(command).__name__).lower()
    group = getattr(command, "group", None)
    return words if group is None else f"{words} of group {group}"


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The command was refused. `leader`: the broker to ask, if this one does not lead; -1 if
    unknown."""

    error_code: int
    message: str = ""
    leader: BrokerId = BrokerId(-1)


class BrokerAdmitted(msgspec.Struct, frozen=True, tag=True):
    """The broker is part of this cluster."""

    cluster_id: str
    error_code: int = 0


class BrokerTakenOff(msgspec.Struct, frozen=True, tag=True):
    """The broker has left this cluster."""

    error_code: int = 0


class TopicMoves(msgspec.Struct, frozen=True):
    """How many partitions of a topic must move; `examples`: indexes of the first of them."""

    topic: str
    count: int
    examples: tuple[int, ...]


class LabelsAltered(msgspec.Struct, frozen=True, tag=True, kw_only=True):
    """The present labels of brokers, the moves that follow, and the policies that object."""

    brokers: tuple[tuple[BrokerId, Labels], ...]
    moves: tuple[TopicMoves, ...] = ()
    objections: tuple[str, ...] = ()
    """Only where it was forced."""
    error_code: int = 0


class TopicResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result for one topic. `message` is None without an error."""

    name: str | None
    id: UUID = NO_UUID
    error_code: int = 0
    message: str | None = None
    partitions: int = -1
    replication_factor: int = -1


class TopicResults(msgspec.Struct, frozen=True, tag=True):
    """One result for each topic of the command, in its order."""

    topics: tuple[TopicResult, ...]
    error_code: int = 0


class ResourceResult(msgspec.Struct, frozen=True):
    """The result for one resource."""

    type: int
    name: str
    error_code: int = 0
    message: str | None = None


class ResourceResults(msgspec.Struct, frozen=True, tag=True):
    """One result for each resource of the command, in its order."""

    resources: tuple[ResourceResult, ...]
    error_code: int = 0


class ProducerIds(msgspec.Struct, frozen=True, tag=True):
    """The ids first .. first + count - 1."""

    first: int
    count: int
    error_code: int = 0


class PartitionResult(msgspec.Struct, frozen=True):
    """The result for one partition. `message` is None without an error."""

    topic: str
    index: int
    error_code: int = 0
    message: str | None = None


class PartitionResults(msgspec.Struct, frozen=True, tag=True):
    """One result for each partition of the command, in its order; `version`: the cluster's after
    the changes."""

    partitions: tuple[PartitionResult, ...]
    version: int = 0
    error_code: int = 0


class BalanceNoted(msgspec.Struct, frozen=True, tag=True):
    """The groups whose move was recorded; the others had changed meanwhile."""

    groups: tuple[GroupId, ...]
    error_code: int = 0


class VotersNoted(msgspec.Struct, frozen=True, tag=True):
    """The request of a group's leader was granted, or its report recorded."""

    error_code: int = 0


class RejoinedNoted(msgspec.Struct, frozen=True, tag=True):
    """The answer to `NoteRejoined`: recorded; the broker reads it from the log."""

    error_code: int = 0
    error_message: str = ""


Answer = (
    Refused
    | BrokerAdmitted
    | BrokerTakenOff
    | LabelsAltered
    | TopicResults
    | ResourceResults
    | ProducerIds
    | PartitionResults
    | BalanceNoted
    | LastSeenNoted
    | DomainAnswer
    | OutagesNoted
    | RejoinedNoted
    | VotersNoted
    | LossDeclared
    | BucketAnswer
    | RuleResults
    | UserResults
    | QuotaResults
)

# ---- encoding ------------------------------------------------------------------------------------

T = TypeVar("T")
_encoder = msgspec.msgpack.Encoder()
_commands: msgspec.msgpack.Decoder[Command] = msgspec.msgpack.Decoder(Command)
_answers: msgspec.msgpack.Decoder[Answer] = msgspec.msgpack.Decoder(Answer)


def encode(value: Command | Answer) -> bytes:
    """The bytes of a command or an answer."""
    return _encoder.encode(value)


def decode_command(data: bytes) -> Command:
    """The command again; raises ProtocolError."""
    return _decode(_commands, data)


def decode_answer(data: bytes) -> Answer:
    """The answer again; raises ProtocolError."""
    return _decode(_answers, data)


def _decode(decoder: msgspec.msgpack.Decoder[T], data: bytes) -> T:
    try:
        return decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise ProtocolError(f"not a controller's message: {error}") from error
