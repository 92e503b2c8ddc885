"""Elections: which replica may lead, decided in two rounds.

Why:    a replica that was cut off must not depose a leader that all others hear.
How:    A pre-vote asks, without changing any state, whether an election would succeed; only then
        does the replica raise its epoch. Voters refuse both while they hear the leader, unless the
        leader itself asked for the election (`transfer`). Each gives one vote an epoch, durable
        before the answer. A candidate that has heard the leader since it asked does not stand.

        If two ask at once and would grant each other, the one with the higher id gives up, so that
        replicas far apart do not split the votes. If that was wrong, its timer brings it back.

        A refusal tells a removed replica that it is removed (see `membership`).

        A replica answers every asker: a candidate asks only its own voters, and a voter that has
        yet to receive the entry which made it one must not block the group.
Owns:   the votes of the present round.
Source: Raft thesis 3.4, 3.6.1, 4.2.2, 4.2.3, 9.6; figure 3.1."""

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, grant_of
from strandline.raft.events import ElectionTimedOut, QuorumLost
from strandline.raft.group.membership import Membership
from strandline.raft.leader.leading import Leading
from strandline.raft.messages import Removal, TimeoutNow, VoteRequest, VoteResponse
from strandline.raft.state import NO_EPOCH, RaftState
from strandline.raft.transitions import Cause, Role

NO_END = Index(-1)
"""No leader's log ends here: no leader requested this candidacy."""


