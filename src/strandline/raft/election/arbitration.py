"""An epoch that the controller grants: how a group goes on that has lost its quorum.

Why:    where fewer than a write quorum W of N voters live, but N - W + 1 do, these hold every
        acknowledged write between them, and Raft alone can do nothing: it elects by majorities.
How:    Fence --> every member that hears it moves to the epoch (grant, 0), durably, and says where
        its log ends. Seat --> the one with the best of these logs leads that epoch, without votes,
        and its first entry is the successor configuration.
            Nobody else can lead it: elections count from (grant, 1) on, the controller decides on
        one seat for a grant, and who takes it gives itself its vote of the epoch first, so that it
        takes it once, restarts or not: what it sent before a crash is never contradicted.
            A fenced log changes no more before the seat is taken: no earlier epoch's leader is
        heeded. That it lost an unflushed end by a restart shows in where it ends now.
            Who was fenced and has no entry of the grant may lack what was committed in it, and so
        does not stand for election (`Elections`, rule R5).
Owns:   nothing.
Source: design section 6; decision 0016; Lamport, Malkhi, Zhou, "Vertical Paxos" (2009)."""

from strandline.model.ids import NO_BROKER, BrokerId
from strandline.raft.group.membership import Membership
from strandline.raft.leader.leading import Leading
from strandline.raft.messages import Fence, Fenced, Seat
from strandline.raft.state import ReplicaState
from strandline.raft.transitions import Cause


class Arbitration:
    """See the module."""

    def __init__(self, state: ReplicaState, membership: Membership, leading: Leading) -> None:
        self._state = state
        self._membership = membership
        self._leading = leading

    def on_fence(self, sender: BrokerId, message: Fence, *, leader_alive: bool) -> None:
        """Live in no epoch before this one any more, whoever leads it."""
        state = self._state
        if message.epoch > state.epoch:
            state.follow(message.epoch, NO_BROKER, Cause.EPOCH_SUPERSEDED)
        log, configured = state.log, self._membership.index
        end = log.last_epoch, log.last_index
        state.send(sender, Fenced(state.epoch, *end, state.lost_state, configured))

    def on_seat(self, sender: BrokerId, message: Seat, *, leader_alive: bool) -> None:
        """Lead, if the log is still what the choice rested on."""
        state = self._state
        log = state.log
        is_taken = state.vote != NO_BROKER or state.leader != NO_BROKER
        if message.epoch != state.epoch or is_taken or state.lost_state:
            return
        if (log.last_epoch, log.last_index) != (message.last_epoch, message.last_index):
            return
        state.adopt(state.epoch, vote=state.self_id)
        self._leading.begin(Cause.SEATED, configuration=message.configuration)
