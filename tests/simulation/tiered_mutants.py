"""Bugs planted on purpose in tiered storage: each loses records, or serves what is not one.

A simulator that finds nothing may be looking nowhere: what it must find is kept here."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from tests.simulation.mutants import Plant

from strandline.base.disk import Buffer
from strandline.broker.tier_exports.exporting import Exporting
from strandline.broker.tiering import led_tier
from strandline.broker.tiering.deleting import SeenRemovals
from strandline.model.ids import Offset
from strandline.simulation.swarm.swarm import run_scenario
from strandline.simulation.swarm.tiered_swarm import draw_tiered
from strandline.tiered.collection import collect
from strandline.tiered.collection.orphans import Known, Listed, Sorted
from strandline.tiered.exports import exporter, old
from strandline.tiered.exports.encoding import HeadsBody
from strandline.tiered.exports.heads import Hint, Key
from strandline.tiered.exports.names import ExportNumber, PartitionPlace
from strandline.tiered.exports.reading import ReadExport
from strandline.tiered.objects.store import ObjectInfo
from strandline.tiered.replicas import source
from strandline.tiered.replicas.source import ReplicaSource
from strandline.tiered.replicas.view import ReplicaView, ViewState
from strandline.tiered.segments.trailer import Trailer
from strandline.tiered.segments.writer import SegmentWriter
from strandline.tiered.state.bucket import BucketState
from strandline.tiered.state.commands import Removal
from strandline.tiered.state.tier import TierState

EVERYTHING = Offset(1 << 60)


def let_go_of_what_is_nowhere_else(patch: pytest.MonkeyPatch) -> None:
    """Local retention does not wait for uploads."""

    def covered_end(
        self: TierState,
        copies_min: int,
        buckets: Collection[str],
        *,
        from_offset: Offset,
        wrong: Collection[str] = (),
    ) -> Offset:
        return EVERYTHING

    patch.setattr(TierState, "covered_end", covered_end)


def be_content_with_one_bucket(patch: pytest.MonkeyPatch) -> None:
    """Local retention waits for the first of several buckets."""
    honest = TierState.covered_end

    def covered_end(
        self: TierState,
        copies_min: int,
        buckets: Collection[str],
        *,
        from_offset: Offset,
        wrong: Collection[str] = (),
    ) -> Offset:
        return honest(self, 1, buckets, from_offset=from_offset, wrong=wrong)

    patch.setattr(TierState, "covered_end", covered_end)


def believe_every_byte(patch: pytest.MonkeyPatch) -> None:
    """Chunks from a bucket are not compared with their checksums."""

    def chunk_matches(self: Trailer, chunk: int, data: Buffer) -> bool:
        return True

    patch.setattr(Trailer, "chunk_matches", chunk_matches)


def let_objects_go_live_in_any_order(patch: pytest.MonkeyPatch) -> None:
    """An upload goes live when it is done, whether the one before it is or not."""
    patch.setattr(BucketState, "_is_in_line", lambda self, base: True)
    patch.setattr(led_tier, "is_next", lambda state, intent, *, local_start: True)


def leave_out_the_last_batches(patch: pytest.MonkeyPatch) -> None:
    """An object counts the batches of its last piece, and lacks them."""
    honest = SegmentWriter._take

    def _take(self: SegmentWriter, data: memoryview) -> None:
        is_last = self.next_offset == self.end_offset and self.size_bytes > 0
        honest(self, data[:0] if is_last else data)

    patch.setattr(SegmentWriter, "_take", _take)


def remove_the_newest_exports(patch: pytest.MonkeyPatch) -> None:
    """The list of exports is read from its wrong end, after each one, and without a grace."""
    honest = old.old_exports

    def old_exports(listed: Sequence[ObjectInfo], *, grace_ms: int) -> list[str]:
        return honest(listed[::-1], grace_ms=0)

    patch.setattr(old, "old_exports", old_exports)
    patch.setattr(exporter, "WRITES_PER_REMOVAL", 1)


def delete_what_an_export_counts(patch: pytest.MonkeyPatch) -> None:
    """Retired objects go at once: no export without them is waited for, and no grace."""
    honest = led_tier.due_removals

    def due_removals(
        removals: Iterable[Removal], *, now_ms: int, grace_ms: int
    ) -> tuple[list[str], int | None]:
        return honest(removals, now_ms=now_ms, grace_ms=0)

    patch.setattr(Exporting, "has_no_live", lambda self, group, bucket, name: True)
    patch.setattr(led_tier, "due_removals", due_removals)
    patch.setattr(SeenRemovals, "settled", lambda self, names, *, before_ms: list(names))


def take_orphans_for_young(patch: pytest.MonkeyPatch) -> None:
    """The collector compares times in seconds with times in milliseconds."""
    honest = collect.sort_objects

    def sort_objects(listed: Listed, known: Known, *, now_ms: int, grace_ms: int) -> Sorted:
        return honest(listed, known, now_ms=now_ms // 1_000, grace_ms=grace_ms)

    patch.setattr(collect, "sort_objects", sort_objects)


def collect_what_is_live(patch: pytest.MonkeyPatch) -> None:
    """The collector asks no leader."""
    honest = collect.sort_objects

    def sort_objects(listed: Listed, known: Known, *, now_ms: int, grace_ms: int) -> Sorted:
        return honest(listed, Known(), now_ms=now_ms, grace_ms=grace_ms)

    patch.setattr(collect, "sort_objects", sort_objects)


def serve_whatever_is_named(patch: pytest.MonkeyPatch) -> None:
    """A copy takes the export that the last head names, whether it is newer or not."""

    def hints_of(heads: Iterable[HeadsBody]) -> dict[Key, Hint]:
        return {
            (row.topic_id, row.partition): Hint(
                ExportNumber(row.epoch, row.index, row.version), one.written_ms
            )
            for one in heads
            for row in one.rows
        }

    def adopt(self: ReplicaView, found: ReadExport) -> str:
        self.export = found.export
        self.state = ViewState.READY
        return ""

    async def _look(
        self: ReplicaSource, key: Key, view: ReplicaView, hint: Hint | None, newest_ms: int
    ) -> None:
        place = PartitionPlace(self.cluster_id, *key)
        if hint is None:
            await self._list(place, view)
        else:
            found = await source.read_hinted(self.store, place, hint.number)
            if found is not None:
                self._adopt(place, view, found)

    patch.setattr(source, "hints_of", hints_of)
    patch.setattr(ReplicaSource, "_look", _look)
    patch.setattr(ReplicaView, "adopt", adopt)


SEEDS = range(1, 21)
MUTANTS: dict[Plant, tuple[str, dict[str, Any]]] = {
    let_go_of_what_is_nowhere_else: ("NothingDeletedBeforeUploaded", {}),
    be_content_with_one_bucket: ("RemovedOnlyIfInEveryBucket", {}),
    believe_every_byte: ("NoDamageServed", {"fault_weights": {"wrong-bucket": 1}}),
    let_objects_go_live_in_any_order: ("NoGapNoOverlap", {}),
    leave_out_the_last_batches: ("BucketEqualsLog", {}),
    remove_the_newest_exports: ("ExportNeverGoesBack", {}),
    delete_what_an_export_counts: (
        "NothingNeededIsDeleted",
        {"fault_weights": {}, "delete_interval_ms": 100},
    ),
    take_orphans_for_young: (
        "NoOrphanAfterCollection",
        {"fault_weights": {"late-bucket": 1}, "active_ms": 6_000},
    ),
    collect_what_is_live: ("NothingNeededIsDeleted", {}),
    serve_whatever_is_named: (
        "ReadReplicaIsPrefix",
        {
            "fault_weights": {"stale-bucket": 1, "kill-leader": 1, "leadership-transfer": 2},
            "is_copied": True,
            "active_ms": 3_000,
        },
    ),
}
"""{mistake: (the promise that it breaks, what makes a seed likely to show it)}. One of `SEEDS`
does, whatever else changes."""


def found(plant: Plant, seed: int) -> str:
    """What that seed finds; empty for nothing."""
    _, changes = MUTANTS[plant]
    return run_scenario(replace(draw_tiered(seed), **changes)).violation or ""
