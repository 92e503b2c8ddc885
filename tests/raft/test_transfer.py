"""Leadership handed over, sentence by sentence. Source: Raft thesis 3.10; decision 0013."""

import random

import pytest
from tests.raft.member import Member, kinds, of_type, sent, shape, target

from strandline.model.ids import Epoch, Index
from strandline.raft import events
from strandline.raft.messages import (
    AppendRequest,
    AppendResponse,
    LeaderContact,
    Message,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)
from strandline.raft.transitions import Role


def test_a_target_that_was_sent_everything_gets_timeout_now_and_the_vote_at_once() -> None:
    member = Member().lead_established()
    effects = member.step(events.TransferLeadership(2))
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1, 0, (3,))}
    assert (member.raft.is_leader, member.raft.epoch, member.raft.vote) == (False, 2, 2)


def test_the_vote_is_durable_before_timeout_now_leaves() -> None:
    """3.8: what was promised must survive a restart; the order carries the vote."""
    effects = Member().lead_established().step(events.TransferLeadership(2))
    assert kinds(effects) == ["PersistState", "BecameFollower", "Send"]
    assert effects[0] == events.PersistState(2, 2)
    assert effects[1] == events.BecameFollower(2, -1, transfer_target=2)


def test_a_leader_that_handed_over_votes_for_no_other_in_that_epoch() -> None:
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    refusal = sent(member.receive(3, VoteRequest(2, 9, 1, transfer=True)), VoteResponse)[3]
    assert not refusal.granted
    assert sent(member.receive(2, VoteRequest(2, 0, 1)), VoteResponse)[2].granted


def test_what_is_on_its_way_delays_nothing() -> None:
    """The order names it: the target waits for it, not the leader."""
    member = Member().lead_established()
    member.propose(3)
    member.send_all(2)
    effects = member.step(events.TransferLeadership(2))
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1, 3, ())}


def test_proposals_are_welcome_while_the_target_catches_up() -> None:
    member = Member().lead_established()
    member.propose(3)
    assert kinds(member.step(events.TransferLeadership(2))) == ["ReplicationReady"]
    assert member.raft.accepts_proposals
    assert member.raft.transferring_to == 2
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert sent(member.hear(2, 2, 0), TimeoutNow) == {2: TimeoutNow(1, 3, ())}


def test_proposals_stop_where_the_target_has_what_was_there_and_falls_behind_again() -> None:
    """Else a transfer under load might never end."""
    member = Member().lead_established()
    member.propose(3)
    member.step(events.TransferLeadership(2))
    member.send_all(2)
    member.propose(2)
    member.hear(2, 2, 0)
    assert member.raft.accepts_proposals
    assert sent(member.hear(2, 3, 0), TimeoutNow) == {}
    assert not member.raft.accepts_proposals
    member.send_all(2)
    assert sent(member.hear(2, 3, 3), TimeoutNow) == {2: TimeoutNow(1, 5, ())}


def test_a_transfer_abandoned_before_timeout_now_leaves_the_leader() -> None:
    member = Member().lead_established()
    member.propose(1)
    member.step(events.TransferLeadership(2))
    member.send_all(2)
    member.propose(1)
    member.hear(2, 1)
    assert not member.raft.accepts_proposals
    assert member.step(events.AbandonTransfer()) == []
    assert member.raft.accepts_proposals
    assert member.raft.transferring_to is None


def test_a_leader_that_handed_over_to_a_target_that_never_led_stands_again() -> None:
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    effects = member.step(events.AbandonTransfer())
    request = VoteRequest(3, 0, 1)
    assert sent(effects, VoteRequest) == {2: request, 3: request}
    member.receive(3, VoteResponse(3, granted=True))
    assert member.raft.accepts_proposals


def test_who_stands_again_raises_no_epoch_where_another_leader_is_heard() -> None:
    """A voter that moves on forgets its promise, and the next leader's lease rests on that."""
    old = Member().lead_established()
    old.step(events.TransferLeadership(2))
    request = sent(old.step(events.AbandonTransfer()), VoteRequest)[3]
    voter = Member(3, log=shape(1))
    voter.receive(2, LeaderContact(2, -1, -1))
    assert not sent(voter.receive(1, request, leader_alive=True), VoteResponse)[1].granted
    assert (voter.raft.epoch, voter.raft.leader) == (2, 2)
    new = Member(2).lead_established()
    assert new.raft.epoch < request.epoch
    assert not sent(new.receive(1, request), VoteResponse)[1].granted
    assert new.raft.is_leader


def test_a_leader_that_handed_over_and_heard_of_another_does_not_stand_again() -> None:
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    member.receive(2, LeaderContact(2, 0, 0))
    assert member.step(events.AbandonTransfer()) == []
    member.receive(3, VoteRequest(5, 9, 4, transfer=True))
    assert member.step(events.AbandonTransfer()) == []


