"""An epoch that the controller grants: how a group that has lost its quorum continues.

Why:    if fewer than a write quorum W of N voters live, but N - W + 1 do, these hold every
        acknowledged write between them. Raft alone can do nothing: it elects by majorities.
How:    Fence --> every member that receives it moves to the epoch (grant, 0), durably, and reports
        where its log ends. Appoint --> the member with the best of these logs leads that epoch,
        without votes; its first entry is the successor configuration.

            No other member can lead that epoch: elections count from (grant, 1) on, the controller
        decides on one appointment a grant, and the appointed member first votes for itself in that
        epoch. So it accepts the appointment once, restarts or not, and never contradicts what it
        sent before a crash.
            A fenced log does not change before the appointment: the replica accepts no leader of
        an earlier epoch. If a restart lost an unflushed end, the log's present end shows that.
            A fenced replica without an entry of the grant may lack what was committed in it, so it
        does not stand for election (`Elections`, rule R5).
Owns:   nothing.
Source: design section 6; decision 0016; Lamport, Malkhi, Zhou, "Vertical Paxos" (2009)."""

from strandline.model.ids import NO_BROKER, BrokerId
from strandline.raft.group.membership import Membership
from strandline.raft.leader.leading import Leading
from strandline.raft.messages import Appoint, Fence, Fenced
from strandline.raft.state import RaftState
from strandline.raft.transitions import Cause


class Arbitration:
    """See the module."""

    def __init__(self, state: RaftState, membership: Membership, leading: Leading) -> None:
        self._state = state
        self._membership = membership
        self._leading = leading

    def on_fence(self, sender: BrokerId, message: Fence, *, leader_alive: bool) -> None:
        """Accept no epoch before this one any more, whichever leader sends it."""
        state = self._state
        if message.epoch > state.epoch:
            state.follow(message.epoch, NO_BROKER, Cause.EPOCH_SUPERSEDED)
        log, configured = state.log, self._membership.index
        end = log.last_epoch, log.last_index
        state.send(sender, Fenced(state.epoch, *end, state.lost_state, configured))

    def on_appoint(self, sender: BrokerId, message: Appoint, *, leader_alive: bool) -> None:
        """Lead, if the log is still the one that the controller chose."""
        state = self._state
        log = state.log
        is_taken = state.vote != NO_BROKER or state.leader != NO_BROKER
        if message.epoch != state.epoch or is_taken or state.lost_state:
            return
        if (log.last_epoch, log.last_index) != (message.last_epoch, message.last_index):
            return
        state.adopt(state.epoch, vote=state.self_id)
        self._leading.begin(Cause.APPOINTED, configuration=message.configuration)
