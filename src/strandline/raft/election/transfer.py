"""A leader hands over to a voter of its choice.

Why:    restarts and placement move leaders; waiting for an election time-out would cost seconds,
        and every round trip of a transfer is one without answers for producers.
How:    lead on until enough voters have left their votes to the leader, where its own is not
        enough (see `promises`), and the target was sent everything --> vote for it in the next
        epoch --> order it to stand, with these votes --> a follower like any other
            The order names the end of the log. The target stands once it has all up to there,
        which is on its way at that moment, and needs no vote any more: it leads at once. Where
        promises do not come in time, the others are ordered to vote for it (see `orders`).
        Proposals are held while the target does not keep up, from when it has what there was at
        the beginning.
            Who has given its vote away leads no more: its lease ends before the order leaves, and
        no order that comes late, twice or never elects anybody beside it. Only the target's
        progress is looked at: whoever else is behind delays nothing. The driver gives up by
        `AbandonTransfer`, and who has handed over to somebody who never led stands again.
Owns:   the target, while role is LEADER; in which epoch it was handed over.
Source: Raft thesis 3.10; Redpanda RFC 20220119 (recoveries that complicated transfers); decision
        0013 and 0021."""

from strandline.model.ids import NO_BROKER, BrokerId, Epoch
from strandline.raft.election.election import Elections
from strandline.raft.election.vote_delegation import (
    ask_promises,
    count_promise,
    delegated_votes_elect,
)
from strandline.raft.events import AbandonTransfer, PromisesTimedOut, TransferLeadership
from strandline.raft.leader.leader_state import HandOver, LeaderState
from strandline.raft.leader.progress import Progress
from strandline.raft.messages import LeaderContact, TimeoutNow, VoteResponse
from strandline.raft.state import ReplicaState
from strandline.raft.transitions import Role


class Transfers:
    """See the module."""

    def __init__(self, state: ReplicaState, elections: Elections) -> None:
        self._state = state
        self._elections = elections
        # For which epoch the target of the last transfer got the vote of this replica; -1 for none.
        self._given_epoch = Epoch(-1)

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
        leader_state.awaits_promises = not delegated_votes_elect(
            self._state, leader_state, event.to
        )
        if leader_state.awaits_promises:
            ask_promises(self._state, leader_state)
        self.advance(leader_state, progress)
        if self._state.leader_state is leader_state:
            self._state.wake.append(progress.ready)

    def on_abandon(self, event: AbandonTransfer) -> None:
        """Lead on, or lead again."""
        state = self._state
        if state.leader_state is not None:
            state.leader_state.end_transfer()
        elif (
            state.epoch == self._given_epoch
            and state.role == Role.FOLLOWER
            and state.leader == NO_BROKER
        ):
            self._elections.stand_again()

    def on_promised(self, sender: BrokerId, message: VoteResponse) -> None:
        """A voter leaves its vote of the next epoch to this leader."""
        leader_state = count_promise(self._state, sender, message)
        if (
            leader_state is not None
            and leader_state.transferring_to is not None
            and leader_state.awaits_promises
        ):
            leader_state.awaits_promises = not delegated_votes_elect(
                self._state, leader_state, leader_state.transferring_to
            )
            if not leader_state.awaits_promises:
                self._go_on(leader_state)

    def on_promises_timed_out(self, event: PromisesTimedOut) -> None:
        """Not enough have."""
        leader_state = self._state.leader_state
        if leader_state is not None and leader_state.awaits_promises:
            leader_state.awaits_promises = False
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
        elif leader_state.awaits_promises:
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
            self._order_votes(leader_state, target.peer, in_step)
        promised = tuple(sorted(leader_state.promises))
        state.hand_over(target.peer)
        self._given_epoch = state.epoch
        if state.commit < last_index:
            state.handing_over = HandOver(leader_state, last_index)
        state.send(target.peer, TimeoutNow(leader_state.epoch, last_index, in_step, promised))
        if state.promised == state.epoch:
            state.persist()

    def _order_votes(
        self, leader_state: LeaderState, transfer_target: BrokerId, in_step: tuple[BrokerId, ...]
    ) -> None:
        """The heir will lack votes: tell who will have everything to give it theirs.

        They leave before this replica's own vote is durable. That is of no concern to theirs."""
        state = self._state
        contact = LeaderContact(
            leader_state.epoch, state.commit, state.visible, transfer_target, state.log.last_index
        )
        for voter in state.configuration.all_voters:
            if voter in in_step:
                state.send(voter, contact)
