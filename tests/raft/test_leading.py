"""A leader's marks and what it sends, sentence by sentence.

Source: Raft thesis 3.5, 3.6.2, figure 3.7; design sections 4, 5 and 6."""

import pytest
from tests.raft.member import Member, configuration, kinds, of_type, shape

from strandline.raft import events
from strandline.raft.leader.progress import AppendPlan, PeerState
from strandline.raft.messages import AppendRequest, AppendResponse, ResetRequest, Run


def marks(effects: list[events.Effect]) -> list[tuple[int, int]]:
    return [(m.commit, m.visible) for m in of_type(effects, events.MarksAdvanced)]


def ready(effects: list[events.Effect]) -> list[int]:
    return [effect.peer for effect in of_type(effects, events.ReplicationReady)]


# ---- commit --------------------------------------------------------------------------------------


def test_an_entry_commits_once_a_quorum_has_flushed_it_the_leader_included() -> None:
    """3.5; 10.2.1: the leader's own flush runs beside the others'."""
    member = Member().lead_established()
    member.propose(3)
    assert marks(member.hear(2, 3, 2)) == []
    assert marks(member.flush()) == [(2, 2)]
    assert marks(member.hear(3, 3)) == [(3, 3)]


def test_followers_alone_can_commit_before_the_leaders_own_flush() -> None:
    """10.2.1."""
    member = Member().lead_established()
    member.propose(1)
    member.hear(2, 1)
    assert marks(member.hear(3, 1)) == [(1, 1)]


def test_an_entry_of_an_earlier_epoch_is_never_committed_by_counting() -> None:
    """3.6.2, figure 3.7."""
    member = Member(log=shape(1, 2), epoch=3).lead()
    assert member.raft.epoch == 4
    assert marks(member.flush()) == []
    assert marks(member.hear(2, 1)) == []
    assert not member.raft.may_serve
    assert marks(member.hear(2, 2)) == [(2, 2)]
    assert member.raft.may_serve


def test_the_commit_never_falls() -> None:
    member = Member().lead_established()
    member.propose(2)
    member.flush()
    member.hear(2, 2)
    assert marks(member.hear(2, 1)) == []
    assert member.raft.commit == 2


@pytest.mark.parametrize(
    ("voters", "min_insync", "needed"),
    [((1,), 1, 0), ((1, 2), 1, 1), ((1, 2, 3), 1, 1), ((1, 2, 3), 2, 1), ((1, 2, 3), 3, 2),
     ((1, 2, 3, 4), 1, 2), ((1, 2, 3, 4, 5), 4, 3), ((1, 2, 3), 9, 2)],
)  # fmt: skip
def test_the_write_quorum_is_a_majority_or_min_insync(
    voters: tuple[int, ...], min_insync: int, needed: int
) -> None:
    """Design section 6."""
    member = Member(voters=voters, min_insync=min_insync).lead_established()
    member.propose()
    member.flush()
    for count, peer in enumerate(voters[1:], start=1):
        assert (member.raft.commit == 1) is (count > needed)
        member.hear(peer, 1)
    assert member.raft.commit == 1


def test_observers_count_in_no_quorum() -> None:
    """4.2.1."""
    member = Member(observers=(4, 5)).lead_established()
    member.propose()
    member.flush()
    for observer in (4, 5):
        assert marks(member.hear(observer, 1)) == []
    assert marks(member.hear(2, 1)) == [(1, 1)]


def test_answers_of_strangers_and_of_other_epochs_count_for_nothing() -> None:
    member = Member().lead_established()
    member.propose()
    member.flush()
    assert member.receive(9, AppendResponse(member.raft.epoch, True, 1, 1)) == []
    assert member.receive(2, AppendResponse(0, True, 1, 1)) == []
    assert member.raft.commit == 0


# ---- visible -------------------------------------------------------------------------------------


