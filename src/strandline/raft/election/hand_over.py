"""A leader that has handed over keeps counting acknowledgements of what it appended.

Why:    entries appended just before a transfer are still on their way when the next leader is told
        to stand, and followers acknowledge them to their sender. If it dropped these answers, its
        producers would wait for the next leader's marks, more than a round trip longer.
How:    It counts as it did while leading, until all of it is committed, the log is truncated, or
        the epoch after the next begins. An entry that a write quorum has flushed in its own epoch
        is committed whatever happens later: the leader of the next epoch, elected with this
        replica's vote, has all of this log, and so have later leaders, as after any commit.
Owns:   `RaftState.handing_over`.
Source: Raft thesis 3.6.3 (the argument for leader completeness); decision 0013."""

from strandline.model.ids import BrokerId
from strandline.raft.leader.leader_state import HandOver
from strandline.raft.leader.leading import Leading
from strandline.raft.messages import AppendResponse
from strandline.raft.state import RaftState


class HandOvers:
    """See the module."""

    def __init__(self, state: RaftState, leading: Leading) -> None:
        self._state = state
        self._leading = leading

    def on_response(
        self, handing_over: HandOver, sender: BrokerId, response: AppendResponse
    ) -> None:
        """A follower acknowledged an append of the epoch that this replica led.

        Nothing counts if a peer had lost its disk: only a leader decides what to count then."""
        leader_state = handing_over.leader_state
        progress = leader_state.progress.get(sender)
        if progress is None or not response.accepted:
            return
        if not response.recovering and not leader_state.has_recovering:
            self._leading.on_accepted(leader_state, progress, response)
            self._end_if_committed(handing_over)

    def on_flushed(self, handing_over: HandOver) -> None:
        """More is durable here."""
        self._leading.on_flushed(handing_over.leader_state)
        self._end_if_committed(handing_over)

    def _end_if_committed(self, handing_over: HandOver) -> None:
        assert handing_over.epoch < self._state.epoch, "it counts for an epoch that it led before"
        if self._state.commit >= handing_over.last_index:
            self._state.handing_over = None
