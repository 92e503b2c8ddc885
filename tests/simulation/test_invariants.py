"""Each invariant is quiet over a sound history and speaks up where its promise is broken."""

import dataclasses
import zlib
from collections.abc import Sequence

import pytest

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.simulation.invariants.checker import Checker
from strandline.simulation.invariants.committed_offsets import GroupOffsetsMonotonic
from strandline.simulation.invariants.compacted import CompactedPrefixEqual
from strandline.simulation.invariants.facts import (
    Acknowledged,
    AuditedBatch,
    CommitBegun,
    CommitEnded,
    LeaderElected,
    LeaderKnown,
    LogAudited,
    MarksMoved,
    OffsetFetched,
    RecordsRead,
)
from strandline.simulation.invariants.invariants import (
    CommittedPrefixEqual,
    HighWatermarkMonotonic,
    InvariantError,
    LeaderCompleteness,
    LogMatching,
    NoAcknowledgedRecordLost,
    NoDuplicateFromIdempotentProducer,
    NoReadOfWhatDisappeared,
    NoStaleLeaderRead,
    NothingShownTooEarly,
    OffsetsDense,
    SingleLeaderPerEpoch,
)
from strandline.simulation.invariants.leader_acknowledged import LeaderAcknowledgedKept
from strandline.simulation.invariants.superseding import Superseding

GROUP = GroupId(1)
ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)


def marker(index: int, epoch: int, offset: int) -> AuditedBatch:
    return AuditedBatch(Index(index), 1, Epoch(epoch), epoch, Offset(offset), Offset(offset), ())


def batch(index: int, epoch: int, offset: int, *values: str) -> AuditedBatch:
    records = [(Offset(offset + n), f"{value}/...".encode()) for n, value in enumerate(values)]
    checksum = zlib.crc32("".join(values).encode())
    end = Offset(offset + len(values))
    return AuditedBatch(
        Index(index), len(values), Epoch(epoch), checksum, Offset(offset), end, records
    )


SOUND = (marker(0, 1, 0), batch(1, 1, 0, "p/0", "p/1"), marker(3, 2, 2), batch(4, 2, 2, "p/2"))


def log(
    *batches: AuditedBatch,
    broker: BrokerId = ONE,
    commit: int = 4,
    committed_end: int | None = None,
    is_final: bool = True,
) -> LogAudited:
    end = max((b.next_offset for b in batches), default=0)
    return LogAudited(
        broker=broker,
        group=GROUP,
        start_index=Index(0),
        start_offset=Offset(0),
        end_offset=Offset(end),
        commit=Index(commit),
        committed_end=Offset(end if committed_end is None else committed_end),
        batches=batches,
        is_final=is_final,
    )


def marks(epoch: int, commit: int, high_watermark: int, *, life: int = 1) -> MarksMoved:
    return MarksMoved(
        broker=ONE,
        life=life,
        group=GROUP,
        epoch=Epoch(epoch),
        commit=Index(commit),
        commit_epoch=Epoch(epoch),
        high_watermark=Offset(high_watermark),
        log_end_offset=Offset(100),
    )


def elected(epoch: int, last_index: int, epoch_there: int, start_index: int = 0) -> LeaderElected:
    return LeaderElected(
        broker=TWO,
        group=GROUP,
        epoch=Epoch(epoch),
        start_index=Index(start_index),
        last_index=Index(last_index),
        epoch_of=lambda index: Epoch(epoch_there),
    )


def acknowledged(offset: int, *values: str, acks: int = -1, epoch: int = 1) -> Acknowledged:
    encoded = [f"{value}/...".encode() for value in values]
    return Acknowledged(GROUP, "p", True, acks, Offset(offset), encoded, ONE, Epoch(epoch))


