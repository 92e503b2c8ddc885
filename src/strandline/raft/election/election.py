"""Elections: who may lead, asked in two rounds.

Why:    a replica that was cut off must not unseat a leader whom everybody else hears.
How:    a pre-vote asks, without changing anybody's state, whether an election would succeed; only
        then the epoch is raised. Voters refuse both while they hear the leader, unless the leader
        itself asked for the election (`transfer`). One vote an epoch, durable before the answer.
        Nor does a candidate vote for itself that has heard the leader again since it asked.

        Of two who ask at once and would grant each other, the one with the higher id gives up, so
        that far apart they do not split the votes; its timer brings it back where that was wrong.

        Who was removed and does not know it is told so with the refusal (see `membership`).

        A replica answers whoever asks: only those whom a candidate counts as voters are asked, and
        a voter that has yet to receive the entry which made it one must not block the group.
Owns:   the votes of the present round.
Source: Raft thesis 3.4, 3.6.1, 4.2.2, 4.2.3, 9.6; figure 3.1."""

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, grant_of
from strandline.raft.events import ElectionTimedOut, QuorumLost
from strandline.raft.group.membership import Membership
from strandline.raft.leader.leading import Leading
from strandline.raft.messages import Removal, TimeoutNow, VoteRequest, VoteResponse
from strandline.raft.state import NO_EPOCH, ReplicaState
from strandline.raft.transitions import Cause, Role

NO_END = Index(-1)
"""No leader's log ends here: nobody ordered to stand, or to vote, for one that does."""


