"""Who hands over orders the other voters to vote for its heir. Source: decision 0013."""

import msgspec
import pytest
from tests.raft.member import Member, kinds, sent, shape, target

from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft import events
from strandline.raft.messages import (
    AppendResponse,
    LeaderContact,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.transitions import Role

FIVE = (1, 2, 3, 4, 5)


def request_to_vote(last_index: int = 4, *, epoch: int = 1) -> LeaderContact:
    return LeaderContact(Epoch(epoch), Index(-1), Index(-1), BrokerId(2), Index(last_index))


def given(last_index: int = 4, *, epoch: int = 2) -> VoteResponse:
    """A vote for broker 2 by order, for a log of epoch 1 that ends there."""
    return VoteResponse(Epoch(epoch), granted=True, pre=True, transfer_end=Index(last_index))


def voter(last_index: int = 4, **options: object) -> Member:
    """Another follower of broker 1, as `target`; it has acknowledged what it has."""
    member = Member(3, log=shape(*([1] * (last_index + 1))), **options)  # type: ignore[arg-type]
    member.append(prev=(last_index, 1), epoch=1, sender=1)
    return member


def test_of_five_voters_those_that_have_all_are_asked_to_vote_for_the_target() -> None:
    """They need not wait for the old leader's own vote: it leads no more in any case."""
    member = Member(voters=FIVE).lead_established()
    member.step(events.PeerReset(5))
    member.step(events.TransferLeadership(2))
    effects = member.step(events.DelegationsTimedOut())
    request = LeaderContact(Epoch(1), Index(0), Index(0), BrokerId(2), Index(0))
    assert sent(effects, LeaderContact) == {3: request, 4: request}
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1, 0, (3, 4))}
    assert kinds(effects) == ["Send", "Send", "BecameFollower", "Send", "PersistState"]


def test_of_three_voters_no_third_vote_is_needed() -> None:
    member = Member().lead_established()
    assert sent(member.step(events.TransferLeadership(2)), LeaderContact) == {}


def test_while_voters_change_votes_of_both_sides_are_asked_for() -> None:
    """Of three voters two are enough, but not of each of two sets."""
    member = Member().lead_established()
    member.step(events.ChangeConfiguration((1, 4, 5), ()))
    for peer in (2, 4, 5):
        member.send_all(peer)
        member.hear_all(peer)
    assert member.raft.configuration.is_joint
    member.step(events.TransferLeadership(4))
    effects = member.step(events.DelegationsTimedOut())
    assert set(sent(effects, LeaderContact)) == {2, 5}


def test_a_voter_gives_its_vote_durably_to_the_target_and_follows_no_leader() -> None:
    member = voter(voters=FIVE)
    effects = member.receive(1, request_to_vote(), leader_alive=True)
    assert kinds(effects) == ["PersistState", "BecameFollower", "Send"]
    assert effects[0] == events.PersistState(2, 2)
    assert sent(effects, VoteResponse) == {2: given()}
    refusal = sent(member.receive(4, VoteRequest(2, 9, 1, transfer=True)), VoteResponse)[4]
    assert not refusal.granted
    assert sent(member.receive(2, VoteRequest(2, 4, 1)), VoteResponse)[2].granted
    assert not sent(member.receive(2, VoteRequest(2, 3, 1)), VoteResponse)[2].granted


def test_a_voter_acknowledges_everything_before_it_votes() -> None:
    """In the next epoch nobody would count it: producers would wait for the next leader."""
    member = voter(2, voters=FIVE)
    assert member.receive(1, request_to_vote()) == []
    assert kinds(member.append(prev=(2, 1), epochs=(1, 1), sender=1)) == ["AppendEntries"]
    effects = member.flush()
    assert kinds(effects) == ["Send", "PersistState", "BecameFollower", "Send"]
    assert sent(effects, AppendResponse) == {1: AppendResponse(1, True, Index(4), Index(4))}
    assert sent(effects, VoteResponse) == {2: given()}


def test_entries_that_the_leader_did_not_send_are_no_reason_to_vote() -> None:
    """A log that is as long need not be the same."""
    member = Member(3, log=shape(1, 1, 1, 1, 1), epoch=2, voters=FIVE)
    member.append(prev=(2, 1), epoch=2, sender=1)
    member.receive(1, request_to_vote(epoch=2))
    assert (member.raft.epoch, member.raft.vote) == (2, -1)


def test_a_voter_that_has_heard_of_another_leader_does_not_vote_on_request() -> None:
    member = voter(2, voters=FIVE)
    member.receive(1, request_to_vote())
    member.append(prev=(2, 1), epochs=(2, 2), epoch=2, sender=4)
    assert sent(member.flush(), VoteResponse) == {}
    assert sent(member.receive(1, request_to_vote(3)), VoteResponse) == {}
    assert (member.raft.epoch, member.raft.leader, member.raft.vote) == (2, 4, -1)


