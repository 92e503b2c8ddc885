"""A follower makes its log equal to the leader's, and reports how far it is.

Why:    whatever the network did to the leader's messages (twice, late, out of order), the log must
        end up equal, and nothing committed may change.
How:    Entries at or below the commit match by leader completeness, so the follower skips them.
        Above, it compares runs of (index, epoch), truncates its log at the first difference, and
        appends the rest. It reports a write at once only if asked to; else it reports the flush.
        The leader's marks count as far as this log is known to equal the leader's.
Owns:   `matched`: up to where this log equals the log of the leader of `epoch`.
Source: Raft thesis, figure 3.1 and 3.5; Redpanda #25018 (skip what matches), #16475 (visible)."""

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index
from strandline.raft.election.vote_delegation import delegate_vote
from strandline.raft.events import (
    AppendEntries,
    MarksAdvanced,
    RejoinAllowed,
    ResetLog,
    TruncateLog,
)
from strandline.raft.follower.rejoin import Rejoin
from strandline.raft.follower.stale_log_reset import check_outdated, note_joining
from strandline.raft.group.membership import Membership
from strandline.raft.messages import (
    NO_HINT,
    AppendRequest,
    AppendResponse,
    LeaderContact,
    ResetRequest,
)
from strandline.raft.state import RaftState
from strandline.raft.transitions import Cause, Role

NOTHING_RECEIVED = Index(-2)


