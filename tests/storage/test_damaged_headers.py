"""The log uses no unverified header, and damage in headers never changes what producers wrote.

Source: KIP-98; reliability reference 3 (a CRC per batch, checked on read)."""

import contextlib

import pytest
from tests.storage.log_world import DIRECTORY, World
from tests.storage.test_flushed_mark import settle
from tests.storage.test_interrupted_cuts import write_by_producer

from strandline.base.errors import StorageError
from strandline.model.ids import Index, Offset

SEQUENCE_AT = 56
"""The last byte of `baseSequence` in a header, under the batch's checksum."""


def flip_sequence(world: World, batch: int) -> None:
    """Change the sequence of a batch in the first segment."""
    path = f"{DIRECTORY}/{world.files()[0]}"
    size = int.from_bytes(world.disk.open(path).pread(4, 8), "big") + 12
    world.disk.sync()
    world.disk.flip_bit(path, batch * size + SEQUENCE_AT)


def ended_in_order(world: World, batches: int) -> None:
    write_by_producer(world, batches)
    world.flush()
    settle(world)
    world.log.close()
    world.kill()


def test_a_cut_into_a_closed_segment_uses_no_unverified_header() -> None:
    """No client has as many batches in flight as are cut here: nothing is known of it then."""
    world = World(segment_bytes=800, index_interval_bytes=1)
    ended_in_order(world, 16)
    assert len(world.files()) >= 2
    flip_sequence(world, 2)
    world.log = world.open()
    world.log.truncate(Index(5))
    producers = world.log.producers
    assert (producers.get(7), producers.is_incomplete) == (None, True)