class Elections:
    """See the module."""

    def __init__(self, state: ReplicaState, membership: Membership, leading: Leading) -> None:
        self._state = state
        self._membership = membership
        self._leading = leading
        # Who granted what the present (pre-)candidacy asked for, this replica included.
        self._granted: set[BrokerId] = set()
        # The epoch that the present pre-candidacy is for.
        self._asked_epoch = Epoch(0)
        # Who is known to have been sent all of this log by the leader that ordered to stand.
        self._in_step: tuple[BrokerId, ...] = ()
        # Where the log of that leader ended, if one ordered the present candidacy.
        self._stands_for = NO_END
        # Votes that were given by order, but before this replica stands: for which epoch and which
        # end of the log, and by whom.
        self._given = Epoch(-1), NO_END
        self._givers: set[BrokerId] = set()

    def on_timed_out(self, event: ElectionTimedOut) -> None:
        """Nobody leads, as far as this replica can tell."""
        state = self._state
        if state.role == Role.LEADER:
            return
        if not self._may_campaign():
            state.follow(state.epoch, NO_BROKER, Cause.BARRED)
            return
        if state.role != Role.PRECANDIDATE:
            state.become(Cause.TIMED_OUT, NO_BROKER)
        self._ask_whether(self._next_epoch)

    def on_quorum_lost(self, event: QuorumLost) -> None:
        """A leader that reaches no quorum steps down, and keeps its vote."""
        if self._state.role == Role.LEADER:
            self._state.follow(self._state.epoch, NO_BROKER, Cause.QUORUM_LOST)

    def stand_again(self) -> None:
        """A leader that handed over asks for the epoch after at once.

        Voters do not protect it from itself, but they do protect who led meanwhile: unlike an
        order to stand, this may come when another leader has a lease."""
        if self._may_campaign():
            self._campaign(Cause.TRANSFER_ABANDONED, self._next_epoch, transfer=False)
        else:
            self._state.follow(self._state.epoch, NO_BROKER, Cause.BARRED)

    def stand_as_ordered(self, sender: BrokerId, order: TimeoutNow) -> None:
        """Without a pre-vote. Where the order names the end of the sender's log, this log has it:
        then the sender has voted for this replica, and others may have."""
        if not self._may_campaign():
            return
        # The one epoch in which those who have left their votes to the sender vote for this one.
        epoch = Epoch(order.epoch + 1)
        if order.last_index < 0:
            self._campaign(Cause.TRANSFER_RECEIVED, epoch, transfer=True)
            return
        self._campaign(
            Cause.TRANSFER_RECEIVED,
            epoch,
            transfer=True,
            granted=(sender, *order.promised, *self._givers_for(epoch, order.last_index)),
            in_step=(sender, *order.in_step),
            stands_for=order.last_index,
        )

    def on_vote_request(
        self, sender: BrokerId, message: VoteRequest, *, leader_alive: bool
    ) -> None:
        """Somebody wants to lead."""
        state = self._state
        is_protected = not message.transfer and (leader_alive or state.role == Role.LEADER)
        if message.epoch < state.epoch or is_protected or state.lost_state:
            self._refuse(sender, message)
            return
        is_free = message.epoch > state.epoch or (
            state.vote in (NO_BROKER, sender) and state.leader == NO_BROKER
        )
        log = state.log
        is_complete = (message.last_epoch, message.last_index) >= (log.last_epoch, log.last_index)
        is_left = self._is_left_to_a_leader(sender, message)
        granted = is_free and is_complete and not is_left
        if message.pre:
            if not granted:
                is_only_left = is_left and is_free and is_complete
                promised = state.promised if is_only_left else NO_EPOCH
                self._refuse(sender, message, promised=promised)
                return
            state.send(sender, VoteResponse(message.epoch, granted=True, pre=True))
            if state.role == Role.PRECANDIDATE and sender < state.self_id:
                state.become(Cause.PREVOTE_YIELDED, NO_BROKER)
            return
        vote = sender if granted else NO_BROKER
        if message.epoch > state.epoch:
            state.follow(message.epoch, NO_BROKER, Cause.EPOCH_SUPERSEDED, vote=vote)
        elif granted and state.vote == NO_BROKER:
            state.adopt(state.epoch, vote=vote)
        if granted:
            state.send(sender, VoteResponse(state.epoch, granted=True))
        else:
            self._refuse(sender, message)

    def on_vote_response(
        self, sender: BrokerId, message: VoteResponse, *, leader_alive: bool
    ) -> None:
        """A vote, or a refusal."""
        state = self._state
        if not message.granted:
            if message.promised:
                if state.role == Role.PRECANDIDATE and message.promised >= self._asked_epoch:
                    self._ask_whether(Epoch(message.promised + 1))
                return
            if message.epoch > state.epoch:
                state.follow(message.epoch, NO_BROKER, Cause.EPOCH_SUPERSEDED)
            if message.removal is not None:
                self._on_told_of_removal(message.removal)
            return
        if message.given_for >= 0:
            self._on_given(sender, message)
        elif message.pre:
            is_asking = state.role == Role.PRECANDIDATE and message.epoch == self._asked_epoch
            if is_asking and not leader_alive:
                self._granted.add(sender)
                if state.configuration.wins_election(self._granted):
                    self._campaign(Cause.PREVOTES_WON, self._asked_epoch, transfer=False)
        elif state.role == Role.CANDIDATE and message.epoch == state.epoch:
            self._granted.add(sender)
            self._lead_if_elected()

    def _on_given(self, sender: BrokerId, message: VoteResponse) -> None:
        """A vote that the leader before ordered, for a log that has all of its log.

        It may come before that leader's order to stand does. It never counts in an election by
        time-out: this log may lack what the voter has."""
        state = self._state
        given = message.epoch, message.given_for
        if message.epoch > state.epoch:
            if message.epoch > self._given[0]:
                self._given = given
                self._givers = set()
            if given == self._given:
                self._givers.add(sender)
        elif state.role == Role.CANDIDATE and given == (state.epoch, self._stands_for):
            self._granted.add(sender)
            self._lead_if_elected()

    def _givers_for(self, epoch: Epoch, end: Index) -> set[BrokerId]:
        return self._givers if self._given == (epoch, end) else set()

    def _is_left_to_a_leader(self, sender: BrokerId, message: VoteRequest) -> bool:
        """Whether this vote is promised, and not asked for by its order: a leader gives one."""
        state = self._state
        has_given = message.epoch == state.epoch and state.vote == sender
        return message.epoch == state.promised and not message.transfer and not has_given

    def _refuse(
        self, sender: BrokerId, message: VoteRequest, *, promised: Epoch = NO_EPOCH
    ) -> None:
        """`promised`: this is why. Brokers of an earlier release learn it from the epoch."""
        removal = self._membership.removal_of(
            sender, (message.configuration_epoch, message.configuration_index)
        )
        epoch = max(self._state.epoch, promised)
        self._state.send(
            sender,
            VoteResponse(epoch, granted=False, pre=message.pre, removal=removal, promised=promised),
        )

    def _on_told_of_removal(self, removal: Removal) -> None:
        state = self._state
        self._membership.on_told(removal)
        if state.role in (Role.PRECANDIDATE, Role.CANDIDATE) and not self._may_campaign():
            state.follow(state.epoch, NO_BROKER, Cause.REMOVAL_LEARNED)

    def _may_campaign(self) -> bool:
        state = self._state
        if not self._membership.may_campaign or state.lost_state:
            return False
        # Who has nothing of the present grant may lack what was committed in it (`arbitration`).
        return grant_of(self._next_epoch) == grant_of(state.log.last_epoch)

    @property
    def _next_epoch(self) -> Epoch:
        """The first in which this replica may stand by itself."""
        return Epoch(max(self._state.epoch, self._state.promised) + 1)

    def _ask_whether(self, epoch: Epoch) -> None:
        """Would an election be won?"""
        assert epoch > self._state.epoch, "a pre-vote asks about a later epoch"
        self._asked_epoch = epoch
        self._granted = {self._state.self_id}
        if self._state.configuration.wins_election(self._granted):
            self._campaign(Cause.PREVOTES_WON, epoch, transfer=False)
        else:
            self._ask(epoch, pre=True, transfer=False)

    def _campaign(
        self,
        cause: Cause,
        epoch: Epoch,
        *,
        transfer: bool,
        granted: tuple[BrokerId, ...] = (),
        in_step: tuple[BrokerId, ...] = (),
        stands_for: Index = NO_END,
    ) -> None:
        """`granted` have given their votes for that epoch already."""
        state = self._state
        assert epoch > state.epoch and not state.lost_state, "a candidate opens an epoch"
        state.adopt(epoch, vote=state.self_id)
        state.become(cause, NO_BROKER)
        self._granted = {state.self_id, *granted}
        self._in_step = in_step
        self._stands_for = stands_for
        if not self._lead_if_elected():
            self._ask(state.epoch, pre=False, transfer=transfer)

    def _ask(self, epoch: Epoch, *, pre: bool, transfer: bool) -> None:
        state = self._state
        log = state.log
        at_epoch, at_index = self._membership.position
        request = VoteRequest(
            epoch, log.last_index, log.last_epoch, pre, transfer, at_epoch, at_index
        )
        for voter in state.configuration.all_voters:
            if voter not in self._granted:
                state.send(voter, request)

    def _lead_if_elected(self) -> bool:
        if not self._state.configuration.wins_election(self._granted):
            return False
        self._leading.begin(Cause.VOTES_WON, self._in_step)
        return True
