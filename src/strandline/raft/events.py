"""Events that a Raft core takes in, and the effects that it asks for.

Why:    decide, then do: `Raft.step(event)` returns effects; the driver performs them in order and
        feeds results back.
How:    `PersistState`, `TruncateLog`, `AppendEntries`, `AppendMarker` and `ResetLog` are
        *barriers*: until one is done (PersistState: durable; the others: written to the page
        cache), the driver performs no later effect and steps no other event on this group. A driver
        that cannot do one discards the core and builds it anew from the disk.
Source: STYLE, rule 1; design section 3."""

import msgspec

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, Offset
from strandline.raft.group.configuration import Configuration, PromisedQuorum
from strandline.raft.messages import Message, PeerCatchupRequest

# ---- events --------------------------------------------------------------------------------------


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message came in.

    `leader_alive`, for vote requests and their answers: within the minimal election time-out
    this replica heard a leader other than the candidate, in this epoch or in one that it has
    left since. That leader may count on this replica's vote."""

    sender: BrokerId
    message: Message
    leader_alive: bool


class ElectionTimedOut(msgspec.Struct, frozen=True, gc=False):
    """This replica heard no leader for its randomised time-out, or a candidacy has lasted that
    long."""


class QuorumLost(msgspec.Struct, frozen=True, gc=False):
    """The driver, for a leader: no quorum has answered for the check-quorum time. The leader
    steps down."""


class LogFlushed(msgspec.Struct, frozen=True, gc=False):
    """Everything up to `index` is durable here, of the log as it was when the flush began.

    `generation` is `Raft.log.generation` at that moment; each TruncateLog and ResetLog raises
    it. The core ignores the result of an earlier generation, for the entries may be gone; the
    driver flushes what follows a truncation by itself. Never feed the results of an earlier
    core."""

    index: Index
    generation: int


class LogCompacted(msgspec.Struct, frozen=True, gc=False):
    """Up to `index` a compacted log has only the last record of each key up to there. If `index`
    is lower than before, a repaired log may have more."""

    index: Index


class Propose(msgspec.Struct, frozen=True, gc=False):
    """For a leader: `count` entries were appended at the end of its log, in its epoch.

    `unflushed_visible`: readers may see them once a write quorum has written them, before it
    has flushed them."""

    count: int
    unflushed_visible: bool


class CompactionEnabled(msgspec.Struct, frozen=True, gc=False):
    """Compaction removes entries of this log by key from now on, or has done so.

    It has no effects, so it does not wait for those of other steps."""


class PrefixDropped(msgspec.Struct, frozen=True, gc=False):
    """Retention: the log now begins at `first_index` (Kafka offset `start_offset`).

    Never above `Raft.commit` + 1, and at the beginning of a batch. Make the
    `Raft.start_configuration` that holds *afterwards* durable before removing the entries."""

    first_index: Index
    start_offset: Offset


class PeerReset(msgspec.Struct, frozen=True, gc=False):
    """For a leader: what was in flight to `peer` is lost, with the connection."""

    peer: BrokerId


class PeerTimedOut(msgspec.Struct, frozen=True, gc=False):
    """For a leader: `peer` has not answered for too long, over a connection that lasts. What was
    sent may yet arrive, so the leader sends it again only after `peer` has said what it has."""

    peer: BrokerId


class MarksMaybeLost(msgspec.Struct, frozen=True, gc=False):
    """For a leader: the last marks, or a reset, may not have reached `peer`, but no entries are
    lost: the leader does not ask for entries that are under way."""

    peer: BrokerId


class ChangeConfiguration(msgspec.Struct, frozen=True, gc=False):
    """For a leader: change to these voters and observers, through a joint configuration if
    voters change.

    `version`: of the new configuration, for groups whose voters change by a grant only: never
    less than the present one, and more if voters come or go. None: it stays, and any voters
    may change. `floor`: the promised write quorum, see `Configuration`; it comes with a new
    version that has the same voters. If the version is the present one, its floor stays, and
    `min_insync` is at least that."""

    voters: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...]
    min_insync: int = 1
    version: int | None = None
    floor: PromisedQuorum = msgspec.UNSET


class TransferLeadership(msgspec.Struct, frozen=True, gc=False):
    """For a leader: hand over to `to`, once it was sent everything and enough voters have
    delegated their votes (until `DelegationsTimedOut`). `AbandonTransfer` gives up.

    Ignored if `to` is not another voter. The leader takes proposals until `to` has what was
    there when this began (`Raft.accepts_proposals`)."""

    to: BrokerId


class AbandonTransfer(msgspec.Struct, frozen=True, gc=False):
    """The transfer took too long: a leader that has not handed over yet accepts proposals again.

    One that has handed over stands for election itself, unless it has heard of another
    leader."""


class DelegationsTimedOut(msgspec.Struct, frozen=True, gc=False):
    """For a leader that waits for delegated votes before it hands over: go on without."""


class DeclaredNew(msgspec.Struct, frozen=True, gc=False):
    """This replica, opened as `lost_state`, has nothing to remember: none of the other voters
    had any history of the group when this one began. The driver has noted that durably."""