def test_an_unflushed_visible_entry_is_visible_once_a_quorum_has_written_it() -> None:
    """Design section 4."""
    member = Member().lead_established()
    member.propose(unflushed_visible=True)
    assert marks(member.hear(2, 1, 0)) == [(0, 1)]
    assert marks(member.flush()) == []
    assert marks(member.hear(2, 1, 1)) == [(1, 1)]


def test_an_entry_above_the_last_unflushed_visible_one_is_not_visible_by_writes() -> None:
    """Design section 4."""
    member = Member().lead_established()
    member.propose(2, unflushed_visible=True)
    member.propose(2)
    assert marks(member.hear(2, 4, 0)) == [(0, 2)]
    assert marks(member.hear(3, 4, 0)) == []


def test_an_entry_below_an_unflushed_visible_one_is_visible_with_it() -> None:
    """Design section 4: mixed acks never reorder."""
    member = Member().lead_established()
    member.propose(2)
    member.propose(2, unflushed_visible=True)
    assert marks(member.hear(2, 4, 0)) == [(0, 4)]


def test_the_only_voters_unflushed_visible_entry_is_visible_at_once() -> None:
    member = Member(voters=(1,)).lead_established()
    assert marks(member.propose(unflushed_visible=True)) == [(0, 1)]


def test_nothing_of_an_earlier_epoch_becomes_visible_by_writes() -> None:
    """Figure 3.7 holds for what readers see as well."""
    member = Member(log=shape(1, 1)).lead()
    member.propose(unflushed_visible=True)
    assert marks(member.hear(2, 1, 1)) == []
    assert marks(member.hear(2, 2, 1)) == [(-1, 2)]


def test_writes_are_to_be_reported_while_unflushed_visible_entries_wait() -> None:
    member = Member().lead_established()
    member.propose(unflushed_visible=True)
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert request.report_written
    member.hear(2, 1, 0)
    member.propose()
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert not request.report_written


# ---- sending -------------------------------------------------------------------------------------


def test_a_new_leader_probes_with_its_marker_and_waits() -> None:
    member = Member(log=shape(1, 1)).lead()
    request = member.send_all(2)
    assert request == AppendRequest(2, 1, 1, -1, -1, (Run(2, 2),))
    member.propose()
    assert member.raft.plan_append(2) is None
    assert ready(member.hear(2, 2)) == [2]
    assert member.raft.progress[2].state == PeerState.REPLICATE


def test_appends_are_pipelined_without_waiting_for_answers() -> None:
    """10.2.2."""
    member = Member().lead_established()
    sent = []
    for _ in range(3):
        assert ready(member.propose()) == [2, 3]
        request = member.send_all(2)
        assert isinstance(request, AppendRequest)
        sent.append((request.prev_index, request.runs[-1].last_index))
    assert sent == [(0, 1), (1, 2), (2, 3)]
    assert member.raft.progress[2].last_sent == 3


def test_marks_travel_with_appends_and_alone_when_there_is_nothing_else() -> None:
    """Design section 5."""
    member = Member().lead_established()
    assert member.raft.plan_append(2) is None
    member.propose()
    member.send_all(2)
    member.flush()
    member.hear(3, 1)
    plan = member.raft.plan_append(2)
    assert isinstance(plan, AppendPlan)
    assert (plan.commit, plan.last_index < plan.first_index, plan.is_probe) == (1, True, False)
    member.raft.note_sent(2, plan.prev_index)
    assert member.raft.plan_append(2) is None


def test_marks_that_moved_while_a_probe_was_under_way_are_told_after_its_answer() -> None:
    """Nothing else might come for long: a broker that starts waits for the commit of its own
    registration."""
    member = Member().lead_established()
    member.step(events.PeerReset(2))
    member.propose()
    member.flush()
    member.send_all(2)  # The probe, with the entry.
    member.hear(3, 1)
    assert member.raft.commit == 1
    assert member.raft.plan_append(2) is None, "a probe waits for its answer"
    assert ready(member.hear(2, 1)) == [2]
    plan = member.raft.plan_append(2)
    assert isinstance(plan, AppendPlan)
    assert (plan.commit, plan.is_probe) == (1, False)


