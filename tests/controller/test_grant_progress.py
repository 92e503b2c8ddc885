"""Each row of the table by which a group without a quorum gets a leader.

Source: design section 6, 2; decisions 0016 and 0020; `controller.arbitration.grant_progress`."""

from dataclasses import dataclass, replace

import pytest

from strandline.controller.arbitration.grant_progress import (
    APPOINTMENT_DOUBLINGS_MAX,
    APPOINTMENT_MS,
    STUCK_MS,
    TRANSITIONS,
    AskWhoLeads,
    AwaitVotes,
    Effect,
    Event,
    Facts,
    FenceMembers,
    GrantProgress,
    LeaderReported,
    Looked,
    MembersFenced,
    NoLeaderReported,
    NotifyLeader,
    RecordApplied,
    State,
    VotesReleased,
)
from strandline.controller.arbitration.member_reports import MUTE_MS, MemberReports, Stalled
from strandline.controller.arbitration.sides import Need, Reach
from strandline.controller.commands import AppointLeader, BeginGrant
from strandline.model.cluster import Appointment, Partition
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, first_epoch

GROUP = GroupId(7)
ONE, TWO = BrokerId(1), BrokerId(2)
STUCK_PARTITION = Partition("t", 0, GROUP, (ONE, TWO))
GRANTED_PARTITION = replace(STUCK_PARTITION, grant=1, is_fenced=True)
APPOINTED_PARTITION = replace(
    STUCK_PARTITION, grant=1, pending=(ONE,), appointment=Appointment(ONE, Epoch(3), Index(9))
)
FENCED_EPOCH, LAST_EPOCH = first_epoch(1), Epoch(3)
LAST_INDEX, CONFIGURED = Index(9), Index(4)
NEED = Need(1, promotes=False)


@dataclass(frozen=True)
class Answer:
    """A member that was fenced."""

    epoch: Epoch = FENCED_EPOCH
    last_epoch: Epoch = LAST_EPOCH
    last_index: Index = LAST_INDEX
    lost_state: bool = False
    promised_ms: int = 250
    configured: Index = CONFIGURED
    silent: tuple[BrokerId, ...] = ()


def facts(
    partition: Partition = STUCK_PARTITION,
    *,
    now_ms: int = 0,
    heard: tuple[BrokerId, ...] = (ONE,),
    reports: MemberReports | None = None,
    may_begin: bool = True,
) -> Facts:
    return Facts(
        partition=partition,
        reach=Reach(frozenset(heard)),
        reports=reports or MemberReports(),
        now_ms=now_ms,
        may_begin=may_begin,
    )


def progress(state: State, partition: Partition = STUCK_PARTITION) -> GrantProgress:
    """One in this state, whose timer was started at 0 ms."""
    found = GrantProgress(facts(partition))
    found.state = state
    return found


def appoint_command(*brokers: BrokerId) -> AppointLeader:
    return AppointLeader(
        group=GROUP,
        grant=1,
        ends=tuple((one, LAST_EPOCH, LAST_INDEX) for one in brokers),
        configured=(CONFIGURED,) * len(brokers),
    )


SIDE = {ONE: Answer()}
LONG_MS = APPOINTMENT_MS << APPOINTMENT_DOUBLINGS_MAX
ANY = tuple(State)

ROWS: dict[int, tuple[tuple[State, ...], Event, Facts, State | None, tuple[Effect, ...]]] = {
    0: (ANY, Looked(), facts(GRANTED_PARTITION), State.GRANTED, (FenceMembers(),)),
    1: (
        ANY,
        Looked(),
        facts(APPOINTED_PARTITION, now_ms=APPOINTMENT_MS),
        State.APPOINTED,
        (AskWhoLeads(), NotifyLeader()),
    ),
    2: (
        ANY,
        Looked(),
        facts(APPOINTED_PARTITION, now_ms=APPOINTMENT_MS - 1),
        State.APPOINTED,
        (NotifyLeader(),),
    ),
    3: (ANY, Looked(), facts(heard=(ONE, TWO), now_ms=LONG_MS), State.STABLE, ()),
    4: (ANY, Looked(), facts(now_ms=STUCK_MS), State.STUCK, (AskWhoLeads(),)),
    5: (ANY, Looked(), facts(now_ms=STUCK_MS - 1), State.STUCK, ()),
    6: ((State.STUCK, State.APPOINTED), LeaderReported(), facts(now_ms=LONG_MS), None, ()),
    7: ((State.STUCK,), NoLeaderReported(), facts(), None, (BeginGrant(GROUP, 0),)),
    8: (
        (State.APPOINTED,),
        NoLeaderReported(),
        facts(APPOINTED_PARTITION),
        None,
        (BeginGrant(GROUP, 1),),
    ),
    9: (
        (State.STUCK, State.APPOINTED),
        RecordApplied(),
        facts(GRANTED_PARTITION),
        State.GRANTED,
        (FenceMembers(),),
    ),
    10: (
        (State.STUCK, State.GRANTED, State.FENCED),
        RecordApplied(),
        facts(APPOINTED_PARTITION),
        State.APPOINTED,
        (NotifyLeader(),),
    ),
    11: (
        (State.GRANTED,),
        MembersFenced(SIDE, NEED),
        facts(GRANTED_PARTITION),
        State.FENCED,
        (AwaitVotes(SIDE),),
    ),
    12: (
        (State.FENCED,),
        VotesReleased(SIDE),
        facts(GRANTED_PARTITION),
        None,
        (appoint_command(ONE),),
    ),
}


