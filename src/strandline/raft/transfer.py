"""A leader hands over to a voter of its choice.

Why:    restarts and placement move leaders; waiting for an election time-out would cost seconds,
        and every round trip of a transfer is one without answers for producers.
How:    lead on until the target was sent everything --> vote for it in the next epoch, durably -->
        order it to stand, with that vote --> a follower like any other
            The order names the end of the log. The target stands once it has all up to there,
        which is on its way at that moment, and needs no vote from here any more: of three voters
        it leads at once. Of more, the others are ordered to vote for it (see `orders`). Proposals
        are held while the target does not keep up, from when it has what there was at the
        beginning.
            Who has given its vote away leads no more: its lease ends before the order leaves, and
        no order that comes late, twice or never elects anybody beside it. Only the target's
        progress is looked at: whoever else is behind delays nothing. The driver gives up by
        `AbandonTransfer`, and who has handed over to somebody who never led stands again.
Owns:   the target, while role is LEADER; in which epoch it was handed over.
Source: Raft thesis 3.10; Redpanda RFC 20220119 (recoveries that complicated transfers); decision
        0013."""

from strandline.model.ids import NO_BROKER, BrokerId, Epoch
from strandline.raft.election import Elections
from strandline.raft.events import AbandonTransfer, TransferLeadership
from strandline.raft.farewell import Farewell
from strandline.raft.messages import LeaderContact, TimeoutNow
from strandline.raft.progress import Progress
from strandline.raft.reign import Reign
from strandline.raft.state import ReplicaState, Role


class Transfers:
    """See the module."""

    def __init__(self, state: ReplicaState, elections: Elections) -> None:
        self._state = state
        self._elections = elections
        # For which epoch the target of the last transfer got the vote of this replica; -1 for none.
        self._given_epoch = Epoch(-1)

    def on_transfer(self, event: TransferLeadership) -> None:
        """Begin, unless `to` is not another voter that counts."""
        reign = self._state.reign
        if reign is None or event.to not in self._state.configuration.voters:
            return
        progress = reign.progress.get(event.to)
        if progress is None or progress.is_recovering:
            return
        reign.begin_transfer(event.to)
        self.advance(reign, progress)
        if self._state.reign is reign:
            self._state.wake.append(progress.ready)

    def on_abandon(self, event: AbandonTransfer) -> None:
        """Lead on, or lead again."""
        state = self._state
        if state.reign is not None:
            state.reign.end_transfer()
        elif (
            state.epoch == self._given_epoch
            and state.role == Role.FOLLOWER
            and state.leader == NO_BROKER
        ):
            self._elections.stand_again()

    def advance(self, reign: Reign, progress: Progress) -> None:
        """The target made progress: hand over once it was sent everything."""
        last_index = self._state.log.last_index
        if progress.is_recovering:
            reign.end_transfer()
        elif progress.has_been_sent(last_index):
            self._hand_over(reign, progress)
        elif progress.match_written >= reign.transfer_from:
            reign.is_holding = True

    def _hand_over(self, reign: Reign, target: Progress) -> None:
        state = self._state
        last_index = state.log.last_index
        in_step = tuple(
            peer
            for peer, progress in reign.progress.items()
            if progress is not target and progress.has_been_sent(last_index)
        )
        if not state.configuration.wins_election((state.self_id, target.peer)):
            self._order_votes(reign, target.peer, in_step)
        state.hand_over(target.peer)
        self._given_epoch = state.epoch
        if state.commit < last_index:
            state.farewell = Farewell(state, reign)
        state.send(target.peer, TimeoutNow(reign.epoch, last_index, in_step))

    def _order_votes(self, reign: Reign, heir: BrokerId, in_step: tuple[BrokerId, ...]) -> None:
        """The heir will lack votes: tell who will have everything to give it theirs.

        They leave before this replica's own vote is durable. That is of no concern to theirs."""
        state = self._state
        contact = LeaderContact(
            reign.epoch, state.commit, state.visible, heir, state.log.last_index
        )
        for voter in state.configuration.all_voters:
            if voter in in_step:
                state.send(voter, contact)
