"""TIER markers stay with the log, or with its summaries from a checkpoint on (decision 0057).

Source: design section 4."""

import random

from tests.storage.log_world import DIRECTORY, HOUR_MS, World

from strandline.model.ids import Epoch, Index, Offset
from strandline.records.marker import build_tier_marker
from strandline.storage.layout import SegmentSummary, read_checked, write_checked
from strandline.storage.log.retention import Tiered
from strandline.storage.recovery.verification import FindingKind, verify_log


def put(world: World, payload: bytes) -> Index:
    """Append a TIER marker; its index."""
    marker = build_tier_marker(world.log.end_offset, Epoch(1), payload, world.clock.wall)
    world.write(marker)
    return world.log.last_index


def world_with_markers() -> tuple[World, list[tuple[Index, bytes]]]:
    """Several segments, each with some markers."""
    world = World()
    put_there = []
    for at in range(12):
        world.append(size=150)
        put_there.append((put(world, b"%d" % at), b"%d" % at))
    return world, put_there


def test_markers_come_back_by_summaries_and_by_a_scan() -> None:
    world, expected = world_with_markers()
    world.flush()
    assert world.log.tier_markers == expected
    world.kill()
    world.log = world.open()
    assert world.log.tier_markers == expected
    for name in world.files(".summary"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.kill()
    assert world.open().tier_markers == expected


def test_markers_go_with_a_truncation_and_with_the_start() -> None:
    world, expected = world_with_markers()
    world.flush()
    world.log.truncate(expected[9][0])
    assert world.log.tier_markers == expected[:9]
    world.log.remove_segments_before(expected[5][0])
    kept = [one for one in expected[:9] if one[0] >= world.log.start_index]
    assert 0 < len(kept) < 9
    assert world.log.tier_markers == kept
    world.disk.crash(random.Random(3))
    assert world.open().tier_markers == kept


def test_forgotten_markers_may_be_missing_after_a_restart_and_later_ones_are_not() -> None:
    world, expected = world_with_markers()
    world.log.forget_tier_markers(expected[7][0])
    assert world.log.tier_markers == expected[7:]
    world.flush()  # Seals the closed segments, without the markers that are forgotten.
    world.kill()
    world.log = world.open()
    assert world.log.tier_markers[-5:] == expected[7:]
    assert len(world.log.tier_markers) < len(expected)
    assert world.log.tier_forgotten == expected[7][0]
    found = verify_log(world.disk, DIRECTORY).findings
    assert [one for one in found if one.kind is FindingKind.DAMAGE] == []
    for name in world.files(".summary"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.kill()
    scanned = world.open()
    assert (scanned.tier_markers, scanned.tier_forgotten) == (expected, 0)


def test_summary_with_a_marker_that_the_log_has_not_is_damage() -> None:
    world, _ = world_with_markers()
    world.flush()
    path = f"{DIRECTORY}/{world.files('.summary')[1]}"
    summary = read_checked(world.disk, path, SegmentSummary)
    assert summary is not None
    assert summary.tier_markers
    summary.tier_markers[0] = summary.tier_markers[0][0], b"another"
    write_checked(world.disk, path, summary)
    found = verify_log(world.disk, DIRECTORY).findings
    assert [(one.kind, one.path) for one in found] == [(FindingKind.DAMAGE, path)]


class TestRetention:
    """Of a log with `remote_storage`."""

    def world(self, **config: int) -> World:
        world = World(
            **{
                "remote_storage": True,
                "retention_ms": 10 * HOUR_MS,
                "local_retention_ms": HOUR_MS,
                **config,
            }
        )
        for _ in range(30):
            world.append(size=100)
        world.clock.advance(HOUR_MS + 1)
        return world

    def start(self, world: World, covered: int, *, is_first: bool = False) -> Offset:
        tiered = Tiered(Offset(covered), is_first=is_first)
        return world.log.retention_start(Offset(30), tiered=tiered).base_offset

    def test_local_segments_go_once_they_are_covered(self) -> None:
        world = self.world()
        starts = world.segment_starts()
        assert self.start(world, 0) == 0
        assert self.start(world, starts[2] - 1) == starts[1]
        assert self.start(world, starts[2]) == starts[2]
        assert self.start(world, 30) == starts[-1]

    def test_local_retention_by_bytes_counts_the_local_log(self) -> None:
        world = self.world(local_retention_ms=-1, local_retention_bytes=2_000)
        start = self.start(world, 30)
        left = [one.size_bytes for one in world.log._row.segments if one.name.base_offset >= start]
        assert 2_000 <= sum(left) < 2_000 + max(left)
        assert self.start(world, 5) < start

    def test_total_retention_takes_what_is_in_no_bucket_from_the_partitions_start_only(
        self,
    ) -> None:
        world = self.world()
        world.clock.advance(10 * HOUR_MS)
        assert self.start(world, 0) == 0
        assert self.start(world, 0, is_first=True) == world.segment_starts()[-1]

    def test_what_is_not_committed_stays(self) -> None:
        world = self.world()
        starts = world.segment_starts()
        tiered = Tiered(Offset(30), is_first=True)
        found = world.log.retention_start(Offset(starts[1]), tiered=tiered)
        assert found.base_offset == starts[1]
