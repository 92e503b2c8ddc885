"""After the loss of a disk. Source: `strandline.raft.follower.rejoin`; NATS PR 7038; VR Revisited
4.3."""

from tests.raft.member import Member, of_type, sent, shape

from strandline.raft import events
from strandline.raft.messages import (
    AppendRequest,
    AppendResponse,
    TimeoutNow,
    VoteRequest,
    VoteResponse,
)


def wiped(self_id: int = 3) -> Member:
    return Member(self_id, lost_state=True)


def test_a_replica_without_its_disk_gives_no_vote_and_stands_for_nothing() -> None:
    """NATS PR 7038: it voted as if its log had always been empty."""
    member = wiped()
    assert not of_type(member.receive(1, VoteRequest(1, 9, 1)), events.PersistState)
    for pre in (True, False):
        answer = of_type(member.receive(1, VoteRequest(1, 9, 1, pre)), events.Send)[0].message
        assert not getattr(answer, "granted", True)
    assert member.time_out() == []
    member.receive(1, TimeoutNow(0))
    assert member.raft.epoch == 0


def test_one_that_turns_out_to_be_new_votes_and_stands() -> None:
    """See `replication.group_bootstrap`."""
    member = wiped()
    assert member.step(events.DeclaredNew()) == []
    assert not member.raft.has_lost_state
    answer = of_type(member.receive(1, VoteRequest(1, -1, 0)), events.Send)[0].message
    assert answer == VoteResponse(1, granted=True)
    assert Member().step(events.DeclaredNew()) == []


def test_one_that_turns_out_to_be_new_after_it_heard_of_an_epoch_notes_both() -> None:
    """The epoch was noted last, as of one that may have lost its disk."""
    member = wiped()
    member.append(prev=(-1, 0), epochs=(1,), sender=1)
    assert member.step(events.DeclaredNew()) == [events.Rejoined(0)]
    assert not member.raft.has_lost_state


def test_it_takes_entries_in_and_acknowledges_no_flush() -> None:
    member = wiped()
    member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    answer = sent(member.flush(), AppendResponse)[1]
    assert answer == AppendResponse(1, True, 1, -1, recovering=True)


def test_the_leader_counts_it_for_nothing_and_appends_a_marker() -> None:
    leader = Member().lead_established()
    effects = leader.receive(3, AppendResponse(1, False, hint=-1, recovering=True))
    assert of_type(effects, events.AppendMarker) == [events.AppendMarker(1, 1, None)]
    assert leader.raft.progress[3].match_flushed == -1
    # What it acknowledged before the loss, and what it says while recovering, does not count.
    leader.receive(3, AppendResponse(1, True, 0, 0))
    leader.receive(3, AppendResponse(1, True, 1, -1, recovering=True))
    leader.flush()
    assert leader.raft.commit == 0
    effects = leader.receive(3, AppendResponse(1, True, 1, -1, recovering=True))
    assert of_type(effects, events.AppendMarker) == []


def test_it_is_told_to_rejoin_once_a_majority_without_it_has_the_marker() -> None:
    leader = Member().lead_established()
    leader.receive(3, AppendResponse(1, False, hint=-1, recovering=True))
    request = leader.send_all(3)
    assert isinstance(request, AppendRequest)
    assert request.rejoin_at == -1
    leader.flush()
    leader.receive(3, AppendResponse(1, True, 1, -1, recovering=True))
    assert leader.raft.progress[3].rejoin_at == -1
    assert events.ReplicationReady(3) in leader.hear(2, 1)
    request = leader.send_all(3)
    assert isinstance(request, AppendRequest)
    assert request.rejoin_at == 1


def test_it_may_rejoin_also_if_nothing_was_committed_in_this_epoch() -> None:
    """All have to acknowledge: without it nothing is committed, and it is told nothing else."""
    leader = Member(min_insync=3).lead()
    leader.flush()
    leader.receive(3, AppendResponse(1, False, hint=-1, recovering=True))
    leader.flush()
    leader.send_all(3)
    leader.receive(3, AppendResponse(1, True, 1, -1, recovering=True))
    assert leader.send_all(3) is None
    assert events.ReplicationReady(3) in leader.hear(2, 1)
    assert leader.raft.commit == -1
    request = leader.send_all(3)
    assert isinstance(request, AppendRequest)
    assert request.rejoin_at == 1
    assert leader.send_all(3) is None
    leader.receive(3, AppendResponse(1, True, 1, 1))
    assert leader.raft.commit == 1