def test_each_row_has_its_test_here() -> None:
    assert list(ROWS) == list(range(len(TRANSITIONS)))


@pytest.mark.parametrize("number", ROWS)
def test_the_row_fires_in_each_of_its_states_and_no_other_row_before_it(number: int) -> None:
    row = TRANSITIONS[number]
    states, event, at, after, effects = ROWS[number]
    assert set(row.states) == set(states) and row.event is type(event) and row.after is after
    for state in states:
        found = progress(state, at.partition)
        fits = [
            one.guard(found, event, at)
            for one in TRANSITIONS
            if one.event is row.event and state in one.states
        ]
        assert fits.index(True) == sum(
            one.event is row.event and state in one.states for one in TRANSITIONS[:number]
        )
        assert found.step(event, at) == effects
        assert found.state is (after or state)


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize(
    "event",
    [
        Looked(),
        LeaderReported(),
        NoLeaderReported(),
        RecordApplied(),
        MembersFenced({}, NEED),
        VotesReleased(SIDE),
    ],
)
def test_where_no_row_fits_nothing_happens(state: State, event: Event) -> None:
    rows = [one for one in TRANSITIONS if one.event is type(event) and state in one.states]
    if not rows:
        found = progress(state)
        assert found.step(event, facts()) == ()
        assert found.state is state


def test_a_group_goes_from_stuck_to_stable() -> None:
    found = progress(State.STABLE)
    assert found.step(Looked(), facts()) == ()
    assert found.step(Looked(), facts(now_ms=STUCK_MS)) == (AskWhoLeads(),)
    at = facts(now_ms=STUCK_MS)
    assert found.step(NoLeaderReported(), at) == (BeginGrant(GROUP, 0),)
    at = facts(GRANTED_PARTITION, now_ms=STUCK_MS)
    assert found.step(RecordApplied(), at) == (FenceMembers(),)
    (wait,) = found.step(MembersFenced(SIDE, NEED), at)
    assert isinstance(wait, AwaitVotes) and wait.ms == 250
    assert found.step(VotesReleased(wait.side), at) == (appoint_command(ONE),)
    assert found.step(RecordApplied(), facts(APPOINTED_PARTITION)) == (NotifyLeader(),)
    stable = replace(STUCK_PARTITION, acting=(ONE,), grant=1)
    assert found.step(Looked(), facts(stable)) == ()
    assert found.state is State.STABLE


def test_a_step_that_failed_is_taken_again_from_the_record() -> None:
    """The controller refused the appointment, or did not answer."""
    found = progress(State.FENCED, GRANTED_PARTITION)
    assert found.step(RecordApplied(), facts(GRANTED_PARTITION)) == ()
    assert found.state is State.FENCED
    assert found.step(Looked(), facts(GRANTED_PARTITION)) == (FenceMembers(),)


def test_a_known_leader_keeps_a_group_from_its_grant_for_another_second() -> None:
    found = progress(State.STUCK)
    found.step(LeaderReported(), facts(now_ms=5_000))
    assert found.step(Looked(), facts(now_ms=5_000 + STUCK_MS - 1)) == ()
    assert found.step(Looked(), facts(now_ms=5_000 + STUCK_MS)) == (AskWhoLeads(),)


def test_a_group_that_continues_meanwhile_gets_no_grant() -> None:
    found = progress(State.STUCK)
    assert found.step(NoLeaderReported(), facts(heard=(ONE, TWO))) == ()


def test_a_topic_that_allows_no_grants_gets_none_but_one_that_has_begun_is_finished() -> None:
    found = progress(State.STUCK)
    assert found.step(Looked(), facts(now_ms=LONG_MS, may_begin=False)) == ()
    assert found.state is State.STABLE
    assert found.step(Looked(), facts(GRANTED_PARTITION, may_begin=False)) == (FenceMembers(),)


