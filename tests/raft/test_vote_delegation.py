"""Votes that are left to a leader before it hands over. Source: decision 0021."""

import msgspec
import pytest
from tests.raft.member import Member, kinds, of_type, sent, shape, target

from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft import events
from strandline.raft.messages import (
    AppendResponse,
    Fence,
    LeaderContact,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.transitions import Role

FIVE = (1, 2, 3, 4, 5)

QUESTION = LeaderContact(Epoch(1), Index(-1), Index(-1), requests_delegation=True)


def delegation(epoch: int = 1) -> VoteResponse:
    """Of a follower in that epoch."""
    return VoteResponse(Epoch(epoch), granted=True, pre=True, delegated_epoch=Epoch(epoch + 1))


def delegated(**options: object) -> Member:
    """A follower of broker 1 in epoch 1, with entries 0 to 4, that has promised."""
    member = Member(3, log=shape(1, 1, 1, 1, 1), voters=FIVE, **options)  # type: ignore[arg-type]
    member.append(prev=(4, 1), epoch=1, sender=1)
    member.receive(1, QUESTION)
    return member


def asking(to: int = 2) -> Member:
    """A leader of five that has begun to hand over."""
    member = Member(voters=FIVE).lead_established()
    member.step(events.TransferLeadership(BrokerId(to)))
    return member


# ---- the leader ----------------------------------------------------------------------------------


def test_a_leader_delegates_durably_before_it_asks_the_others_and_leads_on() -> None:
    member = Member(voters=FIVE).lead_established()
    effects = member.step(events.TransferLeadership(2))
    assert effects[0] == events.PersistState(1, 1, 2)
    question = LeaderContact(Epoch(1), Index(0), Index(0), requests_delegation=True)
    assert sent(effects, LeaderContact) == {2: question, 3: question, 4: question, 5: question}
    assert sent(effects, TimeoutNow) == {}
    assert member.raft.accepts_proposals
    member.propose(1)


def test_where_two_votes_elect_nobody_is_asked() -> None:
    effects = Member().lead_established().step(events.TransferLeadership(2))
    assert sent(effects, LeaderContact) == {}
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1, 0, (3,))}


def test_with_enough_delegations_timeout_now_carries_them_and_no_flush_comes_before_it() -> None:
    member = asking()
    effects = member.receive(4, delegation())
    assert kinds(effects) == ["BecameFollower", "Send", "PersistState"]
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1, 0, (3, 4, 5), delegators=(4,))}
    assert effects[-1] == events.PersistState(2, 2, 2)


def test_timeout_now_names_the_end_of_the_log_when_it_is_sent_not_when_votes_were_delegated() -> (
    None
):
    member = Member(voters=(1, 2, 3, 4, 5, 6, 7)).lead_established()
    member.step(events.TransferLeadership(2))
    member.receive(4, delegation())
    member.propose(3)
    member.send_all(2)
    request = sent(member.receive(5, delegation()), TimeoutNow)[2]
    assert (request.last_index, request.delegators) == (3, (4, 5))


def test_no_proposal_is_held_while_the_leader_waits_for_delegations() -> None:
    member = asking()
    member.propose(2)
    member.hear_all(2)
    member.propose(1)
    member.hear(2, 2)
    assert member.raft.accepts_proposals


def test_a_leader_that_waits_in_vain_hands_over_as_without_delegations() -> None:
    member = asking()
    effects = member.step(events.DelegationsTimedOut())
    assert set(sent(effects, LeaderContact)) == {3, 4, 5}
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1, 0, (3, 4, 5))}
    member = Member(voters=FIVE).lead_established()
    assert member.step(events.DelegationsTimedOut()) == []


def test_delegations_serve_another_target_after_a_transfer_was_abandoned() -> None:
    member = Member(voters=(1, 2, 3, 4, 5, 6, 7)).lead_established()
    member.step(events.TransferLeadership(2))
    member.receive(4, delegation())
    member.step(events.AbandonTransfer())
    assert sent(member.receive(5, delegation()), TimeoutNow) == {}
    assert member.raft.accepts_proposals
    effects = member.step(events.TransferLeadership(3))
    request = TimeoutNow(1, 0, (2, 4, 5, 6, 7), delegators=(4, 5))
    assert sent(effects, TimeoutNow) == {3: request}