class Elections:
    """See the module."""

    def __init__(self, state: RaftState, membership: Membership, leading: Leading) -> None:
        self._state = state
        self._membership = membership
        self._leading = leading
        # The voters that granted the present (pre-)candidacy, this replica included.
        self._granted: set[BrokerId] = set()
        # The epoch that the present pre-candidacy is for.
        self._asked_epoch = Epoch(0)
        # The peers that were sent all of this log by the leader that requested the candidacy.
        self._in_step: tuple[BrokerId, ...] = ()
        # Where the log of that leader ended, if one requested the present candidacy.
        self._stands_for = NO_END
        # Votes that a leader requested and that came before this replica stands: for which epoch
        # and which end of the log, and the voters.
        self._early_vote = Epoch(-1), NO_END
        self._early_voters: set[BrokerId] = set()

    def on_timed_out(self, event: ElectionTimedOut) -> None:
        """This replica hears no leader."""
        state = self._state
        if state.role == Role.LEADER:
            return
        if not self._may_campaign():
            state.follow(state.epoch, NO_BROKER, Cause.BARRED)
            return
        if state.role != Role.PRECANDIDATE:
            state.become(Cause.TIMED_OUT, NO_BROKER)
        self._ask_prevotes(self._next_epoch)

    def on_quorum_lost(self, event: QuorumLost) -> None:
        """A leader that reaches no quorum steps down, and keeps its vote."""
        if self._state.role == Role.LEADER:
            self._state.follow(self._state.epoch, NO_BROKER, Cause.QUORUM_LOST)

    def stand_again(self) -> None:
        """A leader that handed over stands for the epoch after at once.

        Voters do not protect it from itself, but they protect a leader elected meanwhile:
        unlike a requested election, this may come while another leader has a lease."""
        if self._may_campaign():
            self._campaign(Cause.TRANSFER_ABANDONED, self._next_epoch, transfer=False)
        else:
            self._state.follow(self._state.epoch, NO_BROKER, Cause.BARRED)

    def stand_on_request(self, sender: BrokerId, request: TimeoutNow) -> None:
        """Stand without a pre-vote. If the request names the end of the sender's log, this log
        has it: then the sender has voted for this replica, and others may have."""
        if not self._may_campaign():
            return
        # The one epoch in which the delegators of the sender vote for this replica.
        epoch = Epoch(request.epoch + 1)
        if request.last_index < 0:
            self._campaign(Cause.TRANSFER_RECEIVED, epoch, transfer=True)
            return
        self._campaign(
            Cause.TRANSFER_RECEIVED,
            epoch,
            transfer=True,
            granted=(
                sender,
                *request.delegators,
                *self._early_voters_for(epoch, request.last_index),
            ),
            in_step=(sender, *request.in_step),
            stands_for=request.last_index,
        )

    def on_vote_request(
        self, sender: BrokerId, message: VoteRequest, *, leader_alive: bool
    ) -> None:
        """A replica asks for the vote."""
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
        is_delegated = self._is_delegated(sender, message)
        granted = is_free and is_complete and not is_delegated
        if message.pre:
            if not granted:
                is_only_delegated = is_delegated and is_free and is_complete
                delegated_epoch = state.delegated_epoch if is_only_delegated else NO_EPOCH
                self._refuse(sender, message, delegated_epoch=delegated_epoch)
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
            if message.delegated_epoch:
                if state.role == Role.PRECANDIDATE and message.delegated_epoch >= self._asked_epoch:
                    self._ask_prevotes(Epoch(message.delegated_epoch + 1))
                return
            if message.epoch > state.epoch:
                state.follow(message.epoch, NO_BROKER, Cause.EPOCH_SUPERSEDED)
            if message.removal is not None:
                self._on_removal_reported(message.removal)
            return
        if message.transfer_end >= 0:
            self._on_transfer_vote(sender, message)
        elif message.pre:
            is_asking = state.role == Role.PRECANDIDATE and message.epoch == self._asked_epoch
            if is_asking and not leader_alive:
                self._granted.add(sender)
                if state.configuration.wins_election(self._granted):
                    self._campaign(Cause.PREVOTES_WON, self._asked_epoch, transfer=False)
        elif state.role == Role.CANDIDATE and message.epoch == state.epoch:
            self._granted.add(sender)
            self._lead_if_elected()

    def _on_transfer_vote(self, sender: BrokerId, message: VoteResponse) -> None:
        """A vote that the leader before requested, for a log that has all of its log.

        It may come before that leader's TimeoutNow. It never counts in an election by
        time-out: this log may then lack what the voter has."""
        state = self._state
        given = message.epoch, message.transfer_end
        if message.epoch > state.epoch:
            if message.epoch > self._early_vote[0]:
                self._early_vote = given
                self._early_voters = set()
            if given == self._early_vote:
                self._early_voters.add(sender)
        elif state.role == Role.CANDIDATE and given == (state.epoch, self._stands_for):
            self._granted.add(sender)
            self._lead_if_elected()

    def _early_voters_for(self, epoch: Epoch, end: Index) -> set[BrokerId]:
        return self._early_voters if self._early_vote == (epoch, end) else set()

    def _is_delegated(self, sender: BrokerId, message: VoteRequest) -> bool:
        """Whether this vote is delegated to a leader that did not ask for this election."""
        state = self._state
        has_granted = message.epoch == state.epoch and state.vote == sender
        return message.epoch == state.delegated_epoch and not message.transfer and not has_granted

    def _refuse(
        self, sender: BrokerId, message: VoteRequest, *, delegated_epoch: Epoch = NO_EPOCH
    ) -> None:
        """`delegated_epoch`: this is why. Brokers of an earlier release learn it from the epoch."""
        removal = self._membership.removal_of(
            sender, (message.configuration_epoch, message.configuration_index)
        )
        epoch = max(self._state.epoch, delegated_epoch)
        self._state.send(
            sender,
            VoteResponse(
                epoch,
                granted=False,
                pre=message.pre,
                removal=removal,
                delegated_epoch=delegated_epoch,
            ),
        )

    def _on_removal_reported(self, removal: Removal) -> None:
        state = self._state
        self._membership.on_removal_reported(removal)
        if state.role in (Role.PRECANDIDATE, Role.CANDIDATE) and not self._may_campaign():
            state.follow(state.epoch, NO_BROKER, Cause.REMOVAL_LEARNED)

    def _may_campaign(self) -> bool:
        state = self._state
        if not self._membership.may_campaign or state.lost_state:
            return False
        # Without an entry of the grant it may lack what the grant committed (`arbitration`).
        return grant_of(self._next_epoch) == grant_of(state.log.last_epoch)

    @property
    def _next_epoch(self) -> Epoch:
        """The first epoch in which this replica may stand by itself."""
        return Epoch(max(self._state.epoch, self._state.delegated_epoch) + 1)

    def _ask_prevotes(self, epoch: Epoch) -> None:
        """Ask whether this replica would win an election."""
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
        """Stand for `epoch`; the voters `granted` have voted in it already."""
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
