"""A leader's reign: its own entries, what its peers hold, and from both the marks.

Why:    all of this means something in one epoch only, so it is made on election and thrown away.
How:    every acknowledgement moves a peer's match; commit is the highest entry of *this epoch* that
        a write quorum has flushed (an older one commits with it, never by counting). visible is
        commit, or up to the last relaxed entry what a write quorum has written.
Owns:   Progress of the peers, the marks of the group; while role is LEADER.
Source: Raft thesis 3.5, 3.6.2, figure 3.7; design sections 4 and 6."""

from collections.abc import Collection

from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.raft.events import (
    AppendMarker,
    BecameLeader,
    MarksAdvanced,
    PeerRefused,
    Propose,
    ReplicationReady,
)
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.membership import Membership
from strandline.raft.group.quorums import Quorums
from strandline.raft.leader.progress import Progress
from strandline.raft.messages import AppendResponse
from strandline.raft.state import ReplicaState


class LeaderState:
    """See the module."""

    def __init__(self, state: ReplicaState, membership: Membership) -> None:
        self._state = state
        self._membership = membership
        self.epoch = state.epoch
        # The marker that opens this epoch.
        self.first_index = Index(state.log.last_index + 1)
        # {peer: what it has}, this replica excepted.
        self.progress: dict[BrokerId, Progress] = {}
        # The last entry of this epoch proposed as relaxed; -1 for none.
        self.relaxed_last = Index(-1)
        # Who is to lead next.
        self.transferring_to: BrokerId | None = None
        # The log's end when that began.
        self.transfer_from = Index(-1)
        # No proposals: the next leader has to have everything, and does not keep up.
        self.is_holding = False
        # The transfer waits for promised votes, and so does nothing else.
        self.awaits_promises = False
        # Who leaves its vote of the next epoch to this leader.
        self.promises: set[BrokerId] = set()
        # Who lost its disk in this reign, or was removed: a promise of it may be forgotten.
        self.forgetful: set[BrokerId] = set()
        self._own = Progress(state.self_id, self.first_index)
        self._own.match_flushed = state.log.flushed_index
        # Their ReplicationReady: there is something to send to all of them.
        self._everybody: list[ReplicationReady] = []
        self._quorums = Quorums(state.configuration, {})
        self._has_unsettled_members = False
        # Some peer lost its disk and does not count yet.
        self.has_recovering = False

    @property
    def is_established(self) -> bool:
        """Whether an entry of this epoch is committed: all earlier commits are known then."""
        return self._state.commit >= self.first_index

    def begin(
        self, in_step: Collection[BrokerId] = (), configuration: Configuration | None = None
    ) -> None:
        """Say so, and open the epoch with a marker; of a `configuration`, where it brings one.

        Peers `in_step` are taken to have this log, until they refuse something."""
        self._state.effects.append(BecameLeader(self.epoch))
        self.configure()
        for peer in in_step:
            if peer in self.progress:
                self.progress[peer].is_probing = False
        self.append_marker(configuration)

    def begin_transfer(self, to: BrokerId) -> None:
        """`to` is to lead next."""
        self.transferring_to = to
        self.transfer_from = self._state.log.last_index
        self.is_holding = False
        self.awaits_promises = not self.gives_enough_votes(to)

    def gives_enough_votes(self, transfer_target: BrokerId) -> bool:
        """Whether the vote of this leader, and those promised to it, elect `transfer_target`."""
        state = self._state
        return state.configuration.wins_election((state.self_id, transfer_target, *self.promises))

    def end_transfer(self) -> None:
        """Nobody is."""
        self.transferring_to = None
        self.is_holding = self.awaits_promises = False

    # ---- own entries -----------------------------------------------------------------------------

    def append_marker(self, configuration: Configuration | None) -> Index:
        """Append an entry of the leader's own."""
        state = self._state
        index = Index(state.log.last_index + 1)
        state.log.append(self.epoch, index)
        self._own.match_written = index
        state.effects.append(AppendMarker(index, self.epoch, configuration))
        if configuration is not None:
            state.log.configurations.append((index, configuration))
            self._membership.refresh()
            self.configure()
        state.wake += self._everybody
        return index

    def on_propose(self, event: Propose) -> None:
        """Entries were appended at the log's end."""
        log = self._state.log
        last = Index(log.last_index + event.count)
        if log.epochs:
            log.last_index = last  # The last run is this epoch's, since its marker.
        else:
            log.append(self.epoch, last)
        self._own.match_written = last
        self._state.wake += self._everybody
        if event.relaxed:
            self.relaxed_last = last
            self.advance()

    def on_flushed(self) -> None:
        """The log's flushed mark moved up."""
        state = self._state
        flushed = self._own.match_flushed = state.log.flushed_index
        if flushed > state.commit:
            self.advance()

    def configure(self) -> None:
        """The configuration in force changed: follow its members, count its voters."""
        state = self._state
        configuration = state.configuration
        known = self.progress
        gone = known.keys() - set(configuration.members)
        # Whose replica is removed may come back without what it remembered.
        self.forgetful |= gone
        self.promises -= gone
        next_index = Index(state.log.last_index + 1)
        self.progress = {
            peer: known.get(peer) or Progress(peer, next_index)
            for peer in configuration.members
            if peer != state.self_id
        }
        self._everybody = [progress.ready for progress in self.progress.values()]
        self._quorums = Quorums(configuration, {**self.progress, state.self_id: self._own})
        self._has_unsettled_members = (
            configuration.is_joint or state.self_id not in configuration.voters
        )
        if self.transferring_to not in configuration.voters:
            self.end_transfer()

    # ---- what peers say --------------------------------------------------------------------------

    def on_accepted(self, progress: Progress, response: AppendResponse) -> None:
        """The peer has everything up to `written` and `flushed`."""
        written = response.written
        flushed = response.flushed
        state = self._state
        assert written <= state.log.last_index, "a peer has more of this epoch than its leader"
        # Else it is an earlier answer, that comes late.
        if written >= progress.match_written and flushed >= progress.match_flushed:
            progress.compacted_index = response.compacted
        if written > progress.match_written:
            progress.match_written = written
            if progress.next_index <= written:
                progress.next_index = Index(written + 1)
        if progress.is_probing and written >= progress.last_sent:
            # Less than was sent is no answer to the probe, but to an append before it.
            progress.is_probing = progress.probe_is_empty = False
            progress.next_index = progress.answered_next = Index(written + 1)
        if flushed > progress.match_flushed:
            progress.match_flushed = flushed
            if flushed > state.commit or self.relaxed_last > state.visible:
                self.advance()
        elif self.relaxed_last > state.visible:
            self.advance()

    def on_refused(self, progress: Progress, response: AppendResponse) -> None:
        """The peer lacks the entry before those sent, or has another one there.

        The marks that came with it were not heard: what comes late by others may fill the gap."""
        if progress.has_passed(response.hint):
            return
        progress.told_commit = progress.told_visible = Index(-1)
        self._state.effects.append(PeerRefused(progress.peer))
        log = self._state.log
        # The hint says what may match, not what does. What was only written may be lost, and where
        # the hint is below what was flushed, so is that.
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

        Of a peer that has acknowledged nothing in this epoch only the end is known to be worth a
        question, and where a refusal led back to: it may have all of the log, or none."""
        if progress.match_written >= 0:
            progress.probe_from(Index(progress.match_written + 1), is_empty=False)
        elif progress.answered_next >= 0:
            progress.probe_from(progress.answered_next, is_empty=progress.probe_is_empty)
        else:
            progress.probe_from(Index(self._state.log.last_index + 1), is_empty=True)
        progress.told_commit = progress.told_visible = Index(-1)

    # ---- the marks -------------------------------------------------------------------------------

    def advance(self) -> None:
        """Recompute the marks; may append a configuration or end the reign."""
        state = self._state
        before = state.commit
        commit = self._quorums.flushed(state.log.last_index)
        if commit < self.first_index or commit < before:
            commit = before
        visible = max(commit, state.visible)
        if self.relaxed_last > visible:
            # Not below the epoch's first entry: an earlier one may still be replaced, see `commit`.
            written = self._quorums.written(self.relaxed_last)
            if written > visible and written >= self.first_index:
                visible = written
        if commit == before and visible == state.visible:
            return
        state.commit = commit
        state.visible = visible
        state.effects.append(MarksAdvanced(commit, visible))
        if commit > before:
            configurations = state.log.configurations
            if configurations and configurations[-1][0] > before:
                self._membership.on_commit(before)
            if self._has_unsettled_members:
                self._membership.settle()

    # ---- who has what ----------------------------------------------------------------------------

    def most_advanced(self, voters: tuple[BrokerId, ...]) -> BrokerId:
        """The voter with the longest log, NO_BROKER when there is none that counts."""
        candidates = [
            self.progress[voter]
            for voter in voters
            if voter in self.progress and not self.progress[voter].is_recovering
        ]
        best = max(candidates, key=lambda progress: progress.match_written, default=None)
        return NO_BROKER if best is None else best.peer

    def holders(self, index: Index) -> set[BrokerId]:
        """Who counts and has flushed the entry at `index`."""
        members = (self._own, *self.progress.values())
        return {member.peer for member in members if member.match_flushed >= index}
