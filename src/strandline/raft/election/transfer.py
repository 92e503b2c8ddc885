"""A leader hands over to a voter of its choice.

Why:    restarts and placement move leaders. Waiting for an election time-out would cost seconds,
        and during each round trip of a transfer producers get no answer.
How:    lead on until enough voters have delegated their votes, if the leader's own is not enough
        (`vote_delegation`), and the target was sent everything --> vote for the target in the next
        epoch --> send it TimeoutNow with these votes --> follow

            The TimeoutNow names the end of the log. The target stands once it has all up to there,
        which is on its way at that moment, and needs no further vote: it leads at once. If
        delegations do not come in time, the leader asks the voters to vote for the target
        (`timeout_now`). From when the target has what there was at the beginning, the leader holds
        proposals while the target does not keep up.
            A leader that has given its vote away leads no more: its lease ends before TimeoutNow
        leaves, and a TimeoutNow that comes late or twice elects no second leader. Only the target's
        progress counts: other slow followers delay nothing. The driver gives up with
        `AbandonTransfer`; a leader that has handed over to a target that never led stands again.
Owns:   the target, while role is LEADER; the epoch in which it was handed over.
Source: Raft thesis 3.10; Redpanda RFC 20220119 (recoveries that complicated transfers); decisions
        0013 and 0021."""

from strandline.model.ids import NO_BROKER, BrokerId, Epoch
from strandline.raft.election.election import Elections
from strandline.raft.election.vote_delegation import (
    count_delegation,
    delegated_votes_elect,
    request_delegations,
)
from strandline.raft.events import AbandonTransfer, DelegationsTimedOut, TransferLeadership
from strandline.raft.leader.leader_state import HandOver, LeaderState
from strandline.raft.leader.progress import Progress
from strandline.raft.messages import LeaderContact, TimeoutNow, VoteResponse
from strandline.raft.state import RaftState
from strandline.raft.transitions import Role


class Transfers:
    """See the module."""

    def __init__(self, state: RaftState, elections: Elections) -> None:
        self._state = state
        self._elections = elections
        # For which epoch the target of the last transfer got the vote of this replica; -1 for none.
        self._handed_over_epoch = Epoch(-1)

    def on_transfer(self, event: TransferLeadership) -> None:
        """Begin, unless `to` is not another voter that counts."""
        leader_state = self._state.leader_state
        if leader_state is None or event.to not in self._state.configuration.voters:
            return
        progress = leader_state.progress.get(event.to)
        if progress is None or progress.is_recovering:
            return
        leader_state.transferring_to = event.to
        leader_state.transfer_from = self._state.log.last_index
        leader_state.is_holding = False
        leader_state.awaits_delegations = not delegated_votes_elect(
            self._state, leader_state, event.to
        )
        if leader_state.awaits_delegations:
            request_delegations(self._state, leader_state)
        self.advance(leader_state, progress)
        if self._state.leader_state is leader_state:
            self._state.wake.append(progress.ready)

    def on_abandon(self, event: AbandonTransfer) -> None:
        """Lead on, or lead again."""
        state = self._state
        if state.leader_state is not None:
            state.leader_state.end_transfer()
        elif (
            state.epoch == self._handed_over_epoch
            and state.role == Role.FOLLOWER
            and state.leader == NO_BROKER
        ):
            self._elections.stand_again()

    def on_delegated(self, sender: BrokerId, message: VoteResponse) -> None:
        """A voter delegates its vote of the next epoch to this leader."""
        leader_state = count_delegation(self._state, sender, message)
        if (
            leader_state is not None
            and leader_state.transferring_to is not None
            and leader_state.awaits_delegations
        ):
            leader_state.awaits_delegations = not delegated_votes_elect(
                self._state, leader_state, leader_state.transferring_to
            )
            if not leader_state.awaits_delegations:
                self._go_on(leader_state)

    def on_delegations_timed_out(self, event: DelegationsTimedOut) -> None:
        """Too few voters have delegated their votes: hand over without them."""
        leader_state = self._state.leader_state
        if leader_state is not None and leader_state.awaits_delegations:
            leader_state.awaits_delegations = False
            self._go_on(leader_state)

    def _go_on(self, leader_state: LeaderState) -> None:
        assert leader_state.transferring_to is not None
        progress = leader_state.progress[leader_state.transferring_to]
        self.advance(leader_state, progress)
        if self._state.leader_state is leader_state:
            self._state.wake.append(progress.ready)

    def advance(self, leader_state: LeaderState, progress: Progress) -> None:
        """The target made progress: hand over once it was sent everything."""
        last_index = self._state.log.last_index
        if progress.is_recovering:
            leader_state.end_transfer()
        elif leader_state.awaits_delegations:
            return
        elif progress.has_been_sent(last_index):
            self._hand_over(leader_state, progress)
        elif progress.match_written >= leader_state.transfer_from:
            leader_state.is_holding = True

    def _hand_over(self, leader_state: LeaderState, target: Progress) -> None:
        state = self._state
        last_index = state.log.last_index
        assert target.has_been_sent(last_index) and not target.is_recovering, target.peer
        in_step = tuple(
            peer
            for peer, progress in leader_state.progress.items()
            if progress is not target and progress.has_been_sent(last_index)
        )
        if not delegated_votes_elect(state, leader_state, target.peer):
            self._request_votes(leader_state, target.peer, in_step)
        delegators = tuple(sorted(leader_state.delegators))
        state.hand_over(target.peer)
        self._handed_over_epoch = state.epoch
        if state.commit < last_index:
            state.handing_over = HandOver(leader_state, last_index)
        state.send(target.peer, TimeoutNow(leader_state.epoch, last_index, in_step, delegators))
        if state.delegated_epoch == state.epoch:
            state.persist()

    def _request_votes(
        self, leader_state: LeaderState, transfer_target: BrokerId, in_step: tuple[BrokerId, ...]
    ) -> None:
        """The target will lack votes: ask the voters that will have everything to vote for it.

        The requests leave before this replica's own vote is durable, which does not concern
        their votes."""
        state = self._state
        contact = LeaderContact(
            leader_state.epoch, state.commit, state.visible, transfer_target, state.log.last_index
        )
        for voter in state.configuration.all_voters:
            if voter in in_step:
                state.send(voter, contact)
