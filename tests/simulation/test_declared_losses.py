"""What may be gone once a loss was declared, and what may not: the invariants themselves, on
histories made up for them. Source: docs/decisions/0026 and 0027."""

from dataclasses import replace

import pytest
from tests.simulation.scenario_checks import kept
from tests.simulation.test_invariants import acknowledged, log, read
from tests.simulation.test_invariants import batch as make_batch

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset, first_epoch
from strandline.raft.group.configuration import Configuration
from strandline.simulation.invariants.declared_losses import (
    OldSideNeverAcknowledges,
    OnlyShownIsLost,
)
from strandline.simulation.invariants.facts import (
    AuditedBatch,
    ConfigurationCommitted,
    Declaration,
    LeaderElected,
    LossConfirmed,
    LossRecorded,
    MarksMoved,
    ReplicaRemoved,
)
from strandline.simulation.invariants.invariants import (
    CommittedPrefixEqual,
    HighWatermarkMonotonic,
    Invariant,
    InvariantError,
    LeaderCompleteness,
    NoAcknowledgedRecordLost,
    NoReadOfWhatDisappeared,
    NoStaleLeaderRead,
)
from strandline.simulation.invariants.removals import RemovedWhereStable
from strandline.simulation.swarm.outage_swarm import draw_outages
from strandline.simulation.swarm.swarm import run_scenario

GROUP = GroupId(1)
LEFT, LOST, OTHER = BrokerId(1), BrokerId(2), BrokerId(3)
SHOWN = Declaration(GROUP, 1, (LOST, OTHER), LEFT, at_risk_from=Offset(2), end=Offset(3))
AFTER = int(first_epoch(1))


def batch(at: int, *values: str, epoch: int = 1) -> AuditedBatch:
    return make_batch(at, epoch, at, *values)


def elected(epoch: int, *, broker: BrokerId = LEFT, end: int = 3) -> LeaderElected:
    return LeaderElected(
        broker=broker,
        group=GROUP,
        epoch=Epoch(epoch),
        start_index=Index(0),
        last_index=Index(end - 1),
        epoch_of=lambda index: Epoch(1),
        end_offset=Offset(end),
        index_of=Index,
    )


def declare(invariant: Invariant, declared: Declaration = SHOWN) -> None:
    invariant.on_loss_confirmed(LossConfirmed(SHOWN))
    invariant.on_loss_recorded(LossRecorded(declared, version=4))


def test_what_is_taken_down_is_what_was_shown() -> None:
    declare(OnlyShownIsLost())
    others = (
        replace(SHOWN, at_risk_from=Offset(1)),
        replace(SHOWN, lost=(LOST,)),
        replace(SHOWN, leader=OTHER),
        replace(SHOWN, end=Offset(4)),
    )
    for other in others:
        with pytest.raises(InvariantError, match="no operator has confirmed it"):
            declare(OnlyShownIsLost(), other)


@pytest.mark.parametrize("kind", [OnlyShownIsLost, NoAcknowledgedRecordLost])
def test_what_was_at_risk_may_be_gone_and_nothing_else(
    kind: type[NoAcknowledgedRecordLost],
) -> None:
    one = kind()
    one.on_acknowledged(acknowledged(0, "a", "b", "c", "d"))
    declare(one)
    one.on_log_audited(log(batch(0, "a", "b", "other")))
    one.on_acknowledged(acknowledged(3, "e", epoch=AFTER))
    one.on_acknowledged(acknowledged(2, "late"))  # By the old side, of what was at risk.
    one.on_log_audited(log(batch(0, "a", "b", "other", "e")))
    with pytest.raises(InvariantError, match="e was acknowledged"):
        one.on_log_audited(log(batch(0, "a", "b", "other", "f")))
    with pytest.raises(InvariantError):
        one.on_log_audited(log(batch(0, "a", "x", "other", "e")))


def test_what_is_gone_in_the_end_is_counted() -> None:
    one = OnlyShownIsLost()
    one.on_acknowledged(acknowledged(0, "a", "b", "c", "d"))
    declare(one)
    one.on_log_audited(log(batch(0, "a", "b", "c")))
    assert one.lost_count == 1


def test_the_log_that_was_named_goes_on_with_the_end_that_it_had() -> None:
    one = OnlyShownIsLost()
    declare(one)
    one.on_leader_elected(elected(AFTER))
    one.on_leader_elected(elected(AFTER + 1, broker=OTHER, end=9))
    for wrong in (elected(AFTER, broker=OTHER), elected(AFTER, end=4)):
        with pytest.raises(InvariantError, match="broker 1 was to go on from 3"):
            one.on_leader_elected(wrong)


def test_who_was_given_up_acknowledges_nothing_by_an_earlier_grant() -> None:
    one = OldSideNeverAcknowledges()
    old = replace(acknowledged(3, "a"), broker=LOST)
    one.on_acknowledged(old)
    declare(one)
    one.on_acknowledged(replace(old, broker=LEFT))  # It is fenced only for the appointment.
    with pytest.raises(InvariantError, match="broker 2 acknowledges offset 3 by grant 0"):
        one.on_acknowledged(old)
    one.on_leader_elected(elected(AFTER))
    with pytest.raises(InvariantError, match="broker 1 acknowledges"):
        one.on_acknowledged(replace(old, broker=LEFT))
    one.on_acknowledged(replace(old, epoch=Epoch(AFTER)))