def test_delegations_of_both_sides_are_needed_while_voters_change() -> None:
    member = Member(voters=FIVE).lead_established()
    member.step(events.ChangeConfiguration((1, 6, 7), ()))
    for peer in (2, 3, 4, 6):
        member.send_all(peer)
        member.hear_all(peer)
    assert member.raft.configuration.is_joint
    assert sent(member.step(events.TransferLeadership(6)), TimeoutNow) == {}
    assert sent(member.receive(2, delegation()), TimeoutNow) == {}
    assert set(sent(member.receive(3, delegation()), TimeoutNow)) == {6}


def test_a_delegation_to_a_leader_of_another_epoch_does_not_count() -> None:
    for epoch in (0, 2):
        assert asking().receive(4, delegation(epoch)) == []
    assert Member(voters=FIVE).receive(4, delegation()) == []


def test_a_delegation_of_a_voter_that_lost_its_disk_does_not_count_whatever_comes_late() -> None:
    """It is forgotten: the voter may give that vote to somebody else once it counts again."""
    seven = Member(voters=(1, 2, 3, 4, 5, 6, 7)).lead_established()
    seven.step(events.TransferLeadership(2))
    seven.receive(4, delegation())
    seven.receive(4, AppendResponse(1, False, hint=-1, recovering=True))
    seven.receive(4, delegation())
    seven.send_all(2)
    seven.hear_all(2)
    assert sent(seven.receive(5, delegation()), TimeoutNow) == {}
    request = sent(seven.receive(6, delegation()), TimeoutNow)[2]
    assert request.delegators == (5, 6)


def test_a_delegation_of_a_removed_voter_does_not_count() -> None:
    member = Member(voters=(1, 2, 3, 4, 5, 6, 7)).lead_established()
    member.step(events.TransferLeadership(2))
    member.receive(4, delegation())
    member.step(events.AbandonTransfer())
    for voters in ((1, 2, 3, 5, 6, 7), (1, 2, 3, 4, 5, 6, 7)):
        member.step(events.ChangeConfiguration(voters, ()))
        for _ in range(2):
            member.flush()
            for peer in list(member.raft.progress):
                member.send_all(peer)
                member.hear_all(peer)
        assert member.raft.configuration.voters == voters
    member.step(events.TransferLeadership(2))
    member.receive(4, delegation())
    assert sent(member.receive(5, delegation()), TimeoutNow) == {}


# ---- the voter -----------------------------------------------------------------------------------


def test_a_voter_delegates_durably_before_it_answers_and_follows_on() -> None:
    member = Member(3, log=shape(1, 1), voters=FIVE)
    member.append(prev=(1, 1), epoch=1, sender=1)
    effects = member.receive(1, QUESTION)
    assert kinds(effects) == ["PersistState", "Send"]
    assert effects[0] == events.PersistState(1, -1, 2)
    assert sent(effects, VoteResponse) == {1: delegation()}
    assert (member.raft.epoch, member.raft.leader) == (1, 1)
    member.append(prev=(1, 1), epochs=(1,), sender=1)
    assert sent(member.flush(), AppendResponse)[1].flushed == 2


def test_a_voter_that_is_asked_twice_answers_twice() -> None:
    member = delegated()
    effects = member.receive(1, QUESTION)
    assert kinds(effects) == ["Send"]
    assert sent(effects, VoteResponse) == {1: delegation()}


def test_a_voter_delegates_nothing_to_a_leader_of_the_past() -> None:
    member = Member(3, log=shape(1, 2), voters=FIVE)
    assert sent(member.receive(1, QUESTION), VoteResponse) == {}
    assert member.raft.delegated_epoch == 0


def test_a_voter_that_lost_its_disk_delegates_nothing() -> None:
    member = Member(3, voters=FIVE, lost_state=True)
    assert sent(member.receive(1, QUESTION), VoteResponse) == {}


