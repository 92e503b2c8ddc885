"""A log that was left, and is gone on with, is begun anew. Source: `raft.outdated`."""

import pytest
from tests.raft.member import Member, configuration, of_type, sent, shape

from strandline.model.ids import BrokerId, Epoch, Index, Offset, first_epoch
from strandline.raft import events
from strandline.raft.follower.stale_log_reset import OUTDATED
from strandline.raft.group.configuration import Configuration
from strandline.raft.messages import AppendRequest, AppendResponse, LeaderContact, ResetRequest, Run
from strandline.raft.transitions import Role

WITH = configuration((1, 2), observers=(3,))
WITHOUT = configuration((1, 2))


def member(
    last_index: int = 4,
    *,
    joined: int | None = -1,
    configurations: tuple[tuple[int, Configuration], ...] = (),
    lost_state: bool = False,
    is_compacted: bool = True,
) -> Member:
    """Broker 3, an observer of voters 1 and 2, with a log of epoch 1."""
    log = shape(*([1] * (last_index + 1)), configurations=configurations)
    one = Member(
        3, log=log, epoch=1, voters=(1, 2), observers=(3,), joined=joined, lost_state=lost_state
    )
    if is_compacted:
        one.step(events.CompactionEnabled())
    return one


def append(
    one: Member,
    last_index: int,
    *configurations: tuple[int, Configuration],
    commit: int,
    rejoin_at: int = -1,
    configured: int = -1,
    epoch: int = 1,
) -> list[events.Effect]:
    """What is behind the end of its log, from broker 1."""
    end = one.raft.log.last_index
    request = AppendRequest(
        epoch=Epoch(epoch),
        prev_index=end,
        prev_epoch=one.raft.log.epoch_at(end),
        commit=Index(commit),
        visible=Index(commit),
        runs=(Run(Epoch(epoch), Index(last_index)),) if last_index > end else (),
        configurations=tuple((Index(index), one) for index, one in configurations),
        rejoin_at=Index(rejoin_at),
        configured=Index(configured),
    )
    return one.receive(1, request)


def is_found(effects: list[events.Effect]) -> bool:
    return bool(of_type(effects, events.FoundOutdated))


def test_who_is_added_again_with_its_old_log_begins_anew() -> None:
    one = member()
    assert is_found(append(one, 8, (6, WITHOUT), (8, WITH), commit=7))
    assert one.raft.is_outdated and one.raft.has_lost_state
    # It is said once, and what it acknowledges counts for nothing.
    assert not is_found(append(one, 9, commit=8))
    answer = sent(one.flush(), AppendResponse)[1]
    assert answer.recovering and answer.flushed == -1


def test_it_is_found_before_the_entry_that_makes_it_a_voter_is_acknowledged() -> None:
    """All at once: it was away while it became an observer, and a voter."""
    one = member()
    voter = configuration((1, 2, 3))
    effects = append(one, 9, (6, WITHOUT), (8, WITH), (9, voter), commit=8)
    assert is_found(effects)
    assert not sent(effects, AppendResponse)
    assert sent(one.flush(), AppendResponse)[1].recovering


def test_it_takes_part_no_more_whatever_its_leader_says() -> None:
    one = member()
    append(one, 8, (6, WITHOUT), (8, WITH), commit=7)
    append(one, 9, commit=8, rejoin_at=9)
    one.flush()
    assert one.raft.has_lost_state
    one.time_out()
    assert one.raft.role == Role.FOLLOWER


def test_what_is_known_of_the_commit_does_not_matter() -> None:
    """A leader adds a member once the configuration without it is committed, and no sooner."""
    one = member()
    assert is_found(append(one, 8, (6, WITHOUT), (8, WITH), commit=-1))


def test_who_is_only_removed_has_nothing_to_begin() -> None:
    one = member()
    assert not is_found(append(one, 8, (6, WITHOUT), commit=8))
    assert not one.raft.has_lost_state


