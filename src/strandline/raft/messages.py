"""Messages that the members of a group send each other.

Why:    the core, the drivers, the simulator and the wire codec share these messages.
How:    plain values. Record batches never pass through here: an `AppendRequest` describes the
        *shape* of its entries (which epochs, up to which index, which configurations); the driver
        keeps the bytes beside it.
Source: Raft thesis, figure 3.1, 4.2.3 (disruptive servers), 6.4, 9.6 (pre-vote); design sections 4
        and 5."""

import msgspec

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, Offset
from strandline.raft.group.configuration import Configuration


class VoteRequest(msgspec.Struct, frozen=True, gc=False, tag=1, array_like=True):
    """ "May I lead?" With `pre` it asks only whether the voter would vote; no state changes.

    `transfer`: the leader itself asked for this election, so voters do not protect that
    leader. `configuration_index` and `configuration_epoch`: the entry of the asker's
    configuration, so that a voter can report a later one."""

    epoch: Epoch
    last_index: Index
    last_epoch: Epoch
    pre: bool = False
    transfer: bool = False
    configuration_epoch: Epoch = Epoch(0)
    configuration_index: Index = Index(-1)


class Removal(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The entry of `epoch` at `index` is committed, and `configuration` in force there."""

    epoch: Epoch
    index: Index
    configuration: Configuration


class VoteResponse(msgspec.Struct, frozen=True, gc=False, tag=2, array_like=True):
    """The answer. `epoch` is the voter's own; for a granted pre-vote, the epoch asked for.

    `removal`, with a refusal: a configuration without the asker. It is later than the asker's
    own, or the asker's was lost to it. See `Membership`.

    `transfer_end` (-1: unset): this is not an answer but a vote for the transfer target,
    requested by the leader that hands over (see `LeaderContact`); the target's log must have
    that end. It counts only if the target stands by that leader's request. `pre` is set as
    well, so brokers of an earlier release do not count it.

    `delegated_epoch` (0: unset), granted: this is no vote either. The voter has delegated its
    vote of that epoch, durably, to the leader of the epoch before (see `vote_delegation`).
    Refused: that is the only reason, and the asker may ask for a later epoch."""

    epoch: Epoch
    granted: bool
    pre: bool = False
    removal: Removal | None = None
    transfer_end: Index = Index(-1)
    delegated_epoch: Epoch = Epoch(0)


class Run(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Entries of one epoch, up to and including `last_index`; the first run begins after
    `prev_index`."""

    epoch: Epoch
    last_index: Index


class AppendRequest(msgspec.Struct, frozen=True, gc=False, tag=3, array_like=True):
    """Entries from `prev_index + 1` on, or none (a probe). `runs` are in order, none is empty.

    `commit` and `visible` are the leader's marks (see `Marks`). `report_written`: the
    follower shall acknowledge the write before the flush, because unflushed-visible entries
    wait for it. `configured`: the index of the leader's last configuration that is committed
    for certain; -1 if the receiver has it, or there is none."""

    epoch: Epoch
    prev_index: Index
    prev_epoch: Epoch
    commit: Index
    visible: Index
    runs: tuple[Run, ...] = ()
    configurations: tuple[tuple[Index, Configuration], ...] = ()
    report_written: bool = False
    rejoin_at: Index = Index(-1)
    configured: Index = Index(-1)


NO_HINT = Index(-2)
"""In a refusal that names no index of the log."""


class AppendResponse(msgspec.Struct, frozen=True, gc=False, tag=4, array_like=True):
    """Cumulative: everything up to `written` / `flushed` equals the leader's log.

    Not accepted: the entry at `prev_index` was missing or of another epoch. `hint` is the
    highest index that may match, or NO_HINT if the message was of a past epoch. An epoch
    above the leader's deposes it. `compacted`: see `LogShape.compacted_index`."""

    epoch: Epoch
    accepted: bool
    written: Index = Index(-1)
    flushed: Index = Index(-1)
    hint: Index = Index(-1)
    hint_epoch: Epoch = Epoch(0)
    recovering: bool = False
    compacted: Index = Index(-1)


class LeaderContact(msgspec.Struct, frozen=True, gc=False, tag=5, array_like=True):
    """ "I lead this epoch"; carries the marks. The receiver answers only to refuse it, with an
    `AppendResponse` that is not accepted.

    `transfer_target`: the sender has handed over, and its log ends at `last_index`. The
    receiver votes for the target in the next epoch once it has acknowledged all of that log.
    `requests_delegation`: the sender leads on, and asks for the receiver's vote of the next
    epoch in advance (see `vote_delegation`)."""

    epoch: Epoch
    commit: Index
    visible: Index
    transfer_target: BrokerId = NO_BROKER
    last_index: Index = Index(-1)
    requests_delegation: bool = False


class TimeoutNow(msgspec.Struct, frozen=True, gc=False, tag=6, array_like=True):
    """Leadership transfer: stand for election at once.

    `last_index` (-1: unset): the leader of `epoch` has handed over, and its log ends there.
    The receiver stands once it has all of it; this message is then also the sender's vote for
    the next epoch, durable as any. `in_step`: peers that were sent everything. `delegators`:
    voters that have delegated their votes to the leader; this message gives these votes."""

    epoch: Epoch
    last_index: Index = Index(-1)
    in_step: tuple[BrokerId, ...] = ()
    delegators: tuple[BrokerId, ...] = ()


class ResetRequest(msgspec.Struct, frozen=True, gc=False, tag=7, array_like=True):
    """The receiver lacks entries that the leader no longer has: drop the log, begin anew at
    `start_index`.

    `start_offset` is the Kafka offset of `start_index`; `previous_epoch` the epoch of the
    entry before it; `configuration` the one in force there."""

    epoch: Epoch
    start_index: Index
    start_offset: Offset
    previous_epoch: Epoch
    configuration: Configuration


class PeerCatchupRequest(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The leader asks a replica near `to` to send it this append, as a `PeerAppend`, with
    entries from the replica's own log. They are committed, and `size_bytes` long.

    `is_throttled`: no client waits for them; they go as fast as the recovery limit allows.
    `may_differ`: the log is compacted, so they may have another size there; the replica sends
    what is too large for one append as several."""

    to: BrokerId
    request: AppendRequest
    size_bytes: int
    is_throttled: bool
    may_differ: bool = False


class PeerAppend(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An append of the leader of `request.epoch`, with entries, sent by another member at that
    leader's request. The receiver answers to the leader, as to any append."""

    request: AppendRequest


class Fence(msgspec.Struct, frozen=True, gc=False, tag=10, array_like=True):
    """The controller to all members: live in no epoch before this one, which a grant opens. The
    answer is `Fenced`."""

    epoch: Epoch


class Fenced(msgspec.Struct, frozen=True, gc=False, tag=11, array_like=True):
    """The answer: the replica's own epoch (above the fence's if that is past), its last entry.

    `lost_state`: its log proves nothing. `configured`: the index of its last configuration;
    -1 from brokers of an earlier release."""

    epoch: Epoch
    last_epoch: Epoch
    last_index: Index
    lost_state: bool
    configured: Index = Index(-1)


class Appoint(msgspec.Struct, frozen=True, gc=False, tag=12, array_like=True):
    """The controller to the one member that it chose: lead `epoch`, with `configuration`, if
    your log still ends as your `Fenced` said. The controller decides once an epoch; the
    message may come late, or again."""

    epoch: Epoch
    last_epoch: Epoch
    last_index: Index
    configuration: Configuration


Message = (
    VoteRequest
    | VoteResponse
    | AppendRequest
    | AppendResponse
    | LeaderContact
    | TimeoutNow
    | ResetRequest
    | PeerCatchupRequest
    | PeerAppend
    | Fence
    | Fenced
    | Appoint
)


class Marks(msgspec.Struct, frozen=True, gc=False):
    """Two marks, each the index of the last entry that it includes; -1 for none.

    commit:  flushed on the write quorum.
    visible: what readers may see, >= commit; beyond commit only over entries appended with acks 0/1
             that a write quorum has *written*."""

    commit: Index
    visible: Index


NO_MARKS = Marks(Index(-1), Index(-1))