@pytest.mark.parametrize("restarts", [False, True])
def test_a_delegator_votes_for_no_candidate_by_time_out_in_that_epoch(*, restarts: bool) -> None:
    """It is an election safety violation else: the order may be on its way."""
    member = delegated()
    if restarts:
        member = Member(3, log=shape(1, 1, 1, 1, 1), voters=FIVE, delegated_epoch=2)
    refusal = sent(member.receive(4, VoteRequest(2, 9, 1)), VoteResponse)[4]
    assert not refusal.granted
    assert (member.raft.epoch, member.raft.vote) == (2, -1)
    refusal = sent(member.receive(5, VoteRequest(2, 9, 1)), VoteResponse)[5]
    assert not refusal.granted


def test_a_delegator_votes_in_the_epoch_after_as_any_voter() -> None:
    member = delegated()
    assert sent(member.receive(4, VoteRequest(3, 9, 1)), VoteResponse)[4].granted
    assert member.raft.delegated_epoch == 0


def test_a_delegator_votes_for_the_target_of_its_leader() -> None:
    """So where the leader did not hear of the promise, and the heir has to ask. By its log."""
    member = delegated()
    assert not sent(member.receive(2, VoteRequest(2, 3, 1, transfer=True)), VoteResponse)[2].granted
    assert sent(member.receive(2, VoteRequest(2, 4, 1, transfer=True)), VoteResponse)[2].granted
    assert sent(member.receive(2, VoteRequest(2, 4, 1)), VoteResponse)[2].granted


def test_a_delegator_votes_when_its_leader_asks() -> None:
    member = delegated()
    request = LeaderContact(Epoch(1), Index(-1), Index(-1), BrokerId(2), Index(4))
    effects = member.receive(1, request)
    assert sent(effects, VoteResponse)[2].transfer_end == 4
    assert member.raft.vote == 2


def test_a_delegator_that_hears_no_leader_stands_for_the_epoch_after() -> None:
    member = delegated()
    request = VoteRequest(3, 4, 1, pre=True)
    assert sent(member.time_out(), VoteRequest) == {1: request, 2: request, 4: request, 5: request}
    for peer in (1, 2):
        member.receive(peer, VoteResponse(3, granted=True, pre=True))
    assert (member.raft.role, member.raft.epoch) == (Role.CANDIDATE, 3)


def test_a_candidate_refused_for_a_delegation_asks_for_the_epoch_after_at_once() -> None:
    """It has raised no epoch by then, so it has deposed nobody."""
    answer = sent(delegated().receive(4, VoteRequest(2, 9, 1, pre=True)), VoteResponse)[4]
    assert (answer.granted, answer.delegated_epoch) == (False, 2)
    member = Member(4, log=shape(1, 1, 1, 1, 1, 1), voters=FIVE)
    member.time_out()
    request = VoteRequest(3, 5, 1, pre=True)
    assert set(sent(member.receive(3, answer), VoteRequest).values()) == {request}
    assert (member.raft.role, member.raft.epoch) == (Role.PRECANDIDATE, 1)
    assert member.receive(5, answer) == []
    assert member.receive(5, VoteResponse(2, granted=True, pre=True)) == []
    for peer in (3, 5):
        member.receive(peer, VoteResponse(3, granted=True, pre=True))
    assert member.raft.epoch == 3


def test_a_candidate_of_an_earlier_release_learns_it_from_the_epoch() -> None:
    answer = sent(delegated().receive(4, VoteRequest(2, 9, 1, pre=True)), VoteResponse)[4]
    assert answer.epoch == 2


def test_a_refusal_for_another_reason_names_no_delegation() -> None:
    """It would make who is cut off depose a leader that all others hear."""
    for request, alive in ((VoteRequest(2, 3, 1, pre=True), False),
                           (VoteRequest(2, 9, 1, pre=True), True)):  # fmt: skip
        effects = delegated().receive(4, request, leader_alive=alive)
        assert sent(effects, VoteResponse) == {4: VoteResponse(1, granted=False, pre=True)}


