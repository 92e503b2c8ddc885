"""Votes that voters delegate to the leader before it hands over.

Why:    a transfer target that must ask for votes leads one round trip later. If the leader already
        holds the votes, its TimeoutNow elects the target at once; and it asks for them while it
        still leads.
How:    A voter promises, durably, that in the next epoch it votes for the replica that the leader
        of the present epoch names, and for no other; it keeps following. The leader names one
        target an epoch, in its TimeoutNow, with the delegators and the end of its log. They vote
        for a log that has everything they ever acknowledged: nothing is appended after it.
            A delegated vote names no target, so it serves any, until the next epoch is over. If the
        leader never hands over, the group skips that epoch: a delegator stands for the one after,
        and names that epoch when it refuses a vote.
            A replica that loses its disk forgets what it delegated. It takes part again only after
        the leader has learned of the loss, and the leader then counts no delegation of that replica
        for the rest of its epoch.
Owns:   `RaftState.delegated_epoch`, `LeaderState.delegators`.
Source: Raft thesis 3.10 and 3.8; decision 0021."""

from strandline.model.ids import BrokerId, Epoch
from strandline.raft.leader.leader_state import LeaderState
from strandline.raft.messages import LeaderContact, VoteResponse
from strandline.raft.state import RaftState


def delegate_vote(state: RaftState, leader: BrokerId) -> None:
    """A voter: the leader that it follows asks for its vote of the next epoch."""
    if state.lost_state:
        return
    _delegate_next_vote(state)
    state.send(
        leader,
        VoteResponse(state.epoch, granted=True, pre=True, delegated_epoch=state.delegated_epoch),
    )


def request_delegations(state: RaftState, leader_state: LeaderState) -> None:
    """A leader: delegate its own vote, and ask the voters that have not delegated theirs."""
    _delegate_next_vote(state)
    contact = LeaderContact(state.epoch, state.commit, state.visible, requests_delegation=True)
    for voter in state.configuration.all_voters:
        if voter in leader_state.progress and voter not in leader_state.delegators:
            state.send(voter, contact)


def count_delegation(
    state: RaftState, sender: BrokerId, message: VoteResponse
) -> LeaderState | None:
    """A voter has delegated its vote; None if this replica does not lead or may not count it."""
    leader_state = state.leader_state
    if leader_state is None or (message.epoch, message.delegated_epoch) != (
        leader_state.epoch,
        leader_state.epoch + 1,
    ):
        return None
    if sender in leader_state.excluded_delegators:
        return None
    leader_state.delegators.add(sender)
    return leader_state


def delegated_votes_elect(
    state: RaftState, leader_state: LeaderState, transfer_target: BrokerId
) -> bool:
    """Whether the leader's own vote and those delegated to it elect `transfer_target`."""
    return state.configuration.wins_election(
        (state.self_id, transfer_target, *leader_state.delegators)
    )


def _delegate_next_vote(state: RaftState) -> None:
    epoch = Epoch(state.epoch + 1)
    assert state.delegated_epoch <= epoch, "a delegated vote is not taken back"
    if state.delegated_epoch != epoch:
        state.delegated_epoch = epoch
        state.persist()