def test_who_changes_between_voter_and_observer_was_a_member_all_the_time() -> None:
    one = member()
    voters = configuration((1, 2, 3))
    joint = configuration((1, 2, 3), old=(1, 2))
    assert not is_found(append(one, 9, (5, joint), (6, voters), (8, WITH), commit=9))


def test_a_log_that_begins_later_may_have_had_no_place_before() -> None:
    """It copies a log in which its broker came and went: what the leader had committed then is
    noted before the first entry."""
    one = member(-1)
    effects = append(one, 4, (1, WITHOUT), (3, WITH), commit=3)
    assert not is_found(effects)
    kinds = [type(effect) for effect in effects]
    assert kinds.index(events.PersistState) < kinds.index(events.AppendEntries)
    assert one.raft.joined == 3
    # And as it was noted, so it counts after a restart.
    again = member(4, joined=3, configurations=((1, WITHOUT), (3, WITH)))
    assert not is_found(append(again, 5, commit=5))
    assert is_found(append(again, 8, (6, WITHOUT), (8, WITH), commit=8))


def test_a_restart_forgets_nothing_of_it() -> None:
    one = member(8, configurations=((6, WITHOUT), (8, WITH)))
    assert is_found(append(one, 9, commit=7))


def test_a_leader_that_has_yet_to_learn_what_is_committed_says_where_it_stands() -> None:
    """A voter of four that has lost its disk: its leader may commit by what it acknowledges."""
    log = shape()
    one = Member(3, log=log, epoch=1, voters=(1, 2, 3, 4), joined=-1, lost_state=True)
    one.step(events.CompactionEnabled())
    voter = configuration((1, 2, 3, 4))
    append(one, 10, (1, WITHOUT), (3, WITH), (4, voter), commit=-1, configured=4)
    assert one.raft.joined == 4
    append(one, 10, commit=-1, rejoin_at=10)
    effects = one.flush()
    assert of_type(effects, events.Rejoined)
    assert not sent(effects, AppendResponse)[1].recovering
    assert not is_found(append(one, 11, commit=10))


def add_an_observer(leader: Member) -> Index:
    """Where the configuration with broker 3 stands, which is not committed yet."""
    leader.step(events.ChangeConfiguration((BrokerId(1), BrokerId(2)), (BrokerId(3),)))
    return leader.raft.configuration_index


def told(leader: Member, peer: int) -> Index:
    request = leader.send_all(peer)
    assert isinstance(request, AppendRequest)
    return request.configured


def test_who_is_added_gets_nothing_before_that_is_committed() -> None:
    """Else the entry may be lost, and what it has got would be of no membership: another leader may
    let go of a key's tombstone, and then add it, with the key."""
    leader = Member(1, voters=(1, 2)).lead_established()
    stands = add_an_observer(leader)
    leader.propose()
    assert leader.send_all(3) is None
    # And whoever leads next has the entry, and does not know either.
    transfer_target = Member(
        2, log=shape(1, 1, 1, configurations=((0, WITHOUT), (2, WITH))), epoch=1
    )
    transfer_target.lead()
    assert transfer_target.send_all(3) is None
    assert transfer_target.send_all(1) is not None
    leader.flush()
    leader.hear_all(2)
    assert leader.raft.commit >= stands
    assert told(leader, 3) == stands


def test_who_was_a_member_before_is_sent_to_whatever_is_under_way() -> None:
    leader = Member(1, voters=(1, 2), observers=(3,)).lead_established()
    members = (BrokerId(1), BrokerId(2), BrokerId(3))
    leader.step(events.ChangeConfiguration(members, ()))
    assert leader.raft.configuration_index > leader.raft.commit
    assert leader.send_all(3) is not None


def test_a_voter_that_an_appointment_counts_on_is_sent_what_is_not_committed() -> None:
    grant = first_epoch(1)
    appointment = configuration((1, 3))
    log = shape(1, 1, grant, configurations=((0, WITHOUT), (2, appointment)))
    leader = Member(1, log=log, epoch=grant, voters=(1, 2)).lead()
    assert leader.send_all(3) is not None


