"""One member of one Raft group: events in, effects out.

Why:    what a replica decides must not depend on clocks, threads or sockets, so that a test can
        replay every schedule.
How:    `step` finds the handler of the event, or of the message received, by its type in one table.
        Each part of the room handles its share and appends effects; `ReplicationReady` goes to the
        end.

            election/   election.py              pre-votes and votes
                        transfer.py              leadership transfer
                        timeout_now.py           a transfer as its target and the voters see it
                        vote_delegation.py       votes delegated to a leader in advance
                        hand_over.py             acknowledgements after a transfer
                        arbitration.py           an epoch granted by the controller
            leader/     leading.py               a leader's entries, acknowledgements and marks
                        replies.py               followers' answers
                        sending.py               what to send to a peer
                        configuration_change.py  joint consensus
            follower/   appends.py               a follower's log
                        rejoin.py                after the loss of a disk
                        peer_catchup.py          entries that followers send each other
            group/      membership.py            the configuration in force
Owns:   the state of one replica (`state.RaftState`); nothing else writes it.
Source: Raft (Ongaro, thesis 2014); design sections 4-6."""

from collections.abc import Callable, Mapping

from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.election.arbitration import Arbitration
from strandline.raft.election.election import Elections
from strandline.raft.election.hand_over import HandOvers
from strandline.raft.election.timeout_now import TransferRequests
from strandline.raft.election.transfer import Transfers
from strandline.raft.events import (
    AbandonTransfer,
    ChangeConfiguration,
    CompactionEnabled,
    DeclaredNew,
    DelegationsTimedOut,
    Effect,
    ElectionTimedOut,
    Event,
    LogCompacted,
    LogFlushed,
    MarksMaybeLost,
    PeerReset,
    PeerTimedOut,
    PrefixDropped,
    Propose,
    QuorumLost,
    Received,
    RejoinAllowed,
    Rejoined,
    TransferLeadership,
)
from strandline.raft.follower.appends import Appends
from strandline.raft.follower.peer_catchup import PeerCatchup, member_since, peer_fetch_end
from strandline.raft.follower.rejoin import grant_rejoins
from strandline.raft.follower.stale_log_reset import decide_outdated
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape
from strandline.raft.group.membership import Membership
from strandline.raft.leader.configuration_change import ConfigurationChanges
from strandline.raft.leader.leading import Leading
from strandline.raft.leader.progress import Progress
from strandline.raft.leader.replies import Replies
from strandline.raft.leader.sending import Sending
from strandline.raft.messages import (
    AppendRequest,
    AppendResponse,
    Appoint,
    Fence,
    LeaderContact,
    PeerAppend,
    PeerCatchupRequest,
    ResetRequest,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.state import NO_EPOCH, RaftState
from strandline.raft.transitions import Role

NO_INDEX = Index(-1)


class Raft:
    """See the module."""

    def __init__(
        self,
        *,
        group: GroupId,
        self_id: BrokerId,
        log: LogShape,
        epoch: Epoch,
        vote: BrokerId,
        configuration: Configuration,
        commit: Index = NO_INDEX,
        visible: Index = NO_INDEX,
        lost_state: bool = False,
        delegated_epoch: Epoch = NO_EPOCH,
        asks_to_rejoin: bool = False,
        joined: Index | None = None,
    ) -> None:
        """`epoch`, `vote` and `delegated_epoch` as persisted; `configuration` is the one in
        force where `log` begins.

        `commit` and `visible`: as known before the start, each the end of a batch in `log`.
        `lost_state`: it was a member, but its disk was lost or is not to be trusted; see
        `rejoin`. `asks_to_rejoin`: it takes part again only after `RejoinAllowed`. `joined`:
        as persisted with the epoch, see `stale_log_reset`; None if the log may be of any age."""
        # The replica's state, for others to read; only the parts of this room change it.
        state = self.state = RaftState(
            group=group,
            self_id=self_id,
            log=log,
            epoch=epoch,
            vote=vote,
            configuration=configuration,
            commit=commit,
            visible=visible,
            lost_state=lost_state,
            delegated_epoch=delegated_epoch,
            joined=joined,
        )
        self._membership = Membership(state)
        leading = self._leading = Leading(state, self._membership)
        self._changes = ConfigurationChanges(state, self._membership, leading)
        self._hand_overs = HandOvers(state, leading)
        self._appends = Appends(state, self._membership, asks_to_rejoin=asks_to_rejoin)
        elections = self._elections = Elections(state, self._membership, leading)
        self._peer_catchup = PeerCatchup(state, self._appends)
        self._transfer_requests = TransferRequests(state, elections, self._appends)
        arbitration = Arbitration(state, self._membership, leading)
        transfers = self._transfers = Transfers(state, elections)
        replies = Replies(state, leading, transfers, self._hand_overs)
        self._handlers = self._table(replies, arbitration)
        sending = Sending(state)
        self.plan_append = sending.plan_append
        self.note_sent = sending.note_sent

    def step(self, event: Event) -> list[Effect]:
        """Take one event in; perform the effects in order (see `events`)."""
        state = self.state
        effects: list[Effect] = []
        state.effects = effects
        if type(event) is Received:
            message = event.message
            self._handlers[type(message)](event.sender, message, leader_alive=event.leader_alive)
        else:
            self._handlers[type(event)](event)
        if state.pending_request is not None:
            self._transfer_requests.try_pending()
        if state.wake:
            effects += state.wake
            state.wake.clear()
        return effects

    # ---- sending, for a leader's driver ----------------------------------------------------------

    def peer_fetch_end(self, fetch_source: BrokerId) -> Index:
        """The last index that the leader may ask `fetch_source` to send to a peer: committed,
        and flushed by `fetch_source`. Below the log if there is none."""
        leader_state = self.state.leader_state
        return (
            NO_INDEX
            if leader_state is None
            else peer_fetch_end(self.state, leader_state, fetch_source)
        )

    def member_since(self, peer: BrokerId) -> Index:
        """The index of the configuration since which `peer` has been a member without a break.
        Right before the log if that was earlier; right behind the log if `peer` is no member."""
        return member_since(self.state, peer)

    def may_serve_peer(self, request: AppendRequest) -> bool:
        """For a follower: whether it may send these entries on its leader's behalf now."""
        return self._peer_catchup.may_serve_peer(request)

    # ---- queries ---------------------------------------------------------------------------------

    @property
    def group(self) -> GroupId:
        """The group."""
        return self.state.group

    @property
    def role(self) -> Role:
        """Follower, (pre-)candidate or leader."""
        return self.state.role

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads its epoch."""
        return self.state.leader_state is not None

    @property
    def may_serve(self) -> bool:
        """Whether this replica leads and knows every earlier commit."""
        return self.state.is_established

    @property
    def accepts_proposals(self) -> bool:
        """Whether `Propose` is allowed: this replica leads and is not holding for a transfer."""
        leader_state = self.state.leader_state
        return leader_state is not None and not leader_state.is_holding

    @property
    def transferring_to(self) -> BrokerId | None:
        """The transfer target; None while no transfer is under way."""
        leader_state = self.state.leader_state
        return None if leader_state is None else leader_state.transferring_to

    @property
    def has_lost_state(self) -> bool:
        """Whether this replica has yet to rejoin after the loss of its disk."""
        return self.state.lost_state

    @property
    def joined(self) -> Index | None:
        """How far the leader had committed for certain when this log began; see
        `stale_log_reset`. Durable together with the epoch."""
        return self.state.joined

    @property
    def is_compacted(self) -> bool:
        """Whether compaction removes entries by key, as far as this replica was told."""
        return self.state.is_compacted

    @property
    def knows_configuration(self) -> bool:
        """Whether this log has the configuration that the leader has in force, or is the
        leader's."""
        return self.is_leader or self._appends.knows_configuration

    @property
    def is_outdated(self) -> bool:
        """Whether this log must begin anew; until then the replica counts for nothing."""
        return self.state.is_outdated

    @property
    def epoch(self) -> Epoch:
        """The present epoch."""
        return self.state.epoch

    @property
    def vote(self) -> BrokerId:
        """The replica that this one voted for in this epoch, or NO_BROKER."""
        return self.state.vote

    @property
    def delegated_epoch(self) -> Epoch:
        """The epoch, this or the next one, whose vote is delegated to the leader of the epoch
        before; 0 for none."""
        return self.state.delegated_epoch

    @property
    def leader(self) -> BrokerId:
        """The leader of this epoch as far as known, or NO_BROKER."""
        return self.state.leader

    @property
    def commit(self) -> Index:
        """The last entry known to be committed."""
        return self.state.commit

    @property
    def visible(self) -> Index:
        """The last entry that readers may see; >= commit."""
        return self.state.visible

    @property
    def log(self) -> LogShape:
        """The shape of the log; read only."""
        return self.state.log

    @property
    def configuration(self) -> Configuration:
        """The configuration in force: the last in the log."""
        return self.state.configuration

    @property
    def configuration_index(self) -> Index:
        """Where the configuration in force stands; below the log's start when not in the log."""
        return self._membership.index

    @property
    def start_configuration(self) -> Configuration:
        """The configuration in force where the log begins."""
        return self.state.start_configuration

    @property
    def progress(self) -> Mapping[BrokerId, Progress]:
        """What a leader knows of its peers (not of itself); empty for others."""
        return self.state.progress

    def refusal(self, event: ChangeConfiguration) -> str | None:
        """Why the leader would refuse this change now, in words; None if it would not."""
        return self._changes.refusal(event)

    # ---- events ----------------------------------------------------------------------------------

    def _table(self, replies: Replies, arbitration: Arbitration) -> dict[type, Callable[..., None]]:
        """{type of an event: handler(event)}, and {type of a message: handler(sender, message,
        leader_alive=...)}."""
        return {
            ElectionTimedOut: self._elections.on_timed_out,
            QuorumLost: self._elections.on_quorum_lost,
            LogFlushed: self._on_log_flushed,
            LogCompacted: self._on_log_compacted,
            Propose: self._leading.on_propose,
            CompactionEnabled: self._on_compaction_enabled,
            PrefixDropped: self._membership.on_prefix_dropped,
            PeerReset: replies.on_peer_reset,
            PeerTimedOut: replies.on_peer_timed_out,
            MarksMaybeLost: replies.on_marks_maybe_lost,
            ChangeConfiguration: self._changes.on_change,
            TransferLeadership: self._transfers.on_transfer,
            AbandonTransfer: self._transfers.on_abandon,
            DelegationsTimedOut: self._transfers.on_delegations_timed_out,
            DeclaredNew: self._on_declared_new,
            RejoinAllowed: self._appends.on_rejoin_allowed,
            AppendRequest: self._appends.on_append_request,
            AppendResponse: replies.on_append_response,
            LeaderContact: self._appends.on_leader_contact,
            VoteRequest: self._elections.on_vote_request,
            VoteResponse: self._on_vote_response,
            TimeoutNow: self._transfer_requests.on_timeout_now,
            ResetRequest: self._appends.on_reset_request,
            PeerCatchupRequest: self._peer_catchup.on_peer_catchup_request,
            PeerAppend: self._peer_catchup.on_peer_append,
            Fence: arbitration.on_fence,
            Appoint: arbitration.on_appoint,
        }

    def _on_vote_response(
        self, sender: BrokerId, message: VoteResponse, *, leader_alive: bool
    ) -> None:
        if message.granted and message.delegated_epoch:
            self._transfers.on_delegated(sender, message)
        else:
            self._elections.on_vote_response(sender, message, leader_alive=leader_alive)

    def _on_declared_new(self, event: DeclaredNew) -> None:
        state = self.state
        state.lost_state = False
        if state.epoch > 0:
            # The epoch was noted behind the note that the group is new, still as of one that may
            # have lost its disk: it is to be noted once more, without that.
            state.effects.append(Rejoined(state.log.last_index))

    def _on_compaction_enabled(self, event: CompactionEnabled) -> None:
        state = self.state
        if not state.is_compacted:
            state.is_compacted = state.must_check_outdated = True
            decide_outdated(state)

    def _on_log_compacted(self, event: LogCompacted) -> None:
        state = self.state
        state.log.compacted_index = event.index
        if state.leader_state is None:
            self._appends.on_compacted()

    def _on_log_flushed(self, event: LogFlushed) -> None:
        state = self.state
        log = state.log
        if event.generation != log.generation or event.index <= log.flushed_index:
            return
        assert event.index <= log.last_index, "a flush of entries that were not proposed"
        log.flushed_index = event.index
        if state.leader_state is not None:
            self._leading.on_flushed(state.leader_state)
            if state.leader_state is not None and state.leader_state.has_recovering:
                grant_rejoins(state, state.leader_state)
            return
        if state.handing_over is not None:
            self._hand_overs.on_flushed(state.handing_over)
        self._appends.on_flushed()
