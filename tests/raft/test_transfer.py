"""Leadership handed over, sentence by sentence. Source: Raft thesis 3.10."""

import random

import pytest
from tests.raft.member import Member, kinds, of_type, sent

from strandline.model.ids import Index
from strandline.raft import events
from strandline.raft.messages import (
    AppendRequest,
    LeaderContact,
    Message,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)


def test_a_target_that_has_everything_is_told_at_once() -> None:
    member = Member().lead_established()
    effects = member.step(events.TransferLeadership(2))
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1)}
    assert member.raft.transferring_to == 2


def test_no_proposals_while_handing_over_until_it_is_abandoned() -> None:
    member = Member().lead_established()
    member.propose(3)
    member.step(events.TransferLeadership(2))
    assert not member.raft.accepts_proposals
    assert member.step(events.AbandonTransfer()) == []
    assert member.raft.accepts_proposals
    assert member.raft.transferring_to is None


def test_a_transfer_that_is_abandoned_after_the_target_was_told_ends_the_epoch() -> None:
    """The order may come late, when this leader answers by its lease again: it stands itself."""
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    effects = member.step(events.AbandonTransfer())
    assert not member.raft.is_leader
    request = VoteRequest(2, 0, 1, pre=False, transfer=True)
    assert sent(effects, VoteRequest) == {2: request, 3: request}
    member.receive(3, VoteResponse(2, granted=True))
    assert member.raft.accepts_proposals


def test_an_order_given_in_an_earlier_transfer_of_the_epoch_is_not_forgotten() -> None:
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    member.raft.progress[3].match_written = Index(-1)
    member.step(events.TransferLeadership(3))
    member.step(events.AbandonTransfer())
    assert (member.raft.is_leader, member.raft.epoch) == (False, 2)


def test_a_target_that_is_behind_is_brought_up_to_date_first_and_told_once() -> None:
    member = Member().lead_established()
    member.propose(3)
    assert kinds(member.step(events.TransferLeadership(2))) == ["ReplicationReady"]
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert request.report_written
    assert sent(member.hear(2, 2, 0), TimeoutNow) == {}
    assert sent(member.hear(2, 3, 0), TimeoutNow) == {2: TimeoutNow(1)}
    assert sent(member.hear(2, 3, 3), TimeoutNow) == {}


def test_whoever_else_is_behind_delays_nothing() -> None:
    """Redpanda RFC 20220119: recoveries complicated transfers."""
    member = Member().lead_established()
    member.step(events.PeerReset(3))
    assert sent(member.step(events.TransferLeadership(2)), TimeoutNow) == {2: TimeoutNow(1)}


def test_only_another_voter_can_be_the_target() -> None:
    member = Member(observers=(4,)).lead_established()
    for target in (1, 4, 9):
        assert member.step(events.TransferLeadership(target)) == []
        assert member.raft.accepts_proposals
    assert Member().step(events.TransferLeadership(2)) == []
    assert Member().step(events.AbandonTransfer()) == []


def test_a_change_of_members_waits_for_the_transfer() -> None:
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    change = events.ChangeConfiguration((1, 2, 4), ())
    assert member.raft.refusal(change) == "leadership is being transferred"


def test_the_target_stands_without_a_pre_vote_and_says_why() -> None:
    member = Member()
    member.receive(2, LeaderContact(1, -1, -1))
    effects = member.receive(2, TimeoutNow(1), leader_alive=True)
    request = VoteRequest(2, -1, 0, pre=False, transfer=True)
    assert sent(effects, VoteRequest) == {2: request, 3: request}


def test_an_old_order_to_stand_is_ignored() -> None:
    member = Member(epoch=5)
    assert member.receive(2, TimeoutNow(4)) == []


def test_the_old_leader_follows_the_new_one() -> None:
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    member.receive(2, VoteRequest(2, 0, 1, transfer=True))
    assert (member.raft.is_leader, member.raft.epoch, member.raft.vote) == (False, 2, 2)
    member.receive(2, LeaderContact(2, 0, 0))
    assert member.raft.leader == 2


@pytest.mark.parametrize("seed", range(60))
def test_an_order_that_comes_late_elects_nobody_beside_a_leader_with_a_lease(seed: int) -> None:
    """Voters hear their leader all the time, so only the order to stand makes an election.

    However late it and the votes come: who leads with proposals welcome leads alone."""
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
    for step in range(30):
        if step == steps_until_abandoned:
            post(1, members[1].step(events.AbandonTransfer()))
        elif mail:
            sender, to, message = mail.pop(rng.randrange(len(mail)))
            post(to, members[to].receive(sender, message, leader_alive=True))
        leading = [m.raft.epoch for m in members.values() if m.raft.accepts_proposals]
        assert len(leading) <= 1, leading
    assert len(leading) == 1