class RejoinAllowed(msgspec.Struct, frozen=True, gc=False):
    """The driver has noted what `RejoinAsked` asked for: this replica may take part again."""


Event = (
    Received
    | ElectionTimedOut
    | QuorumLost
    | LogFlushed
    | LogCompacted
    | Propose
    | CompactionEnabled
    | PrefixDropped
    | PeerReset
    | PeerTimedOut
    | MarksMaybeLost
    | ChangeConfiguration
    | TransferLeadership
    | AbandonTransfer
    | DelegationsTimedOut
    | DeclaredNew
    | RejoinAllowed
)

# ---- effects -------------------------------------------------------------------------------------


class PersistState(msgspec.Struct, frozen=True, gc=False):
    """Make epoch and vote durable, before anything later. `vote` is -1 for none.

    `delegated_epoch`: the epoch whose vote is delegated to the leader of the epoch before; 0
    for none."""

    epoch: Epoch
    vote: BrokerId
    delegated_epoch: Epoch = Epoch(0)


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a message; it may be lost."""

    to: BrokerId
    message: Message


class TruncateLog(msgspec.Struct, frozen=True, gc=False):
    """Remove every entry at `from_index` and above: the beginning of a batch, above `commit`.

    `Raft.visible` falls below `from_index` if it was not: unflushed entries were lost
    elsewhere."""

    from_index: Index


class AppendEntries(msgspec.Struct, frozen=True, gc=False):
    """Append the entries of the request being stepped, from `first_index` on (a beginning of a
    batch), then flush soon.

    The driver feeds `LogFlushed` when that flush is done."""

    first_index: Index


class AppendMarker(msgspec.Struct, frozen=True, gc=False):
    """A leader's own entry: append a marker at `index`, send it on like any entry, flush soon.

    `configuration` is None for the marker that opens an epoch."""

    index: Index
    epoch: Epoch
    configuration: Configuration | None


class ResetLog(msgspec.Struct, frozen=True, gc=False):
    """Drop the whole log; the next entry is `start_index`.

    Durable and atomic: after a crash the old log is there or the new one, nothing between."""

    start_index: Index
    start_offset: Offset
    previous_epoch: Epoch
    configuration: Configuration


class MarksAdvanced(msgspec.Struct, frozen=True, gc=False):
    """commit or visible (see `messages.Marks`) moved up."""

    commit: Index
    visible: Index


class BecameLeader(msgspec.Struct, frozen=True, gc=False):
    """This replica leads `epoch` from now on. The epoch's marker follows as `AppendMarker`."""

    epoch: Epoch


class BecameFollower(msgspec.Struct, frozen=True, gc=False):
    """Not leading. `leader` is -1 while unknown. Emitted whenever epoch, role or known leader
    changed.

    `transfer_target`: the target of this replica's own transfer, if it has just handed over;
    else -1. What it appended as leader is not lost: its marks may yet reach it."""

    epoch: Epoch
    leader: BrokerId
    transfer_target: BrokerId = NO_BROKER


class ReplicationReady(msgspec.Struct, frozen=True, gc=False):
    """For a leader's driver: there may be something to send to `peer` (ask `Raft.plan_append`)."""

    peer: BrokerId


class PeerRefused(msgspec.Struct, frozen=True, gc=False):
    """For a leader's driver: `peer` lacks the entry before those under way to it, and will not
    answer them. A refusal that was overtaken has no such effect."""

    peer: BrokerId


class ConfigurationChanged(msgspec.Struct, frozen=True, gc=False):
    """`configuration` is now in force, from the entry at `index`; again when it commits."""

    index: Index
    configuration: Configuration
    committed: bool


class SendPeerAppend(msgspec.Struct, frozen=True, gc=False):
    """Send what `request` asks for to `request.to`, with the entries from this replica's log.

    A driver that sends later asks `Raft.may_serve_peer` again, right before it reads the log."""

    request: PeerCatchupRequest


class RejoinAsked(msgspec.Struct, frozen=True, gc=False):
    """The leader lets this replica, opened as `lost_state`, take part again; it does so after
    `RejoinAllowed`. Emitted once, only if it was opened with `asks_to_rejoin`."""


class FoundOutdated(msgspec.Struct, frozen=True, gc=False):
    """This log continues one from before a time in which its replica was no member, or one from
    before another log took part in its place. It counts for nothing until it begins anew: the
    driver removes it, and opens the replica as `lost_state`. Emitted once."""


class Rejoined(msgspec.Struct, frozen=True, gc=False):
    """This replica lost its disk and is whole again, as of `index`; or its group turned out to
    be new after the replica had heard of an epoch.

    Until the driver has noted this durably, it opens the replica as `lost_state` again."""

    index: Index


Effect = (
    PersistState
    | Send
    | TruncateLog
    | AppendEntries
    | AppendMarker
    | ResetLog
    | MarksAdvanced
    | BecameLeader
    | BecameFollower
    | ReplicationReady
    | PeerRefused
    | ConfigurationChanged
    | SendPeerAppend
    | RejoinAsked
    | FoundOutdated
    | Rejoined
)
