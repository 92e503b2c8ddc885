"""Each row of the table of role transitions happens, and nothing else does.

Source: `strandline.raft.transitions`; Raft thesis, figure 3.2."""

from collections.abc import Callable

import pytest
from tests.raft.member import Member, configuration, shape, target

from strandline.model.ids import NO_BROKER, BrokerId, Epoch, Index, first_epoch
from strandline.raft import events
from strandline.raft.messages import (
    AppendResponse,
    Appoint,
    Fence,
    LeaderContact,
    Removal,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.state import RaftState
from strandline.raft.transitions import NEXT_ROLE, TRANSITIONS, Cause, Role

FOLLOWER, PRECANDIDATE, CANDIDATE, LEADER = Role


def member_as(role: Role) -> Member:
    """A member of three that has this role; if it leads, of epoch 1."""
    member = Member()
    if role == LEADER:
        return member.lead_established()
    if role != FOLLOWER:
        member.time_out()
    if role == CANDIDATE:
        member.receive(2, VoteResponse(Epoch(1), granted=True, pre=True))
    assert member.raft.role == role
    return member


def time_out(role: Role) -> Member:
    member = member_as(role)
    member.time_out()
    return member


def be_barred(role: Role) -> Member:
    member = member_as(role)
    if role == FOLLOWER:
        member.receive(2, LeaderContact(Epoch(0), Index(-1), Index(-1)))
    member.raft.state.lost_state = True  # One of the reasons; see `Elections._may_campaign`.
    member.time_out()
    return member


def win_prevotes(role: Role) -> Member:
    member = member_as(role)
    member.receive(2, VoteResponse(Epoch(1), granted=True, pre=True))
    return member


def win_votes(role: Role) -> Member:
    member = member_as(role)
    member.receive(2, VoteResponse(Epoch(1), granted=True))
    return member


def yield_prevote(role: Role) -> Member:
    member = Member(2)
    member.time_out()
    assert member.raft.role == role
    member.receive(1, VoteRequest(Epoch(1), Index(-1), Epoch(0), pre=True))
    return member


def find_a_leader(role: Role) -> Member:
    member = member_as(role)
    member.receive(2, LeaderContact(member.raft.epoch, Index(-1), Index(-1)))
    assert member.raft.leader == 2
    return member


def hear_of_a_higher_epoch(role: Role) -> Member:
    member = member_as(role)
    member.receive(2, Fence(Epoch(7)))
    return member


def lose_the_quorum(role: Role) -> Member:
    member = member_as(role)
    member.step(events.QuorumLost())
    return member


def learn_of_the_removal(role: Role) -> Member:
    member = member_as(role)
    removal = Removal(Epoch(1), Index(0), configuration((2, 3)))
    refusal = VoteResponse(member.raft.epoch, granted=False, removal=removal)
    member.receive(2, refusal)
    return member


def commit_the_own_removal(role: Role) -> Member:
    member = member_as(role)
    member.step(events.ChangeConfiguration((2, 3), ()))
    for _ in ("joint", "final"):
        assert member.raft.role == role
        member.flush()
        for peer in (2, 3):
            member.send_all(peer)
            if member.raft.is_leader:
                member.hear_all(peer)
    return member


def hand_over(role: Role) -> Member:
    member = member_as(role)
    member.step(events.TransferLeadership(2))
    member.step(events.DelegationsTimedOut())
    return member


def receive_a_transfer(role: Role) -> Member:
    member = member_as(role)
    member.receive(2, TimeoutNow(member.raft.epoch))
    return member


def abandon_a_transfer(role: Role) -> Member:
    member = hand_over(LEADER)
    assert member.raft.role == role
    member.step(events.AbandonTransfer())
    return member


def vote_as_requested(role: Role) -> Member:
    member = target()
    if role == PRECANDIDATE:
        member.time_out()
    assert member.raft.role == role
    request = LeaderContact(Epoch(1), Index(-1), Index(-1), BrokerId(3), Index(4))
    member.raft._appends._reported = Index(4)
    member.raft.state.pending_request = 1, request
    member.step(events.LogFlushed(Index(4), 0))
    assert member.raft.vote == 3
    return member


def accept_appointment(role: Role) -> Member:
    member = Member(log=shape(1, 1))
    epoch = first_epoch(1)
    member.receive(9, Fence(epoch))
    assert member.raft.role == role
    member.receive(9, Appoint(epoch, Epoch(1), Index(1), configuration((1, 2))))
    return member


SCENARIOS: dict[Cause, Callable[[Role], Member]] = {
    Cause.TIMED_OUT: time_out,
    Cause.BARRED: be_barred,
    Cause.PREVOTES_WON: win_prevotes,
    Cause.VOTES_WON: win_votes,
    Cause.PREVOTE_YIELDED: yield_prevote,
    Cause.LEADER_FOUND: find_a_leader,
    Cause.EPOCH_SUPERSEDED: hear_of_a_higher_epoch,
    Cause.QUORUM_LOST: lose_the_quorum,
    Cause.REMOVAL_LEARNED: learn_of_the_removal,
    Cause.REMOVAL_COMMITTED: commit_the_own_removal,
    Cause.HANDED_OVER: hand_over,
    Cause.TRANSFER_RECEIVED: receive_a_transfer,
    Cause.TRANSFER_ABANDONED: abandon_a_transfer,
    Cause.VOTE_REQUESTED_BY_LEADER: vote_as_requested,
    Cause.APPOINTED: accept_appointment,
}


@pytest.mark.parametrize(
    ("role", "cause"), NEXT_ROLE, ids=[f"{role.name}-{cause.name}" for role, cause in NEXT_ROLE]
)
def test_a_cause_leads_to_the_role_that_the_table_names(
    role: Role, cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[tuple[Role, Cause]] = []
    change = RaftState._change_role

    def record(self: RaftState, cause: Cause) -> None:
        met.append((self.role, cause))
        change(self, cause)

    monkeypatch.setattr(RaftState, "_change_role", record)
    member = SCENARIOS[cause](role)
    assert member.raft.role == NEXT_ROLE[role, cause]
    assert met[-1] == (role, cause)


def test_a_cause_that_the_table_does_not_have_for_a_role_is_refused() -> None:
    for role in Role:
        for cause in Cause:
            if (role, cause) not in NEXT_ROLE:
                member = member_as(role)
                with pytest.raises(AssertionError):
                    member.raft.state.become(cause, NO_BROKER)
                assert member.raft.role == role


def test_every_row_has_a_guard_and_a_source_and_every_pair_stands_once() -> None:
    assert len(NEXT_ROLE) == sum(len(row.before) for row in TRANSITIONS)
    assert {row.cause for row in TRANSITIONS} == set(Cause)
    assert all(row.guard and row.section for row in TRANSITIONS)


def test_only_an_election_and_an_appointment_make_a_leader() -> None:
    """One leader an epoch: a candidate has a majority's votes, an appointment is granted once an
    epoch."""
    ways = {(row.cause, row.before) for row in TRANSITIONS if row.after == LEADER}
    assert ways == {(Cause.VOTES_WON, (CANDIDATE,)), (Cause.APPOINTED, (FOLLOWER,))}


@pytest.mark.parametrize("role", Role, ids=[role.name for role in Role])
def test_an_answer_of_the_same_epoch_changes_no_role(role: Role) -> None:
    member = member_as(role)
    member.receive(2, AppendResponse(member.raft.epoch, True, Index(-1), Index(-1)))
    assert member.raft.role == role
