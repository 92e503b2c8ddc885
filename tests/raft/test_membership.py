"""Changes of members, sentence by sentence. Source: Raft thesis 4.1, 4.2, 4.3; design section 6."""

import pytest
from tests.raft.member import Member, configuration, kinds, of_type, sent, shape

from strandline.raft import events
from strandline.raft.messages import TimeoutNow, VoteRequest


def change(
    voters: tuple[int, ...], observers: tuple[int, ...] = (), min_insync: int = 1
) -> events.ChangeConfiguration:
    target = configuration(voters, observers=observers)
    return events.ChangeConfiguration(target.voters, target.observers, min_insync)


def appended(effects: list[events.Effect]) -> list[object]:
    return [marker.configuration for marker in of_type(effects, events.AppendMarker)]


def test_voters_change_through_a_joint_configuration_in_force_at_once() -> None:
    """4.3."""
    member = Member().lead_established()
    effects = member.step(change((1, 2, 4)))
    joint = configuration((1, 2, 4), old=(1, 2, 3))
    assert appended(effects) == [joint]
    assert member.raft.configuration == joint
    assert set(member.raft.progress) == {2, 3, 4}
    assert kinds(effects)[-1] == "ReplicationReady"


def test_a_joint_commit_needs_both_quorums() -> None:
    """4.3."""
    member = Member().lead_established()
    member.step(change((1, 4, 5)))
    member.flush()
    member.hear(2, 1)
    assert member.raft.commit == 0
    member.hear(4, 1)
    assert member.raft.commit == 1


def test_the_final_configuration_follows_when_the_joint_one_commits() -> None:
    """4.3."""
    member = Member().lead_established()
    member.step(change((1, 2, 4)))
    member.flush()
    effects = member.hear(2, 1)
    assert appended(effects) == [configuration((1, 2, 4))]
    assert [c.committed for c in of_type(effects, events.ConfigurationChanged)] == [True, False]
    assert set(member.raft.progress) == {2, 4}
    member.flush()
    effects = member.hear(4, 2)
    assert [c.index for c in of_type(effects, events.ConfigurationChanged)] == [2]
    assert appended(effects) == []


@pytest.mark.parametrize(
    ("voters", "observers", "min_insync"),
    [((1, 2, 3), (4,), 1), ((3, 1, 2), (), 1), ((1, 2, 3), (), 2)],
)
def test_one_entry_does_where_no_voter_comes_or_goes(
    voters: tuple[int, ...], observers: tuple[int, ...], min_insync: int
) -> None:
    member = Member().lead_established()
    effects = member.step(change(voters, observers, min_insync))
    target = configuration(voters, observers=observers, min_insync=min_insync)
    assert appended(effects) == [target]
    member.flush()
    member.hear(2, 1)
    member.hear(3, 1)
    assert (member.raft.commit, member.raft.configuration_index) == (1, 1)


def test_a_new_leader_finishes_the_change_that_it_finds() -> None:
    """4.3."""
    joint = configuration((1, 2), old=(1, 2, 3))
    member = Member(log=shape(1, 1, configurations=((1, joint),))).lead()
    member.flush()
    effects = member.hear(2, 2)
    assert appended(effects) == [configuration((1, 2))]


def test_a_leader_that_is_no_voter_any_more_steps_down_once_that_is_committed() -> None:
    """4.2.2: and lets the best voter stand at once."""
    member = Member().lead_established()
    member.step(change((2, 3)))
    member.flush()
    member.hear(2, 1)
    assert appended(member.hear(3, 1)) == [configuration((2, 3))]
    assert member.raft.is_leader
    member.flush()
    member.hear(2, 2)
    assert member.raft.is_leader
    effects = member.hear(3, 2)
    assert not member.raft.is_leader
    assert set(sent(effects, TimeoutNow)) <= {2, 3}
    assert len(sent(effects, TimeoutNow)) == 1
    assert member.time_out() == []


def test_a_leader_that_is_no_voter_any_more_does_not_count_itself() -> None:
    """4.2.2."""
    member = Member().lead_established()
    member.step(change((2, 3)))
    member.flush()
    member.hear(2, 1)
    assert appended(member.hear(3, 1)) == [configuration((2, 3))]
    member.flush()
    member.hear(2, 2)
    assert member.raft.commit == 1


