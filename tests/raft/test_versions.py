"""Changes of voters that carry the version of a grant. Source: design section 6, rule R2."""

import msgspec
from tests.raft.member import Member, configuration, of_type, sent, shape

from strandline.raft import events
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import AppendRequest, AppendResponse, VoteRequest, VoteResponse


def versioned(
    voters: tuple[int, ...], version: int | None, observers: tuple[int, ...] = ()
) -> events.ChangeConfiguration:
    target = configuration(voters, observers=observers)
    return events.ChangeConfiguration(target.voters, target.observers, 1, version)


def settled(leader: Member) -> Member:
    """Everything the leader wrote is flushed everywhere, and what follows from that, too."""
    for _ in range(2):
        leader.flush()
        for peer in list(leader.raft.progress):
            leader.send_all(peer)
            leader.hear_all(peer)
    return leader


def test_the_version_is_carried_by_the_joint_and_the_final_configuration() -> None:
    leader = Member().lead_established()
    leader.step(versioned((1, 2, 4), 1))
    assert leader.raft.configuration.is_joint
    assert leader.raft.configuration.version == 1
    settled(leader)
    final = leader.raft.configuration
    assert (final.voters, final.is_joint, final.version) == ((1, 2, 4), False, 1)


def test_a_change_that_rests_on_a_version_that_is_past_is_refused() -> None:
    leader = settled_at_version_1()
    assert leader.raft.refusal(versioned((1, 2, 3), 0)) is not None
    assert leader.step(versioned((1, 2, 3), 0)) == []
    assert leader.step(versioned((1, 2, 4), 0, observers=(5,))) == []


def test_voters_come_and_go_with_a_new_version_only() -> None:
    leader = settled_at_version_1()
    assert leader.step(versioned((1, 2), 1)) == []
    assert leader.step(versioned((1, 2, 4), 1, observers=(3,))) != []
    settled(leader)
    assert leader.step(versioned((1, 2), 2)) != []


def test_where_no_version_is_named_it_stays() -> None:
    leader = settled_at_version_1()
    leader.step(versioned((1, 2, 3), None))
    assert leader.raft.configuration.version == 1


def test_an_entry_of_before_versions_has_version_0() -> None:
    old = b'{"voters":[1,2,3],"old_voters":[],"observers":[],"min_insync":2}'
    assert msgspec.json.decode(old, type=Configuration).version == 0


def settled_at_version_1() -> Member:
    leader = Member().lead_established()
    leader.step(versioned((1, 2, 4), 1))
    return settled(leader)


# ---- an observer that lost everything, or was wiped ----------------------------------------------


def test_an_added_observer_that_is_wiped_is_told_to_rejoin_by_the_voters_marker() -> None:
    leader = Member().lead_established()
    leader.step(versioned((1, 2, 3), 0, observers=(4,)))
    leader.flush()
    effects = leader.receive(4, AppendResponse(1, False, hint=-1, recovering=True))
    (marker,) = of_type(effects, events.AppendMarker)
    leader.flush()
    leader.send_all(4)
    leader.receive(4, AppendResponse(1, True, marker.index, -1, recovering=True))
    assert leader.raft.progress[4].rejoin_at == -1
    leader.hear(2, marker.index)
    request = leader.send_all(4)
    assert isinstance(request, AppendRequest)
    assert request.rejoin_at == marker.index
    leader.receive(4, AppendResponse(1, True, marker.index, marker.index))
    assert not leader.raft.progress[4].is_recovering
    assert leader.raft.progress[4].match_flushed == marker.index


def test_a_wiped_observer_takes_part_once_it_has_the_marker_and_stands_for_nothing() -> None:
    member = Member(4, voters=(1, 2, 3), lost_state=True)
    member.append(prev=(-1, 0), epochs=(1, 1), sender=1)
    member.flush()
    member.receive(1, AppendRequest(1, 1, 1, -1, -1, rejoin_at=1))
    assert not member.raft.has_lost_state
    assert sent(member.time_out(), VoteRequest) == {}


