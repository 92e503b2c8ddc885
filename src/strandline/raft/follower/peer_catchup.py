"""Entries that one follower sends another, at the leader's request.

Why:    if two replicas of a region are behind, or one is and the other has what it lacks, the bytes
        need to cross from the leader's region once, or not at all.
How:    leader --PeerCatchupRequest(to, append)--> source
        source --PeerAppend(append), with its own entries--> receiver
        receiver --AppendResponse--> leader

        The append is the one that the leader would have sent, to the last field; only the bytes of
        its entries come from another log. They are the same bytes: the leader asks for committed
        entries only, and the source checks that it knows them to be committed, too. So a peer
        append is one of the leader's that took a longer way. Like any append it may come late,
        twice, in another epoch, or never.
            The receiver judges it as the leader's own. It takes none of an epoch other than the one
        in which it follows a leader.
Owns:   nothing.
Source: design section 5 ("from a peer in its own region"); Raft thesis 3.5 (log matching), 3.6.3
        (leader completeness); decision 0022."""

from strandline.model.ids import NO_BROKER, BrokerId, Index
from strandline.raft.events import SendPeerAppend
from strandline.raft.follower.appends import Appends
from strandline.raft.leader.leader_state import LeaderState
from strandline.raft.messages import AppendRequest, LeaderContact, PeerAppend, PeerCatchupRequest
from strandline.raft.state import RaftState
from strandline.raft.transitions import Role


class PeerCatchup:
    """See the module."""

    def __init__(self, state: RaftState, appends: Appends) -> None:
        self._state = state
        self._appends = appends

    def on_peer_catchup_request(
        self, sender: BrokerId, message: PeerCatchupRequest, *, leader_alive: bool
    ) -> None:
        """The leader asks this replica to serve a peer; its marks come along, as always."""
        request = message.request
        contact = LeaderContact(request.epoch, request.commit, request.visible)
        self._appends.on_leader_contact(sender, contact, leader_alive=leader_alive)
        if self._state.leader == sender and self.may_serve_peer(request):
            self._state.effects.append(SendPeerAppend(message))

    def on_peer_append(self, sender: BrokerId, message: PeerAppend, *, leader_alive: bool) -> None:
        """Entries of the leader's, out of another log."""
        request = message.request
        if self._follows(request):
            self._appends.on_append_request(self._state.leader, request, leader_alive=leader_alive)

    def may_serve_peer(self, request: AppendRequest) -> bool:
        """Whether these entries are committed in this log, and their leader is still followed."""
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


def member_since(state: RaftState, peer: BrokerId) -> Index:
    """See `Raft.member_since`."""
    since = Index(state.log.last_index + 1)
    for index, configuration in reversed(state.log.configurations):
        if peer not in configuration.members:
            return since
        since = index
    return Index(state.log.first_index - 1) if peer in state.start_configuration.members else since


def peer_fetch_end(state: RaftState, leader_state: LeaderState, fetch_source: BrokerId) -> Index:
    """See `Raft.peer_fetch_end`."""
    progress = leader_state.progress.get(fetch_source)
    if progress is None or progress.is_recovering:
        return Index(-1)
    return min(state.commit, progress.match_flushed)
