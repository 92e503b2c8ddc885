"""Messages between brokers as bytes.

    control          u8 kind, msgpack body
    append           u8 kind = APPEND, PEER_APPEND or RELAYED, u32 length of the head, msgpack head
                     (group, AppendRequest), record batches

Appends are sent on the bulk lane, and their acknowledgements are replies there. All other messages
go on the control lane.

Why:    one place knows the layout; everything else handles values.
How:    one frame carries all Raft messages that a broker has for a peer at the end of a pass
        (`RaftItems`).
Source: design section 5."""

import struct
from enum import IntEnum, IntFlag
from typing import TypeVar

import msgspec

from strandline.base.errors import ProtocolError
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.messages import (
    AppendRequest,
    AppendResponse,
    LeaderContact,
    PeerCatchupRequest,
    ResetRequest,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)

ControlMessage = (
    VoteRequest | VoteResponse | AppendResponse | LeaderContact | TimeoutNow | ResetRequest
)


T = TypeVar("T")


class Kind(IntEnum):
    """The first byte of a message."""

    HEARTBEAT = 1
    HEARTBEAT_ANSWER = 2
    RAFT = 3
    CALL = 4
    LEADERS = 5
    HISTORY_QUESTION = 6
    HISTORY_ANSWER = 7
    OPENED = 8
    PEER_CATCHUP_ORDER = 12
    NOT_RELAYED = 13
    EXCHANGE = 14
    APPEND = 16
    PEER_APPEND = 17
    RELAYED = 18


APPENDS = frozenset((Kind.APPEND, Kind.PEER_APPEND, Kind.RELAYED))
"""The kinds with record batches."""


class Ability(IntFlag):
    """What a broker's release can do, as its heartbeats say; earlier releases: nothing.

    PEER_CATCHUP: send entries to others on a leader's order, and accept such entries.
    PEER_CATCHUP_COMPACTED: also of compacted logs (`PeerCatchupRequest.may_differ`).
    RELAYING: forward appends to the brokers that they name, and accept such appends.
    PROMISED_QUORUMS: keep a group's promised write quorum (`raft.group.configuration`).
    CONTROLLER_VOTES: vote in the controller's group without being a seed: a replica without state
    takes no part until the group's leader lets it (`replication.host.opening`).
    TIERING: read TIER markers in logs (`records.marker`).
    BUCKET_IDENTITIES: record which bucket a name stands for, and read `Reset` markers (0068).
    EXCHANGES: answer a heartbeat with `Exchange` (`liveness.heartbeat_exchanges`)."""

    PEER_CATCHUP = 1
    PEER_CATCHUP_COMPACTED = 2
    RELAYING = 4
    PROMISED_QUORUMS = 8
    CONTROLLER_VOTES = 16
    TIERING = 32
    BUCKET_IDENTITIES = 64
    EXCHANGES = 128


ABILITIES = (
    Ability.PEER_CATCHUP
    | Ability.PEER_CATCHUP_COMPACTED
    | Ability.RELAYING
    | Ability.PROMISED_QUORUMS
    | Ability.CONTROLLER_VOTES
    | Ability.TIERING
    | Ability.BUCKET_IDENTITIES
    | Ability.EXCHANGES
)
"""Those of this release."""


class Heartbeat(msgspec.Struct, frozen=True, array_like=True):
    """One for each pair of brokers, whatever the number of groups.

    `session` changes with every start of the sender. `changes`: (group, epoch) led by the sender,
    as changed after `from_version` (epoch 0: no longer led); they bring the receiver to `version`.
    `abilities`: see `Ability`. `nonce`: that of the latest answer, which shows that the sender
    lives after the receiver drew it; 0 before the first one, -1 from earlier releases."""

    session: int
    number: int
    sent_ms: int
    from_version: int
    version: int
    changes: list[tuple[GroupId, Epoch]]
    abilities: int = 0
    nonce: int = -1


class HeartbeatAnswer(msgspec.Struct, frozen=True, array_like=True):
    """`version`: what the receiver has applied of that session (-1: it knows nothing, send
    everything).

    `refused`: groups of that version in which the receiver has moved to a later epoch, or may have
    forgotten that it did. `nonce`: what the next heartbeats return; 0 from earlier releases."""

    session: int
    number: int
    sent_ms: int
    version: int
    refused: list[tuple[GroupId, Epoch]]
    nonce: int = 0


class Exchange(msgspec.Struct, frozen=True, array_like=True):
    """A heartbeat, an answer to one, or both, between releases with `Ability.EXCHANGES`.

    `begins`: the sender waits for the receiver's heartbeat. `came_back`: sent over the connection
    that the receiver opened, so the receiver goes on with it there. `held_ms`: how long the sender
    has kept the answer: no part of the round trip."""

    begins: bool
    came_back: bool = False
    heartbeat: Heartbeat | None = None
    answer: HeartbeatAnswer | None = None
    held_ms: int = 0


class LeaderEntry(msgspec.Struct, frozen=True, array_like=True):
    """`leader` leads `group` in `epoch`; NO_BROKER: that epoch has no leader any more."""

    group: GroupId
    epoch: Epoch
    leader: BrokerId