def test_a_target_that_lost_its_disk_meanwhile_is_not_handed_over_to() -> None:
    member = Member().lead_established()
    member.propose(1)
    member.step(events.TransferLeadership(2))
    member.send_all(2)
    member.receive(2, AppendResponse(1, False, hint=-1, recovering=True))
    effects = member.receive(2, AppendResponse(1, True, 2, -1, recovering=True))
    assert sent(effects, TimeoutNow) == {}
    assert member.raft.is_leader
    assert member.raft.transferring_to is None


def test_other_followers_that_are_behind_delay_nothing() -> None:
    """Redpanda RFC 20220119: recoveries complicated transfers."""
    member = Member().lead_established()
    member.step(events.PeerReset(3))
    effects = member.step(events.TransferLeadership(2))
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1, 0, ())}


def test_only_another_voter_can_be_the_target() -> None:
    member = Member(observers=(4,)).lead_established()
    for transfer_target in (1, 4, 9):
        assert member.step(events.TransferLeadership(transfer_target)) == []
        assert member.raft.accepts_proposals
    assert Member().step(events.TransferLeadership(2)) == []
    assert Member().step(events.AbandonTransfer()) == []


def test_a_change_of_members_waits_for_the_transfer() -> None:
    member = Member().lead_established()
    member.propose(1)
    member.step(events.TransferLeadership(2))
    change = events.ChangeConfiguration((1, 2, 4), ())
    assert member.raft.refusal(change) == "leadership is being transferred"


# ---- the target ----------------------------------------------------------------------------------


def test_of_three_voters_the_target_leads_with_the_vote_of_timeout_now() -> None:
    effects = target().receive(1, TimeoutNow(1, 4, (3,)), leader_alive=True)
    assert sent(effects, VoteRequest) == {}
    assert [type(one) for one in effects][:2] == [events.PersistState, events.BecameFollower]
    assert of_type(effects, events.BecameLeader) == [events.BecameLeader(2)]


def test_of_five_voters_the_target_asks_those_whose_votes_it_lacks() -> None:
    member = target(voters=(1, 2, 3, 4, 5))
    effects = member.receive(1, TimeoutNow(1, 4), leader_alive=True)
    request = VoteRequest(2, 4, 1, transfer=True)
    assert sent(effects, VoteRequest) == {3: request, 4: request, 5: request}
    member.receive(4, VoteResponse(2, granted=True))
    assert member.raft.is_leader


def test_the_target_stands_only_when_it_has_all_that_timeout_now_names() -> None:
    """The vote is given for a log that has everything: what is missing may be committed."""
    member = target(2)
    assert member.receive(1, TimeoutNow(1, 4)) == []
    member.append(prev=(2, 1), epochs=(1,), sender=1)
    assert member.raft.role == Role.FOLLOWER
    effects = member.append(prev=(3, 1), epochs=(1,), sender=1)
    assert kinds(effects)[:2] == ["AppendEntries", "PersistState"]
    assert member.raft.is_leader


def test_entries_of_an_earlier_epoch_are_not_what_timeout_now_names() -> None:
    member = Member(2, log=shape(1, 1, 1, 1, 1, 1), epoch=2)
    member.receive(1, TimeoutNow(2, 4))
    assert member.raft.role == Role.FOLLOWER


def test_a_pending_request_is_dropped_in_the_next_epoch() -> None:
    member = target(2)
    member.receive(1, TimeoutNow(1, 4))
    member.receive(3, VoteRequest(2, 9, 1, transfer=True))
    member.append(prev=(2, 1), epochs=(1, 1), epoch=2, sender=3)
    assert (member.raft.role, member.raft.epoch) == (Role.FOLLOWER, 2)


def test_a_vote_for_the_transfer_does_not_count_in_an_election_by_time_out() -> None:
    """The target has not got everything, and stands by itself in the same epoch."""
    member = target(2)
    member.receive(1, TimeoutNow(1, 4))
    member.time_out()
    member.receive(3, VoteResponse(2, granted=True, pre=True))
    assert (member.raft.role, member.raft.epoch) == (Role.CANDIDATE, 2)
    assert member.receive(1, TimeoutNow(1, 4)) == []
    assert member.raft.role == Role.CANDIDATE


def test_a_timeout_now_without_a_log_s_end_starts_at_once_and_is_no_vote() -> None:
    """So it comes from a leader that is removed, and from brokers of an earlier release."""
    member = Member()
    member.receive(2, LeaderContact(1, -1, -1))
    effects = member.receive(2, TimeoutNow(1), leader_alive=True)
    request = VoteRequest(2, -1, 0, pre=False, transfer=True)
    assert sent(effects, VoteRequest) == {2: request, 3: request}


def test_an_old_timeout_now_is_ignored() -> None:
    member = Member(epoch=5)
    assert member.receive(2, TimeoutNow(4)) == []
    assert member.receive(2, TimeoutNow(4, 0)) == []


def test_a_timeout_now_that_comes_twice_starts_one_election() -> None:
    member = target(voters=(1, 2, 3, 4, 5))
    member.receive(1, TimeoutNow(1, 4))
    assert member.receive(1, TimeoutNow(1, 4)) == []
    member.receive(3, VoteResponse(2, granted=True))
    assert member.receive(1, TimeoutNow(1, 4)) == []
    assert (member.raft.is_leader, member.raft.epoch) == (True, 2)


