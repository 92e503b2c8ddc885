"""The follower's side, sentence by sentence. Source: Raft thesis 3.5, 3.8; design section 4."""

import pytest
from tests.raft.member import Member, configuration, epochs_of, kinds, of_type, sent, shape

from strandline.raft import events
from strandline.raft.messages import AppendResponse, LeaderContact, ResetRequest


def answer(effects: list[events.Effect]) -> AppendResponse:
    """The one answer to member 2."""
    return sent(effects, AppendResponse)[2]


def test_entries_that_join_on_are_appended_and_acknowledged_after_the_flush() -> None:
    """3.5, 3.8."""
    member = Member(log=shape(1))
    effects = member.append(prev=(0, 1), epochs=(1, 1))
    assert kinds(effects) == ["BecameFollower", "AppendEntries"]
    assert member.flush() == [events.Send(2, AppendResponse(1, True, 2, 2))]


def test_what_is_flushed_while_no_leader_is_known_is_reported_to_it_once_it_is() -> None:
    """A leader that hears nothing more writes to waits for ever for who is silent (seed 80)."""
    member = Member(log=shape(1))
    member.append(prev=(0, 1), epochs=(1, 1))
    member.time_out()
    assert sent(member.flush(), AppendResponse) == {}
    effects = member.receive(2, LeaderContact(1, 0, 0))
    assert answer(effects) == AppendResponse(1, True, 2, 2)
    assert sent(member.receive(2, LeaderContact(1, 0, 0)), AppendResponse) == {}


def test_what_another_leader_wrote_is_not_reported_to_the_next_one() -> None:
    member = Member(log=shape(1))
    member.append(prev=(0, 1), epochs=(1, 1))
    member.time_out()
    member.flush()
    assert sent(member.receive(3, LeaderContact(2, 0, 0)), AppendResponse) == {}


def test_a_write_is_reported_at_once_where_the_leader_asks_and_again_after_the_flush() -> None:
    """Design section 4: relaxed entries wait for writes, not for flushes."""
    member = Member(log=shape(1))
    assert answer(member.append(prev=(0, 1), epochs=(1, 1), report=True)) == AppendResponse(
        1, True, 2, 0
    )
    assert answer(member.flush()) == AppendResponse(1, True, 2, 2)
    assert member.flush() == []


def test_a_probe_is_answered_at_once() -> None:
    member = Member(log=shape(1, 1, flushed=0))
    assert answer(member.append(prev=(1, 1))) == AppendResponse(1, True, 1, 0)


def test_a_duplicate_is_answered_and_changes_nothing() -> None:
    """3.5: appends are idempotent."""
    member = Member(log=shape(1))
    member.append(prev=(0, 1), epochs=(1, 1))
    effects = member.append(prev=(0, 1), epochs=(1, 1))
    assert effects == [events.Send(2, AppendResponse(1, True, 2, 0))]
    assert epochs_of(member.raft.log) == [1, 1, 1]


def test_an_append_that_ends_before_the_log_does_cuts_nothing() -> None:
    """3.5: only a conflict cuts."""
    member = Member(log=shape(1, 1, 1, 1))
    effects = member.append(prev=(0, 1), epochs=(1,))
    assert answer(effects).written == 1
    assert epochs_of(member.raft.log) == [1, 1, 1, 1]


def test_the_first_conflict_cuts_the_log_and_the_rest_is_appended() -> None:
    """3.5."""
    member = Member(log=shape(1, 1, 2, 2, 2))
    effects = member.append(prev=(0, 1), epochs=(1, 3, 3))
    assert kinds(effects) == ["PersistState", "BecameFollower", "TruncateLog", "AppendEntries"]
    assert of_type(effects, events.TruncateLog)[0].from_index == 2
    assert of_type(effects, events.AppendEntries)[0].first_index == 2
    assert epochs_of(member.raft.log) == [1, 1, 3, 3]


@pytest.mark.parametrize(
    ("own", "prev", "hint", "hint_epoch"),
    [
        ((1, 1), (5, 3), 1, 1),  # the log is too short
        ((1, 1, 2, 2), (3, 3), 2, 2),  # an earlier epoch there: anything below may match
        ((1, 1, 4, 4), (3, 3), 1, 1),  # a later epoch there: none of its entries can match
        ((4, 4), (0, 3), -1, 0),
        ((1, 4, 4), (9, 3), 0, 1),
    ],
)
def test_a_refusal_names_the_last_entry_that_may_match(
    own: tuple[int, ...], prev: tuple[int, int], hint: int, hint_epoch: int
) -> None:
    """3.5: back up by runs of epochs, not by entries."""
    member = Member(log=shape(*own))
    refusal = answer(member.append(prev=prev, epochs=(5,)))
    assert refusal == AppendResponse(5, False, hint=hint, hint_epoch=hint_epoch)
    assert epochs_of(member.raft.log) == list(own)


