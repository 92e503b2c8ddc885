"""What can happen to a Raft core, and what it asks to be done.

Why:    decide, then do: `Raft.step(event)` returns effects; the driver performs them in order and
        feeds results back.
How:    `PersistState`, `TruncateLog`, `AppendEntries`, `AppendMarker` and `ResetLog` are
        *barriers*: the driver performs no later effect and steps no other event on this group until
        they are done (PersistState: durable; the others: written to the page cache). A driver that
        cannot do one discards the core and builds it anew from the disk.
Source: STYLE, rule 1; design section 3."""

import msgspec

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, Offset
from strandline.raft.group.configuration import Configuration, Floor
from strandline.raft.messages import Lend, Message

# ---- events --------------------------------------------------------------------------------------


class Received(msgspec.Struct, frozen=True, gc=False):
    """A message came in. `leader_alive`, for requests for votes and answers to them: a leader other
    than who is to be voted for (the sender; or this replica) was heard within the minimal timeout,
    in this epoch or in one that was left since. It may count on this replica's vote."""

    sender: BrokerId
    message: Message
    leader_alive: bool


class ElectionTimedOut(msgspec.Struct, frozen=True, gc=False):
    """No leader was heard for this replica's randomised timeout, or a candidacy has gone on for as
    long."""


class QuorumLost(msgspec.Struct, frozen=True, gc=False):
    """The driver, for a leader: no quorum has answered for the check-quorum time. The leader steps
    down."""


class LogFlushed(msgspec.Struct, frozen=True, gc=False):
    """Everything up to `index` is durable here, of the log as it was when the flush was asked for.

    `generation` is `Raft.log.generation` at that moment. It rises with every TruncateLog and
    ResetLog; the result of an earlier generation speaks of entries that may be gone and is ignored
    (what follows a truncation is flushed by itself). Never feed the results of an earlier core."""

    index: Index
    generation: int


class LogCompacted(msgspec.Struct, frozen=True, gc=False):
    """Up to `index` a compacted log has nothing left but the last record of each key up to there;
    where `index` is lower than before, what is mended may have more."""

    index: Index


class Propose(msgspec.Struct, frozen=True, gc=False):
    """For a leader: `count` entries were appended to its own log at its end, in its epoch.

    `relaxed`: their visibility asks for a write on the quorum, not for a flush."""

    count: int
    relaxed: bool


class AppendSent(msgspec.Struct, frozen=True, gc=False):
    """For a leader: what `Raft.plan_append` planned for `peer` went out, with entries up to
    `last_index` (the plan's `prev_index`: without any; of a ResetRequest, its `start_index` - 1).

    It has no effects, so it does not wait for those of other steps."""

    peer: BrokerId
    last_index: Index


class CompactionEnabled(msgspec.Struct, frozen=True, gc=False):
    """Compaction removes entries of this log by key from now on, or has done so.

    It has no effects, so it does not wait for those of other steps."""


class PrefixDropped(msgspec.Struct, frozen=True, gc=False):
    """Retention: the log begins at `first_index` (Kafka offset `start_offset`) from now on.

    Never above `Raft.commit` + 1, and at the beginning of a batch. Make the
    `Raft.start_configuration` that holds *afterwards* durable before the entries are removed."""

    first_index: Index
    start_offset: Offset


class PeerReset(msgspec.Struct, frozen=True, gc=False):
    """For a leader: what was in flight to `peer` is lost, with the connection."""

    peer: BrokerId


class PeerSilent(msgspec.Struct, frozen=True, gc=False):
    """For a leader: no answer from `peer` for too long, over a connection that lasts: what was sent
    may yet arrive, and is not sent again before `peer` has said what it has."""

    peer: BrokerId


class PeerUntold(msgspec.Struct, frozen=True, gc=False):
    """For a leader: the marks that `peer` was told may be lost, or a reset, but no entries: where
    they are under way, it is not asked for them."""

    peer: BrokerId


class ChangeConfiguration(msgspec.Struct, frozen=True, gc=False):
    """For a leader: go to these voters and observers, through a joint configuration where voters
    change.

    `version`: of the configuration to come, for groups whose voters change by a grant only: never
    less than the present one, and more where voters come or go. None: it stays, and any may.
    `floor`: see `Configuration`; it goes with a new version that has the same voters. Where the
    version is the present one, its floor stays, and `min_insync` is at least that."""

    voters: tuple[BrokerId, ...]
    observers: tuple[BrokerId, ...]
    min_insync: int = 1
    version: int | None = None
    floor: Floor = msgspec.UNSET


