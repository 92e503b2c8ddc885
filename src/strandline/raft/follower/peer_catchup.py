"""Entries that one follower sends another, on the leader's order.

Why:    where two replicas of a region are behind, or one is and the other has what it lacks, the
        bytes need to cross from the leader's region once, or not at all.
How:    leader --Lend(to, append)--> lender --LentAppend(append), with its own entries--> borrower
        borrower --AppendResponse--> leader
        The append is the one that the leader would have sent, to the last field; only the bytes of
        its entries come from another log. They are the same bytes: the leader asks for committed
        entries only, and the lender looks that it knows them to be committed, too. So a
        lent append is one of the leader's that took a longer way, and everything that
        may befall it may befall any append: it comes late, twice, in another epoch, or never.
            The borrower judges it as the leader's own. It takes none of an epoch other than the one
        it follows a leader in.
Owns:   nothing.
Source: design section 5 ("from a peer in its own region"); Raft thesis 3.5 (log matching), 3.6.3
        (leader completeness); decision 0022."""

from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.raft.events import LendEntries
from strandline.raft.follower.appends import Appends
from strandline.raft.leader.leader_state import LeaderState
from strandline.raft.messages import AppendRequest, LeaderContact, Lend, LentAppend
from strandline.raft.state import ReplicaState
from strandline.raft.transitions import Role


class PeerCatchup:
    """See the module."""

    def __init__(self, state: ReplicaState, appends: Appends) -> None:
        self._state = state
        self._appends = appends

    def on_lend(self, sender: BrokerId, message: Lend, *, leader_alive: bool) -> None:
        """The leader asks for it; its marks come along, as with everything that a leader says."""
        request = message.request
        contact = LeaderContact(request.epoch, request.commit, request.visible)
        self._appends.on_leader_contact(sender, contact, leader_alive=leader_alive)
        if self._state.leader == sender and self.may_lend(request):
            self._state.effects.append(LendEntries(message))

    def on_lent_append(self, sender: BrokerId, message: LentAppend, *, leader_alive: bool) -> None:
        """Entries of the leader's, out of another log."""
        request = message.request
        if self._follows(request):
            self._appends.on_append_request(self._state.leader, request, leader_alive=leader_alive)

    def may_lend(self, request: AppendRequest) -> bool:
        """Whether these entries are in this log, for good, and their leader is still followed."""
        state = self._state
        log = state.log
        end = request.runs[-1].last_index if request.runs else request.prev_index
        is_here = log.first_index <= request.prev_index + 1 and end <= log.last_index
        return self._follows(request) and is_here and end <= state.commit and not state.lost_state

    def _follows(self, request: AppendRequest) -> bool:
        """Whether this replica follows the leader whose append this is."""
        state = self._state
        is_following = state.role == Role.FOLLOWER and state.leader != NO_BROKER
        return is_following and request.epoch == state.epoch


def member_since(state: ReplicaState, peer: BrokerId) -> Index:
    """See `Raft.member_since`."""
    since = Index(state.log.last_index + 1)
    for index, configuration in reversed(state.log.configurations):
        if peer not in configuration.members:
            return since
        since = index
    return Index(state.log.first_index - 1) if peer in state.start_configuration.members else since


def lendable_end(state: ReplicaState, leader_state: LeaderState, fetch_source: BrokerId) -> Index:
    """See `Raft.lendable_end`."""
    progress = leader_state.progress.get(fetch_source)
    if progress is None or progress.is_recovering:
        return Index(-1)
    return min(state.commit, progress.match_flushed)