def test_an_established_leader_takes_one_change_at_a_time() -> None:
    """4.1, and the correction of 2015: only after a commit in the own epoch."""
    member = Member().lead()
    wish = change((1, 2, 4))
    assert member.raft.refusal(wish) is not None
    assert member.step(wish) == []
    member.flush()
    member.hear(2, 0)
    assert member.raft.refusal(wish) is None
    member.step(wish)
    assert member.raft.refusal(change((1, 2, 5))) == "another change is under way"
    member.flush()
    member.hear(2, 1)
    assert member.raft.refusal(change((1, 2, 5))) == "another change is under way"
    member.flush()
    member.hear(2, 2)
    assert member.raft.refusal(change((1, 2, 5))) is None


@pytest.mark.parametrize(
    "wish", [change(()), change((1, 1, 2)), change((1, 2), (2,)), change((1, 2, 3))]
)
def test_nonsense_is_refused(wish: events.ChangeConfiguration) -> None:
    member = Member().lead_established()
    assert member.raft.refusal(wish)
    assert member.step(wish) == []


def test_followers_refuse() -> None:
    assert Member().raft.refusal(change((1, 2, 4))) == "this replica does not lead"


def test_followers_are_told_of_the_commit_too() -> None:
    member = Member(log=shape(1, 1, configurations=((1, configuration((1, 2, 4))),)))
    effects = member.append(prev=(1, 1), commit=1)
    changed = of_type(effects, events.ConfigurationChanged)
    assert [(c.index, c.committed) for c in changed] == [(1, True)]


def test_peers_keep_their_progress_across_a_change() -> None:
    member = Member().lead_established()
    before = member.raft.progress[2]
    member.step(change((1, 2, 4)))
    assert member.raft.progress[2] is before


# ---- a smaller write quorum ----------------------------------------------------------------------


def test_a_leader_that_can_commit_nothing_may_do_with_a_majority() -> None:
    """Elected by two of three, all of whom would have to commit its first entry."""
    member = Member(min_insync=3).lead()
    member.flush()
    member.hear(2, 0)
    assert not member.raft.may_serve
    assert member.step(change((1, 2), min_insync=3)) == []
    effects = member.step(change((1, 2, 3), min_insync=1))
    assert appended(effects) == [configuration((1, 2, 3))]
    member.flush()
    member.hear(2, 1)
    assert member.raft.commit == 1
    assert member.raft.may_serve


def test_a_joint_configuration_stays_joint_with_a_smaller_write_quorum() -> None:
    member = Member(voters=(1, 2), min_insync=3).lead_established()
    member.step(change((1, 2, 4), min_insync=3))
    member.flush()
    member.hear(2, 1)
    assert member.raft.commit == 0
    effects = member.step(change((1, 2, 4), min_insync=1))
    assert appended(effects) == [configuration((1, 2, 4), old=(1, 2))]
    member.flush()
    effects = member.hear(2, 2)
    assert appended(effects) == [configuration((1, 2, 4))]


def test_a_larger_write_quorum_waits_for_what_is_under_way_and_nothing_for_who_hands_over() -> None:
    member = Member(min_insync=2).lead_established()
    member.step(change((1, 2, 3), min_insync=1))
    assert member.step(change((1, 2, 3), min_insync=2)) == []
    member = Member(min_insync=2).lead_established()
    member.propose()
    member.step(events.TransferLeadership(member.raft.configuration.voters[1]))
    assert member.step(change((1, 2, 3), min_insync=1)) == []


def test_who_had_to_be_asked_may_stand_though_the_write_quorum_was_lowered_after() -> None:
    """Broker 4 is lost; 2 and 3 have the joint configuration only, and need a third vote, which
    broker 1, whose log is longer, does not give: it has to stand itself."""
    joint = configuration((2, 3, 4), old=(1, 2, 3, 4), min_insync=3)
    final = configuration((2, 3, 4), min_insync=3)
    lowered = configuration((2, 3, 4), min_insync=1)
    configurations = ((1, joint), (2, final), (3, lowered))
    member = Member(log=shape(1, 1, 1, 1, configurations=configurations), commit=1)
    assert set(sent(member.time_out(), VoteRequest)) == {2, 3, 4}


def test_who_was_no_voter_before_a_lowered_write_quorum_does_not_stand() -> None:
    configurations = tuple(
        (index, configuration((2, 3, 4), min_insync=3 - index)) for index in (1, 2)
    )
    member = Member(log=shape(1, 1, 1, configurations=configurations), voters=(2, 3, 4), commit=0)
    assert sent(member.time_out(), VoteRequest) == {}