class TransferLeadership(msgspec.Struct, frozen=True, gc=False):
    """For a leader: hand over to `to`, once it was sent everything, and enough voters have promised
    theirs (until `PromisesTimedOut`). Given up by `AbandonTransfer`.

    Ignored where `to` is no other voter. Proposals are welcome until it has what was there when
    this began (`Raft.accepts_proposals`)."""

    to: BrokerId


class AbandonTransfer(msgspec.Struct, frozen=True, gc=False):
    """The transfer took too long: a leader that has not handed over yet accepts proposals again.

    One that has stands for election itself, unless it has heard of another leader."""


class PromisesTimedOut(msgspec.Struct, frozen=True, gc=False):
    """For a leader that waits for promised votes before it hands over: go on without."""


class DeclaredNew(msgspec.Struct, frozen=True, gc=False):
    """It turned out that this replica, opened as `lost_state`, has nothing to remember.

    None of the other voters had any history of the group since this one began; noted durably."""


class RejoinAllowed(msgspec.Struct, frozen=True, gc=False):
    """What `RejoinAsked` asked for is noted: this replica may take part again."""


Event = (
    Received
    | ElectionTimedOut
    | QuorumLost
    | LogFlushed
    | LogCompacted
    | Propose
    | AppendSent
    | CompactionEnabled
    | PrefixDropped
    | PeerReset
    | PeerSilent
    | PeerUntold
    | ChangeConfiguration
    | TransferLeadership
    | AbandonTransfer
    | PromisesTimedOut
    | DeclaredNew
    | RejoinAllowed
)

# ---- effects -------------------------------------------------------------------------------------


class PersistState(msgspec.Struct, frozen=True, gc=False):
    """Make epoch and vote durable, before anything later. `vote` is -1 for none.

    `promised`: the epoch whose vote is left to the leader of the one before; 0 for none."""

    epoch: Epoch
    vote: BrokerId
    promised: Epoch = Epoch(0)


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send a message; it may be lost."""

    to: BrokerId
    message: Message


class TruncateLog(msgspec.Struct, frozen=True, gc=False):
    """Remove every entry at `from_index` and above: the beginning of a batch, above `commit`.

    `Raft.visible` falls below `from_index` when it was not: relaxed entries were lost elsewhere."""

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
    """Not leading. `leader` is -1 while nobody is known. Emitted whenever epoch, role or known
    leader changed.

    `transfer_target`: whom this replica, leader until now, has handed over to; else -1. What it
    appended is
    not lost: its marks may yet reach it."""

    epoch: Epoch
    leader: BrokerId
    transfer_target: BrokerId = NO_BROKER


class ReplicationReady(msgspec.Struct, frozen=True, gc=False):
    """For a leader's driver: there may be something to send to `peer` (ask `Raft.plan_append`)."""

    peer: BrokerId


class PeerRefused(msgspec.Struct, frozen=True, gc=False):
    """For a leader's driver: `peer` lacks what comes before that which is under way to it, which
    will not be answered any more. A refusal that was overtaken has no such effect."""

    peer: BrokerId


class ConfigurationChanged(msgspec.Struct, frozen=True, gc=False):
    """The configuration in force is now `configuration`, from the entry at `index`; again when it
    commits."""

    index: Index
    configuration: Configuration
    committed: bool


class LendEntries(msgspec.Struct, frozen=True, gc=False):
    """Send what `order` asks for to `order.to`, with the entries from this replica's log.

    Whoever does so later asks `Raft.may_lend` again, right before the log is read."""

    order: Lend


class RejoinAsked(msgspec.Struct, frozen=True, gc=False):
    """The leader would have this replica, opened as `lost_state`, take part again: it does so after
    `RejoinAllowed`. Only where it was opened with `asks_to_rejoin`, and once."""


class FoundOutdated(msgspec.Struct, frozen=True, gc=False):
    """This log goes on where it was left: its replica was no member for a while, or the log is one
    of before another one that took part. It counts for nothing until it has begun anew: the driver
    removes it, and opens the replica as `lost_state`. Once."""


class Rejoined(msgspec.Struct, frozen=True, gc=False):
    """This replica lost its disk once and is whole again, as of `index`; or its group was found to
    be new after it had heard of an epoch.

    Until the driver has made a note of this durable, it opens the replica as `lost_state` again."""

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
    | LendEntries
    | RejoinAsked
    | FoundOutdated
    | Rejoined
)