def test_a_target_without_its_disk_does_not_stand() -> None:
    member = Member(2, lost_state=True)
    assert sent(member.receive(1, TimeoutNow(1, -1)), VoteRequest) == {}
    member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    member.receive(1, TimeoutNow(1, 1))
    assert (member.raft.role, member.raft.epoch) == (Role.FOLLOWER, 1)


def test_who_was_sent_everything_gets_new_entries_side_by_side() -> None:
    """No probe: the old leader knew. Who is not named is probed."""
    member = target(voters=(1, 2, 3, 4))
    member.receive(1, TimeoutNow(1, 4, (3,)))
    member.receive(3, VoteResponse(2, granted=True))
    for peer, is_sent in ((1, True), (3, True), (4, False)):
        assert isinstance(member.send_all(peer), AppendRequest)
        member.propose(1)
        assert (member.send_all(peer) is not None) == is_sent


def test_who_does_not_have_it_all_refuses_and_is_sent_what_is_missing_once() -> None:
    member = target(voters=(1, 2, 3))
    member.receive(1, TimeoutNow(1, 4, (3,)))
    member.send_all(3)
    member.propose(1)
    member.send_all(3)
    refusal = AppendResponse(2, False, hint=2, hint_epoch=1)
    member.receive(3, refusal)
    request = member.send_all(3)
    assert isinstance(request, AppendRequest)
    assert request.prev_index == 2
    member.receive(3, refusal)
    assert member.send_all(3) is None


# ---- the old leader ------------------------------------------------------------------------------


def test_the_old_leader_follows_the_new_one() -> None:
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    member.receive(2, LeaderContact(2, 0, 0))
    assert member.raft.leader == 2


def handing_over(*, flushed: int = 0) -> Member:
    """Has handed over to 2, with entries 1 to 3 under way to both others."""
    member = Member().lead_established()
    member.propose(3)
    member.flush()
    for peer in (2, 3):
        member.send_all(peer)
    member.step(events.TransferLeadership(2))
    assert not member.raft.is_leader
    return member


def test_acknowledgements_of_what_was_appended_before_still_count() -> None:
    member = handing_over()
    effects = member.receive(3, AppendResponse(1, True, Index(2), Index(2)))
    assert of_type(effects, events.MarksAdvanced) == [events.MarksAdvanced(2, 2)]
    member.receive(2, LeaderContact(2, -1, -1))
    member.receive(3, AppendResponse(1, True, Index(3), Index(3)))
    assert member.raft.commit == 3


def test_only_those_of_its_own_epoch_count() -> None:
    member = handing_over()
    assert member.receive(3, AppendResponse(2, True, Index(3), Index(3))) == []
    assert member.raft.commit == 0


def test_nothing_is_counted_once_the_log_was_cut() -> None:
    member = handing_over()
    member.append(prev=(1, 1), epochs=(3,), epoch=3, sender=3)
    member.receive(2, AppendResponse(1, True, Index(3), Index(3)))
    assert member.raft.commit == 0


def test_nothing_is_counted_in_the_epoch_after_the_next() -> None:
    member = handing_over()
    member.receive(3, VoteRequest(3, 9, 1, transfer=True))
    member.receive(2, AppendResponse(1, True, Index(3), Index(3)))
    assert member.raft.commit == 0


def test_who_lost_its_disk_since_is_not_counted() -> None:
    member = handing_over()
    member.receive(3, AppendResponse(1, True, Index(3), Index(3), recovering=True))
    assert member.raft.commit == 0


# ---- together ------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(60))
def test_a_late_timeout_now_elects_no_second_leader_beside_one_with_a_lease(seed: int) -> None:
    """Voters hear their leader all the time, so only the order to stand makes an election.

    However late or often it and the votes come: who leads the last epoch leads alone, and nobody
    leads the epoch that was handed over."""
    rng = random.Random(seed)
    members = {number: Member(number) for number in (1, 2, 3)}
    members[1].lead_established()
    for number in (2, 3):
        members[number].append(prev=(-1, 0), epochs=(1,), sender=1, commit=0)
    mail: list[tuple[int, int, Message]] = []

    def post(sender: int, effects: list[events.Effect]) -> None:
        mail.extend((sender, send.to, send.message) for send in of_type(effects, events.Send))

    post(1, members[1].step(events.TransferLeadership(2)))
    steps_until_abandoned = rng.randint(0, 4)
    elected: dict[Epoch, int] = {}
    for step in range(30):
        if step == steps_until_abandoned:
            post(1, members[1].step(events.AbandonTransfer()))
        elif mail:
            at = rng.randrange(len(mail))
            sender, to, message = mail[at]
            if rng.random() < 0.7:
                del mail[at]
            # No leader is protected from itself.
            leader_alive = members[to].raft.leader != sender
            post(to, members[to].receive(sender, message, leader_alive=leader_alive))
        for number, member in members.items():
            if member.raft.is_leader:
                assert member.raft.epoch > 1
                assert elected.setdefault(member.raft.epoch, number) == number
    assert elected
