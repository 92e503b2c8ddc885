"""When a segment is closed, and which closed segments retention removes.

Source: design section 4; Kafka's retention.ms and retention.bytes."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.storage.log_world import DIRECTORY, HOUR_MS, World

from strandline.model.ids import Index, Offset

# ---- rolling and retention ----


def test_a_segment_is_closed_when_it_is_full_or_old() -> None:
    world = World(segment_ms=HOUR_MS)
    assert not world.log.roll_if_due()
    world.append()
    world.clock.advance(HOUR_MS - 1)
    assert not world.log.roll_if_due()
    world.clock.advance(1)
    assert world.log.roll_if_due()
    assert not world.log.roll_if_due(), "an empty segment stays"
    assert world.segment_starts() == [0, 1]
    world.append(size=990)
    world.append()
    assert world.segment_starts() == [0, 1, 2], "one too large has a segment for itself"


def test_retention_by_time_removes_closed_segments_below_the_limit() -> None:
    world = World(retention_ms=HOUR_MS)
    for _ in range(30):
        world.append(size=100)
        world.clock.advance(60_000)
    starts = world.segment_starts()
    assert world.log.apply_retention(world.log.end_offset) == 0
    world.clock.advance(50 * 60_000)
    allowed = [start for start in starts if start <= 20]
    assert world.log.retention_start(Offset(30)).base_offset == allowed[-1]
    assert world.log.apply_retention(Offset(allowed[1])) == allowed[1]
    assert world.log.apply_retention(Offset(30)) == allowed[-1]
    assert world.segment_starts() == starts[len(allowed) - 1 :]
    assert world.log.start_index == world.log.start_offset
    assert world.log.epochs == [(1, world.log.start_index)]
    world.disk.crash(random.Random(1))


def test_an_expired_active_segment_is_closed_so_that_it_can_go() -> None:
    world = World(retention_ms=HOUR_MS)
    world.mark(1)
    world.append()
    world.clock.advance(HOUR_MS + 1)
    assert world.log.roll_if_due()
    assert world.log.apply_retention(Offset(1)) == 1
    assert (world.log.start_index, world.log.last_index, world.log.previous_epoch) == (2, 1, 1)
    assert (world.log.epochs, world.log.last_epoch) == ([], 1)
    world.clock.advance(HOUR_MS + 1)
    world.mark(2)
    world.clock.advance(HOUR_MS + 1)
    assert not world.log.roll_if_due(), "a marker alone is not worth a segment"


def test_retention_by_size_keeps_at_least_so_much() -> None:
    world = World(retention_ms=-1, retention_bytes=3_000)
    for _ in range(60):
        world.append(size=100)
    world.log.apply_retention(world.log.end_offset)
    assert 3_000 <= world.log.size_bytes() < 4_000


def test_retention_by_size_counts_no_records_that_may_yet_be_cut_off() -> None:
    """Seed 56500964 of brief histories: a leader that nobody followed any more let acknowledged
    records go, for the sake of others that its successor cut off."""
    interval_bytes, committed = 200, Offset(35)
    world = World(retention_ms=-1, retention_bytes=3_000, index_interval_bytes=interval_bytes)
    sizes = [len(world.append(size=100)) for _ in range(60)]
    start = world.log.apply_retention(committed)
    assert start > 0
    kept = sum(sizes[start:committed])
    assert 3_000 <= kept < 3_000 + world.config.segment_bytes + interval_bytes + max(sizes)


def test_retention_by_size_counts_no_markers_that_may_yet_be_cut_off() -> None:
    world = World(retention_ms=-1)
    data = [world.append(size=100) for _ in range(30)]
    committed, second = world.log.end_offset, world.segment_starts()[1]
    for epoch in range(1, 40):
        world.mark(epoch)
    left = sum(map(len, data[second:]))
    world.log.config = replace(world.config, retention_bytes=left + 1)
    assert world.log.apply_retention(committed) == 0
    world.log.config = replace(world.config, retention_bytes=left)
    assert world.log.apply_retention(committed) == second
    world.log.config = replace(world.config, retention_bytes=0)
    assert world.log.apply_retention(committed) == committed, "nothing else is to be kept"


def test_of_a_closed_segment_whose_index_is_not_in_memory_nothing_is_read_for_retention() -> None:
    world = World(retention_ms=-1, retention_bytes=1_500, index_interval_bytes=200)
    sizes = [len(world.append(size=100)) for _ in range(60)]
    first, *others = world.log._row.segments
    for one in others[:-1]:
        one.drop_index()
    committed = Offset(first.end_offset * 3 + 3)  # In the middle of a closed one.
    start = world.log.apply_retention(committed)
    assert sum(sizes[start:committed]) >= 1_500
    assert all(one._index is None for one in others[:-1])


def test_retention_by_records_keeps_at_least_so_many_committed_ones() -> None:
    world = World(retention_ms=-1, retention_records=20)
    for _ in range(60):
        world.append(size=100)
    assert world.log.apply_retention(Offset(19)) == 0
    committed = Offset(50)
    kept = committed - world.log.apply_retention(committed)
    largest = max(b - a for a, b in pairwise(world.segment_starts()))
    assert 20 <= kept < 20 + largest
    assert world.log.apply_retention(committed) == committed - kept


def test_a_segment_that_holds_all_that_is_to_be_kept_is_closed() -> None:
    world = World(retention_ms=-1, retention_records=5, segment_bytes=1 << 20)
    for _ in range(4):
        world.append()
    assert not world.log.roll_if_due()
    world.append(3)
    assert world.log.roll_if_due()
    assert world.log.apply_retention(Offset(7)) == 0
    world.append(5)
    assert world.log.apply_retention(world.log.end_offset) == 7


def test_no_record_is_kept_longer_than_a_check_with_a_retention_of_none() -> None:
    world = World(retention_ms=-1, retention_records=0)
    world.mark(1)
    assert not world.log.roll_if_due(), "a marker alone is not worth a segment"
    world.append()
    assert world.log.roll_if_due()
    assert world.log.apply_retention(Offset(0)) == 0
    assert world.log.apply_retention(Offset(1)) == 1


def test_segments_of_deleted_records_go_whatever_else_is_to_be_kept() -> None:
    world = World(retention_ms=-1, delete=False)
    for _ in range(30):
        world.append(size=100)
    starts = world.segment_starts()
    for before, expected in ((starts[2] - 1, starts[1]), (starts[2], starts[2]), (30, starts[-1])):
        start = world.log.retention_start(Offset(30), deleted_before=Offset(before))
        assert start.base_offset == expected
    start = world.log.retention_start(Offset(starts[1]), deleted_before=Offset(30))
    assert start.base_offset == starts[1], "what is not committed stays"


def test_without_deletion_nothing_goes() -> None:
    world = World(retention_ms=0, retention_bytes=0, retention_records=0, delete=False)
    for _ in range(30):
        world.append(size=100)
    world.clock.advance(HOUR_MS)
    assert world.log.apply_retention(world.log.end_offset) == 0


def test_names_alone_tell_where_the_log_begins_after_retention() -> None:
    world = World(retention_ms=-1)
    for epoch in range(1, 8):
        world.mark(epoch)
        for _ in range(5):
            world.append(2, epoch=epoch, size=50)
    log = world.log
    log.remove_segments_before(Offset(40))
    expected = (log.start_offset, log.start_index, log.previous_epoch, log.last_index)
    assert log.start_offset > 0
    assert log.start_index - log.start_offset > 0
    for name in world.disk.list_directory(DIRECTORY):
        if not name.endswith(".log"):
            world.disk.remove(f"{DIRECTORY}/{name}")
    found = world.open()
    assert (
        found.start_offset,
        found.start_index,
        found.previous_epoch,
        found.last_index,
    ) == expected
    assert found.epochs == log.epochs
    assert found.epoch_of(Index(found.start_index - 1)) == found.previous_epoch


# ---- segments without a usable time ----


@pytest.mark.parametrize("claimed", [-1, 1 << 60])
def test_records_without_a_usable_time_are_as_old_as_their_file(claimed: int) -> None:
    """Producers may leave the time out, and some wrote a wrong one before records were read."""
    world = World(retention_ms=HOUR_MS)
    for _ in range(3):
        world.append(timestamp=claimed, size=990)
    world.clock.advance(HOUR_MS)
    assert world.log.apply_retention(world.log.end_offset) == 0
    world.clock.advance(1)
    assert world.log.apply_retention(world.log.end_offset) == 2
    assert world.log.roll_if_due()
    assert world.log.apply_retention(world.log.end_offset) == 3


def test_records_of_the_near_future_are_as_old_as_they_say() -> None:
    world = World(retention_ms=HOUR_MS, timestamp_after_max_ms=10 * HOUR_MS)
    world.append(timestamp=world.clock.wall + 10 * HOUR_MS, size=990)
    world.append()
    world.clock.advance(10 * HOUR_MS)
    assert world.log.apply_retention(world.log.end_offset) == 0
    world.clock.advance(HOUR_MS + 1_000)
    assert world.log.apply_retention(world.log.end_offset) == 1


def test_a_disk_that_cannot_say_how_old_a_file_is_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(retention_ms=HOUR_MS)
    world.append(timestamp=-1, size=990)
    world.append()
    world.clock.advance(2 * HOUR_MS)

    def fail(path: str) -> int:
        raise OSError(5, path)

    monkeypatch.setattr(world.disk, "modified_ms", fail)
    assert world.log.apply_retention(world.log.end_offset) == 0
