"""Entries that one follower sends another on the leader's order. Source: decision 0022; Raft thesis
3.5, 3.6.3."""

import msgspec
import pytest
from tests.raft.member import Member, configuration, epochs_of, kinds, of_type, sent, shape

from strandline.model.ids import BrokerId, Epoch, Index
from strandline.raft import events
from strandline.raft.messages import (
    AppendRequest,
    AppendResponse,
    LeaderContact,
    PeerAppend,
    PeerCatchupRequest,
    Run,
)


def request(prev: tuple[int, int], *runs: tuple[int, int], commit: int = -1) -> AppendRequest:
    """What the leader of epoch 2 would send: runs are (epoch, last index)."""
    described = tuple(Run(Epoch(epoch), Index(last)) for epoch, last in runs)
    mark = Index(commit)
    return AppendRequest(Epoch(2), Index(prev[0]), Epoch(prev[1]), mark, mark, described)


def follower(*epochs: int, commit: int = -1, lost_state: bool = False) -> Member:
    """Member 1, with such a log, follows broker 2 in epoch 2, and has all of the leader's log."""
    member = Member(1, log=shape(*epochs), epoch=2, lost_state=lost_state)
    member.append(prev=(len(epochs) - 1, epochs[-1]), epoch=2, commit=commit)
    return member


def catchup_request(asked: AppendRequest) -> PeerCatchupRequest:
    return PeerCatchupRequest(BrokerId(3), asked, 100, True)


def test_what_is_committed_is_sent_to_peers() -> None:
    asked = catchup_request(request((0, 1), (1, 1), (2, 2), commit=2))
    assert of_type(follower(1, 1, 2, 2).receive(2, asked), events.SendPeerAppend) == [
        events.SendPeerAppend(asked)
    ]


def test_the_request_carries_the_leaders_commit() -> None:
    """The leader orders what it knows to be committed; the lender may hear of that by the order."""
    member = follower(1, 1, 2, 2, commit=0)
    effects = member.receive(2, catchup_request(request((0, 1), (1, 1), (2, 2), commit=2)))
    assert kinds(effects) == ["MarksAdvanced", "SendPeerAppend"]
    assert member.raft.commit == 2


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (request((0, 1), (1, 1), (2, 3), commit=2), "beyond the commit"),
        (request((2, 2), (2, 5), commit=9), "beyond the log"),
    ],
)
def test_what_is_not_known_to_be_committed_here_is_not_sent_to_peers(
    asked: AppendRequest, why: str
) -> None:
    member = follower(1, 1, 2, 2)
    assert not of_type(member.receive(2, catchup_request(asked)), events.SendPeerAppend), why


def test_what_is_not_known_to_equal_the_leaders_log_is_not_sent_to_peers() -> None:
    """The leader's commit says nothing about the end of a log that it was not compared with."""
    member = Member(1, log=shape(1, 1, 1), epoch=2)
    member.receive(2, LeaderContact(Epoch(2), Index(-1), Index(-1)))
    asked = catchup_request(request((0, 1), (2, 2), commit=2))
    assert not of_type(member.receive(2, asked), events.SendPeerAppend)


def test_a_replica_that_lost_its_disk_serves_no_peer() -> None:
    member = follower(1, 1, 2, 2, lost_state=True)
    assert not of_type(
        member.receive(2, catchup_request(request((0, 1), (2, 2), commit=2))), events.SendPeerAppend
    )


def test_a_member_is_one_since_the_configuration_that_has_it_again() -> None:
    """Of voters and observers alike; one at the log's start may have been one for longer."""
    three, with_four = configuration((1, 2, 3)), configuration((1, 2, 3), observers=(4,))
    entries = ((1, with_four), (3, three), (5, with_four), (6, configuration((1, 3, 4))))
    raft = Member(1, log=shape(*[1] * 8, configurations=entries)).raft
    assert [raft.member_since(BrokerId(one)) for one in (1, 2, 3, 4, 5)] == [-1, 8, -1, 5, 8]
    later = Member(1, log=shape(1, 1, first=10, previous=1)).raft
    assert [later.member_since(BrokerId(one)) for one in (2, 4)] == [9, 12]