class HistoryQuestion(msgspec.Struct, frozen=True, array_like=True):
    """Asks whether the receiver knows any epoch of a group. `session`: that of the asking
    process."""

    session: int
    group: GroupId


class HistoryAnswer(msgspec.Struct, frozen=True, array_like=True):
    """The answer to a question of that session."""

    session: int
    group: GroupId
    has_history: bool


NOTHING_OUTLIVED = Index(-2)
"""`AppendHead.outlived` of a compacted log in which no tombstone may go."""


class AppendHead(msgspec.Struct, frozen=True, array_like=True):
    """What precedes the record batches of an append.

    `may_wait`: no acknowledgement waits for the flush of these entries. `outlived`: tombstones up
    to here may go (`tombstones.outlived_index`), or NOTHING_OUTLIVED; -1 if the log is not
    compacted or the leader does not say. `to`: the brokers to which the receiver forwards it."""

    group: GroupId
    request: AppendRequest
    may_wait: bool = False
    outlived: Index = Index(-1)
    to: tuple[BrokerId, ...] = ()


class NotRelayed(msgspec.Struct, frozen=True, array_like=True):
    """The sender could not forward an append of this epoch to `peers`."""

    group: GroupId
    epoch: Epoch
    peers: list[BrokerId]


class PeerCatchupOrder(msgspec.Struct, frozen=True, array_like=True):
    """A leader's order to a follower to send entries. It has a kind of its own: earlier releases
    would drop the rest of `RaftItems` with it."""

    group: GroupId
    request: PeerCatchupRequest


RaftItems = list[tuple[GroupId, ControlMessage]]

_encoder = msgspec.msgpack.Encoder()
_heartbeats = msgspec.msgpack.Decoder(Heartbeat)
_answers = msgspec.msgpack.Decoder(HeartbeatAnswer)
_exchanges = msgspec.msgpack.Decoder(Exchange)
_raft_items = msgspec.msgpack.Decoder(RaftItems)
_leaders = msgspec.msgpack.Decoder(list[LeaderEntry])
_groups = msgspec.msgpack.Decoder(list[GroupId])
_questions = msgspec.msgpack.Decoder(HistoryQuestion)
_history_answers = msgspec.msgpack.Decoder(HistoryAnswer)
_peer_catchup_orders = msgspec.msgpack.Decoder(PeerCatchupOrder)
_not_relayed = msgspec.msgpack.Decoder(NotRelayed)
_append_heads = msgspec.msgpack.Decoder(AppendHead)
_HEAD = struct.Struct(">BI")


def encode_control(kind: Kind, body: object) -> bytes:
    """One control message."""
    return bytes((kind,)) + _encoder.encode(body)


def encode_append_head(head: AppendHead, kind: Kind = Kind.APPEND) -> bytes:
    """Everything of an append but its record batches."""
    data = _encoder.encode(head)
    return _HEAD.pack(kind, len(data)) + data


def decode_heartbeat(body: memoryview) -> Heartbeat:
    """Raises ProtocolError."""
    return _decode(_heartbeats, body, "heartbeat")


def decode_heartbeat_answer(body: memoryview) -> HeartbeatAnswer:
    """Raises ProtocolError."""
    return _decode(_answers, body, "heartbeat answer")


def decode_exchange(body: memoryview) -> Exchange:
    """Raises ProtocolError."""
    return _decode(_exchanges, body, "exchange of heartbeats")


def decode_raft(body: memoryview) -> RaftItems:
    """Raises ProtocolError."""
    return _decode(_raft_items, body, "Raft message")


def decode_leaders(body: memoryview) -> list[LeaderEntry]:
    """Raises ProtocolError."""
    return _decode(_leaders, body, "list of leaders")


def decode_opened(body: memoryview) -> list[GroupId]:
    """Raises ProtocolError."""
    return _decode(_groups, body, "list of groups")


def decode_peer_catchup_order(body: memoryview) -> PeerCatchupOrder:
    """Raises ProtocolError."""
    return _decode(_peer_catchup_orders, body, "order for peer catch-up")


def decode_not_relayed(body: memoryview) -> NotRelayed:
    """Raises ProtocolError."""
    return _decode(_not_relayed, body, "refusal of a relay")


def decode_history_question(body: memoryview) -> HistoryQuestion:
    """Raises ProtocolError."""
    return _decode(_questions, body, "question about a group's history")


def decode_history_answer(body: memoryview) -> HistoryAnswer:
    """Raises ProtocolError."""
    return _decode(_history_answers, body, "answer about a group's history")


def _decode(decoder: msgspec.msgpack.Decoder[T], body: memoryview, what: str) -> T:
    try:
        return decoder.decode(body)
    except msgspec.DecodeError as error:
        raise ProtocolError(f"bad {what}: {error}") from error


def decode_append(message: memoryview) -> tuple[AppendHead, memoryview]:
    """The head and the record batches (a view of `message`). Raises ProtocolError."""
    try:
        kind, length = _HEAD.unpack_from(message)
        head = _append_heads.decode(message[_HEAD.size : _HEAD.size + length])
    except (struct.error, msgspec.DecodeError) as error:
        raise ProtocolError(f"bad append: {error}") from error
    if kind not in APPENDS:
        raise ProtocolError(f"message of kind {kind} is no append")
    return head, message[_HEAD.size + length :]
