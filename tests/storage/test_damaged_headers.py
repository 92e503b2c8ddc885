"""Who wrote what, where the headers that say it are damaged: never by what was not proved.

Source: KIP-98; reliability reference 3 (a CRC per batch, checked on read)."""

import contextlib

from tests.storage.test_flushed_mark import settle
from tests.storage.test_interrupted_cuts import write_by_producer
from tests.storage.test_log import DIRECTORY, World

from strandline.base.errors import StorageError
from strandline.model.ids import Index

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


def test_a_cut_into_a_closed_segment_believes_no_header_that_nobody_has_proved() -> None:
    """No client has as many batches in flight as are cut here: nothing is known of it then."""
    world = World(segment_bytes=800, index_interval_bytes=1)
    ended_in_order(world, 16)
    assert len(world.files()) >= 2
    flip_sequence(world, 2)
    world.log = world.open()
    world.log.truncate(Index(5))
    producers = world.log.producers
    assert (producers.get(7), producers.has_forgotten) == (None, True)


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


def test_a_start_believes_no_header_that_nobody_has_proved() -> None:
    """An orderly end, then the power fails: what was not flushed is lost, each file for itself."""
    world = World(segment_bytes=100_000)
    ended_in_order(world, 5)
    for name in world.files(".producers"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    flip_sequence(world, 4)
    with contextlib.suppress(StorageError):
        entry = world.open().producers.get(7)
        assert entry is not None
        assert [one.first_sequence for one in entry.window] == [0, 1, 2, 3, 4]


def test_retention_goes_on_over_damage_where_no_snapshot_says_who_wrote_what() -> None:
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


def test_who_is_known_by_one_note_alone_is_not_forgotten_without_a_word_when_it_rots() -> None:
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
        assert log.producers.get(7) is not None or log.producers.has_forgotten