def test_a_peer_that_may_have_lost_something_is_probed_from_what_it_acknowledged() -> None:
    member = Member().lead_established()
    member.propose(4)
    member.send_all(2)
    member.hear(2, 2)
    assert ready(member.step(events.PeerReset(2))) == [2]
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert (request.prev_index, request.runs) == (2, (Run(1, 4),))
    assert member.raft.plan_append(2) is None


def test_a_silent_peer_is_asked_behind_what_was_sent_and_sent_nothing_twice() -> None:
    """Redpanda RFC 20220119: "the recovery_stm will not try to send the same request again, but
    will finish, assuming the response will be successful"."""
    member = Member().lead_established()
    member.propose(4)
    member.send_all(2)
    member.hear(2, 2)
    assert ready(member.step(events.PeerTimedOut(2))) == [2]
    assert member.send_all(2) == AppendRequest(1, 4, 1, 0, 0)
    member.propose()
    member.hear(2, 3)  # The answer to what was sent before, not to the question.
    assert member.raft.plan_append(2) is None
    member.hear(2, 4)
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert (request.prev_index, request.runs) == (4, (Run(1, 5),))


def test_a_silent_peer_that_lacks_what_was_sent_gets_it_once_it_says_so() -> None:
    member = Member().lead_established()
    member.propose(4)
    member.send_all(2)
    member.step(events.PeerTimedOut(2))
    member.send_all(2)
    member.receive(2, AppendResponse(1, False, hint=2, hint_epoch=1))
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert (request.prev_index, request.runs) == (2, (Run(1, 4),))


def test_a_peer_whose_marks_may_be_lost_gets_them_again_and_no_question() -> None:
    """A question would overtake what others send it, and be refused."""
    member = Member().lead_established()
    member.propose(2)
    member.send_all(2)
    assert member.raft.plan_append(2) is None
    assert ready(member.step(events.MarksMaybeLost(2))) == [2]
    plan = member.raft.plan_append(2)
    assert isinstance(plan, AppendPlan)
    assert (plan.is_probe, plan.prev_index, plan.last_index, plan.commit) == (False, 2, 2, 0)


def test_a_probe_that_may_be_lost_with_the_marks_is_asked_again() -> None:
    member = Member().lead_established()
    member.step(events.PeerReset(2))
    member.send_all(2)
    assert member.raft.plan_append(2) is None
    assert ready(member.step(events.MarksMaybeLost(2))) == [2]
    plan = member.raft.plan_append(2)
    assert isinstance(plan, AppendPlan)
    assert plan.is_probe


def test_an_old_acknowledgement_is_no_answer_to_a_probe() -> None:
    """What the probe carries would be sent a second time over the same connection."""
    member = Member().lead_established()
    member.propose(4)
    member.send_all(2)
    member.hear(2, 1)
    member.step(events.PeerReset(2))
    member.send_all(2)
    member.hear(2, 3)  # Sent before the connection broke.
    assert member.raft.plan_append(2) is None
    assert member.raft.progress[2].last_sent == 4
    member.hear(2, 4)
    assert member.raft.progress[2].state == PeerState.REPLICATE


def test_a_peer_that_acknowledged_nothing_in_this_epoch_is_asked_at_the_end_without_entries() -> (
    None
):
    """It was away during the election: what it lacks may be one marker, or everything."""
    member = Member(log=shape(1, 1, 1)).lead()
    member.send_all(2)
    member.propose(2)
    for _ in range(2):
        assert ready(member.step(events.PeerReset(2))) == [2]
        assert member.send_all(2) == AppendRequest(2, 5, 2, -1, -1)
        assert member.raft.plan_append(2) is None
    assert ready(member.receive(2, AppendResponse(2, False, hint=2, hint_epoch=1))) == [2]
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert (request.prev_index, request.runs) == (2, (Run(2, 5),))


