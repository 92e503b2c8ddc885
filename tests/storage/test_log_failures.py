"""A disk that fails ends the log; a full disk leaves it as it was.

Source: design section 4; decision 0024."""

import random
from errno import ENOSPC

import pytest
from tests.storage.log_world import DIRECTORY, World

from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import read_header
from strandline.records.record import Record, build_batch


def test_a_failed_write_ends_the_log() -> None:
    world = World()
    world.append()
    world.disk.failing.add("pwrite")
    with pytest.raises(OSError, match="pwrite failed"):
        world.append()
    world.disk.failing.clear()
    assert world.log.failed
    with pytest.raises(OSError, match="the log has failed"):
        world.append()
    assert isinstance(world.flush(), OSError)
    assert (world.log.last_index, world.log.flushed_index) == (0, -1)
    with pytest.raises(OSError, match="the log has failed"):
        world.log.truncate(Index(0))


def test_a_failed_flush_is_reported_to_all_and_never_tried_again() -> None:
    world = World()
    world.append()
    results: list[Index | OSError] = []
    world.log.flush_soon(results.append)
    world.log.flush_soon(results.append)
    world.disk.failing.add("flush")
    world.disk.run()
    world.disk.failing.clear()
    assert [type(result) for result in results] == [OSError, OSError]
    assert world.log.failed
    assert isinstance(world.flush(), OSError)
    assert world.log.flushed_index == -1


def test_a_full_disk_refuses_before_anything_is_written() -> None:
    world = World(preallocate=True, segment_bytes=1 << 30)
    world.append()
    allocated_bytes = world.log._row.active.allocated_bytes
    assert allocated_bytes >= 16 << 10
    world.disk.capacity = world.disk.used()
    with pytest.raises(OSError, match="No space left") as failure:
        while True:
            world.append(size=100_000)
    assert failure.value.errno == ENOSPC
    assert not world.log.failed
    last = world.log.last_index
    world.disk.capacity = None
    world.append(size=100_000)
    assert world.flush() == last + 1