def test_a_cut_over_damage_leaves_the_batches_that_may_be_asked_for_again() -> None:
    """The last five are all that a client has in flight: of these, those before the cut."""
    world = World(segment_bytes=400, index_interval_bytes=1)
    write_by_producer(world, 16)
    end = world.flush()
    settle(world)
    assert end == world.log._row.active.name.base_index == 15
    for name in world.files(".producers"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    flip_sequence(world, 0)
    world.clock.advance(world.config.trust_ms)
    world.log.truncate(Index(14))
    entry = world.log.producers.get(7)
    assert entry is not None
    assert [one.base_offset for one in entry.window] == [11, 12, 13]
    assert not world.log.failed


def test_so_does_a_cut_in_the_segment_that_is_written_to() -> None:
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    write_by_producer(world, 8)
    world.flush()
    settle(world)
    flip_sequence(world, 1)
    world.clock.advance(world.config.trust_ms)
    world.log.truncate(Index(5))
    entry = world.log.producers.get(7)
    assert entry is not None
    assert [one.base_offset for one in entry.window] == [3, 4]


def test_a_cut_behind_a_marker_reads_nothing_of_it() -> None:
    """Where it lies is known: a length that has changed is not gone by."""
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    sizes = [len(world.mark(1)), len(world.append()), len(world.mark(2))]
    for _ in range(3):
        world.append(epoch=2)
    world.flush()
    settle(world)
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", sum(sizes[:2]) + 11)
    world.log.truncate(Index(3))
    assert (world.log.last_index, world.log.size_bytes()) == (2, sum(sizes))


def test_a_start_uses_no_unverified_header() -> None:
    """An orderly end, then the power fails: what was not flushed is lost, each file for itself. The
    log is open, for the damage is to be mended; who wrote what before it is known to be unknown."""
    world = World(segment_bytes=100_000)
    ended_in_order(world, 5)
    for name in world.files(".producers"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    flip_sequence(world, 4)
    world.log = world.open()
    assert world.log.last_index == 4
    assert world.log.producers.get(7) is None
    assert world.log.producers.is_incomplete


def test_retention_goes_on_over_damage_without_a_snapshot_of_the_producers() -> None:
    """A failure of power long ago has taken the snapshots: nobody flushed them."""
    world = World(segment_bytes=300)
    ended_in_order(world, 12)
    for name in world.files(".producers")[:-2]:
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", 16)
    world.log = world.open()
    before = world.log.producers.get(7)
    world.log.remove_segments_before(Index(4))
    assert world.log.start_index == 4
    world.kill()
    assert world.open().producers.get(7) == before


def test_a_damaged_snapshot_leaves_the_producers_known_or_incomplete() -> None:
    world = World(segment_bytes=400)
    write_by_producer(world, 4)
    while len(world.files()) < 3:
        world.append(size=100)
    world.flush()
    settle(world)
    world.log.remove_segments_before(world.log.last_index)
    assert world.log.start_index > 3 and world.log.producers.get(7) is not None
    world.kill()
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files('.producers')[0]}", 6)
    with contextlib.suppress(StorageError):
        log = world.open()
        assert log.producers.get(7) is not None or log.producers.is_incomplete


@pytest.mark.parametrize("byte", [5, 7, 11, 15, 16, 17, 23, 57, 70])
def test_a_cut_where_a_damaged_batch_begins(byte: int) -> None:
    """Whatever of it has changed: it goes."""
    world = World(segment_bytes=100_000)
    sizes = [len(world.mark(1)), *(len(world.append()) for _ in range(6))]
    world.flush()
    world.clock.advance(world.config.trust_ms)
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", sum(sizes[:4]) + byte, 3)
    world.log.truncate(Index(4))
    assert world.log.last_index == 3


@pytest.mark.parametrize("bit", [3, 38, 40])
@pytest.mark.parametrize("is_behind_marker", [False, True])
def test_a_cut_uses_no_unverified_timestamp(bit: int, *, is_behind_marker: bool) -> None:
    """Retention goes by it, and a summary would say it for good."""
    world = World(segment_bytes=100_000)
    now = world.clock.wall
    sizes = [len(world.mark(1)), *(len(world.append(timestamp=now)) for _ in range(3))]
    if is_behind_marker:
        world.mark(2)
    world.append(epoch=2 if is_behind_marker else 1, timestamp=now + 1)
    world.flush()
    world.clock.advance(world.config.trust_ms)
    at = sum(sizes[:3]) + 35 + 7 - bit // 8
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", at, bit % 8)
    with contextlib.suppress(StorageError):  # Where it is by the damaged one alone where to cut.
        world.log.truncate(world.log.last_index)
        assert is_behind_marker
        # The latest that is left, or, where damage hides it, the latest that there was.
        assert world.log._row.active.max_timestamp == now + 1


@pytest.mark.parametrize("byte", [4, 6])
def test_nor_the_offset_of_the_batch_with_the_highest_timestamp(byte: int) -> None:
    """It may lie far before what is cut."""
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    now = world.clock.wall
    first = len(world.mark(1))
    for ahead_ms in (500, 0, 1, 2, 3, 4, 900):
        world.append(timestamp=now + ahead_ms)
    world.flush()
    world.clock.advance(world.config.trust_ms)
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", first + byte, 2)
    world.log.truncate(world.log.last_index)
    assert world.log._row.active.max_timestamp >= now + 500
    with contextlib.suppress(StorageError):
        assert world.log.max_timestamp(start_offset=Offset(3)) == (now + 4, 5)


@pytest.mark.parametrize("is_behind_marker", [False, True])
def test_a_cut_goes_through_where_what_has_rotted_tells_no_more_than_a_timestamp(
    *, is_behind_marker: bool
) -> None:
    """Its replica would fail for it, and be out until its broker begins anew."""
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    sizes = [len(world.append(timestamp=5_000))]
    sizes += [len(world.append(timestamp=1_000 + at)) for at in range(3)]
    if is_behind_marker:
        world.mark(2)
    world.append(epoch=2 if is_behind_marker else 1, timestamp=9_000)
    world.flush()
    world.clock.advance(world.config.trust_ms)
    rotten = sum(sizes) if is_behind_marker else sizes[0]
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", rotten - 3)
    last = world.log.last_index
    world.log.truncate(last)
    assert world.log.last_index == last - 1
    assert world.log._row.active.max_timestamp >= 5_000


def test_damage_in_a_closed_segment_costs_no_more_than_itself_where_snapshots_are_lost() -> None:
    """They are not flushed, so a failure of power takes them."""
    world = World(segment_bytes=300)
    ended_in_order(world, 12)
    for name in world.files(".producers"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", 150)
    log = world.open()
    assert log.last_index == 11
    entry = log.producers.get(7)
    assert entry is not None and entry.window[-1].base_offset == 11
    assert log.producers.is_incomplete