class Appends:
    """See the module."""

    def __init__(
        self, state: RaftState, membership: Membership, *, asks_to_rejoin: bool = False
    ) -> None:
        self._state = state
        self._membership = membership
        self._rejoin = Rejoin(state, asks=asks_to_rejoin)
        # What follows is about the leader of this epoch.
        self._epoch = Epoch(0)
        # This log equals the leader's up to here; >= commit.
        self._matched = Index(-1)
        # The flushed index last reported to the leader.
        self._reported = Index(-1)
        # Whether more was flushed while no leader was known: the one of this epoch waits for it.
        self._has_unreported_flush = False
        # The highest marks heard from the leader; they may be ahead of `_matched`.
        self._leader_commit = Index(-1)
        self._leader_visible = Index(-1)
        # The last certain configuration that the leader named; NOTHING_RECEIVED before the first.
        self._configured = NOTHING_RECEIVED

    # ---- messages of a leader --------------------------------------------------------------------

    def on_append_request(
        self, sender: BrokerId, message: AppendRequest, *, leader_alive: bool
    ) -> None:
        """Append what is new; refuse what does not join on."""
        state = self._state
        if not self._accept_leader(sender, message.epoch):
            return
        prev_index = message.prev_index
        if prev_index > state.commit and not self._has(prev_index, message.prev_epoch):
            self._refuse(sender, message)
            return
        has_appended = self._take_over(message)
        end = message.runs[-1].last_index if message.runs else prev_index
        self._matched = max(self._matched, end, state.commit)
        self._take_marks(message.commit, message.visible)
        self._configured = max(self._configured, message.configured)
        if message.configurations or state.must_check_outdated:
            check_outdated(state)
        if state.lost_state:
            self._rejoin.on_asked(message.epoch, message.rejoin_at)
            self._rejoin.is_due(self._matched)
        if message.report_written or not has_appended:
            self._acknowledge(sender)

    def on_leader_contact(
        self, sender: BrokerId, message: LeaderContact, *, leader_alive: bool
    ) -> None:
        """The leader lives, and these are its marks; it may ask for a vote for its transfer
        target, or for a delegated vote."""
        if self._accept_leader(sender, message.epoch):
            if message.transfer_target != NO_BROKER:
                self._state.pending_request = sender, message
            if message.requests_delegation:
                delegate_vote(self._state, sender)
            self._take_marks(message.commit, message.visible)
            has_rejoined = self._state.lost_state and self._rejoin.is_due(self._matched)
            if has_rejoined or self._has_unreported_flush:
                self._acknowledge(sender)

    def on_reset_request(
        self, sender: BrokerId, message: ResetRequest, *, leader_alive: bool
    ) -> None:
        """The leader no longer has what this log lacks: begin anew, unless nothing is lacking."""
        state = self._state
        if not self._accept_leader(sender, message.epoch):
            return
        last_dropped = Index(message.start_index - 1)
        if last_dropped > state.commit and not self._has(last_dropped, message.previous_epoch):
            state.log.reset(
                message.start_index, message.start_offset, previous_epoch=message.previous_epoch
            )
            state.handing_over = None
            state.start_configuration = message.configuration
            state.commit = state.visible = last_dropped
            state.effects.append(
                ResetLog(
                    message.start_index,
                    message.start_offset,
                    message.previous_epoch,
                    message.configuration,
                )
            )
            self._membership.refresh()
            state.effects.append(MarksAdvanced(state.commit, state.visible))
        self._matched = max(self._matched, last_dropped, state.commit)
        self._take_marks(self._leader_commit, self._leader_visible)
        self._acknowledge(sender)

    # ---- the own disk ----------------------------------------------------------------------------

    def on_flushed(self) -> None:
        """More is durable: report as much of it as equals the leader's log."""
        state = self._state
        if self._epoch != state.epoch:
            return
        if state.leader == NO_BROKER:
            self._has_unreported_flush = True
            return
        has_rejoined = state.lost_state and self._rejoin.is_due(self._matched)
        if has_rejoined or min(self._matched, state.log.flushed_index) > self._reported:
            self._acknowledge(state.leader)

    def on_compacted(self) -> None:
        """The log was compacted: report it now, for no append may come for long."""
        state = self._state
        if self._epoch == state.epoch and state.leader != NO_BROKER:
            self._acknowledge(state.leader)

    def on_rejoin_allowed(self, event: RejoinAllowed) -> None:
        """Take part again, if this replica waited for nothing else."""
        state = self._state
        self._rejoin.allow()
        if state.lost_state and self._epoch == state.epoch and self._rejoin.is_due(self._matched):
            if state.leader == NO_BROKER:
                self._has_unreported_flush = True
            else:
                self._acknowledge(state.leader)

    @property
    def knows_configuration(self) -> bool:
        """Whether this log has all configurations that the leader of this epoch has, and this
        replica is among their members. If not, the log may be outdated without anyone
        knowing."""
        state = self._state
        is_told = self._epoch == state.epoch and self._configured > NOTHING_RECEIVED
        is_here = is_told and self._configured <= state.log.last_index
        return is_here and not state.lost_state and state.self_id in state.configuration.members

    def has_acknowledged(self, epoch: Epoch, index: Index) -> bool:
        """Whether this replica reported to the leader of `epoch` that `index` is durable here."""
        return epoch == self._epoch and index <= self._reported and not self._state.lost_state

    # ---- parts -----------------------------------------------------------------------------------

    def _accept_leader(self, sender: BrokerId, epoch: Epoch) -> bool:
        """Follow the sender, or refuse it if its epoch has passed."""
        state = self._state
        if epoch == self._epoch == state.epoch and sender == state.leader:
            return True
        if epoch < state.epoch:
            state.send(sender, AppendResponse(state.epoch, accepted=False, hint=NO_HINT))
            return False
        if epoch > state.epoch or state.leader != sender or state.role != Role.FOLLOWER:
            is_new = epoch > state.epoch
            assert is_new or state.leader in (NO_BROKER, sender), "two leaders"
            cause = Cause.EPOCH_SUPERSEDED if is_new else Cause.LEADER_FOUND
            state.follow(epoch, sender, cause)
        if epoch != self._epoch:
            self._epoch = epoch
            self._matched = state.commit
            self._reported = Index(-1)
            self._has_unreported_flush = False
            self._leader_commit = self._leader_visible = Index(-1)
            self._configured = NOTHING_RECEIVED
        return True

    def _has(self, index: Index, epoch: Epoch) -> bool:
        log = self._state.log
        return log.first_index - 1 <= index <= log.last_index and log.epoch_at(index) == epoch

    def _refuse(self, sender: BrokerId, message: AppendRequest) -> None:
        """Name the highest entry that the leader may have as well.

        No entry here of a later epoch than `prev_epoch` can be in the leader's log below."""
        state = self._state
        limit = Index(min(message.prev_index - 1, state.log.last_index))
        hint = max(state.log.last_of(message.prev_epoch, limit), state.commit)
        state.send(
            sender,
            AppendResponse(
                state.epoch,
                accepted=False,
                hint=hint,
                hint_epoch=state.log.epoch_at(hint),
                recovering=state.lost_state,
            ),
        )

    def _take_over(self, message: AppendRequest) -> bool:
        """Append what is missing, after truncating what differs; whether there was anything."""
        state = self._state
        log = state.log
        position = max(message.prev_index, state.commit)
        runs = message.runs
        if position != log.last_index:
            for run in runs:
                if run.last_index <= position:
                    continue
                position = log.agreeing_end(Index(position + 1), run)
                if position < run.last_index:
                    break
        if not runs or position >= runs[-1].last_index:
            return False
        if log.last_index < log.first_index:
            note_joining(state, message)
        first = Index(position + 1)
        has_truncated = first <= log.last_index
        if has_truncated:
            self._truncate(first)
        for run in runs:
            if run.last_index > log.last_index:
                log.append(run.epoch, run.last_index)
        if message.configurations:
            log.configurations.extend(
                entry for entry in message.configurations if entry[0] >= first
            )
        assert log.last_index == runs[-1].last_index, "indexes are dense, up to the last one sent"
        state.effects.append(AppendEntries(first))
        if has_truncated or message.configurations:
            self._membership.refresh()
        return True

    def _truncate(self, first: Index) -> None:
        state = self._state
        assert first > state.commit, "a leader contradicts what is committed"
        assert first > self._reported, "a leader contradicts what it was told to be durable here"
        state.log.truncate(first)
        state.handing_over = None
        state.visible = min(state.visible, Index(first - 1))
        self._matched = min(self._matched, Index(first - 1))
        self._reported = min(self._reported, Index(first - 1))
        state.effects.append(TruncateLog(first))

    def _take_marks(self, commit: Index, visible: Index) -> None:
        state = self._state
        self._leader_commit = max(self._leader_commit, commit)
        self._leader_visible = max(self._leader_visible, visible)
        before = state.commit
        commit = max(before, min(self._leader_commit, self._matched))
        visible = max(state.visible, commit, min(self._leader_visible, self._matched))
        if commit == before and visible == state.visible:
            return
        assert commit == before or commit <= state.log.last_index, "what is committed is in the log"
        state.commit = commit
        state.visible = visible
        state.effects.append(MarksAdvanced(commit, visible))
        configurations = state.log.configurations
        if configurations and configurations[-1][0] > before:
            self._membership.on_commit(before)

    def _acknowledge(self, sender: BrokerId) -> None:
        state = self._state
        flushed = min(self._matched, state.log.flushed_index)
        assert flushed >= self._reported, "what the leader was told to be durable stays durable"
        self._reported = flushed
        self._has_unreported_flush = False
        state.send(
            sender,
            AppendResponse(
                state.epoch,
                accepted=True,
                written=self._matched,
                flushed=Index(-1) if state.lost_state else flushed,
                recovering=state.lost_state,
                compacted=state.log.compacted_index,
            ),
        )