def read(
    position: int,
    *values: str,
    committed_end: int = 100,
    high_watermark: int = 100,
    visible_end: int = 100,
    is_leader_read: bool = False,
    first: int | None = None,
    broker: BrokerId = ONE,
    epoch: int = 1,
) -> RecordsRead:
    start = position if first is None else first
    records = [(Offset(start + n), f"{value}/...".encode()) for n, value in enumerate(values)]
    return RecordsRead(
        consumer="c",
        broker=broker,
        life=1,
        group=GROUP,
        position=Offset(position),
        records=records,
        committed_end=Offset(committed_end),
        visible_end=Offset(visible_end),
        high_watermark=Offset(high_watermark),
        is_leader_read=is_leader_read,
        epoch=Epoch(epoch),
    )


def test_two_leaders_in_one_epoch_are_found() -> None:
    invariant = SingleLeaderPerEpoch()
    invariant.on_leader_known(LeaderKnown(ONE, GROUP, Epoch(1), ONE))
    invariant.on_leader_known(LeaderKnown(TWO, GROUP, Epoch(1), ONE))
    invariant.on_leader_known(LeaderKnown(TWO, GROUP, Epoch(2), TWO))
    with pytest.raises(InvariantError, match="SingleLeaderPerEpoch: group 1 epoch 2"):
        invariant.on_leader_known(LeaderKnown(ONE, GROUP, Epoch(2), ONE))


@pytest.mark.parametrize(
    ("fact", "is_intact"),
    [
        (elected(3, 9, 2), True),
        (elected(3, 8, 2), False),
        (elected(3, 9, 1), False),
        (elected(2, 0, 1), True),
        (elected(3, 12, 1, start_index=10), True),
    ],
)
def test_a_leader_that_lacks_what_was_committed_before_its_epoch_is_found(
    fact: LeaderElected, is_intact: bool
) -> None:
    invariant = LeaderCompleteness()
    invariant.on_marks_moved(marks(2, 9, 5))
    if is_intact:
        invariant.on_leader_elected(fact)
    else:
        with pytest.raises(InvariantError, match="LeaderCompleteness"):
            invariant.on_leader_elected(fact)


def test_logs_that_differ_below_an_equal_entry_are_found() -> None:
    invariant = LogMatching()
    invariant.on_log_audited(log(*SOUND))
    invariant.on_log_audited(log(*SOUND[:2], broker=TWO))
    other = (marker(0, 1, 0), batch(1, 1, 0, "p/0", "x/1"))
    with pytest.raises(InvariantError, match="LogMatching"):
        invariant.on_log_audited(log(*other, broker=TWO))


def test_committed_entries_that_differ_are_found_and_others_may_differ() -> None:
    invariant = CommittedPrefixEqual()
    invariant.on_log_audited(log(*SOUND))
    fork = (*SOUND[:3], batch(4, 3, 2, "q/0"))
    invariant.on_log_audited(log(*fork, broker=TWO, commit=3))
    with pytest.raises(InvariantError, match="CommittedPrefixEqual"):
        invariant.on_log_audited(log(*fork, broker=TWO, commit=4))


@pytest.mark.parametrize("promise", [CommittedPrefixEqual, CompactedPrefixEqual])
def test_a_commit_beyond_the_log_is_found(
    promise: type[CommittedPrefixEqual | CompactedPrefixEqual],
) -> None:
    with pytest.raises(InvariantError, match=promise.__name__):
        promise().on_log_audited(log(*SOUND, commit=5))


def test_what_compaction_has_left_may_lack_records_and_not_differ() -> None:
    invariant = CompactedPrefixEqual()
    invariant.on_log_audited(log(*SOUND))
    lacking = dataclasses.replace(SOUND[1], records=SOUND[1].records[1:])
    kept = (SOUND[0], lacking, *SOUND[2:])
    invariant.on_log_audited(log(*kept, broker=TWO))
    fork = (*SOUND[:3], batch(4, 3, 2, "p/2"))
    invariant.on_log_audited(log(*fork, broker=TWO, commit=3))
    with pytest.raises(InvariantError, match=r"CompactedPrefixEqual.* at 4 \(epoch"):
        invariant.on_log_audited(log(*fork, broker=TWO))
    other = (*SOUND[:3], batch(4, 2, 2, "q/0"))
    with pytest.raises(InvariantError, match=r"CompactedPrefixEqual.* at offset 2"):
        invariant.on_log_audited(log(*other, broker=TWO))