def test_of_two_voters_the_leader_alone_is_enough() -> None:
    """Nobody can be elected without the leader's vote."""
    leader = Member(voters=(1, 3)).lead_established()
    leader.receive(3, AppendResponse(1, False, hint=-1, recovering=True))
    leader.flush()
    assert leader.raft.progress[3].rejoin_at == 1


def test_it_takes_part_again_once_it_has_flushed_the_marker() -> None:
    member = wiped()
    member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    request = AppendRequest(1, 1, 1, -1, -1, rejoin_at=1)
    assert of_type(member.receive(1, request), events.Rejoined) == []
    effects = member.flush()
    assert of_type(effects, events.Rejoined) == [events.Rejoined(1)]
    assert sent(effects, AppendResponse)[1] == AppendResponse(1, True, 1, 1)
    assert not member.raft.has_lost_state
    assert member.time_out() != []


def test_where_it_is_to_be_noted_first_it_asks_once_and_waits() -> None:
    """Decision 0030."""
    member = Member(3, lost_state=True, asks_to_rejoin=True)
    effects = member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    assert of_type(effects, events.RejoinAsked) == []
    told = AppendRequest(1, 1, 1, -1, -1, rejoin_at=1)
    assert of_type(member.receive(1, told), events.RejoinAsked) == [events.RejoinAsked()]
    assert of_type(member.receive(1, told), events.RejoinAsked) == []
    assert of_type(member.flush(), events.Rejoined) == []
    assert member.raft.has_lost_state
    effects = member.step(events.RejoinAllowed())
    assert of_type(effects, events.Rejoined) == [events.Rejoined(1)]
    assert sent(effects, AppendResponse)[1] == AppendResponse(1, True, 1, 1)
    assert not member.raft.has_lost_state


def test_allowed_before_it_has_the_marker_it_waits_for_that() -> None:
    member = Member(3, lost_state=True, asks_to_rejoin=True)
    member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    member.receive(1, AppendRequest(1, 1, 1, -1, -1, rejoin_at=1))
    assert of_type(member.step(events.RejoinAllowed()), events.Rejoined) == []
    assert of_type(member.flush(), events.Rejoined) == [events.Rejoined(1)]


def test_allowed_under_another_leader_it_waits_for_that_one_s_marker() -> None:
    member = Member(3, lost_state=True, asks_to_rejoin=True)
    member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    member.receive(1, AppendRequest(1, 1, 1, -1, -1, rejoin_at=1))
    member.append(prev=(1, 1), epochs=(2,), sender=2)
    member.flush()
    assert of_type(member.step(events.RejoinAllowed()), events.Rejoined) == []
    assert member.raft.has_lost_state


def test_the_marker_of_an_earlier_leader_is_not_enough() -> None:
    member = wiped()
    member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    member.receive(1, AppendRequest(1, 1, 1, -1, -1, rejoin_at=1))
    member.append(prev=(1, 1), epochs=(2,), sender=2)
    assert of_type(member.flush(), events.Rejoined) == []
    assert member.raft.has_lost_state


def test_its_acknowledgement_of_the_marker_makes_it_count_again() -> None:
    leader = Member().lead_established()
    leader.receive(3, AppendResponse(1, False, hint=-1, recovering=True))
    leader.flush()
    leader.hear(2, 1)
    leader.send_all(3)
    leader.receive(3, AppendResponse(1, True, 1, 1))
    leader.propose()
    leader.flush()
    leader.receive(3, AppendResponse(1, True, 2, 2))
    assert leader.raft.commit == 2


def test_a_recovering_voter_is_given_no_leadership() -> None:
    leader = Member().lead_established()
    leader.receive(3, AppendResponse(1, False, hint=-1, recovering=True))
    assert leader.step(events.TransferLeadership(3)) == []


def test_a_second_loss_begins_anew() -> None:
    leader = Member(log=shape(1, 1)).lead_established()
    leader.receive(3, AppendResponse(2, False, hint=-1, recovering=True))
    leader.send_all(3)
    leader.receive(3, AppendResponse(2, True, 3, -1, recovering=True))
    effects = leader.receive(3, AppendResponse(2, False, hint=-1, recovering=True))
    assert len(of_type(effects, events.AppendMarker)) == 1