def test_where_a_refusal_led_back_to_is_kept_when_the_peer_is_lost_again() -> None:
    member = Member(log=shape(1, 1, 2, 5, 5, 5)).lead()
    member.send_all(2)
    member.receive(2, AppendResponse(6, False, hint=4, hint_epoch=3))
    for _ in range(2):
        member.step(events.PeerReset(2))
        assert member.send_all(2) == AppendRequest(6, 2, 2, -1, -1)
    member.receive(2, AppendResponse(6, False, hint=1, hint_epoch=1))
    for _ in range(2):
        member.step(events.PeerReset(2))
        request = member.send_all(2)
        assert isinstance(request, AppendRequest)
        assert (request.prev_index, request.runs[-1]) == (1, Run(6, 6))


def test_an_empty_log_that_was_found_is_sent_entries_after_a_reset() -> None:
    """Found by two logs without a common entry: index -1 matches, and is below every match."""
    member = Member(log=shape(1)).lead()
    member.step(events.PeerReset(2))
    member.send_all(2)
    member.receive(2, AppendResponse(2, False, hint=0, hint_epoch=0))
    assert member.send_all(2) == AppendRequest(2, -1, 0, -1, -1)
    member.receive(2, AppendResponse(2, True, -1, -1))
    member.step(events.PeerReset(2))
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert (request.prev_index, request.runs) == (-1, (Run(1, 0), Run(2, 1)))


@pytest.mark.parametrize(
    ("hint", "hint_epoch", "prev", "runs"),
    [
        (1, 1, 1, (Run(2, 2), Run(5, 5), Run(6, 6))),  # the entry is shared: send what follows
        (4, 3, 2, ()),  # up to there, the last that is not later than epoch 3: ask first
        (3, 1, 1, ()),
        (-1, 0, -1, (Run(1, 1), Run(2, 2), Run(5, 5), Run(6, 6))),
    ],
)
def test_a_refusal_leads_to_the_last_entry_that_may_be_shared(
    hint: int, hint_epoch: int, prev: int, runs: tuple[Run, ...]
) -> None:
    """3.5: one round for each epoch, not for each entry."""
    member = Member(log=shape(1, 1, 2, 5, 5, 5)).lead()
    member.send_all(2)
    refusal = AppendResponse(6, False, hint=hint, hint_epoch=hint_epoch)
    effects = member.receive(2, refusal)
    assert (kinds(effects), ready(effects)) == (["PeerRefused", "ReplicationReady"], [2])
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert (request.prev_index, request.runs) == (prev, runs)


def test_a_refusal_that_was_overtaken_is_ignored() -> None:
    member = Member(log=shape(1, 1, 1)).lead()
    member.send_all(2)
    refusal = AppendResponse(2, False, hint=0, hint_epoch=0)
    member.receive(2, refusal)
    member.send_all(2)
    before = member.raft.progress[2].next_index
    effects = member.receive(2, AppendResponse(2, False, hint=1, hint_epoch=1))
    assert "PeerRefused" not in kinds(effects)
    assert member.raft.progress[2].next_index == before
    assert member.raft.progress[2].awaits_answer


def test_a_refusal_takes_back_what_was_written_and_not_flushed() -> None:
    """The peer's page cache was lost; what its hint names only may match."""
    member = Member().lead_established()
    member.propose(5)
    member.send_all(2)
    member.hear(2, 5, 2)
    member.propose()
    member.send_all(2)
    member.receive(2, AppendResponse(1, False, hint=3, hint_epoch=1))
    progress = member.raft.progress[2]
    assert (progress.match_written, progress.match_flushed, progress.next_index) == (2, 2, 4)