def test_nothing_is_lent_for_another_leader() -> None:
    """Neither for one of the past, nor when the order waited and another epoch has begun."""
    member = follower(1, 1, 2, 2, commit=2)
    asked = request((0, 1), (2, 2), commit=2)
    assert member.raft.may_serve_peer(asked)
    member.receive(3, LeaderContact(Epoch(3), Index(2), Index(2)))
    assert not member.raft.may_serve_peer(asked)
    effects = member.receive(2, catchup_request(asked))
    assert sent(effects, AppendResponse)[2].epoch == 3
    assert not of_type(effects, events.SendPeerAppend)


def test_what_retention_took_is_not_sent_to_peers() -> None:
    member = Member(1, log=shape(2, 2, 2, first=10, previous=1), epoch=2)
    member.append(prev=(12, 2), epoch=2, commit=12)
    assert member.raft.may_serve_peer(request((9, 1), (2, 12)))
    assert not member.raft.may_serve_peer(request((8, 1), (1, 9), (2, 12)))


def test_a_lent_append_is_taken_as_the_leaders_and_acknowledged_to_it() -> None:
    member = Member(1, log=shape(1), epoch=2)
    member.receive(2, LeaderContact(Epoch(2), Index(-1), Index(-1)))
    effects = member.receive(3, PeerAppend(request((0, 1), (1, 1), (2, 2), commit=2)))
    assert kinds(effects) == ["AppendEntries", "MarksAdvanced"]
    assert epochs_of(member.raft.log) == [1, 1, 2]
    assert member.raft.leader == 2
    (answer,) = sent(member.flush(), AppendResponse).items()
    assert answer == (2, AppendResponse(2, True, 2, 2))


def test_a_lent_append_cuts_what_differs() -> None:
    member = Member(1, log=shape(1, 1, 1), epoch=2)
    member.receive(2, LeaderContact(Epoch(2), Index(-1), Index(-1)))
    effects = member.receive(3, PeerAppend(request((0, 1), (2, 2), commit=2)))
    assert kinds(effects) == ["TruncateLog", "AppendEntries", "MarksAdvanced"]


def test_a_lent_append_that_does_not_join_on_is_refused_to_the_leader() -> None:
    member = Member(1, log=shape(1), epoch=2)
    member.receive(2, LeaderContact(Epoch(2), Index(-1), Index(-1)))
    effects = member.receive(3, PeerAppend(request((4, 1), (2, 6), commit=6)))
    assert not sent(effects, AppendResponse)[2].accepted
    assert epochs_of(member.raft.log) == [1]


def test_a_lent_append_of_another_epoch_is_passed_over() -> None:
    """Of one that is past, of one that was not heard of yet, and where no leader is known."""
    asked = request((0, 1), (2, 2), commit=2)
    late = Member(1, log=shape(1), epoch=3)
    late.receive(2, LeaderContact(Epoch(3), Index(-1), Index(-1)))
    early = Member(1, log=shape(1), epoch=1)
    early.receive(2, LeaderContact(Epoch(1), Index(-1), Index(-1)))
    for member in (late, early, Member(1, log=shape(1), epoch=2)):
        assert member.receive(3, PeerAppend(asked)) == []
        assert epochs_of(member.raft.log) == [1]


def test_a_leader_takes_no_peer_append() -> None:
    leader = Member(1, log=shape(1)).lead_established()
    asked = msgspec.structs.replace(request((0, 1), (2, 2)), epoch=leader.raft.epoch)
    assert leader.receive(3, PeerAppend(asked)) == []


def test_a_leader_requests_what_is_committed_and_flushed_by_the_fetch_source() -> None:
    leader = Member(1, log=shape(1, 1)).lead_established()
    end = leader.raft.log.last_index
    leader.hear_all(2)
    assert leader.raft.commit == end
    assert leader.raft.peer_fetch_end(BrokerId(2)) == end
    leader.propose(2)
    leader.hear(2, end + 2)
    assert leader.raft.peer_fetch_end(BrokerId(2)) == end  # The leader has not flushed it itself.
    leader.flush()
    assert leader.raft.peer_fetch_end(BrokerId(2)) == end + 2
    assert leader.raft.peer_fetch_end(BrokerId(3)) == end
    assert leader.raft.peer_fetch_end(BrokerId(9)) == -1
    assert Member(1).raft.peer_fetch_end(BrokerId(2)) == -1