def test_a_leader_says_what_is_committed_for_certain_until_that_is_there() -> None:
    leader = Member(1, voters=(1, 2)).lead_established()
    stands = add_an_observer(leader)
    leader.flush()
    leader.hear_all(2)
    assert told(leader, 3) == stands
    leader.receive(3, AppendResponse(leader.raft.epoch, False, hint=Index(-1), recovering=True))
    assert told(leader, 3) == stands
    leader.hear_all(3)
    leader.propose()
    assert told(leader, 3) == -1


def test_a_leader_that_does_not_know_the_commit_knows_what_was_changed_since() -> None:
    """Others come or go once the configuration before is committed; a smaller write quorum, or a
    appointment, may come before that."""
    changed = configuration((1, 2), observers=(3,))
    lower = configuration((1, 2), observers=(3,), min_insync=0)
    log = shape(*([1] * 10), configurations=((2, WITHOUT), (5, changed), (8, lower)))
    leader = Member(1, log=log, epoch=1, voters=(1, 2)).lead()
    leader.send_all(2)
    leader.receive(2, AppendResponse(leader.raft.epoch, False, hint=Index(-1)))
    assert told(leader, 2) == 2 and leader.raft.commit == -1


def test_a_log_that_was_reset_begins_there() -> None:
    one = member()
    one.receive(1, ResetRequest(Epoch(1), Index(20), Offset(20), Epoch(1), WITH))
    assert not is_found(append(one, 24, (21, WITHOUT), (23, WITH), commit=19, configured=23))
    assert one.raft.joined == 23


def test_who_is_appointed_may_have_been_a_member_all_the_time() -> None:
    """Whether the configuration without it was committed depends on what it acknowledges now."""
    grant = first_epoch(1)
    one = member()
    append(one, 6, (6, WITHOUT), commit=5)
    appointment = configuration((1, 3))
    assert not is_found(append(one, 8, (7, appointment), commit=5, epoch=grant))
    assert not is_found(append(one, 9, commit=8, epoch=grant))
    assert not one.raft.has_lost_state
    # What this leader changes later is a change as any.
    assert is_found(append(one, 14, (12, WITHOUT), (14, WITH), commit=13, epoch=grant))


def test_who_is_an_observer_of_an_appointment_does_not_count_for_it() -> None:
    """Every host that does not vote is one, however far behind it is."""
    grant = first_epoch(1)
    one = member()
    append(one, 6, (6, WITHOUT), commit=5)
    assert not is_found(append(one, 8, (7, WITH), commit=6, epoch=grant))
    assert is_found(append(one, 9, (9, WITH), commit=7, epoch=grant))
    # Or what stands behind it says so.
    one = member()
    append(one, 6, (6, WITHOUT), commit=5)
    append(one, 8, (7, WITH), commit=6, epoch=grant)
    assert is_found(append(one, 9, (9, configuration((1, 2, 3))), commit=6, epoch=grant))


def test_an_appointment_hides_nothing_from_before_it() -> None:
    grant = first_epoch(1)
    one = member()
    end = one.raft.log.last_index
    request = AppendRequest(
        epoch=grant,
        prev_index=end,
        prev_epoch=Epoch(1),
        commit=Index(9),
        visible=Index(9),
        runs=(Run(Epoch(1), Index(8)), Run(grant, Index(9))),
        configurations=((Index(6), WITHOUT), (Index(8), WITH), (Index(9), WITH)),
    )
    assert is_found(one.receive(1, request))


