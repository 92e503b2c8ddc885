"""A leader that has handed over goes on counting who has what it appended.

Why:    what came in just before is on its way to the followers when the next leader is told to
        stand, and they acknowledge it to who sent it. Were nobody to count, its producers would
        hear of it from the next leader's marks only, more than a round trip later.
How:    as the reign did, until all of it is committed, the log is cut, or the epoch after the next
        begins. That an entry was flushed on a write quorum in its own epoch is a fact whatever
        happens later. Whoever leads the next epoch with this replica's vote has all of this log;
        so have those who lead after that, as after any commit.
Owns:   the reign that is over, as `ReplicaState.handing_over`.
Source: Raft thesis 3.6.3 (the argument for leader completeness); decision 0013."""

from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft.leader.leader_state import LeaderState
from strandline.raft.messages import AppendResponse
from strandline.raft.state import ReplicaState


class HandOver:
    """See the module."""

    def __init__(self, state: ReplicaState, leader_state: LeaderState) -> None:
        self._state = state
        self._leader_state = leader_state
        # Where the log ended.
        self.last_index: Index = state.log.last_index

    @property
    def epoch(self) -> Epoch:
        """The epoch that this replica led."""
        return self._leader_state.epoch

    def on_response(self, sender: BrokerId, response: AppendResponse) -> None:
        """A follower acknowledged, while it was in that epoch.

        Nothing is counted where a peer had lost its disk: whom to count then is for a leader."""
        leader_state = self._leader_state
        progress = leader_state.progress.get(sender)
        if progress is None or not response.accepted:
            return
        if not response.recovering and not leader_state.has_recovering:
            leader_state.on_accepted(progress, response)
            self._end_if_committed()

    def on_flushed(self) -> None:
        """More is durable here."""
        self._leader_state.on_flushed()
        self._end_if_committed()

    def _end_if_committed(self) -> None:
        if self._state.commit >= self.last_index:
            self._state.handing_over = None