def test_each_appointed_leader_has_twice_as_long_as_the_one_before() -> None:
    found = progress(State.APPOINTED, APPOINTED_PARTITION)
    start_ms, patience_ms = 0, APPOINTMENT_MS
    for grant in range(1, APPOINTMENT_DOUBLINGS_MAX + 3):
        partition = replace(APPOINTED_PARTITION, grant=grant)
        if grant > 1:
            found.step(Looked(), facts(partition, now_ms=start_ms))
        early, due = start_ms + patience_ms - 1, start_ms + patience_ms
        assert found.step(Looked(), facts(partition, now_ms=early)) == (NotifyLeader(),)
        assert AskWhoLeads() in found.step(Looked(), facts(partition, now_ms=due))
        start_ms, patience_ms = due + 1, min(2 * patience_ms, LONG_MS)


def test_no_grant_follows_an_appointment_while_no_may_appoint_side() -> None:
    """It would be spent on a leader that cannot lead: the group has `GRANT_MAX` of them."""
    found = progress(State.APPOINTED, APPOINTED_PARTITION)
    at = facts(APPOINTED_PARTITION, now_ms=LONG_MS, heard=(TWO,))
    assert found.step(Looked(), at) == (NotifyLeader(),)


@pytest.mark.parametrize(
    "answer",
    [Answer(epoch=first_epoch(2)), Answer(epoch=Epoch(3)), Answer(lost_state=True)],
)
def test_answers_of_other_grants_and_of_logs_that_prove_nothing_do_not_count(
    answer: Answer,
) -> None:
    found = progress(State.GRANTED, GRANTED_PARTITION)
    at = facts(GRANTED_PARTITION, now_ms=LONG_MS)
    assert found.step(MembersFenced({ONE: answer}, NEED), at) == ()
    assert found.state is State.GRANTED


def test_of_members_that_do_not_hear_each_other_one_side_is_appointed() -> None:
    found = progress(State.GRANTED, GRANTED_PARTITION)
    answers = {ONE: Answer(silent=(TWO,)), TWO: Answer()}
    (wait,) = found.step(MembersFenced(answers, NEED), facts(GRANTED_PARTITION))
    assert isinstance(wait, AwaitVotes) and set(wait.side) == {ONE}


def test_a_member_that_takes_nothing_is_appointed_only_if_no_other_side_is_found_for_long() -> None:
    """The leader that waited for it is gone; the member has answered the fence, durably."""
    reports = MemberReports()
    reports.stalled = {GROUP: Stalled(1, (ONE,))}
    found = progress(State.GRANTED, GRANTED_PARTITION)
    fenced = MembersFenced(SIDE, NEED)
    early = facts(GRANTED_PARTITION, now_ms=APPOINTMENT_MS - 1, reports=reports)
    assert found.step(fenced, early) == ()
    late = facts(GRANTED_PARTITION, now_ms=APPOINTMENT_MS, reports=reports)
    assert found.step(fenced, late) == (AwaitVotes(SIDE),)


def test_a_replica_that_cannot_vote_elects_nobody() -> None:
    """Its broker is heard: of two voters the other one alone can continue."""
    reports = MemberReports()
    found = progress(State.STABLE)
    assert found.step(Looked(), facts(heard=(ONE, TWO), reports=reports)) == ()
    assert found.state is State.STABLE
    reports.unable = {GROUP: {TWO}}
    found.step(Looked(), facts(heard=(ONE, TWO), reports=reports))
    assert found.state is State.STUCK


def test_a_broker_that_answers_nothing_for_long_counts_as_not_heard() -> None:
    reports = MemberReports()
    reports.note_no_answer(TWO, 0)
    assert reports.reach((ONE, TWO), MUTE_MS - 1).heard == {ONE, TWO}
    assert reports.reach((ONE, TWO), MUTE_MS).heard == {ONE}
    reports.note_answer(TWO, (), MUTE_MS)
    assert reports.reach((ONE, TWO), 2 * MUTE_MS).heard == {ONE, TWO}


def test_the_word_of_an_earlier_leader_counts_until_one_of_a_later_grant_has_come() -> None:
    reports = MemberReports()
    reports.stalled = {GROUP: Stalled(0, (TWO,))}
    for kept in (STUCK_PARTITION, GRANTED_PARTITION, APPOINTED_PARTITION):
        reports.drop_stalled({GROUP: kept})
        assert reports.able(GROUP, frozenset((ONE, TWO))) == {ONE}
    reports.drop_stalled({GROUP: replace(STUCK_PARTITION, grant=1)})
    assert reports.able(GROUP, frozenset((ONE, TWO))) == {ONE, TWO}