@pytest.mark.parametrize(
    "batches",
    [
        (marker(0, 1, 0), batch(1, 1, 1, "p/0")),
        (marker(0, 1, 0), batch(2, 1, 0, "p/0")),
        (batch(0, 1, 0, "p/0"), marker(1, 2, 0)),
    ],
)
def test_holes_in_a_log_are_found(batches: Sequence[AuditedBatch]) -> None:
    OffsetsDense().on_log_audited(log(*SOUND))
    with pytest.raises(InvariantError, match="OffsetsDense"):
        OffsetsDense().on_log_audited(log(*batches))


def test_holes_in_what_is_read_are_found() -> None:
    OffsetsDense().on_records_read(read(3, "p/0", "p/1"))
    with pytest.raises(InvariantError, match="OffsetsDense"):
        OffsetsDense().on_records_read(read(3, "p/0", first=4))


def test_a_high_watermark_that_goes_back_is_found_within_one_life() -> None:
    invariant = HighWatermarkMonotonic(may_lose_unflushed=False)
    invariant.on_marks_moved(marks(1, 9, 9))
    invariant.on_marks_moved(marks(1, 9, 5, life=2))
    with pytest.raises(InvariantError, match="HighWatermarkMonotonic"):
        invariant.on_records_read(read(0, high_watermark=8))


def test_where_relaxed_records_may_go_only_the_committed_end_must_not_go_back() -> None:
    invariant = HighWatermarkMonotonic(may_lose_unflushed=True)
    invariant.on_records_read(read(0, committed_end=5, high_watermark=9))
    invariant.on_records_read(read(0, committed_end=5, high_watermark=7))
    with pytest.raises(InvariantError, match="HighWatermarkMonotonic"):
        invariant.on_records_read(read(0, committed_end=4, high_watermark=7))


@pytest.mark.parametrize("may_lose_unflushed", [False, True])
def test_a_leader_that_shows_less_than_another_replica_has_shown_is_found(
    may_lose_unflushed: bool,
) -> None:
    """Nothing of it has been read, and a follower may be as late as it likes."""
    invariant = HighWatermarkMonotonic(may_lose_unflushed=may_lose_unflushed)
    invariant.on_records_read(read(0, high_watermark=9, committed_end=9, is_leader_read=True))
    invariant.on_records_read(read(0, high_watermark=8, committed_end=8, broker=TWO))
    later = read(0, high_watermark=9, committed_end=9, broker=TWO, is_leader_read=True, epoch=2)
    invariant.on_records_read(later)
    less = dataclasses.replace(later, broker=THREE, high_watermark=Offset(8))
    with pytest.raises(InvariantError, match="broker 3 answers as leader that it ends at 8; "):
        invariant.on_records_read(less)


def test_the_next_leader_may_lack_what_was_shown_and_went_with_the_power() -> None:
    invariant = HighWatermarkMonotonic(may_lose_unflushed=True)
    invariant.on_records_read(read(0, high_watermark=9, committed_end=5, is_leader_read=True))
    invariant.on_records_read(read(0, high_watermark=5, broker=TWO, is_leader_read=True, epoch=2))
    with pytest.raises(InvariantError, match="ends at 4; broker 1 has shown 5"):
        invariant.on_records_read(
            read(0, high_watermark=4, broker=THREE, is_leader_read=True, epoch=3)
        )


def test_a_replica_that_shows_more_than_may_be_seen_is_found() -> None:
    invariant = NothingShownTooEarly()
    invariant.on_records_read(read(2, "p/2", high_watermark=3, visible_end=3))
    invariant.on_records_read(read(9, high_watermark=3, visible_end=3))
    for fact in (
        read(2, high_watermark=4, visible_end=3),
        read(2, "p/2", "p/3", high_watermark=3, visible_end=3),
    ):
        with pytest.raises(InvariantError, match="its visible records end at 3"):
            invariant.on_records_read(fact)


