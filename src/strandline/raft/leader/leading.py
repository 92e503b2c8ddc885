"""What a leader does with its entries, its peers' acknowledgements and the marks.

Why:    the entries and the peers' matches decide the marks, so one component changes all of them.
How:    each acknowledgement moves a peer's match. From the matches follow the marks:

            commit   the last entry of *this epoch* that a write quorum has flushed; older entries
                     commit with it, never by counting
            visible  commit; or, up to the last relaxed entry, what a write quorum has written
Owns:   `LeaderState`, and the marks of the group while this replica leads.
Source: Raft thesis 3.5, 3.6.2, 4.2.2, 4.3, figure 3.7; design sections 4 and 6."""

from collections.abc import Collection

import msgspec

from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.raft.events import (
    AppendMarker,
    BecameLeader,
    MarksAdvanced,
    PeerRefused,
    Propose,
)
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.membership import Membership
from strandline.raft.group.quorums import Quorums
from strandline.raft.leader.leader_state import LeaderState
from strandline.raft.leader.progress import Progress
from strandline.raft.messages import AppendResponse, TimeoutNow
from strandline.raft.state import RaftState
from strandline.raft.transitions import Cause


class Leading:
    """See the module."""

    def __init__(self, state: RaftState, membership: Membership) -> None:
        self._state = state
        self._membership = membership

    def begin(
        self,
        cause: Cause,
        in_step: Collection[BrokerId] = (),
        configuration: Configuration | None = None,
    ) -> None:
        """Lead the present epoch: open it with a marker, which may bring a `configuration`.

        The leader assumes that peers `in_step` have its log, until they refuse an append."""
        state = self._state
        own = Progress(state.self_id, Index(state.log.last_index + 1))
        own.match_flushed = state.log.flushed_index
        leader_state = LeaderState(state.epoch, own, Quorums(state.configuration, {}))
        state.lead(cause, leader_state)
        state.effects.append(BecameLeader(state.epoch))
        self._configure(leader_state)
        for peer in in_step:
            if peer in leader_state.progress:
                leader_state.progress[peer].is_probing = False
        self.append_marker(leader_state, configuration)

    # ---- own entries -----------------------------------------------------------------------------

    def append_marker(
        self, leader_state: LeaderState, configuration: Configuration | None = None
    ) -> Index:
        """Append a marker: an entry of the leader's own."""
        state = self._state
        assert state.leader_state is leader_state, "only the leader of the epoch appends"
        index = Index(state.log.last_index + 1)
        state.log.append(leader_state.epoch, index)
        leader_state.own.match_written = index
        state.effects.append(AppendMarker(index, leader_state.epoch, configuration))
        if configuration is not None:
            state.log.configurations.append((index, configuration))
            self._membership.refresh()
            self._configure(leader_state)
        state.wake += leader_state.everybody
        return index

    def on_propose(self, event: Propose) -> None:
        """The driver appended entries at the end of the log."""
        state = self._state
        leader_state = state.leader_state
        assert leader_state is not None and event.count > 0, "only a leader's driver proposes"
        log = state.log
        last = Index(log.last_index + event.count)
        if log.epochs:
            log.last_index = last  # The last run is this epoch's, for its marker is there.
        else:
            log.append(leader_state.epoch, last)
        leader_state.own.match_written = last
        state.wake += leader_state.everybody
        if event.unflushed_visible:
            leader_state.unflushed_visible_last = last
            self.advance(leader_state)

    def on_flushed(self, leader_state: LeaderState) -> None:
        """The log's flushed mark moved up."""
        state = self._state
        assert state.log.flushed_index >= leader_state.own.match_flushed, "durable stays durable"
        flushed = leader_state.own.match_flushed = state.log.flushed_index
        if flushed > state.commit:
            self.advance(leader_state)

    def _configure(self, leader_state: LeaderState) -> None:
        """The configuration in force changed: follow its members, count its voters."""
        state = self._state
        configuration = state.configuration
        assert configuration.voters, "a group has voters"
        known = leader_state.progress
        gone = known.keys() - set(configuration.members)
        # A removed replica may come back without what it remembered.
        leader_state.excluded_delegators |= gone
        leader_state.delegators -= gone
        next_index = Index(state.log.last_index + 1)
        progress = state.progress = leader_state.progress = {
            peer: known.get(peer) or Progress(peer, next_index)
            for peer in configuration.members
            if peer != state.self_id
        }
        leader_state.everybody = [one.ready for one in progress.values()]
        leader_state.quorums = Quorums(configuration, {**progress, state.self_id: leader_state.own})
        leader_state.has_unsettled_members = (
            configuration.is_joint or state.self_id not in configuration.voters
        )
        if leader_state.transferring_to not in configuration.voters:
            leader_state.end_transfer()

    # ---- what peers answer -----------------------------------------------------------------------

    def on_accepted(
        self, leader_state: LeaderState, progress: Progress, response: AppendResponse
    ) -> None:
        """The peer has everything up to `written` and `flushed`."""
        written = response.written
        flushed = response.flushed
        state = self._state
        assert written <= state.log.last_index, "a peer has more of this epoch than its leader"
        # Otherwise this is an earlier answer that comes late.
        if written >= progress.match_written and flushed >= progress.match_flushed:
            progress.compacted_index = response.compacted
        if written > progress.match_written:
            progress.match_written = written
            if progress.next_index <= written:
                progress.next_index = Index(written + 1)
        if progress.is_probing and written >= progress.last_sent:
            # Less than was sent answers an append before the probe, not the probe.
            progress.is_probing = progress.probe_is_empty = False
            progress.next_index = progress.answered_next = Index(written + 1)
        if flushed > progress.match_flushed:
            progress.match_flushed = flushed
            if flushed > state.commit or leader_state.unflushed_visible_last > state.visible:
                self.advance(leader_state)
        elif leader_state.unflushed_visible_last > state.visible:
            self.advance(leader_state)

    def on_refused(self, progress: Progress, response: AppendResponse) -> None:
        """The peer lacks the entry before those sent, or has another one there.

        It did not take the marks of the refused append: late entries may yet fill the gap."""
        if progress.has_passed(response.hint):
            return
        progress.sent_commit = progress.sent_visible = Index(-1)
        self._state.effects.append(PeerRefused(progress.peer))
        log = self._state.log
        # The hint names what may match, not what does. What was only written may be lost; if the
        # hint lies below what was flushed, so is that.
        if response.hint < progress.match_flushed:
            progress.match_flushed = Index(-1)
        progress.match_written = progress.match_flushed
        candidate = log.last_of(response.hint_epoch, response.hint)
        is_shared = (
            candidate == response.hint
            and candidate <= log.last_index
            and candidate >= log.first_index - 1
            and log.epoch_at(candidate) == response.hint_epoch
        )
        progress.answered_next = Index(candidate + 1)
        progress.probe_from(progress.answered_next, is_empty=not is_shared)

    def on_reset(self, progress: Progress) -> None:
        """What was in flight to the peer may be lost, and so may the marks.

        If the peer has acknowledged nothing in this epoch, the leader asks at the point that the
        last refusal led to, or else at the end of its log: the peer may have all of it, or none."""
        if progress.match_written >= 0:
            progress.probe_from(Index(progress.match_written + 1), is_empty=False)
        elif progress.answered_next >= 0:
            progress.probe_from(progress.answered_next, is_empty=progress.probe_is_empty)
        else:
            progress.probe_from(Index(self._state.log.last_index + 1), is_empty=True)
        progress.sent_commit = progress.sent_visible = Index(-1)

    # ---- the marks -------------------------------------------------------------------------------

    def advance(self, leader_state: LeaderState) -> None:
        """Recompute the marks; may append a configuration or end the leadership."""
        state = self._state
        before = state.commit
        commit = leader_state.quorums.flushed(state.log.last_index)
        if commit < leader_state.first_index or commit < before:
            commit = before
        visible = max(commit, state.visible)
        if leader_state.unflushed_visible_last > visible:
            # Not below the epoch's first entry: an earlier one may still be replaced, see `commit`.
            written = leader_state.quorums.written(leader_state.unflushed_visible_last)
            if written > visible and written >= leader_state.first_index:
                visible = written
        if commit == before and visible == state.visible:
            return
        assert before <= commit <= visible <= state.log.last_index, "marks go up, within the log"
        state.commit = commit
        state.visible = visible
        state.effects.append(MarksAdvanced(commit, visible))
        if commit > before:
            configurations = state.log.configurations
            if configurations and configurations[-1][0] > before:
                self._membership.on_commit(before)
            if leader_state.has_unsettled_members:
                self._settle()

    def _settle(self) -> None:
        """The leader committed in its own epoch: finish an unfinished change, or step down."""
        state = self._state
        leader_state = state.leader_state
        if leader_state is None or not state.is_established or not self._membership.is_committed:
            return
        present = state.configuration
        if present.is_joint:
            self.append_marker(leader_state, msgspec.structs.replace(present, old_voters=()))
        elif state.self_id not in present.voters:
            transfer_target = leader_state.most_advanced(present.voters)
            if transfer_target != NO_BROKER:
                state.send(transfer_target, TimeoutNow(state.epoch))
            state.follow(state.epoch, NO_BROKER, Cause.REMOVAL_COMMITTED)