def test_a_disk_is_used_up_to_its_last_byte() -> None:
    world = World(preallocate=True, segment_bytes=1 << 30)
    world.disk.capacity = 10_000
    size = len(world.append())
    with pytest.raises(OSError, match="No space left"):
        for _ in range(10_000 // size):
            world.append()
    assert 10_000 - size < world.disk.used() <= 10_000
    assert world.flush() == world.log.last_index
    assert not world.log.failed


def test_space_that_was_reserved_and_never_written_to_is_kept_at_the_next_opening() -> None:
    world = World(preallocate=True, segment_bytes=1 << 30)
    size = len(world.append())
    assert world.flush() == 0
    path = f"{DIRECTORY}/{world.files()[0]}"
    reserved = world.disk.open(path).size()
    assert reserved > size
    world.disk.failing.add("truncate")
    world.log = world.open()  # Killed, and started.
    world.disk.failing.clear()
    assert world.log._row.active.allocated_bytes == reserved
    world.append()
    assert (world.flush(), world.open().last_index) == (1, 1)
    for position in (2 * size, reserved - 1):
        world.disk.open(path).pwrite((b"x",), position)
        assert world.open().last_index == 1
        assert world.disk.open(path).size() == 2 * size
        world.disk.open(path).truncate(reserved)


def test_a_disk_that_is_full_in_the_middle_of_a_write_leaves_the_log_as_it_was() -> None:
    world = World(preallocate=False, segment_bytes=1 << 30)
    world.append()
    assert world.flush() == 0
    used = world.disk.used()
    world.disk.capacity = used + 50
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            world.append(size=1_000)
        assert not world.log.failed
        assert (world.log.last_index, world.disk.used()) == (0, used)
    assert world.open().last_index == 0
    world.disk.capacity = None
    world.append(size=1_000)
    assert world.flush() == 1
    assert world.open().last_index == 1


def test_a_log_that_cannot_take_back_half_a_write_has_failed() -> None:
    for operation in ("truncate", "flush"):
        world = World(preallocate=False, segment_bytes=1 << 30)
        world.append()
        world.disk.capacity = world.disk.used() + 50
        world.disk.failing.add(operation)
        with pytest.raises(OSError, match=f"{operation} failed"):
            world.append(size=1_000)
        assert world.log.failed


@pytest.mark.parametrize("seed", range(30))
def test_what_a_full_disk_refused_does_not_come_back_in_the_place_of_what_followed(
    seed: int,
) -> None:
    world = World(preallocate=False, segment_bytes=1 << 30)
    world.append()
    assert world.flush() == 0
    refused = [
        build_batch([Record(0, 5, b"k", value * 600)], base_offset=offset, epoch=1)
        for offset, value in ((1, b"a"), (2, b"b"))
    ]
    headers = [header for batch in refused if (header := read_header(batch)) is not None]
    # There is room for the first of the two, as a whole.
    world.disk.capacity = world.disk.used() + len(refused[0])
    with pytest.raises(OSError, match="No space left"):
        world.log.append(refused, headers)
    world.disk.capacity = None
    kept = world.append(size=600)
    world.disk.crash(random.Random(seed))
    found = world.open()
    if found.last_index > 0:
        assert found.read_records(Offset(1), 10_000, found.end_offset).bytes() == kept


def test_a_full_disk_refuses_removal_and_reset_before_anything_is_removed() -> None:
    world = World(retention_bytes=1_000)
    for _ in range(30):
        world.append(size=100)
    assert world.flush() == 29
    files = world.files("")
    world.disk.full.add("create")
    with pytest.raises(OSError, match="No space left"):
        world.log.apply_retention(world.log.end_offset)
    with pytest.raises(OSError, match="No space left"):
        world.log.reset_to(Index(70), Offset(60), previous_epoch=Epoch(2))
    assert not world.log.failed
    assert (world.log.start_index, world.log.last_index) == (0, 29)
    assert world.files("") == files
    world.disk.full.clear()
    assert world.log.apply_retention(world.log.end_offset) > 0
    world.log.reset_to(Index(70), Offset(60), previous_epoch=Epoch(2))
    assert (world.log.start_index, world.log.last_index) == (70, 69)


def test_without_space_for_the_producers_a_removal_frees_space_first() -> None:
    world = World(retention_bytes=1_000)
    for _ in range(30):
        world.append(size=100)
    assert world.flush() == 29
    for name in world.files(".producers"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.disk.capacity = world.disk.used()
    used = world.disk.used()
    assert world.log.apply_retention(world.log.end_offset) > 0
    assert world.disk.used() < used and not world.log.failed


def test_a_log_opens_on_a_full_disk_though_closed_segments_cannot_be_sealed() -> None:
    world = World()
    for _ in range(30):
        world.append(size=100)
    world.disk.run()
    for name in world.files(".summary"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.disk.capacity = world.disk.used()
    world.disk.full.add("create")
    found = world.open()
    assert found.last_index == 29
    assert found.read_records(Offset(0), 1 << 20, found.end_offset).size_bytes == found.size_bytes()
    world.disk.full.clear()
    world.disk.capacity = None
    assert world.open().last_index == 29
    assert len(world.files(".summary")) == len(world.files()) - 1


def test_a_roll_without_space_leaves_the_log_as_it_was() -> None:
    world = World()
    world.append(size=700)
    before = world.log.last_index
    world.disk.full = {"create"}
    with pytest.raises(OSError, match="No space"):
        world.append(size=200)
    world.disk.full = set()
    assert not world.log.failed
    assert world.log.last_index == before
    world.append(size=200)
    assert world.flush() == before + 1
    assert world.open().last_index == before + 1


@pytest.mark.parametrize("operation", ["create", "flush_directory"])
def test_a_roll_that_fails_ends_the_log(operation: str) -> None:
    """The next flush of the directory would succeed, and prove nothing."""
    world = World()
    world.append(size=700)
    assert world.flush() == 0
    world.disk.failing = {operation}
    with pytest.raises(OSError, match="failed"):
        world.append(size=200)
    world.disk.failing = set()
    assert world.log.failed
    assert world.log.last_index == 0
    assert world.open().last_index == 0
