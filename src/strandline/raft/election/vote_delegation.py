"""Votes that are left to the leader before it hands over.

Why:    votes that have to reach the heir keep everybody waiting for them. A leader that may give
        them away with its order to stand needs to ask nobody any more, and what it asks for before
        it does while it leads on.
How:    a voter promises, durably, that in the next epoch it votes for whom the leader of the
        present one orders to stand, and for nobody else; and goes on following. The order, of which
        there is one in a reign, names those who have promised, and the end of the log. They vote by
        that for a log that has everything they ever acknowledged: nothing is appended after.
            Nobody is named in a promise. So it is good for whichever heir, until the next epoch is
        over, and where no order is ever given, that epoch is passed over: who promised stands for
        the one after, and names it to those that it refuses.
            Whose disk is lost has forgotten what it promised. It takes part again only when the
        leader has heard so, which then counts no promise of it any more in this reign.
Owns:   `ReplicaState.promised`, `LeaderState.promises`.
Source: Raft thesis 3.10 and 3.8; decision 0021."""

from strandline.model.ids import BrokerId, Epoch
from strandline.raft.leader.leader_state import LeaderState
from strandline.raft.messages import LeaderContact, VoteResponse
from strandline.raft.state import ReplicaState


def make_promise(state: ReplicaState, leader: BrokerId) -> None:
    """A voter's side: `leader`, who is followed, asks for it."""
    if state.lost_state:
        return
    _promise(state)
    state.send(leader, VoteResponse(state.epoch, granted=True, pre=True, promised=state.promised))


def ask_promises(state: ReplicaState, leader_state: LeaderState) -> None:
    """A leader's side: promise as well, and ask those who have not."""
    _promise(state)
    contact = LeaderContact(state.epoch, state.commit, state.visible, asks_promise=True)
    for voter in state.configuration.all_voters:
        if voter in leader_state.progress and voter not in leader_state.promises:
            state.send(voter, contact)


def count_promise(
    state: ReplicaState, sender: BrokerId, message: VoteResponse
) -> LeaderState | None:
    """A voter has promised; None where that is of no use to who leads here, if anybody does."""
    leader_state = state.leader_state
    if leader_state is None or (message.epoch, message.promised) != (
        leader_state.epoch,
        leader_state.epoch + 1,
    ):
        return None
    if sender in leader_state.forgetful:
        return None
    leader_state.promises.add(sender)
    return leader_state


def delegated_votes_elect(
    state: ReplicaState, leader_state: LeaderState, transfer_target: BrokerId
) -> bool:
    """Whether the leader's own vote and those delegated to it elect `transfer_target`."""
    return state.configuration.wins_election(
        (state.self_id, transfer_target, *leader_state.promises)
    )


def _promise(state: ReplicaState) -> None:
    epoch = Epoch(state.epoch + 1)
    assert state.promised <= epoch, "a delegated vote is not taken back"
    if state.promised != epoch:
        state.promised = epoch
        state.persist()