@pytest.mark.parametrize("is_candidate", [False, True])
def test_what_the_driver_says_late_counts_before_anything_is_acknowledged(
    *,
    is_candidate: bool,
) -> None:
    """Killed before it was noted that its log is gone on with, or a candidate when it is said."""
    voter = configuration((1, 2, 3, 4))
    configurations = ((6, WITHOUT), (8, WITH), (9, voter))
    log = shape(*([1] * 10), configurations=configurations)
    one = Member(3, log=log, epoch=1, voters=(1, 2, 3, 4), joined=-1)
    if is_candidate:
        one.time_out()
        one.step(events.CompactionEnabled())
        assert is_found(append(one, 10, commit=9, epoch=2))
    else:
        effects = append(one, 10, commit=9)
        assert of_type(effects, events.PersistState) and one.raft.joined == 6
        one.step(events.CompactionEnabled())
        assert not is_found(append(one, 11, commit=9))


def test_a_log_knows_its_configuration_once_its_leader_has_said_so() -> None:
    """Until then it may be outdated, and is of no help to others."""
    one = member()
    assert not one.raft.knows_configuration
    append(one, 5, commit=4, configured=8)
    assert not one.raft.knows_configuration
    append(one, 8, (6, WITHOUT), commit=4, configured=8)
    assert not one.raft.knows_configuration  # It is no member.
    fresh = member()
    append(fresh, 8, (8, WITH), commit=8, configured=8)
    assert fresh.raft.knows_configuration
    assert Member(1).lead_established().raft.knows_configuration


def test_who_was_killed_before_it_was_noted_leads_nobody() -> None:
    voter = configuration((1, 2, 3, 4))
    configurations = ((6, WITHOUT), (8, WITH), (9, voter))
    log = shape(*([1] * 10), configurations=configurations)
    one = Member(3, log=log, epoch=1, voters=(1, 2, 3, 4), joined=-1)
    one.step(events.CompactionEnabled())
    assert one.raft.has_lost_state
    one.time_out()
    assert one.raft.role == Role.FOLLOWER
    assert is_found(append(one, 9, commit=-1))


def test_a_log_of_an_earlier_directory_waits_for_a_leader() -> None:
    one = member(joined=OUTDATED, lost_state=True)
    assert not is_found(one.receive(1, LeaderContact(Epoch(1), Index(2), Index(2))))
    assert is_found(append(one, 4, commit=2))


def test_a_log_that_is_not_compacted_is_gone_on_with_and_as_good_as_new() -> None:
    one = member(is_compacted=False)
    effects = append(one, 8, (6, WITHOUT), (8, WITH), commit=7)
    assert not is_found(effects)
    assert one.raft.joined == 6 and of_type(effects, events.PersistState)
    # Where it is compacted later, all of its members are members.
    one.step(events.CompactionEnabled())
    assert not is_found(append(one, 9, (9, configuration((1, 2, 3))), commit=9))
    assert is_found(append(one, 12, (10, WITHOUT), (12, WITH), commit=11))


def test_a_log_of_an_earlier_directory_that_is_compacted_no_more_is_gone_on_with() -> None:
    one = member(joined=OUTDATED, lost_state=True, is_compacted=False)
    assert not is_found(append(one, 5, commit=2))
    assert one.raft.joined == -1
    assert not of_type(append(one, 6, commit=3), events.PersistState)


def test_of_a_log_of_any_age_nothing_is_said() -> None:
    one = member(joined=None)
    assert not is_found(append(one, 8, (6, WITHOUT), (8, WITH), commit=8))
    assert one.raft.joined is None


def test_a_leader_has_all_that_was_committed() -> None:
    """It was found before, or its state is of a release that did not look."""
    configurations = ((1, WITHOUT), (3, configuration((1, 2, 3))))
    log = shape(*([1] * 5), configurations=tuple(configurations))
    one = Member(3, log=log, epoch=1, voters=(1, 2, 3), joined=4)
    one.step(events.CompactionEnabled())
    one.lead()
    one.flush()
    one.hear_all(BrokerId(1))
    assert one.raft.commit == one.raft.log.last_index
    assert not one.raft.has_lost_state
