"""One member of one Raft group: events in, effects out.

Why:    what a replica decides must not depend on clocks, threads or sockets, so that every schedule
        can be replayed.
How:    `step` looks the handler up by the type of the event, or of the message received. Each part
        of the room handles its share and appends effects; `ReplicationReady` goes to the end.

            election.py  votes  leading.py  a leader's entries and marks
            appends.py     a follower's log          replies.py     acknowledgements at a leader
            sending.py     what goes to a peer       transfer.py    leadership handed over
            membership.py  joint consensus           hand_over.py    acknowledgements after that
            rejoin.py  after the loss of a disk  timeout_now.py  what who handed over ordered
            vote_delegation.py    votes left to a leader    arbitration.py an epoch that is granted
            peer_catchup.py     entries that followers send each other
Owns:   the state of one replica (`state.ReplicaState`); nobody else writes it.
Source: Raft (Ongaro, thesis 2014); design sections 4-6."""

from collections.abc import Callable, Mapping

from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.election.arbitration import Arbitration
from strandline.raft.election.election import Elections
from strandline.raft.election.hand_over import HandOvers
from strandline.raft.election.timeout_now import Orders
from strandline.raft.election.transfer import Transfers
from strandline.raft.events import (
    AbandonTransfer,
    AppendSent,
    ChangeConfiguration,
    CompactionEnabled,
    DeclaredNew,
    Effect,
    ElectionTimedOut,
    Event,
    LogCompacted,
    LogFlushed,
    PeerReset,
    PeerSilent,
    PeerUntold,
    PrefixDropped,
    PromisesTimedOut,
    Propose,
    QuorumLost,
    Received,
    RejoinAllowed,
    Rejoined,
    TransferLeadership,
)
from strandline.raft.follower.appends import Appends
from strandline.raft.follower.peer_catchup import PeerCatchup, lendable_end, member_since
from strandline.raft.follower.rejoin import grant_rejoins
from strandline.raft.follower.stale_log_reset import judge
from strandline.raft.group.configuration import Configuration
from strandline.raft.group.log_shape import LogShape
from strandline.raft.group.membership import Membership
from strandline.raft.leader.configuration_change import ConfigurationChanges
from strandline.raft.leader.leading import Leading
from strandline.raft.leader.progress import AppendPlan, Progress
from strandline.raft.leader.replies import Replies
from strandline.raft.leader.sending import mark_sent, plan
from strandline.raft.messages import (
    AppendRequest,
    AppendResponse,
    Fence,
    LeaderContact,
    Lend,
    LentAppend,
    ResetRequest,
    Seat,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.state import NO_EPOCH, ReplicaState
from strandline.raft.transitions import Role

NO_INDEX = Index(-1)

_NO_PROGRESS: Mapping[BrokerId, Progress] = {}


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
        promised: Epoch = NO_EPOCH,
        asks_to_rejoin: bool = False,
        joined: Index | None = None,
    ) -> None:
        """`epoch`, `vote` and `promised` as persisted; `configuration` is the one in force where
        `log` begins.

        `commit` and `visible`: as far as known from before, each the end of a batch in `log`.
        `lost_state`: a member before, but its disk was lost or is not to be trusted: `rejoin`.
        `asks_to_rejoin`: not before `RejoinAllowed`. `joined`: as persisted with the epoch, see
        `outdated`; None where the log may be of any age."""
        state = self._state = ReplicaState(
            group=group,
            self_id=self_id,
            log=log,
            epoch=epoch,
            vote=vote,
            configuration=configuration,
            commit=commit,
            visible=visible,
            lost_state=lost_state,
            promised=promised,
            joined=joined,
        )
        self._membership = Membership(state)
        leading = self._leading = Leading(state, self._membership)
        self._changes = ConfigurationChanges(state, self._membership, leading)
        self._hand_overs = HandOvers(state, leading)
        self._appends = Appends(state, self._membership, asks_to_rejoin=asks_to_rejoin)
        elections = self._elections = Elections(state, self._membership, leading)
        self._peer_catchup = PeerCatchup(state, self._appends)
        self._orders = Orders(state, elections, self._appends)
        arbitration = Arbitration(state, self._membership, leading)
        transfers = self._transfers = Transfers(state, elections)
        replies = Replies(state, leading, transfers, self._hand_overs)
        self._on_event: dict[type, Callable[..., None]] = {
            ElectionTimedOut: elections.on_timed_out,
            QuorumLost: elections.on_quorum_lost,
            LogFlushed: self._on_log_flushed,
            LogCompacted: self._on_log_compacted,
            Propose: leading.on_propose,
            AppendSent: self._on_append_sent,
            CompactionEnabled: self._on_compaction_enabled,
            PrefixDropped: self._membership.on_prefix_dropped,
            PeerReset: replies.on_peer_reset,
            PeerSilent: replies.on_peer_silent,
            PeerUntold: replies.on_peer_untold,
            ChangeConfiguration: self._changes.on_change,
            TransferLeadership: transfers.on_transfer,
            AbandonTransfer: transfers.on_abandon,
            PromisesTimedOut: transfers.on_promises_timed_out,
            DeclaredNew: self._on_declared_new,
            RejoinAllowed: self._appends.on_rejoin_allowed,
        }
        self._on_message = self._answers(elections, replies, arbitration)

    def step(self, event: Event) -> list[Effect]:
        """Take one event in; the effects are to be performed in order (see `events`)."""
        state = self._state
        effects: list[Effect] = []
        state.effects = effects
        if type(event) is Received:
            message = event.message
            self._on_message[type(message)](event.sender, message, leader_alive=event.leader_alive)
        else:
            self._on_event[type(event)](event)
        if state.order is not None:
            self._orders.obey()
        if state.wake:
            effects += state.wake
            state.wake.clear()
        return effects

    # ---- sending, for a leader's driver ----------------------------------------------------------

    def plan_append(self, peer: BrokerId) -> AppendPlan | ResetRequest | None:
        """What to send to `peer` next; None when there is nothing, or nothing may be sent yet.

        The driver sends a ResetRequest as it is. It reports what it has sent with `AppendSent`
        before this core takes any other event. Ask at a `ReplicationReady`, or when all effects of
        the last step are performed: earlier, the log may lack a marker."""
        leader_state = self._state.leader_state
        progress = None if leader_state is None else leader_state.progress.get(peer)
        if leader_state is None or progress is None:
            return None
        return plan(self._state, leader_state, progress)

    def lendable_end(self, fetch_source: BrokerId) -> Index:
        """Up to where `fetch_source` can be ordered to send what this leader would: it has flushed
        that,
        and it is committed. Below the log where there is nothing."""
        leader_state = self._state.leader_state
        return (
            NO_INDEX
            if leader_state is None
            else lendable_end(self._state, leader_state, fetch_source)
        )

    def member_since(self, peer: BrokerId) -> Index:
        """Where the configuration stands that made `peer` a member, which it has been since; right
        before the log where that was earlier, right behind it where `peer` is none."""
        return member_since(self._state, peer)

    def may_lend(self, request: AppendRequest) -> bool:
        """For a follower: whether it may send these entries on its leader's behalf, now."""
        return self._peer_catchup.may_lend(request)

    # ---- what is the case ------------------------------------------------------------------------

    @property
    def group(self) -> GroupId:
        """The group."""
        return self._state.group

    @property
    def role(self) -> Role:
        """Follower, (pre-)candidate or leader."""
        return self._state.role

    @property
    def is_leader(self) -> bool:
        """Whether this replica leads its epoch."""
        return self._state.leader_state is not None

    @property
    def may_serve(self) -> bool:
        """Whether this replica leads and knows everything that was committed before."""
        return self._state.is_established

    @property
    def accepts_proposals(self) -> bool:
        """Whether `Propose` is welcome: leading, and not holding for the next leader."""
        leader_state = self._state.leader_state
        return leader_state is not None and not leader_state.is_holding

    @property
    def transferring_to(self) -> BrokerId | None:
        """Who is to lead next, while leadership is being handed over."""
        leader_state = self._state.leader_state
        return None if leader_state is None else leader_state.transferring_to

    @property
    def has_lost_state(self) -> bool:
        """Whether this replica has yet to rejoin after the loss of its disk."""
        return self._state.lost_state

    @property
    def joined(self) -> Index | None:
        """How far the leader was for certain when this log began; see `outdated`. Durable together
        with the epoch."""
        return self._state.joined

    @property
    def is_compacted(self) -> bool:
        """Whether compaction removes entries by key, as far as this replica was told."""
        return self._state.is_compacted

    @property
    def knows_configuration(self) -> bool:
        """Whether this log has the configuration that the leader has in force, or is its own."""
        return self.is_leader or self._appends.knows_configuration

    @property
    def is_outdated(self) -> bool:
        """Whether this log has to be begun anew, and this replica counts for nothing."""
        return self._state.is_outdated

    @property
    def epoch(self) -> Epoch:
        """The present epoch."""
        return self._state.epoch

    @property
    def vote(self) -> BrokerId:
        """Whom this replica voted for in this epoch, or NO_BROKER."""
        return self._state.vote

    @property
    def promised(self) -> Epoch:
        """The epoch, this or the next one, whose vote is left to the leader of the one before; 0
        for none."""
        return self._state.promised

    @property
    def leader(self) -> BrokerId:
        """The leader of this epoch as far as known, or NO_BROKER."""
        return self._state.leader

    @property
    def commit(self) -> Index:
        """The last entry known to be committed."""
        return self._state.commit

    @property
    def visible(self) -> Index:
        """The last entry that readers may see; >= commit."""
        return self._state.visible

    @property
    def log(self) -> LogShape:
        """The shape of the log; read only."""
        return self._state.log

    @property
    def configuration(self) -> Configuration:
        """The configuration in force: the last in the log."""
        return self._state.configuration

    @property
    def configuration_index(self) -> Index:
        """Where the configuration in force stands; below the log's start when not in the log."""
        return self._membership.index

    @property
    def start_configuration(self) -> Configuration:
        """The configuration in force where the log begins."""
        return self._state.start_configuration

    @property
    def progress(self) -> Mapping[BrokerId, Progress]:
        """What a leader knows of its peers (not of itself); empty for others."""
        leader_state = self._state.leader_state
        return _NO_PROGRESS if leader_state is None else leader_state.progress

    def refusal(self, event: ChangeConfiguration) -> str | None:
        """Why this change would be refused now, in words; None where it would not."""
        return self._changes.refusal(event)

    # ---- events ----------------------------------------------------------------------------------

    def _answers(
        self, elections: Elections, replies: Replies, arbitration: Arbitration
    ) -> dict[type, Callable[..., None]]:
        """{kind of message: who takes it in}"""
        return {
            AppendRequest: self._appends.on_append_request,
            AppendResponse: replies.on_append_response,
            LeaderContact: self._appends.on_leader_contact,
            VoteRequest: elections.on_vote_request,
            VoteResponse: self._on_vote_response,
            TimeoutNow: self._orders.on_timeout_now,
            ResetRequest: self._appends.on_reset_request,
            Lend: self._peer_catchup.on_lend,
            LentAppend: self._peer_catchup.on_lent_append,
            Fence: arbitration.on_fence,
            Seat: arbitration.on_seat,
        }

    def _on_vote_response(
        self, sender: BrokerId, message: VoteResponse, *, leader_alive: bool
    ) -> None:
        if message.granted and message.promised:
            self._transfers.on_promised(sender, message)
        else:
            self._elections.on_vote_response(sender, message, leader_alive=leader_alive)

    def _on_declared_new(self, event: DeclaredNew) -> None:
        state = self._state
        state.lost_state = False
        if state.epoch > 0:
            # The epoch was noted behind the note that the group is new, still as of one that may
            # have lost its disk: it is to be noted once more, without that.
            state.effects.append(Rejoined(state.log.last_index))

    def _on_append_sent(self, event: AppendSent) -> None:
        leader_state = self._state.leader_state
        if leader_state is not None and event.peer in leader_state.progress:
            mark_sent(self._state, leader_state.progress[event.peer], event.last_index)

    def _on_compaction_enabled(self, event: CompactionEnabled) -> None:
        state = self._state
        if not state.is_compacted:
            state.is_compacted = state.has_to_look = True
            judge(state)

    def _on_log_compacted(self, event: LogCompacted) -> None:
        state = self._state
        state.log.compacted_index = event.index
        if state.leader_state is None:
            self._appends.on_compacted()

    def _on_log_flushed(self, event: LogFlushed) -> None:
        state = self._state
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