def test_a_peer_below_the_start_of_the_log_is_reset() -> None:
    member = Member(log=shape(3, 3, first=10, previous=2)).lead()
    member.send_all(2)
    member.receive(2, AppendResponse(4, False, hint=4, hint_epoch=1))
    request = member.send_all(2)
    assert request == ResetRequest(4, 10, 10, 2, configuration((1, 2, 3)))
    assert member.raft.plan_append(2) is None
    assert ready(member.hear(2, 9)) == [2]
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert (request.prev_index, request.prev_epoch) == (9, 2)


def test_retention_that_overtakes_a_peer_resets_it() -> None:
    member = Member().lead_established()
    member.propose(4)
    member.flush()
    member.hear(3, 4)
    member.step(events.PrefixDropped(3, 2))
    assert isinstance(member.send_all(2), ResetRequest)


def test_a_leader_whose_log_was_emptied_by_retention_goes_on() -> None:
    """Found by the schedules: the next entries had no epoch."""
    member = Member().lead_established()
    member.step(events.PrefixDropped(1, 0))
    member.propose(2)
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert (request.prev_index, request.prev_epoch, request.runs) == (0, 1, (Run(1, 2),))


def test_only_a_leader_has_plans() -> None:
    member = Member()
    assert member.raft.plan_append(2) is None
    assert member.step(events.PeerReset(2)) == []
    assert dict(member.raft.progress) == {}
    with pytest.raises(AssertionError, match="only a leader"):
        member.propose()


# ---- answers that overtake each other ------------------------------------------------------------
# Acknowledgements are replies on one connection, and go on another one while there is none for
# replies: around a reconnection, and beside all other messages, each order is possible.


def test_an_earlier_acknowledgement_that_comes_late_takes_nothing_back() -> None:
    member = Member().lead_established()
    member.propose(3)
    member.send_all(2)
    member.hear(2, 3)
    before = member.raft.progress[2].next_index
    assert marks(member.hear(2, 2, 1)) == []
    progress = member.raft.progress[2]
    assert (progress.match_written, progress.match_flushed) == (3, 3)
    assert (progress.next_index, progress.is_probing) == (before, False)


def test_a_refusal_that_comes_after_a_later_success_costs_a_probe_and_no_commit() -> None:
    member = Member().lead_established()
    member.propose(3)
    member.flush()
    member.send_all(2)
    member.hear(2, 3)
    assert member.raft.commit == 3
    member.propose()
    member.send_all(2)
    member.receive(2, AppendResponse(member.raft.epoch, False, hint=1, hint_epoch=1))
    assert member.raft.commit == 3
    request = member.send_all(2)
    assert isinstance(request, AppendRequest)
    assert request.prev_index <= 3, "the follower has it, whichever it is"
    member.hear(2, 4)
    progress = member.raft.progress[2]
    assert (progress.match_written, progress.match_flushed) == (4, 4)
    assert not progress.is_probing
    assert marks(member.flush()) == [(4, 4)]


def test_a_success_that_comes_after_a_later_refusal_is_believed_as_far_as_it_goes() -> None:
    """The follower had it durably when it said so, in this epoch."""
    member = Member().lead_established()
    member.propose(3)
    member.send_all(2)
    member.receive(2, AppendResponse(member.raft.epoch, False, hint=0, hint_epoch=1))
    member.hear(2, 1)
    progress = member.raft.progress[2]
    assert (progress.match_flushed, progress.next_index) == (1, 2)
    member.send_all(2)
    member.hear(2, 3)
    assert (progress.match_flushed, progress.is_probing) == (3, False)


def test_an_acknowledgement_that_a_vote_request_overtook_counts_for_nothing_in_the_next_epoch() -> (
    None
):
    member = Member().lead_established()
    member.propose()
    member.flush()
    late = AppendResponse(member.raft.epoch, True, 1, 1)
    member.receive(3, AppendResponse(member.raft.epoch + 1, False, hint=-2))
    assert not member.raft.is_leader
    assert member.receive(2, late) == []
    assert member.raft.commit == 0