def test_entries_below_the_start_of_the_log_are_skipped_and_count_as_matching() -> None:
    """Redpanda #25018: such an append cut valid batches."""
    member = Member(log=shape(1, 1, first=5, previous=1))
    effects = member.append(prev=(1, 1), epochs=(1, 1, 1, 1, 1, 1, 1))
    assert of_type(effects, events.TruncateLog) == []
    assert of_type(effects, events.AppendEntries) == [events.AppendEntries(7)]
    assert answer(member.flush()).flushed == 8


def test_an_append_wholly_below_the_start_is_acknowledged_up_to_it() -> None:
    """Redpanda #25018."""
    member = Member(log=shape(2, 2, first=5, previous=1))
    effects = member.append(prev=(1, 1), epochs=(1, 1), epoch=2)
    assert answer(effects) == AppendResponse(2, True, 4, 4)


def test_entries_at_or_below_the_commit_are_skipped() -> None:
    """3.6: what is committed matches every later leader."""
    member = Member(log=shape(1, 1, 1, 2), commit=2)
    effects = member.append(prev=(-1, 0), epochs=(1, 1, 1, 3))
    assert of_type(effects, events.TruncateLog) == [events.TruncateLog(3)]
    assert epochs_of(member.raft.log) == [1, 1, 1, 3]


def test_two_leaders_in_one_epoch_are_a_programmers_error() -> None:
    member = Member(log=shape(1, 1, 2))
    with pytest.raises(AssertionError, match="two leaders"):
        member.receive(2, LeaderContact(2, -1, -1))
        member.receive(3, LeaderContact(2, -1, -1))


def test_marks_count_only_as_far_as_the_log_is_known_to_match() -> None:
    """3.5: min(leader's commit, index of the last new entry)."""
    member = Member(log=shape(1, 1, 2, 2))
    effects = member.append(prev=(0, 1), epochs=(1,), epoch=3, commit=3)
    assert of_type(effects, events.MarksAdvanced) == [events.MarksAdvanced(1, 1)]
    assert of_type(member.receive(2, LeaderContact(3, 3, 3)), events.MarksAdvanced) == []


def test_marks_that_came_early_count_once_the_log_follows() -> None:
    """Contact and appends travel in different lanes."""
    member = Member(log=shape(1))
    member.receive(2, LeaderContact(1, 2, 2))
    effects = member.append(prev=(0, 1), epochs=(1, 1), commit=0)
    assert of_type(effects, events.MarksAdvanced) == [events.MarksAdvanced(2, 2)]


def test_the_marks_of_an_earlier_leader_are_forgotten() -> None:
    member = Member(log=shape(1, 1))
    member.receive(2, LeaderContact(1, 5, 5))
    member.append(prev=(1, 1), epoch=2, sender=3)
    assert member.raft.commit == -1


def test_visible_falls_with_a_truncation_and_never_below_the_commit() -> None:
    """Redpanda #16475: what was seen is cut only where relaxed entries were lost elsewhere."""
    member = Member(log=shape(1, 1, 1))
    member.append(prev=(2, 1), commit=0, visible=2)
    assert (member.raft.commit, member.raft.visible) == (0, 2)
    member.append(prev=(0, 1), epochs=(2,), commit=0)
    assert (member.raft.commit, member.raft.visible) == (0, 0)


def test_a_flush_from_before_a_truncation_says_nothing_about_the_new_entries() -> None:
    member = Member(log=shape(1, 1, 1, flushed=0))
    stale = events.LogFlushed(2, member.raft.log.generation)
    member.append(prev=(0, 1), epochs=(2, 2))
    assert member.step(stale) == []
    assert member.raft.log.flushed_index == 0
    assert answer(member.flush()).flushed == 2


def test_a_flush_is_reported_only_as_far_as_the_log_matches() -> None:
    member = Member(log=shape(1, 1, 2, 2, flushed=0))
    member.append(prev=(0, 1), epochs=(1,), epoch=3)
    assert answer(member.flush()) == AppendResponse(3, True, 1, 1)


def test_without_a_leader_a_flush_is_not_reported() -> None:
    member = Member(log=shape(1, flushed=-1))
    assert member.flush() == []


