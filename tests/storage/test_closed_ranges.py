"""Ranges of closed segments, for copies that leave the log: whole, in order, without markers.

Source: decision 0059."""

import pytest
from tests.storage.log_world import World

from strandline.base.errors import StorageError
from strandline.model.ids import Offset
from strandline.records.batch import iterate_headers
from strandline.storage.log.closed_ranges import ClosedRange

NO_LIMIT = Offset(1 << 40)


def _filled() -> World:
    """Several segments of about eight batches, with a marker in the middle of each."""
    world = World(segment_bytes=1_000, index_interval_bytes=200)
    for epoch in range(1, 5):
        world.mark(epoch)
        for _ in range(9):
            world.append(2, epoch=epoch)
    return world


def _ranges(world: World, *, bytes_max: int) -> list[ClosedRange]:
    found: list[ClosedRange] = []
    offset = Offset(0)
    while one := world.log.closed.next_range(offset, bytes_max=bytes_max, limit=NO_LIMIT):
        found.append(one)
        offset = one.end_offset
    return found


@pytest.mark.parametrize("bytes_max", [1, 300, 100_000])
def test_ranges_tile_the_closed_segments_and_stop_at_the_active_one(bytes_max: int) -> None:
    world = _filled()
    ranges = _ranges(world, bytes_max=bytes_max)
    offset = 0
    for one in ranges:
        assert one.base_offset == offset < one.end_offset
        assert one.size_bytes <= max(bytes_max, 300)
        offset = one.end_offset
    assert offset == world.log.closed.end_offset == world.segment_starts()[-1]
    if bytes_max == 100_000:
        assert [one.base_offset for one in ranges] == world.segment_starts()[:-1]


def test_the_bytes_of_a_range_are_its_data_batches() -> None:
    world = _filled()
    starts = world.segment_starts()
    parts = world.log.closed.file_ranges(Offset(2), Offset(starts[-1] + 2))
    headers = [header for part in parts for header in iterate_headers(part.read())]
    assert not any(header.is_marker for header in headers)
    assert [header.base_offset for header in headers] == list(range(2, starts[-1] + 2, 2))
    assert len(parts) <= 2 * len(starts)


def test_a_range_that_is_not_committed_yet_is_none() -> None:
    world = _filled()
    first = _ranges(world, bytes_max=100_000)[0]
    closed = world.log.closed
    limit = Offset(first.end_offset - 1)
    assert closed.next_range(Offset(0), bytes_max=100_000, limit=limit) is None
    assert closed.next_range(Offset(0), bytes_max=100_000, limit=first.end_offset) == first


def test_bounds_that_are_no_batches_bounds_are_refused() -> None:
    world = _filled()
    for start, end in ((1, 4), (0, 3), (0, world.log.end_offset + 2)):
        with pytest.raises(StorageError):
            world.log.closed.file_ranges(Offset(start), Offset(end))


def test_bytes_and_age_of_what_is_left() -> None:
    world = _filled()
    closed = world.log.closed
    assert closed.bytes_from(Offset(0)) == world.log.size_bytes()
    assert closed.bytes_from(world.log.end_offset) == 0
    assert 0 < closed.bytes_from(closed.end_offset) < world.log.size_bytes()
    assert closed.oldest_after(Offset(0)) == world.clock.wall_ms()
    assert closed.oldest_after(closed.end_offset) == -1
