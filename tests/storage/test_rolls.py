"""A roll without space, and one that a power failure undoes: nothing is lost or taken for damage.

Source: design section 4 (closing a segment); fsync(2), ENOSPC."""

import pytest
from tests.storage.log_world import DIRECTORY, World
from tests.storage.test_claims import alarm_count
from tests.storage.test_flushed_mark import marked, settle
from tests.storage.test_unreadable_sectors import lose

from strandline.base.errors import StorageError
from strandline.model.ids import Index


@pytest.mark.parametrize("is_marked", [False, True])
def test_a_roll_that_found_no_space_leaves_nothing_that_hides_what_follows(
    is_marked: bool,
) -> None:
    world = World(segment_bytes=500)
    sizes = [len(world.append(epoch=1)) for _ in range(4)]
    world.flush()
    assert len(world.files()) == 1 and 5 * sizes[0] > 500
    last = world.log.last_index
    world.disk.full.add("flush_directory")
    with pytest.raises(OSError, match="space"):
        world.append(epoch=1)
    world.disk.full.clear()
    assert not world.log.failed
    # Another leader, whose entry takes the place of the last one.
    world.log.truncate(Index(last))
    world.append(epoch=2)
    for _ in range(3):
        world.append(epoch=2)
    end = world.flush()
    assert end == last + 3
    if is_marked:
        settle(world)
    world.kill()
    assert world.open().last_index == end


@pytest.mark.parametrize("loses_power_before", [False, True])
def test_the_space_that_a_roll_gave_back_is_no_damage_when_a_power_failure_undoes_that(
    loses_power_before: bool,
) -> None:
    world = World(segment_bytes=100_000, preallocate=True, segment_ms=1_000)
    world.append()
    world.flush()
    settle(world)
    world.log.close()  # It has its summary.
    world.kill()
    world.log = world.open()
    log = f"{DIRECTORY}/{world.files()[0]}"
    if loses_power_before:
        world.append()  # Space is taken ahead; the power fails: the size has arrived, and no byte.
        content = world.disk._find(log)
        assert content is not None
        content.changes[:] = [one for one in content.changes if one[1] is None]
        content.flush_up_to(content.change_count())
        content.seen[:] = content.platter
        world.kill()
    else:
        world.disk.open(log).allocate(16_384)  # The same, by hand.
        world.disk.sync()
        world.kill()
    world.log = world.open()
    assert world.log.last_index == 0
    world.clock.advance(1_000)
    assert world.log.roll_if_due()  # Gives the space back, and is killed before that is flushed.
    world.kill()
    world.log = world.open()
    world.append()
    assert world.flush() == 1
    settle(world)  # What is marked is behind the closed segment.
    assert alarm_count(world) == 0


@pytest.mark.parametrize("is_stray_there", [False, True])
def test_the_name_of_a_roll_that_failed_hides_no_damage(*, is_stray_there: bool) -> None:
    """Its removal was not flushed, and the power failed: an empty segment begins where the batch
    has rotted that came instead, far below the mark."""
    world = World(segment_bytes=100_000)
    world.mark(1)
    for _ in range(3):
        world.append()
    world.flush()
    world.disk.flush_directory(DIRECTORY)
    place = world.log.size_bytes()
    if is_stray_there:
        world.disk.full.add("flush_directory")
        world.clock.advance(world.config.segment_ms)
        with pytest.raises(OSError, match="space"):
            world.log.roll_if_due()
        world.disk.full.clear()
    for _ in range(5):
        world.append()
    world.flush()
    settle(world)
    assert max(marked(world)) == 8
    world.kill()
    if is_stray_there:
        for name, content in list(world.disk.name_changes[DIRECTORY]):
            if content is not None:
                world.disk._settle(DIRECTORY, (name, content))
        world.disk.name_changes.clear()
        world.disk.names = {path: dict(all_) for path, all_ in world.disk.platter_names.items()}
        assert len(world.files()) == 2
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", place + 70)
    for _ in range(2):
        with pytest.raises(StorageError):
            world.open()


@pytest.mark.parametrize("at", [5, 50])
def test_nor_is_a_sector_of_it_that_cannot_be_read(
    at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The space that a roll gave back holds nothing."""
    world = World(segment_bytes=300)
    for _ in range(12):
        world.append()
    world.flush()
    settle(world)
    world.kill()
    first = world.files()[0]
    file = world.disk.open(f"{DIRECTORY}/{first}")
    size = file.size()
    file.truncate(size + 100)
    for name in world.files(".summary"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.disk.sync()
    lose(monkeypatch, first, size + at)
    assert world.open().last_index == 11