def test_a_configuration_is_in_force_as_soon_as_it_is_in_the_log_and_no_longer() -> None:
    """4.1; 4.3."""
    new = configuration((1, 2, 4), old=(1, 2, 3))
    member = Member(log=shape(1, 1, configurations=((1, new),)))
    assert member.raft.configuration == new
    effects = member.append(prev=(0, 1), epochs=(2,))
    changed = of_type(effects, events.ConfigurationChanged)
    assert [(c.index, c.configuration.voters) for c in changed] == [(-1, (1, 2, 3))]


def test_a_log_far_behind_begins_anew_where_the_leader_says() -> None:
    """5: instead of a snapshot; retention has the same effect."""
    member = Member(log=shape(1, 1))
    base = configuration((2, 3, 1))
    effects = member.receive(2, ResetRequest(4, 50, 40, 3, base))
    assert of_type(effects, events.ResetLog) == [events.ResetLog(50, 40, 3, base)]
    assert of_type(effects, events.MarksAdvanced) == [events.MarksAdvanced(49, 49)]
    assert answer(effects) == AppendResponse(4, True, 49, 49)
    log = member.raft.log
    assert (log.first_index, log.last_index, log.last_epoch, log.start_offset) == (50, 49, 3, 40)
    member.append(prev=(49, 3), epochs=(4,))
    assert answer(member.flush()).flushed == 50


@pytest.mark.parametrize(
    ("own", "commit", "start", "previous", "matched"),
    [((1, 1, 1), 2, 2, 1, 2), ((1, 1, 1), -1, 2, 1, 1), ((1, 1, 2), -1, 3, 2, 2)],
)
def test_a_log_that_has_what_the_leader_dropped_is_kept(
    own: tuple[int, ...], commit: int, start: int, previous: int, matched: int
) -> None:
    member = Member(log=shape(*own), commit=commit)
    request = ResetRequest(3, start, start, previous, configuration((1, 2, 3)))
    effects = member.receive(2, request)
    assert of_type(effects, events.ResetLog) == []
    assert answer(effects) == AppendResponse(3, True, matched, matched)


def test_the_start_of_the_log_follows_retention() -> None:
    inner = configuration((1, 2))
    member = Member(log=shape(1, 1, 2, configurations=((1, inner),)), commit=2)
    assert member.step(events.PrefixDropped(2, 1)) == []
    log = member.raft.log
    assert (log.first_index, log.previous_epoch, log.start_offset) == (2, 1, 1)
    assert (member.raft.start_configuration, member.raft.configuration) == (inner, inner)


def test_only_what_is_committed_may_leave_the_front() -> None:
    with pytest.raises(AssertionError, match="only committed"):
        Member(log=shape(1, 1)).step(events.PrefixDropped(1, 1))


# ---- how far a compacted log is clean ------------------------------------------------------------


def test_a_follower_says_how_far_its_log_is_compacted_at_once_and_ever_after() -> None:
    member = Member()
    member.append(prev=(-1, 0), epochs=(1, 1))
    assert answer(member.flush()).compacted == -1
    told = answer(member.step(events.LogCompacted(1)))
    assert told == AppendResponse(1, True, 1, 1, compacted=1)
    member.append(prev=(1, 1), epochs=(1,))
    assert answer(member.flush()).compacted == 1
    assert answer(member.step(events.LogCompacted(0))).compacted == 0, "mended"


def test_a_leader_knows_what_each_follower_said_last() -> None:
    leader = Member().lead_established()
    assert leader.step(events.LogCompacted(0)) == []
    assert leader.raft.log.compacted_index == 0
    for said in (0, -1):
        leader.receive(2, AppendResponse(1, True, 0, 0, compacted=said))
        assert leader.raft.progress[2].compacted_index == said


def test_what_was_said_before_a_disk_was_lost_is_worth_nothing() -> None:
    leader = Member().lead_established()
    leader.receive(3, AppendResponse(1, True, 0, 0, compacted=0))
    leader.receive(3, AppendResponse(1, False, hint=-1, recovering=True))
    assert leader.raft.progress[3].compacted_index == -1
    leader.receive(3, AppendResponse(1, True, 0, 0, compacted=0))
    assert leader.raft.progress[3].compacted_index == -1, "an answer of before, that comes late"


def test_an_answer_that_comes_late_takes_nothing_back() -> None:
    leader = Member().lead_established()
    leader.propose()
    leader.receive(2, AppendResponse(1, True, 0, 0, compacted=0))
    leader.receive(2, AppendResponse(1, True, 1, 1, compacted=-1))
    leader.receive(2, AppendResponse(1, True, 0, 0, compacted=0))
    assert leader.raft.progress[2].compacted_index == -1


def test_a_log_that_begins_anew_is_not_compacted() -> None:
    log = shape(1, 1)
    log.compacted_index = 1
    log.reset(5, 5, previous_epoch=1)
    assert log.compacted_index == -1
