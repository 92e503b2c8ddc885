"""Leadership handed over, sentence by sentence. Source: Raft thesis 3.10."""

from tests.raft.member import Member, kinds, sent

from strandline.raft import events
from strandline.raft.messages import AppendRequest, LeaderContact, TimeoutNow, VoteRequest


def test_a_target_that_has_everything_is_told_at_once() -> None:
    member = Member().lead_established()
    effects = member.step(events.TransferLeadership(2))
    assert sent(effects, TimeoutNow) == {2: TimeoutNow(1)}
    assert member.raft.transferring_to == 2


def test_no_proposals_while_handing_over_until_it_is_abandoned() -> None:
    member = Member().lead_established()
    member.step(events.TransferLeadership(2))
    assert not member.raft.accepts_proposals
    member.step(events.AbandonTransfer())
    assert member.raft.accepts_proposals
    assert member.raft.transferring_to is None


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
