"""How a replica that lost its disk takes part again.

Why:    It has forgotten votes it cast and entries it acknowledged. Voting with an empty log elects
        leaders that lack committed entries. Catching up with the commit of the first leader it
        hears is not enough: that leader may be deposed while its successor has this replica's
        forgotten vote, or may be about to count an acknowledgement from before the loss.
How:    The replica refuses votes, never stands, and says `recovering` instead of acknowledging
        flushes. A leader that first receives this appends a marker and counts that peer for
        nothing. Once enough others have flushed the marker that no replica can be elected without
        one of them, the leader names it in its appends (`rejoin_at`). The replica takes part again
        when it has flushed the marker too.
            The marker was proposed after the loss. A candidate with a forgotten vote for a later
        epoch needs one of those others as well, and its log is older than the marker, so it can win
        no more. Every committed entry that the replica had acknowledged lies before the marker in
        this leader's log.
            If too many disks are lost for that, no replica rejoins: an operator must decide.
            If others must know that the replica takes part again before it does, it asks the driver
        first (`asks_to_rejoin`; decision 0030).
Owns:   whether this replica is recovering (`RaftState.lost_state`), and its peers' `rejoin_at`.
Source: Viewstamped Replication Revisited 4.3 (recovery); NATS PR 7038; design section 4."""

import msgspec

from strandline.model.ids import Epoch, Index
from strandline.raft.events import RejoinAsked, Rejoined
from strandline.raft.leader.leader_state import LeaderState
from strandline.raft.leader.leading import Leading
from strandline.raft.leader.progress import NEVER_SENT, Progress
from strandline.raft.messages import AppendResponse
from strandline.raft.state import RaftState


class Rejoin:
    """The replica's own side."""

    def __init__(self, state: RaftState, *, asks: bool) -> None:
        self._state = state
        self._asks = asks
        self._has_asked = False
        # What the leader of `_epoch` asked for; -1 for nothing yet.
        self._index = Index(-1)
        self._epoch = Epoch(0)

    def on_asked(self, epoch: Epoch, rejoin_at: Index) -> None:
        """The leader of `epoch` sent an append that was accepted."""
        if self._state.is_outdated:
            return
        if epoch != self._epoch:
            self._epoch = epoch
            self._index = Index(-1)
        if rejoin_at >= 0:
            self._index = rejoin_at
            if self._asks and not self._has_asked:
                self._has_asked = True
                self._state.effects.append(RejoinAsked())

    def allow(self) -> None:
        """Wait for nothing but the leader's marker from now on."""
        self._asks = False

    def is_due(self, matched: Index) -> bool:
        """Take part again if the leader's marker is durable here; True if so."""
        state = self._state
        if self._asks or not state.lost_state or self._index < 0 or self._epoch != state.epoch:
            return False
        if state.is_outdated:
            return False
        if min(matched, state.log.flushed_index) < self._index:
            return False
        state.lost_state = False
        state.effects.append(Rejoined(self._index))
        return True


def count_unless_recovering(
    leading: Leading, leader_state: LeaderState, progress: Progress, response: AppendResponse
) -> AppendResponse:
    """The leader's side: the response, without its flushes if the peer does not count."""
    if response.recovering:
        is_news = not progress.is_recovering or (
            not response.accepted and response.hint < progress.match_written
        )
        progress.match_flushed = progress.compacted_index = Index(-1)
        if is_news:
            leader_state.has_recovering = True
            leader_state.excluded_delegators.add(progress.peer)
            leader_state.delegators.discard(progress.peer)
            progress.rejoin_marker = leading.append_marker(leader_state)
            progress.rejoin_at = Index(-1)
    elif not progress.is_recovering:
        return response
    elif response.accepted and response.flushed >= progress.rejoin_marker:
        # No replica flushed the marker before the loss, so this is no old acknowledgement.
        progress.rejoin_marker = progress.rejoin_at = Index(-1)
        return response
    return msgspec.structs.replace(response, flushed=Index(-1), compacted=Index(-1))


def grant_rejoins(state: RaftState, leader_state: LeaderState) -> None:
    """Send recovering peers their marker, if enough voters without them hold it."""
    waiting = [progress for progress in leader_state.progress.values() if progress.is_recovering]
    leader_state.has_recovering = bool(waiting)
    for progress in waiting:
        assert progress.match_flushed < 0, "a peer that lost its disk counts for nothing"
        holders = leader_state.holders(progress.rejoin_marker)
        if progress.rejoin_at < 0 and state.configuration.blocks_election(holders):
            progress.rejoin_at = progress.rejoin_marker
            progress.sent_commit = NEVER_SENT  # An append has to carry it, whatever else is new.
            state.wake.append(progress.ready)
