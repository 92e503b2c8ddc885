"""What a leader does with its followers' answers, and when they do not answer.

Why:    every acknowledgement passes this one place; the parts of the room do what follows from it.
Owns:   nothing.
Source: Raft thesis, figure 3.1 ("Rules for Servers: Leaders")."""

from strandline.model.ids import NO_BROKER, BrokerId
from strandline.raft.election.hand_over import HandOvers
from strandline.raft.election.transfer import Transfers
from strandline.raft.events import MarksMaybeLost, PeerReset, PeerTimedOut
from strandline.raft.follower.rejoin import count_unless_recovering, grant_rejoins
from strandline.raft.leader.leading import Leading
from strandline.raft.leader.progress import Progress
from strandline.raft.messages import NO_HINT, AppendResponse
from strandline.raft.state import RaftState
from strandline.raft.transitions import Cause


class Replies:
    """See the module."""

    def __init__(
        self, state: RaftState, leading: Leading, transfers: Transfers, hand_overs: HandOvers
    ) -> None:
        self._state = state
        self._leading = leading
        self._hand_overs = hand_overs
        self._transfers = transfers

    def on_append_response(
        self, sender: BrokerId, message: AppendResponse, *, leader_alive: bool
    ) -> None:
        """A follower has more of the log, or refused an append."""
        state = self._state
        if message.epoch != state.epoch:
            if message.epoch > state.epoch:
                state.follow(message.epoch, NO_BROKER, Cause.EPOCH_SUPERSEDED)
            elif state.handing_over is not None and message.epoch == state.handing_over.epoch:
                self._hand_overs.on_response(state.handing_over, sender, message)
            return
        leader_state = state.leader_state
        if leader_state is None or message.hint == NO_HINT:
            return  # Of an earlier epoch of this leader's, it refused something that came late.
        progress = leader_state.progress.get(sender)
        if progress is None:
            return
        # While a probe is under way nothing else is sent, not even marks.
        was_probing = progress.is_probing
        if message.recovering or leader_state.has_recovering:
            message = count_unless_recovering(self._leading, leader_state, progress, message)
        if message.accepted:
            self._leading.on_accepted(leader_state, progress, message)
            if state.leader_state is not leader_state:
                return
            if leader_state.transferring_to == sender:
                self._transfers.advance(leader_state, progress)
                if not state.still_leads(leader_state):
                    return
        else:
            self._leading.on_refused(progress, message)
        if leader_state.has_recovering:
            grant_rejoins(state, leader_state)
        if was_probing or progress.is_probing or progress.next_index <= state.log.last_index:
            state.wake.append(progress.ready)

    def on_peer_reset(self, event: PeerReset) -> None:
        """What was in flight to a peer is lost: ask where it is."""
        progress = self._progress_of(event.peer)
        if progress is not None:
            self._leading.on_reset(progress)
            self._state.wake.append(progress.ready)

    def on_peer_timed_out(self, event: PeerTimedOut) -> None:
        """A peer does not answer, though nothing is known to be lost: ask where it is."""
        progress = self._progress_of(event.peer)
        if progress is not None:
            progress.ask()
            self._state.wake.append(progress.ready)

    def on_marks_maybe_lost(self, event: MarksMaybeLost) -> None:
        """Marks may be lost: send them again."""
        progress = self._progress_of(event.peer)
        if progress is not None:
            progress.resend_marks()
            self._state.wake.append(progress.ready)

    def _progress_of(self, peer: BrokerId) -> Progress | None:
        """What this leader knows of a follower; None if it leads no such peer."""
        leader_state = self._state.leader_state
        return None if leader_state is None else leader_state.progress.get(peer)