def test_a_vote_request_of_the_leader_that_comes_twice_gets_one_vote() -> None:
    member = voter(voters=FIVE)
    member.receive(1, request_to_vote())
    assert sent(member.receive(1, request_to_vote()), VoteResponse) == {}
    assert (member.raft.epoch, member.raft.vote) == (2, 2)


def test_a_voter_that_started_anew_waits_to_be_asked() -> None:
    """What it had acknowledged it has forgotten."""
    member = Member(3, log=shape(1, 1, 1, 1, 1), voters=FIVE)
    assert sent(member.receive(1, request_to_vote()), VoteResponse) == {}
    assert sent(member.receive(2, VoteRequest(2, 4, 1, transfer=True)), VoteResponse)[2].granted


def test_a_voter_that_lost_its_disk_does_not_vote_on_request() -> None:
    member = Member(3, voters=FIVE, lost_state=True)
    member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    member.flush()
    assert sent(member.receive(1, request_to_vote(1)), VoteResponse) == {}
    assert member.raft.vote == -1


def test_a_voter_that_stands_itself_does_not_vote_on_request() -> None:
    member = voter(2, voters=FIVE)
    member.receive(1, request_to_vote())
    member.time_out()
    for peer in (4, 5):
        member.receive(peer, VoteResponse(2, granted=True, pre=True))
    assert (member.raft.role, member.raft.vote) == (Role.CANDIDATE, 3)
    assert sent(member.receive(1, request_to_vote(2)), VoteResponse) == {}
    assert member.raft.vote == 3


# ---- the votes of the others ---------------------------------------------------------------------


def test_a_requested_vote_elects_the_target_that_stands_by_the_request() -> None:
    member = target(voters=FIVE)
    member.receive(1, TimeoutNow(1, 4))
    assert not member.raft.is_leader
    member.receive(3, given())
    assert member.raft.is_leader


def test_requested_votes_that_come_before_timeout_now_wait_for_it() -> None:
    member = target(2, voters=FIVE)
    assert member.receive(3, given()) == []
    member.receive(1, TimeoutNow(1, 4))
    assert member.raft.role == Role.FOLLOWER
    member.append(prev=(2, 1), epochs=(1, 1), sender=1)
    assert (member.raft.is_leader, member.raft.epoch) == (True, 2)


def test_a_requested_vote_that_comes_twice_is_one_vote() -> None:
    member = target(voters=(1, 2, 3, 4, 5, 6, 7))
    for _ in range(2):
        member.receive(3, given())
    member.receive(1, TimeoutNow(1, 4))
    member.receive(3, given())
    assert member.raft.role == Role.CANDIDATE
    member.receive(4, given())
    assert member.raft.is_leader


def test_a_requested_vote_never_counts_in_an_election_by_time_out() -> None:
    """Its log may be shorter than the voter's: what it lacks may be committed."""
    member = target(2, voters=FIVE)
    member.receive(3, given())
    member.time_out()
    for peer in (4, 5):
        member.receive(peer, VoteResponse(2, granted=True, pre=True))
    for peer in (1, 3, 4, 5):
        assert member.receive(peer, given()) == []
    assert (member.raft.role, member.raft.epoch) == (Role.CANDIDATE, 2)


def test_a_requested_vote_is_no_consent_to_an_election_by_time_out() -> None:
    member = target(2, voters=FIVE)
    member.time_out()
    for peer in (3, 4, 5):
        assert member.receive(peer, given()) == []
    assert (member.raft.role, member.raft.epoch) == (Role.PRECANDIDATE, 1)


@pytest.mark.parametrize("vote", [given(3), given(epoch=3), given(epoch=1)])
def test_a_vote_for_another_transfer_does_not_count(vote: VoteResponse) -> None:
    """Nor by an order without a log's end, or one to a leader of before."""
    for request in (TimeoutNow(1, 4), TimeoutNow(1)):
        member = target(voters=FIVE)
        member.receive(3, vote)
        member.receive(4, vote)
        member.receive(1, request)
        member.receive(5, vote)
        assert (member.raft.role, member.raft.epoch) == (Role.CANDIDATE, 2)


def test_who_started_anew_asks_for_the_votes_that_it_had() -> None:
    member = target(voters=FIVE)
    member.receive(3, given())
    member = target(voters=FIVE)
    effects = member.receive(1, TimeoutNow(1, 4))
    assert set(sent(effects, VoteRequest)) == {3, 4, 5}


def test_brokers_of_an_earlier_release_take_neither_for_anything_that_elects() -> None:
    """They leave out what they do not know: a heartbeat, and consent to a pre-vote."""

    class Contact(msgspec.Struct, tag=5, array_like=True):
        epoch: int
        commit: int
        visible: int

    class Answer(msgspec.Struct, tag=2, array_like=True):
        epoch: int
        granted: bool
        pre: bool = False
        removal: object = None

    contact = msgspec.msgpack.decode(msgspec.msgpack.encode(request_to_vote()), type=Contact)
    assert contact == Contact(1, -1, -1)
    answer = msgspec.msgpack.decode(msgspec.msgpack.encode(given()), type=Answer)
    assert (answer.pre, answer.removal) == (True, None)
