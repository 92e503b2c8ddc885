"""Deleted records stay deleted through every fault; mistakes that would bring them back are found.

Source: docs/decisions/0006-deleting-records.md; design section 10."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.simulation.test_invariants import GROUP, ONE, TWO, read

from strandline.model.ids import BrokerId, Index, Offset
from strandline.protocol.errors import Error
from strandline.replication.replica.delete_records import DeletionDone, Deletions
from strandline.simulation.invariants.deleted_records import DeletedStaysDeleted
from strandline.simulation.invariants.facts import Deleted, DeletionAsked, RecordsRead
from strandline.simulation.invariants.invariants import InvariantError
from strandline.simulation.scenarios.scenario import Scenario
from strandline.simulation.swarm.swarm import Outcome, run_scenario

SEEDS = (1, 2, 3, 5, 11, 19, 20)
INTERVAL_MS = 100
ACTIVE_MS = 6_000


def run_with_deletions(seed: int) -> Outcome:
    """The whole brokers of a seed, and somebody who deletes."""
    scenario = replace(
        Scenario.draw(seed).whole(),
        group_consumer_count=0,
        delete_interval_ms=INTERVAL_MS,
        active_ms=ACTIVE_MS,
    )
    return run_scenario(scenario)


@pytest.mark.simulation
def test_deleted_records_stay_deleted() -> None:
    outcomes = [run_with_deletions(seed) for seed in SEEDS]
    assert [outcome.violation for outcome in outcomes] == [None] * len(SEEDS)
    assert sum(outcome.tally.deletion_count for outcome in outcomes) > 10
    assert sum(outcome.tally.election_count for outcome in outcomes) > 10


# ---- planted mistakes --------------------------------------------------------------------------


def delete_here_only(self: Deletions, before: int, *, timeout_ms: int, done: DeletionDone) -> None:
    """The leader remembers the new start, and tells nobody."""
    self.before = max(self.before, Offset(before))
    done(Error.NONE)


def apply_only_while_leading(self: Deletions, commit: Index) -> None:
    """A follower lets deletions pass, and does not know them when it is elected."""
    if self._owner.leadership is None:
        self._commit = commit
    else:
        on_commit(self, commit)


on_commit = Deletions.on_commit


@pytest.mark.simulation
def test_a_start_that_only_its_leader_knows_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deletions, "delete", delete_here_only)
    assert is_found()


@pytest.mark.simulation
def test_a_start_that_followers_do_not_heed_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deletions, "on_commit", apply_only_while_leading)
    assert is_found()


def is_found() -> bool:
    return any(
        "DeletedStaysDeleted" in (run_with_deletions(seed).violation or "") for seed in SEEDS
    )


# ---- the invariant, by hand --------------------------------------------------------------------


def shown(
    start: int, *, deleted: int = 0, broker: BrokerId = ONE, leads: bool = False, life: int = 1
) -> RecordsRead:
    return replace(
        read(start, is_leader_read=leads),
        broker=broker,
        life=life,
        start_offset=Offset(start),
        deleted_before=Offset(deleted),
    )


@pytest.fixture
def invariant() -> DeletedStaysDeleted:
    """Records below 5 are deleted."""
    invariant = DeletedStaysDeleted()
    invariant.on_deletion_asked(DeletionAsked(GROUP, Offset(5)))
    invariant.on_deleted(Deleted(GROUP, Offset(5), Offset(5)))
    return invariant


@pytest.mark.parametrize(
    "break_it",
    [
        lambda one: one.on_records_read(shown(4, leads=True)),
        lambda one: one.on_deleted(Deleted(GROUP, Offset(3), Offset(2))),
        lambda one: one.on_records_read(shown(6, deleted=6)),
        lambda one: (one.on_records_read(shown(7)), one.on_records_read(shown(6))),
    ],
    ids=["a leader", "an answer", "unasked", "one replica"],
)
def test_a_start_that_goes_back_or_too_far_is_found(
    invariant: DeletedStaysDeleted, break_it: Callable[[DeletedStaysDeleted], object]
) -> None:
    with pytest.raises(InvariantError, match="DeletedStaysDeleted: group 1"):
        break_it(invariant)


def test_a_follower_may_be_behind_and_a_start_may_move_by_retention(
    invariant: DeletedStaysDeleted,
) -> None:
    invariant.on_records_read(shown(5, deleted=5, leads=True))
    invariant.on_records_read(shown(0, broker=TWO))
    invariant.on_records_read(shown(9, deleted=5, leads=True))
    invariant.on_records_read(shown(5, deleted=5, life=2, leads=True))
