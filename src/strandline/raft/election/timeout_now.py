"""What who hands over orders: the heir to stand for election, the other voters to vote for it.

Why:    a heir that has to ask for votes leads a round trip after it was told to stand. Who is told
        beside it to vote for it has voted by the time that it would be asked.
How:    an order waits until its receiver's log has all that it names, in the epoch of its giver
        only; what is not obeyed by then never is, and the heir asks.
            The vote that comes with the order to stand is given for a log that has its end, and so
        are those of the other voters, who send theirs to the heir. A voter has to have
        acknowledged everything first: in the next epoch it could not, and what was appended just
        before would have to wait for the next leader. Nobody else led meanwhile: a voter that has
        heard so, or has lost its disk, is in another epoch, or does not vote.
Owns:   `ReplicaState.order`.
Source: Raft thesis 3.10; decision 0013."""

from strandline.model.ids import NO_BROKER, BrokerId, Epoch
from strandline.raft.election.election import Elections
from strandline.raft.follower.appends import Appends
from strandline.raft.messages import LeaderContact, TimeoutNow, VoteResponse
from strandline.raft.state import ReplicaState
from strandline.raft.transitions import Cause, Role


class Orders:
    """See the module."""

    def __init__(self, state: ReplicaState, elections: Elections, appends: Appends) -> None:
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
        state.order = sender, message
        self.obey()

    def obey(self) -> None:
        """Stand or vote as ordered, if everything is here that the order names; else when it
        comes."""
        state = self._state
        assert state.order is not None
        sender, order = state.order
        if order.epoch != state.epoch or state.role in (Role.CANDIDATE, Role.LEADER):
            state.order = None
        elif isinstance(order, LeaderContact):
            if self._appends.has_acknowledged(order.epoch, order.last_index):
                state.order = None
                self._vote(order)
        elif self._has_all(order):
            state.order = None
            self._elections.stand_as_ordered(sender, order)

    def _has_all(self, order: TimeoutNow) -> bool:
        log = self._state.log
        return order.last_index < 0 or (
            (log.last_epoch, log.last_index) >= (order.epoch, order.last_index)
        )

    def _vote(self, order: LeaderContact) -> None:
        state = self._state
        state.follow(
            Epoch(state.epoch + 1),
            NO_BROKER,
            Cause.VOTE_REQUESTED_BY_LEADER,
            vote=order.transfer_target,
        )
        vote = VoteResponse(state.epoch, granted=True, pre=True, given_for=order.last_index)
        state.send(order.transfer_target, vote)