def test_the_next_leader_may_lack_what_was_at_risk_alone() -> None:
    def committed(index: int, epoch: int) -> MarksMoved:
        high, end = Offset(index + 1), Offset(100)
        at = Index(index)
        return MarksMoved(LOST, 1, GROUP, Epoch(epoch), at, Epoch(epoch), high, end)

    one = LeaderCompleteness()
    one.on_marks_moved(committed(6, 1))
    with pytest.raises(InvariantError, match="6 was committed"):
        one.on_leader_elected(elected(2))
    declare(one)
    with pytest.raises(InvariantError, match="6 was committed"):
        one.on_leader_elected(elected(2))  # By an earlier grant.
    one.on_leader_elected(elected(AFTER))
    with pytest.raises(InvariantError, match="1 was committed"):
        one.on_leader_elected(elected(AFTER + 1, end=1))


def test_what_was_at_risk_may_be_another_for_replicas_and_readers() -> None:
    equal, kept, stale = (
        CommittedPrefixEqual(),
        NoReadOfWhatDisappeared(power_fails=False),
        NoStaleLeaderRead(),
    )
    before = log(batch(0, "a", "b"), batch(2, "c", "d"), commit=3, is_final=False)
    after = log(batch(0, "a", "b"), batch(2, "x", epoch=9), commit=2)
    equal.on_log_audited(before)
    kept.on_records_read(read(0, "a", "b", "c", "d"))
    stale.on_acknowledged(acknowledged(0, "a", "b", "c", "d"))
    for one in (equal, kept, stale):
        declare(one)
    equal.on_log_audited(after)
    kept.on_log_audited(after)
    stale.on_records_read(read(2, high_watermark=2, is_leader_read=True))
    with pytest.raises(InvariantError):
        equal.on_log_audited(log(batch(0, "y", "b"), commit=1))
    with pytest.raises(InvariantError):
        kept.on_log_audited(log(batch(0, "y", "b")))
    with pytest.raises(InvariantError):
        stale.on_records_read(read(1, high_watermark=1, is_leader_read=True))


def test_what_was_at_risk_may_go_from_what_was_shown_and_nothing_else() -> None:
    one = HighWatermarkMonotonic(may_lose_unflushed=False)
    shown = replace(read(0, high_watermark=4, is_leader_read=True), broker=LOST)
    one.on_records_read(shown)
    declare(one)
    one.on_records_read(replace(shown, high_watermark=Offset(5)))  # It has not heard of it.
    after = replace(shown, broker=LEFT, epoch=Epoch(AFTER))
    one.on_records_read(replace(after, high_watermark=Offset(2)))
    one.on_records_read(replace(after, high_watermark=Offset(3)))
    with pytest.raises(InvariantError, match="ends at 2; broker 1 has shown 3"):
        one.on_records_read(replace(after, broker=OTHER, high_watermark=Offset(2)))
    other = HighWatermarkMonotonic(may_lose_unflushed=False)
    other.on_records_read(shown)
    declare(other)
    with pytest.raises(InvariantError, match="ends at 1; broker 2 has shown 2"):
        other.on_records_read(replace(after, high_watermark=Offset(1)))


def test_who_was_given_up_lets_go_before_it_has_another_replica() -> None:
    def in_force(*voters: BrokerId, version: int, index: int) -> ConfigurationCommitted:
        return ConfigurationCommitted(
            GROUP, Index(index), Configuration(voters=voters, version=version)
        )

    removed = ReplicaRemoved(GROUP, LOST, 1, (LEFT, LOST, OTHER))
    one = RemovedWhereStable()
    one.on_configuration_committed(in_force(LEFT, LOST, OTHER, version=4, index=50))
    with pytest.raises(InvariantError):
        one.on_replica_removed(removed)
    one.on_replica_removed(replace(removed, has_state=False))  # Its disk was lost since.
    declare(one)
    one.on_replica_removed(removed)
    one.on_configuration_committed(in_force(LEFT, version=5, index=40))
    one.on_configuration_committed(in_force(LEFT, LOST, OTHER, version=4, index=50))  # Late.
    one.on_configuration_committed(in_force(LEFT, LOST, version=6, index=41))
    one.on_replica_removed(removed)  # It may be granted a vote before it has begun anew.
    at = Index(40)
    one.on_marks_moved(
        MarksMoved(LOST, 2, GROUP, Epoch(AFTER), at, Epoch(1), Offset(40), Offset(40))
    )
    with pytest.raises(InvariantError):
        one.on_replica_removed(removed)


def test_a_disk_that_is_lost_after_a_declared_loss_has_nothing_to_let_go() -> None:
    """A voter again, it loses its disk: the new one owes that it forgets, and knows nothing."""
    assert run_scenario(draw_outages(402354)).violation is None


@pytest.mark.simulation
def test_a_scenario_can_say_that_a_loss_has_to_be_declared() -> None:
    """Before the name is typed nobody can write, and what is shown then is what is gone."""
    outcome = kept("lost-for-good-and-declared")
    assert outcome.tally.declared_count == 1 and outcome.tally.given_up_count > 0
    assert sum("was declared lost by grant" in line for line in outcome.trace) == 3