def test_a_delegation_ends_in_the_epoch_after_and_when_a_grant_opens_one() -> None:
    member = delegated()
    member.receive(1, Fence(Epoch(1 << 32)))
    assert member.raft.delegated_epoch == 0
    member = delegated()
    member.receive(2, LeaderContact(2, -1, -1))
    assert member.raft.delegated_epoch == 2
    member.receive(5, LeaderContact(3, -1, -1))
    assert member.raft.delegated_epoch == 0


# ---- the heir ------------------------------------------------------------------------------------


def test_of_five_voters_the_target_leads_at_once_by_delegated_votes() -> None:
    effects = target(voters=FIVE).receive(1, TimeoutNow(1, 4, (3, 4), delegators=(3,)))
    assert sent(effects, VoteRequest) == {}
    assert of_type(effects, events.BecameLeader) == [events.BecameLeader(2)]


def test_delegated_votes_are_given_for_a_log_that_has_all_that_timeout_now_names() -> None:
    member = target(2, voters=FIVE)
    assert member.receive(1, TimeoutNow(1, 4, (), delegators=(3, 4, 5))) == []
    member.append(prev=(2, 1), epochs=(1,), sender=1)
    assert member.raft.role == Role.FOLLOWER
    member.append(prev=(3, 1), epochs=(1,), sender=1)
    assert member.raft.is_leader


def test_voters_that_have_not_delegated_are_asked_if_the_votes_are_too_few() -> None:
    member = target(voters=(1, 2, 3, 4, 5, 6, 7))
    effects = member.receive(1, TimeoutNow(1, 4, (3, 4), delegators=(3,)))
    assert set(sent(effects, VoteRequest)) == {4, 5, 6, 7}


def test_delegated_votes_count_in_the_configuration_that_the_target_s_log_has() -> None:
    """Whoever was a voter once, and is none, elects nobody."""
    member = target(voters=(1, 2, 6, 7, 8))
    member.receive(1, TimeoutNow(1, 4, (), delegators=(3, 4, 5)))
    assert member.raft.role == Role.CANDIDATE


def test_delegated_votes_that_come_after_the_next_epoch_began_elect_no_leader() -> None:
    member = target(voters=FIVE)
    member.receive(4, VoteRequest(3, 9, 1, transfer=True))
    assert member.receive(1, TimeoutNow(1, 4, (), delegators=(3, 4, 5))) == []
    member = target(voters=FIVE)
    member.receive(1, Fence(Epoch(1 << 32)))
    assert member.receive(1, TimeoutNow(1, 4, (), delegators=(3, 4, 5))) == []
    assert member.raft.epoch == 1 << 32


def test_brokers_of_an_earlier_release_take_none_of_it_for_anything_else() -> None:
    """A heartbeat, an order without promises, and consent to a pre-vote that elects nobody."""

    class Contact(msgspec.Struct, tag=5, array_like=True):
        epoch: int
        commit: int
        visible: int
        transfer_target: int = -1
        last_index: int = -1

    class Order(msgspec.Struct, tag=6, array_like=True):
        epoch: int
        last_index: int = -1
        in_step: tuple[int, ...] = ()

    class Answer(msgspec.Struct, tag=2, array_like=True):
        epoch: int
        granted: bool
        pre: bool = False
        removal: object = None
        transfer_end: int = -1

    encode = msgspec.msgpack.encode
    assert msgspec.msgpack.decode(encode(QUESTION), type=Contact) == Contact(1, -1, -1)
    request = msgspec.msgpack.decode(encode(TimeoutNow(1, 4, (3,), (4,))), type=Order)
    assert request == Order(1, 4, (3,))
    answer = msgspec.msgpack.decode(encode(delegation()), type=Answer)
    assert (answer.epoch, answer.pre, answer.transfer_end) == (1, True, -1)
    assert msgspec.msgpack.decode(encode(Order(1, 4)), type=TimeoutNow) == TimeoutNow(1, 4)
