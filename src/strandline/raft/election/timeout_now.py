"""A leadership transfer, as the transfer target and the other voters see it.

Why:    a target that must ask for votes leads a round trip after it was told to stand. Voters that
        the leader asks at the same time have voted by the time the target would ask.
How:    A request waits until the log of its receiver has all that it names, and only in its
        sender's epoch; then the target stands, or the voter votes. If that never happens, the
        target asks for votes.
            The TimeoutNow carries the sender's vote, for a log that has its end. The other voters
        send their votes to the target. A voter must have acknowledged everything first: in the next
        epoch it could not, and what was appended last would wait for the next leader. No other
        leader came between: a voter that heard of one, or lost its disk, is in another epoch or
        does not vote.
Owns:   `RaftState.pending_request`.
Source: Raft thesis 3.10; decision 0013."""

from strandline.model.ids import NO_BROKER, BrokerId, Epoch
from strandline.raft.election.election import Elections
from strandline.raft.follower.appends import Appends
from strandline.raft.messages import LeaderContact, TimeoutNow, VoteResponse
from strandline.raft.state import RaftState
from strandline.raft.transitions import Cause, Role


class TransferRequests:
    """See the module."""

    def __init__(self, state: RaftState, elections: Elections, appends: Appends) -> None:
        self._state = state
        self._elections = elections
        self._appends = appends

    def on_timeout_now(self, sender: BrokerId, message: TimeoutNow, *, leader_alive: bool) -> None:
        """The leader hands over: stand for election, without a pre-vote."""
        state = self._state
        if message.epoch < state.epoch or state.role == Role.LEADER:
            return
        if message.epoch > state.epoch:
            state.follow(message.epoch, sender, Cause.EPOCH_SUPERSEDED)
        state.pending_request = sender, message
        self.try_pending()

    def try_pending(self) -> None:
        """Stand or vote as requested, if the log has all that the request names; else later."""
        state = self._state
        assert state.pending_request is not None
        sender, request = state.pending_request
        if request.epoch != state.epoch or state.role in (Role.CANDIDATE, Role.LEADER):
            state.pending_request = None
        elif isinstance(request, LeaderContact):
            if self._appends.has_acknowledged(request.epoch, request.last_index):
                state.pending_request = None
                self._vote(request)
        elif self._has_all(request):
            state.pending_request = None
            self._elections.stand_on_request(sender, request)

    def _has_all(self, request: TimeoutNow) -> bool:
        log = self._state.log
        return request.last_index < 0 or (
            (log.last_epoch, log.last_index) >= (request.epoch, request.last_index)
        )

    def _vote(self, request: LeaderContact) -> None:
        state = self._state
        state.follow(
            Epoch(state.epoch + 1),
            NO_BROKER,
            Cause.VOTE_REQUESTED_BY_LEADER,
            vote=request.transfer_target,
        )
        vote = VoteResponse(state.epoch, granted=True, pre=True, transfer_end=request.last_index)
        state.send(request.transfer_target, vote)