def test_who_was_removed_wiped_and_added_elects_no_candidate_of_the_voters_of_before() -> None:
    """Voters 1, 2, 3 became 1, 2, 4 while 2 was cut off; 3 was wiped and is added again.

    2 asks with the log and the configuration of before: it would need 3's vote only."""
    asks = VoteRequest(9, 0, 1)
    wiped = Member(3, voters=(1, 2, 3), lost_state=True)
    assert not sent(wiped.receive(2, asks), VoteResponse)[2].granted
    wiped.append(prev=(-1, 0), epochs=(1, 1, 1, 1), sender=1, epoch=9)
    wiped.flush()
    wiped.receive(1, AppendRequest(9, 3, 1, 2, 2, rejoin_at=3))
    assert not wiped.raft.has_lost_state
    assert not sent(wiped.receive(2, VoteRequest(10, 0, 1)), VoteResponse)[2].granted
    # As one that is taken for new it would elect it.
    new = Member(3, voters=(1, 2, 3), log=shape())
    assert sent(new.receive(2, asks), VoteResponse)[2].granted


# ---- permanent observers (decision 0017) ---------------------------------------------------------


def test_a_grant_of_other_observers_is_one_entry_and_no_quorum_waits_for_them() -> None:
    leader = Member(observers=(4,)).lead_established()
    leader.step(versioned((1, 2, 3), 1, observers=(5,)))
    present = leader.raft.configuration
    assert (present.is_joint, present.observers, present.version) == (False, (5,), 1)
    assert set(leader.raft.progress) == {2, 3, 5}
    leader.flush()
    assert leader.raft.commit < leader.raft.configuration_index
    leader.hear_all(5)
    assert leader.raft.commit < leader.raft.configuration_index
    leader.hear_all(2)
    assert leader.raft.commit == leader.raft.configuration_index


def test_other_observers_that_were_not_committed_go_with_the_leader_that_named_them() -> None:
    """And the next leader, which never heard of them, names them by the same version."""
    old = Member(observers=(4,)).lead_established()
    last = old.raft.log.last_index
    old.step(versioned((1, 2, 3), 1, observers=(5,)))
    assert old.raft.configuration.observers == (5,)
    old.append(prev=(last, 1), epochs=(2,), epoch=2, sender=2, commit=last)
    assert old.raft.configuration.observers == (4,)
    assert old.raft.configuration.version == 0
    new = Member(2, observers=(4,), log=shape(1)).lead_established()
    assert new.raft.configuration.observers == (4,)
    assert new.step(versioned((1, 2, 3), 1, observers=(5,))) != []
    assert new.raft.configuration.observers == (5,)


def test_a_voter_that_becomes_an_observer_and_the_reverse_are_one_joint_change() -> None:
    leader = Member(observers=(4,)).lead_established()
    leader.step(versioned((1, 2, 4), 1, observers=(3,)))
    joint = leader.raft.configuration
    assert (joint.old_voters, joint.voters, joint.members) == ((1, 2, 3), (1, 2, 4), (1, 2, 4, 3))
    assert not joint.can_commit((1, 4))
    assert not joint.can_commit((1, 3))
    settled(leader)
    final = leader.raft.configuration
    assert (final.voters, final.observers, final.is_joint) == ((1, 2, 4), (3,), False)
    assert set(leader.raft.progress) == {2, 3, 4}


def test_an_observer_asks_nobody_for_a_vote() -> None:
    watching = Member(4, voters=(1, 2, 3), observers=(4,), log=shape(1, 1))
    assert sent(watching.time_out(), VoteRequest) == {}
    follower = Member(2, voters=(1, 2, 3), observers=(4,), log=shape(1, 1))
    assert set(sent(follower.time_out(), VoteRequest)) == {1, 3}
