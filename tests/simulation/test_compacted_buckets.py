"""Compacted topics in buckets, in histories with every fault: consumers that read a partition from
its beginning, out of buckets and logs, find the last value of each key, and no deleted key.

Source: decision 0066."""

import random
from dataclasses import replace

import pytest

from strandline.broker.tiering import rewrites
from strandline.model.ids import Offset
from strandline.records.latest_keys import LatestKeys
from strandline.simulation.invariants.compacted import (
    CompactedTablesEqual,
    DeletedKeysStayDeleted,
)
from strandline.simulation.invariants.facts import BucketRead, Subject, TableRead
from strandline.simulation.invariants.shortened_logs import OnlyExpiredIsRemoved
from strandline.simulation.invariants.tiered import BucketEqualsLog
from strandline.simulation.scenarios.scenario import KIB, Scenario
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.swarm.tiered_swarm import draw_tiered

pytestmark = pytest.mark.simulation


def scenario(seed: int) -> Scenario:
    """That of a tiered seed, with keys, tombstones and compaction."""
    rng = random.Random(f"compacted buckets {seed}")
    drawn = draw_tiered(seed)
    return replace(
        drawn,
        is_copied=False,
        delete_interval_ms=0,
        key_count=rng.choice((3, 10, 40)),
        tombstone_ratio=0.2,
        log=replace(
            drawn.log,
            compacted=True,
            delete=False,
            min_cleanable_dirty_ratio=rng.choice((0.0, 0.3)),
            compaction_map_bytes=rng.choice((KIB, 1024 * KIB)),
            delete_retention_ms=1_000,
        ),
    )


@pytest.fixture(autouse=True)
def _promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """Logs begin at different offsets and lack records: what is asked of whole logs is asked of
    those who read buckets and logs."""
    monkeypatch.setattr(rewrites, "RETRY_MS_MIN", 200)
    monkeypatch.setattr(rewrites, "TURN_WAIT_MS", 100)
    monkeypatch.setattr(OnlyExpiredIsRemoved, "on_log_shortened", lambda *_: None)
    monkeypatch.setattr(CompactedTablesEqual, "on_log_audited", lambda *_: None)
    monkeypatch.setattr(BucketEqualsLog, "on_bucket_read", each_record_is_that_of_the_log)
    before = DeletedKeysStayDeleted.on_table_read

    def on_table_read(self: DeletedKeysStayDeleted, fact: TableRead) -> None:
        before(self, fact)
        last_values_are_there(self, fact)

    monkeypatch.setattr(DeletedKeysStayDeleted, "on_table_read", on_table_read)


def each_record_is_that_of_the_log(self: BucketEqualsLog, fact: BucketRead) -> None:
    offsets = [offset for offset, _ in fact.records]
    assert offsets == sorted(set(offsets))
    assert all(fact.start <= one < fact.end for one in offsets)
    for offset, value in fact.records:
        self._note(fact.group, offset, value, f"bucket {fact.bucket}")


def last_values_are_there(self: DeletedKeysStayDeleted, fact: TableRead) -> None:
    """A key whose last record is no tombstone has that record, if the reader came that far."""

    def lacking() -> list[tuple[bytes | None, Offset]]:
        known = self._superseding._last.get(fact.group, {})
        deleted = self._superseding.deleted(fact.group)
        return [
            (key, offset)
            for key, offset in known.items()
            if offset < fact.end and key not in deleted and newest.get(key, -1) < offset
        ]

    newest = self._superseding.newest(fact.records)
    if lacking():
        for log in self._logs_of(fact.group):
            self._note(log)
    missing = lacking()
    if missing:
        raise self.broken(
            f"group {fact.group}: a reader of broker {fact.broker} came to {fact.end} without "
            f"{missing}",
            Subject(fact.group, missing[0][1]),
        )


@pytest.mark.parametrize("seed", range(1, 9))
def test_every_promise_holds_where_buckets_are_compacted(seed: int) -> None:
    outcome = run_scenario(scenario(seed))
    assert outcome.violation is None
    assert outcome.tally.table_count


def take_the_newest_record(patch: pytest.MonkeyPatch) -> None:
    def is_newest(self: LatestKeys, key: bytes, offset: int) -> bool:
        return self._offsets.get(key, -1) < offset

    patch.setattr(LatestKeys, "is_newest", is_newest)


def test_a_planted_mistake_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    take_the_newest_record(monkeypatch)
    assert run_scenario(scenario(1)).violation is not None
