"""Elections, sentence by sentence. Source: Raft thesis 3.4, 3.6.1, 4.2.2, 4.2.3, 9.6."""

import pytest
from tests.raft.member import Member, configuration, kinds, of_type, sent, shape

from strandline.raft import events
from strandline.raft.messages import (
    NO_HINT,
    AppendRequest,
    AppendResponse,
    LeaderContact,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.transitions import Role


def test_a_replica_begins_as_follower_and_knows_no_leader() -> None:
    """3.3."""
    raft = Member().raft
    assert (raft.role, raft.leader, raft.epoch) == (Role.FOLLOWER, -1, 0)


def test_a_time_out_asks_for_pre_votes_and_changes_no_epoch() -> None:
    """9.6."""
    member = Member(log=shape(1, 1), epoch=3)
    effects = member.time_out()
    request = VoteRequest(4, 1, 1, pre=True)
    assert sent(effects, VoteRequest) == {2: request, 3: request}
    assert (member.raft.role, member.raft.epoch) == (Role.PRECANDIDATE, 3)
    assert of_type(effects, events.PersistState) == []


def test_a_majority_of_pre_votes_raises_the_epoch_and_persists_the_own_vote_first() -> None:
    """3.4: votes for itself; 9.6."""
    member = Member()
    member.time_out()
    effects = member.receive(3, VoteResponse(1, granted=True, pre=True))
    assert effects[0] == events.PersistState(1, 1)
    assert {to: m.pre for to, m in sent(effects, VoteRequest).items()} == {2: False, 3: False}
    assert (member.raft.role, member.raft.epoch, member.raft.vote) == (Role.CANDIDATE, 1, 1)


def test_a_majority_of_votes_makes_a_leader_that_opens_its_epoch_with_a_marker() -> None:
    """3.4; 6.4: an entry of its own at once."""
    member = Member()
    member.time_out()
    member.receive(3, VoteResponse(1, granted=True, pre=True))
    effects = member.receive(2, VoteResponse(1, granted=True))
    assert effects[:2] == [events.BecameLeader(1), events.AppendMarker(0, 1, None)]
    assert kinds(effects)[2:] == ["ReplicationReady", "ReplicationReady"]
    assert (member.raft.leader, member.raft.is_leader) == (1, True)


def test_the_only_voter_elects_itself_in_one_step() -> None:
    effects = Member(voters=(1,)).time_out()
    assert kinds(effects) == [
        "BecameFollower", "PersistState", "BecameFollower", "BecameLeader", "AppendMarker",
    ]  # fmt: skip


def test_votes_of_an_earlier_round_do_not_count() -> None:
    """3.4: votes are for an epoch."""
    member = Member(epoch=5)
    member.time_out()
    member.receive(2, VoteResponse(5, granted=True, pre=True))
    assert member.raft.role == Role.PRECANDIDATE
    member.receive(2, VoteResponse(6, granted=True, pre=True))
    member.receive(2, VoteResponse(6, granted=True, pre=True))
    member.receive(3, VoteResponse(5, granted=True))
    assert member.raft.role == Role.CANDIDATE


def test_of_two_who_ask_at_once_the_one_with_the_higher_id_gives_up() -> None:
    """Two round trips apart, both would win their pre-votes and then split the votes."""
    request = VoteRequest(1, -1, 0, pre=True)
    higher, lower = Member(2), Member(1)
    higher.time_out()
    lower.time_out()
    assert sent(higher.receive(1, request), VoteResponse)[1].granted
    assert sent(lower.receive(2, request), VoteResponse)[2].granted
    assert (higher.raft.role, lower.raft.role) == (Role.FOLLOWER, Role.PRECANDIDATE)
    higher.receive(3, VoteResponse(1, granted=True, pre=True))
    assert (higher.raft.role, higher.raft.epoch) == (Role.FOLLOWER, 0)


def test_nobody_gives_up_for_a_shorter_log() -> None:
    member = Member(2, log=shape(1, 1), epoch=1)
    member.time_out()
    assert not sent(member.receive(1, VoteRequest(2, 0, 1, pre=True)), VoteResponse)[1].granted
    assert member.raft.role == Role.PRECANDIDATE


def test_the_same_vote_twice_is_one_vote() -> None:
    member = Member(voters=(1, 2, 3, 4, 5))
    member.time_out()
    member.receive(2, VoteResponse(1, granted=True, pre=True))
    member.receive(2, VoteResponse(1, granted=True, pre=True))
    assert member.raft.role == Role.PRECANDIDATE


def test_votes_of_observers_do_not_count() -> None:
    """4.2.1."""
    member = Member(voters=(1, 2, 3), observers=(4, 5))
    effects = member.time_out()
    assert set(sent(effects, VoteRequest)) == {2, 3}
    member.receive(4, VoteResponse(1, granted=True, pre=True))
    member.receive(5, VoteResponse(1, granted=True, pre=True))
    assert member.raft.role == Role.PRECANDIDATE


def test_an_observer_never_campaigns() -> None:
    """4.2.1."""
    member = Member(self_id=4, observers=(4,))
    assert member.time_out() == []
    assert member.receive(1, TimeoutNow(0)) == []


def test_a_joint_election_needs_both_majorities() -> None:
    """4.3."""
    joint = configuration((1, 4, 5), old=(1, 2, 3))
    member = Member(log=shape(1, configurations=((0, joint),)))
    member.time_out()
    member.receive(4, VoteResponse(2, granted=True, pre=True))
    assert member.raft.role == Role.PRECANDIDATE
    member.receive(3, VoteResponse(2, granted=True, pre=True))
    assert member.raft.role == Role.CANDIDATE


def test_a_voter_of_the_previous_configuration_campaigns_until_the_next_one_commits() -> None:
    """4.2.2: it might still be needed."""
    old, new = configuration((1, 2)), configuration((2, 3))
    log = shape(1, 1, configurations=((0, old), (1, new)))
    member = Member(log=log, voters=(9,))
    effects = member.time_out()
    assert set(sent(effects, VoteRequest)) == {2, 3}
    assert Member(log=log, commit=1).time_out() == []


def test_a_vote_is_durable_before_it_is_given() -> None:
    """3.8."""
    effects = Member().receive(2, VoteRequest(1, -1, 0))
    assert effects[0] == events.PersistState(1, 2)
    assert effects[-1] == events.Send(2, VoteResponse(1, granted=True))


def test_one_vote_an_epoch_and_the_same_answer_twice() -> None:
    """3.4: first come, first served."""
    member = Member()
    member.receive(2, VoteRequest(1, -1, 0))
    assert sent(member.receive(3, VoteRequest(1, 5, 1)), VoteResponse) == {
        3: VoteResponse(1, False)
    }
    again = member.receive(2, VoteRequest(1, -1, 0))
    assert again == [events.Send(2, VoteResponse(1, granted=True))]


def test_a_vote_survives_a_restart() -> None:
    """3.8."""
    member = Member(epoch=1, vote=2)
    assert not sent(member.receive(3, VoteRequest(1, 9, 1)), VoteResponse)[3].granted
    assert sent(member.receive(2, VoteRequest(1, 9, 1)), VoteResponse)[2].granted


@pytest.mark.parametrize(
    ("last_epoch", "last_index", "granted"),
    [(1, 9, False), (2, 1, False), (2, 2, True), (2, 3, True), (3, 0, True)],
)
@pytest.mark.parametrize("pre", [True, False])
def test_only_a_log_that_is_as_complete_gets_a_vote(
    last_epoch: int, last_index: int, *, granted: bool, pre: bool
) -> None:
    """3.6.1: the later last epoch, then the longer log."""
    member = Member(log=shape(1, 1, 2), epoch=4)
    answer = sent(member.receive(2, VoteRequest(5, last_index, last_epoch, pre)), VoteResponse)[2]
    assert answer.granted is granted


def test_a_pre_vote_changes_nothing() -> None:
    """9.6."""
    member = Member(epoch=1)
    effects = member.receive(2, VoteRequest(9, 5, 5, pre=True))
    assert effects == [events.Send(2, VoteResponse(9, granted=True, pre=True))]
    assert member.raft.epoch == 1


@pytest.mark.parametrize("pre", [True, False])
def test_a_voter_that_hears_the_leader_refuses_and_keeps_its_epoch(*, pre: bool) -> None:
    """4.2.3; Redpanda #2048."""
    member = Member(epoch=1)
    member.receive(3, LeaderContact(1, -1, -1))
    effects = member.receive(2, VoteRequest(2, 5, 1, pre), leader_alive=True)
    assert effects == [events.Send(2, VoteResponse(1, granted=False, pre=pre))]
    assert (member.raft.epoch, member.raft.leader) == (1, 3)


def test_a_candidate_that_hears_a_leader_does_not_stand_though_it_would_be_elected() -> None:
    """Its own vote is one that the leader counts on."""
    member = Member(epoch=1)
    member.time_out()
    granted = VoteResponse(2, granted=True, pre=True)
    assert member.receive(2, granted, leader_alive=True) == []
    assert (member.raft.epoch, member.raft.role) == (1, Role.PRECANDIDATE)
    member.receive(2, granted)
    assert (member.raft.epoch, member.raft.vote) == (2, 1)


def test_a_leader_refuses_to_be_deposed_but_by_its_own_will() -> None:
    """4.2.3, 3.10."""
    member = Member().lead()
    assert not sent(member.receive(2, VoteRequest(2, 5, 1)), VoteResponse)[2].granted
    assert member.raft.is_leader
    granted = member.receive(2, VoteRequest(2, 5, 1, transfer=True), leader_alive=True)
    assert sent(granted, VoteResponse)[2].granted
    assert not member.raft.is_leader


def test_a_request_of_an_old_epoch_is_refused_with_the_epoch_of_today() -> None:
    """3.3; Redpanda #31547: a reply always has the epoch."""
    member = Member(epoch=4)
    assert sent(member.receive(2, VoteRequest(3, 9, 3)), VoteResponse)[2] == VoteResponse(4, False)
    for message in (LeaderContact(3, -1, -1), AppendRequest(3, -1, 0, -1, -1)):
        refusal = sent(member.receive(2, message), AppendResponse)[2]
        assert refusal == AppendResponse(4, False, hint=NO_HINT)


def test_a_later_epoch_in_an_answer_makes_a_follower() -> None:
    """3.3."""
    for answer in (VoteResponse(7, False), VoteResponse(7, False, True), AppendResponse(7, False)):
        member = Member().lead()
        effects = member.receive(2, answer)
        assert effects == [events.PersistState(7, -1), events.BecameFollower(7, -1)]


def test_a_candidate_follows_the_leader_of_its_own_epoch() -> None:
    """3.4."""
    member = Member()
    member.time_out()
    member.receive(3, VoteResponse(1, granted=True, pre=True))
    effects = member.receive(2, LeaderContact(1, -1, -1))
    assert effects == [events.BecameFollower(1, 2)]


def test_a_candidate_asks_anew_for_pre_votes_after_a_time_out() -> None:
    """3.4 and 9.6: epochs do not run away while nobody can win."""
    member = Member()
    member.time_out()
    member.receive(3, VoteResponse(1, granted=True, pre=True))
    for _ in range(3):
        effects = member.time_out()
        assert {m.pre for m in sent(effects, VoteRequest).values()} == {True}
    assert member.raft.epoch == 1


def test_a_leader_without_quorum_steps_down_and_keeps_its_vote() -> None:
    """6.2: check quorum."""
    member = Member().lead()
    assert member.step(events.QuorumLost()) == [events.BecameFollower(1, -1)]
    assert member.raft.vote == 1
    assert member.step(events.QuorumLost()) == []


def test_becoming_a_follower_is_said_once() -> None:
    member = Member()
    assert member.receive(2, LeaderContact(3, -1, -1)) == [
        events.PersistState(3, -1),
        events.BecameFollower(3, 2),
    ]
    assert member.receive(2, LeaderContact(3, -1, -1)) == []


def test_a_replica_that_knows_the_leader_gives_no_late_vote() -> None:
    member = Member()
    member.receive(2, LeaderContact(1, -1, -1))
    assert not sent(member.receive(3, VoteRequest(1, 9, 1)), VoteResponse)[3].granted


def test_a_voter_without_the_entry_that_made_it_one_still_votes() -> None:
    """4.2.1: votes do not depend on the voter's own configuration."""
    member = Member(self_id=9, voters=(1, 2, 3))
    assert sent(member.receive(1, VoteRequest(1, 5, 1)), VoteResponse)[1].granted
