"""What the members of a group say to each other.

Why:    the core, the drivers, the simulator and the wire codec all speak of the same messages.
How:    plain values. Record batches never pass through here: an `AppendRequest` describes the
        *shape* of its entries (which epochs, up to which index, which configurations); the driver
        keeps the bytes beside it.
Source: Raft thesis, figure 3.1, 4.2.3 (disruptive servers), 6.4, 9.6 (pre-vote); design sections 4
        and 5."""

import msgspec

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, Offset
from strandline.raft.group.configuration import Configuration


class VoteRequest(msgspec.Struct, frozen=True, gc=False, tag=1, array_like=True):
    """ "May I lead?" With `pre` it asks only whether a vote would be granted; nobody changes state.

    `transfer` is set when the leader itself asked for this election: voters do not protect that
    leader. `configuration_index`: where the asker's present configuration stands, so that it can be
    told of a later one; and the epoch of that entry."""

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

    `removal`, with a refusal: a configuration without the asker, later than the asker's own or one
    that the asker's was lost to. See `Membership`.

    With `given_for` (-1: without) it is no answer, but a vote that the leader before ordered (see
    `LeaderContact`), for the log that ends there: it counts for who stands by that leader's order,
    and in no other election. `pre` is set, too: so brokers of an earlier release elect nobody by
    it.

    With `promised` (0: without), granted, it is no vote either, but says, durably, that this voter
    leaves its vote of that epoch to the leader of the epoch before (see `promises`). Refused: that
    is the only reason; a later epoch may be asked for."""

    epoch: Epoch
    granted: bool
    pre: bool = False
    removal: Removal | None = None
    given_for: Index = Index(-1)
    promised: Epoch = Epoch(0)


class Run(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """Entries of one epoch, up to and including `last_index`; the first run begins after
    `prev_index`."""

    epoch: Epoch
    last_index: Index


class AppendRequest(msgspec.Struct, frozen=True, gc=False, tag=3, array_like=True):
    """Entries from `prev_index + 1` on, or none (a probe). `runs` are in order and not empty
    inside.

    `commit` and `visible` are the leader's marks (see `Marks`). `report_written`: the leader wants
    to hear of the write before the flush, because entries of the relaxed kind wait for it.
    `configured`: where the leader's last configuration stands that is committed for certain; -1
    where the receiver has it, or there is none."""

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
"""In a refusal: nothing is said of the log."""


class AppendResponse(msgspec.Struct, frozen=True, gc=False, tag=4, array_like=True):
    """Cumulative: everything up to `written` / `flushed` equals the leader's log.

    Not accepted: the entry at `prev_index` was missing or of another epoch; `hint` is the highest
    index that may match, or NO_HINT where the message was of an epoch that has passed. An epoch
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
    """ "I lead this epoch"; carries the marks. Answered only when refused (an `AppendResponse` not
    accepted).

    With `transfer_target` the sender has led for the last time, and its log ends at `last_index`:
    the receiver
    votes for the heir in the next epoch once it has acknowledged all of it. With `asks_promise` it
    leads on, and asks for the vote of the next epoch in advance (see `promises`)."""

    epoch: Epoch
    commit: Index
    visible: Index
    transfer_target: BrokerId = NO_BROKER
    last_index: Index = Index(-1)
    asks_promise: bool = False


class TimeoutNow(msgspec.Struct, frozen=True, gc=False, tag=6, array_like=True):
    """Leadership transfer: stand for election at once.

    With `last_index` (-1: without) the leader of `epoch` has led it for the last time. Its log ends
    there: the receiver stands once it has all of it. Then this is a vote for the next epoch, too;
    durable, as any. `in_step`: peers that were sent everything. `promised`: voters that have left
    their votes to the leader; they are given with this."""

    epoch: Epoch
    last_index: Index = Index(-1)
    in_step: tuple[BrokerId, ...] = ()
    promised: tuple[BrokerId, ...] = ()


class ResetRequest(msgspec.Struct, frozen=True, gc=False, tag=7, array_like=True):
    """The receiver lacks entries that the leader no longer has: drop the log, begin anew at
    `start_index`.

    `start_offset` is the Kafka offset of `start_index`; `previous_epoch` the epoch of the entry
    before it; `configuration` the one in force there."""

    epoch: Epoch
    start_index: Index
    start_offset: Offset
    previous_epoch: Epoch
    configuration: Configuration


class Lend(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The leader to a replica near `to`: send it this append, as a `LentAppend`, with the entries
    from your own log. They are committed, and `size_bytes` long.

    `is_throttled`: nobody waits for them; they go as fast as recoveries may. `may_differ`: the log
    is compacted, so they may be of another size there; what is more than fits into one append is
    sent as several."""

    to: BrokerId
    request: AppendRequest
    size_bytes: int
    is_throttled: bool
    may_differ: bool = False


class LentAppend(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """An append of the leader of `request.epoch`, with entries, sent by another member on that
    leader's order. Answered to the leader, as any append."""

    request: AppendRequest


class Fence(msgspec.Struct, frozen=True, gc=False, tag=10, array_like=True):
    """The controller to all members: no epoch before this one, which a grant opens, is lived in any
    more. Answered by `Fenced`."""

    epoch: Epoch


class Fenced(msgspec.Struct, frozen=True, gc=False, tag=11, array_like=True):
    """The answer: the replica's own epoch (above the fence's where that is past), its last entry.

    `lost_state`: its log proves nothing. `configured`: where the last configuration stands in it;
    -1
    where a release before that does not say."""

    epoch: Epoch
    last_epoch: Epoch
    last_index: Index
    lost_state: bool
    configured: Index = Index(-1)


class Seat(msgspec.Struct, frozen=True, gc=False, tag=12, array_like=True):
    """The controller to the one member that it chose: lead `epoch`, with `configuration`, and the
    log that ends as told by `Fenced`. Decided once an epoch; may come late, or again."""

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
    | Lend
    | LentAppend
    | Fence
    | Fenced
    | Seat
)


class Marks(msgspec.Struct, frozen=True, gc=False):
    """Two marks, each the index of the last entry that it includes; -1 for none.

    commit:  flushed on the write quorum.
    visible: what readers may see, >= commit; beyond commit only over entries appended with acks 0/1
             that a write quorum has *written*."""

    commit: Index
    visible: Index


NO_MARKS = Marks(Index(-1), Index(-1))