def test_an_acknowledged_record_that_is_gone_is_found() -> None:
    invariant = NoAcknowledgedRecordLost()
    invariant.on_acknowledged(acknowledged(2, "p/2"))
    invariant.on_acknowledged(acknowledged(3, "p/3", acks=1))
    invariant.on_log_audited(log(*SOUND))
    invariant.on_log_audited(log(*SOUND[:2], is_final=False))
    with pytest.raises(InvariantError, match="p/2 was acknowledged at offset 2"):
        invariant.on_log_audited(log(*SOUND[:2]))


def test_a_record_that_its_leader_alone_acknowledged_is_missed_where_a_later_one_of_it_is() -> None:
    invariant = LeaderAcknowledgedKept(Superseding(0))
    invariant.on_acknowledged(acknowledged(2, "p/2", acks=1, epoch=2))
    invariant.on_acknowledged(acknowledged(9, "p/9", acks=1))
    invariant.on_acknowledged(acknowledged(2, "q/0", acks=1))
    invariant.on_acknowledged(acknowledged(2, "q/1"))
    invariant.on_log_audited(log(*SOUND))
    invariant.on_log_audited(log(*SOUND[:2]))
    invariant.on_acknowledged(acknowledged(1, "q/2", acks=1))
    with pytest.raises(InvariantError, match="of epoch 1 acknowledged q/2 at offset 1"):
        invariant.on_log_audited(log(*SOUND))


def test_what_a_log_shows_and_is_not_committed_there_may_be_another_record_for_now() -> None:
    """A brief seed: acks=1 records that the leader had shown went with its power; who has not
    heard of the next leader still shows them."""
    invariant = NoAcknowledgedRecordLost()
    invariant.on_acknowledged(acknowledged(2, "q/2"))
    behind = log(*SOUND, committed_end=2, is_final=False)
    invariant.on_log_audited(behind)
    for found in (
        dataclasses.replace(behind, committed_end=Offset(3)),
        dataclasses.replace(behind, is_final=True),
    ):
        with pytest.raises(InvariantError, match="broker 1 has p/2 there"):
            invariant.on_log_audited(found)


def test_two_records_acknowledged_at_one_offset_are_found() -> None:
    invariant = NoAcknowledgedRecordLost()
    invariant.on_acknowledged(acknowledged(2, "p/2"))
    invariant.on_acknowledged(acknowledged(2, "p/2"))
    with pytest.raises(InvariantError, match="both acknowledged at offset 2"):
        invariant.on_acknowledged(acknowledged(1, "q/0", "q/1"))


def test_a_read_that_later_disappears_is_found() -> None:
    invariant = NoReadOfWhatDisappeared(power_fails=False)
    invariant.on_records_read(read(0, "p/0", "p/1"))
    invariant.on_records_read(read(1, "p/1"))
    invariant.on_log_audited(log(*SOUND))
    with pytest.raises(InvariantError, match="broker 1 gave q/0"):
        invariant.on_records_read(read(1, "q/0"))
    with pytest.raises(InvariantError, match="in the end broker 1 has nothing there"):
        invariant.on_log_audited(log(marker(0, 1, 0)))


def test_uncommitted_reads_may_disappear_with_the_power() -> None:
    invariant = NoReadOfWhatDisappeared(power_fails=True)
    invariant.on_records_read(read(0, "p/0", "p/1", committed_end=1))
    invariant.on_records_read(read(1, "q/1", committed_end=1))
    with pytest.raises(InvariantError, match="NoReadOfWhatDisappeared"):
        invariant.on_records_read(read(0, "q/0", committed_end=1))


