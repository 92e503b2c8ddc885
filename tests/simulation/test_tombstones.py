"""A key that was deleted does not come back, on any replica, for any consumer.

Source: design section 4; `replication/replica/compactor.py`; Kafka's log compaction."""

from dataclasses import replace

import pytest
from tests.simulation.log_resets import watch_beginnings
from tests.simulation.scenario_checks import kept, scenario_of

from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.replication.replica.replica import Replica
from strandline.simulation.clients.values import Values, make_batch
from strandline.simulation.invariants.compacted import CompactedTablesEqual, DeletedKeysStayDeleted
from strandline.simulation.invariants.facts import (
    Acknowledged,
    AuditedBatch,
    LogAudited,
    MarksMoved,
    TableRead,
)
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.invariants.superseding import Superseding, is_tombstone
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm import variations
from strandline.simulation.swarm.swarm import run_scenario

AWAY = ("tombstones-and-a-follower-away", "tombstones-of-whole-brokers")
GROUP = GroupId(1)
VALUE, TOMBSTONE, LATER = b"p/0/..", b"p/1/deleted", b"p/2/.."
"""Of one key, at offsets 0, 1 and 2."""


@pytest.mark.simulation
@pytest.mark.parametrize("name", AWAY)
def test_keys_stay_deleted_while_a_follower_is_away(name: str) -> None:
    outcome = kept(name)
    assert outcome.tally.table_count > 20


@pytest.mark.simulation
def test_a_tombstone_that_goes_before_everybody_has_it_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    at_once = property(lambda replica: replica.log.end_offset)
    monkeypatch.setattr(Replica, "outlived_offset", at_once)
    violation = run_scenario(scenario_of(AWAY[0])).violation
    assert violation is not None
    assert violation.startswith("DeletedKeysStayDeleted:")


def moved_from_who_is_down(patch: pytest.MonkeyPatch, seed: int) -> Scenario:
    """As it is drawn, if moves, tombstones and absences are: replicas go from brokers that are
    away, and back to them (`movers`)."""
    with patch.context() as drawing:
        for share in ("MOVING_SHARE", "TOMBSTONES_SHARE", "ABSENCE_SHARE"):
            drawing.setattr(variations, share, 1.0)
        return variations.draw(seed)


@pytest.mark.simulation
@pytest.mark.parametrize("seed", [20042, 20912])
def test_keys_stay_deleted_where_a_log_was_left_and_is_gone_on_with(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`tests/broker/test_stale_log_resets.py` shows what comes of it where it is not begun anew."""
    begun: list[Replica] = []
    watch_beginnings(monkeypatch, begun.append)
    assert run_scenario(moved_from_who_is_down(monkeypatch, seed)).violation is None
    assert begun


@pytest.mark.simulation
def test_a_cluster_is_founded_though_its_controller_moves_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It does not know then whether what it was asked for is done: it is asked again."""
    assert run_scenario(moved_from_who_is_down(monkeypatch, 23283)).violation is None


def test_a_tombstone_has_no_value_and_is_known_all_the_same() -> None:
    batch = make_batch(
        [VALUE, TOMBSTONE],
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        timestamp_ms=1,
        key_count=5,
    )
    assert Values().read(bytes(batch)) == [(0, VALUE), (1, TOMBSTONE)]
    assert (is_tombstone(TOMBSTONE), is_tombstone(VALUE)) == (True, False)


def audited(*found: tuple[int, bytes], broker: int = 1, end: int = 3) -> LogAudited:
    """A log with these records in one batch."""
    records = [(Offset(offset), value) for offset, value in found]
    batch = AuditedBatch(Index(0), end, Epoch(1), 1, Offset(0), Offset(end), records)
    return LogAudited(
        broker=BrokerId(broker),
        group=GROUP,
        start_index=Index(0),
        start_offset=Offset(0),
        end_offset=Offset(end),
        commit=Index(end - 1),
        committed_end=Offset(end),
        batches=[batch],
        is_final=True,
    )


def acknowledged(offset: int, value: bytes) -> Acknowledged:
    return Acknowledged(GROUP, "p", False, -1, Offset(offset), [value])


def read(*found: tuple[int, bytes], end: int = 2) -> TableRead:
    records = {Offset(offset): value for offset, value in found}
    return TableRead("t", BrokerId(1), GROUP, Offset(end), records)


def test_a_deleted_key_that_comes_back_is_found() -> None:
    invariant = DeletedKeysStayDeleted(Superseding(key_count=1))
    invariant.on_acknowledged(acknowledged(0, VALUE))
    invariant.on_table_read(read((0, VALUE)))
    invariant.on_acknowledged(acknowledged(1, TOMBSTONE))
    invariant.on_table_read(read((0, VALUE), (1, TOMBSTONE)))
    invariant.on_table_read(read((0, VALUE), end=1))  # Not so far yet.
    invariant.on_table_read(read())
    invariant.on_log_audited(audited((0, VALUE), (1, TOMBSTONE), end=2))
    with pytest.raises(InvariantError, match="no tombstone"):
        invariant.on_table_read(read((0, VALUE)))
    with pytest.raises(InvariantError, match="no tombstone"):
        invariant.on_log_audited(audited((0, VALUE), end=2))


def test_a_tombstone_that_is_superseded_is_missed_by_nobody() -> None:
    """Who is on its way to the later record has neither for a while."""
    invariant = DeletedKeysStayDeleted(Superseding(key_count=1))
    invariant.on_log_audited(audited((0, VALUE), (1, TOMBSTONE), (2, LATER)))
    invariant.on_table_read(read((0, VALUE)))


@pytest.mark.parametrize("is_known_here", [True, False])
def test_what_supersedes_a_tombstone_is_looked_for_where_it_was_told_to_nobody(
    is_known_here: bool,
) -> None:
    """It asked for no acknowledgement, and came after the last audit; who held it to be committed
    may be dead."""
    commit = Index(2) if is_known_here else Index(1)
    later = replace(audited((0, VALUE), (1, TOMBSTONE), (2, LATER), broker=2), commit=commit)
    logs: list[LogAudited] = []
    invariant = DeletedKeysStayDeleted(Superseding(key_count=1), logs_of=lambda group: logs)
    invariant.on_log_audited(audited((0, VALUE), (1, TOMBSTONE), end=2))
    for log in ([], [replace(later, commit=Index(1))]):  # Written, and not committed.
        logs[:] = log
        with pytest.raises(InvariantError, match="no tombstone"):
            invariant.on_table_read(read((0, VALUE)))
    if not is_known_here:
        epoch = later.batches[-1].epoch
        invariant.on_marks_moved(
            MarksMoved(BrokerId(3), 1, GROUP, epoch, Index(2), epoch, Offset(3), Offset(3))
        )
    logs[:] = [later]
    invariant.on_table_read(read((0, VALUE)))


def test_tables_differ_where_one_replica_has_a_key_that_others_deleted() -> None:
    invariant = CompactedTablesEqual(Superseding(key_count=1))
    invariant.on_log_audited(audited((0, VALUE), (1, TOMBSTONE)))
    invariant.on_log_audited(audited(broker=2))
    with pytest.raises(InvariantError, match="differ"):
        invariant.on_log_audited(audited((0, VALUE), broker=3))