def test_a_leader_that_answers_from_the_past_is_found() -> None:
    invariant = NoStaleLeaderRead()
    invariant.on_acknowledged(acknowledged(4, "p/4"))
    invariant.on_records_read(read(0, high_watermark=3))
    invariant.on_records_read(read(0, high_watermark=5, is_leader_read=True))
    with pytest.raises(InvariantError, match="NoStaleLeaderRead"):
        invariant.on_records_read(read(0, high_watermark=4, is_leader_read=True))


def test_a_leader_behind_another_consumers_read_is_found() -> None:
    invariant = NoStaleLeaderRead()
    invariant.on_records_read(read(0, "p/0", "p/1", committed_end=2))
    with pytest.raises(InvariantError, match="NoStaleLeaderRead"):
        invariant.on_records_read(read(0, high_watermark=1, is_leader_read=True))


def test_a_record_that_an_idempotent_producer_has_twice_is_found() -> None:
    invariant = NoDuplicateFromIdempotentProducer(["p"])
    invariant.on_log_audited(log(*SOUND))
    twice = (marker(0, 1, 0), batch(1, 1, 0, "p/0", "q/0", "q/0", "p/0"))
    with pytest.raises(InvariantError, match="p/0 at offset 3 after number 0"):
        invariant.on_log_audited(log(*twice))


def test_a_producer_id_that_two_producers_were_given_is_found() -> None:
    checker = Checker(
        idempotent_producers=(), power_fails=False, has_leader_acks=False, resend_timeout_ms=1_000
    )
    checker.producer_id_given("one", 7)
    checker.producer_id_given("two", 8)
    checker.producer_id_given("one", 7)
    assert checker.violation is None
    checker.producer_id_given("two", 7)
    assert checker.violation is not None
    assert checker.violation.startswith("ProducerIdsUnique: two and one")


class Commits:
    """Commits in turn: what became of each is one of "acknowledged", "refused", "unknown"."""

    def __init__(self) -> None:
        self.invariant = GroupOffsetsMonotonic()

    def commit(self, offset: int, outcome: str) -> None:
        number = self.invariant.on_begun(CommitBegun(GROUP, Offset(offset)))
        if outcome != "unknown":
            self.invariant.on_ended(CommitEnded(GROUP, number, outcome == "acknowledged"))

    def is_told(self, offset: int, *, begun: int | None = None) -> None:
        moment = self.invariant.moment if begun is None else begun
        self.invariant.on_fetched(OffsetFetched(GROUP, offset, moment))


def test_the_offset_committed_last_is_told_whatever_it_is() -> None:
    commits = Commits()
    commits.is_told(-1)
    commits.commit(5, "acknowledged")
    commits.commit(3, "acknowledged")  # Back on purpose: consumers may.
    commits.is_told(3)


def test_a_commit_of_unknown_outcome_may_be_told_or_not() -> None:
    commits = Commits()
    commits.commit(5, "acknowledged")
    commits.commit(9, "unknown")
    commits.is_told(5)
    commits.is_told(9)


def test_a_commit_that_was_acknowledged_while_somebody_asked_may_be_told_or_not() -> None:
    commits = Commits()
    commits.commit(5, "acknowledged")
    begun = commits.invariant.moment
    commits.commit(9, "acknowledged")
    commits.is_told(5, begun=begun)
    commits.is_told(9, begun=begun)


@pytest.mark.parametrize(
    ("history", "told"),
    [
        ([(5, "acknowledged")], -1),
        ([(5, "acknowledged"), (9, "acknowledged")], 5),
        ([(5, "unknown"), (9, "acknowledged")], 5),
        ([(5, "acknowledged"), (9, "refused")], 9),
        ([(5, "acknowledged")], 7),
    ],
)
def test_a_committed_offset_that_is_forgotten_or_made_up_is_found(
    history: Sequence[tuple[int, str]], told: int
) -> None:
    commits = Commits()
    for offset, outcome in history:
        commits.commit(offset, outcome)
    with pytest.raises(InvariantError, match="GroupOffsetsMonotonic"):
        commits.is_told(told)
