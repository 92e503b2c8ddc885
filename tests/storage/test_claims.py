"""No file of a log says that more is durable than is: whatever a crash leaves is opened.

Source: design section 4; ATC'20, "Can Applications Recover from fsync Failures?"."""

import random

import pytest
from tests.storage.log_world import DIRECTORY, MARK_INTERVAL_MS, World
from tests.storage.storage_world import ManualClock
from tests.storage.test_flushed_mark import marked

from strandline.base.disk import File
from strandline.base.errors import StorageError
from strandline.model.ids import Index, Offset
from strandline.storage.log.log import Log
from strandline.storage.recovery import head_summary
from strandline.storage.recovery.verification import verify_log

CRASHES = 200


def alarm_count(world: World) -> int:
    """Of so many crashes, how many leave something that is taken for damage."""
    count = 0
    for seed in range(CRASHES):
        disk = world.disk.twin()
        disk.crash(random.Random(seed))
        try:
            Log.open(disk, DIRECTORY, config=world.config, clock=ManualClock())
        except StorageError:
            count += 1
    return count


def with_dirty_segments() -> World:
    world = World(segment_bytes=310)
    while len(world.files()) < 3:
        world.append()
    return world


def answer(world: World, at: int, *, fails: bool = False) -> None:
    """One of the flushes that were asked for, in any order, as the kernel may do."""
    content, count, done = world.disk.flushes.pop(at)
    if fails:
        content.lose_up_to(count)
        done(OSError(5, "flush failed"))
    else:
        content.flush_up_to(count)
        done(None)


def test_a_segment_is_sealed_once_all_before_it_is_durable() -> None:
    world = with_dirty_segments()
    results: list[Index | OSError] = []
    world.log.flush_soon(results.append)
    answer(world, 1)
    assert not world.files(".summary")
    assert alarm_count(world) == 0
    answer(world, 0)
    assert len(world.files(".summary")) == 2
    answer(world, 0)
    assert results == [world.log.last_index]
    assert alarm_count(world) == 0


def test_what_a_flush_failed_to_write_is_written_again_though_a_later_one_did_not_fail() -> None:
    """A summary behind it would say that it is durable: at the next start it would be believed, in
    the page cache, and acknowledged."""
    world = with_dirty_segments()
    world.log.flush_soon(lambda result: None)
    answer(world, 1)
    answer(world, 0, fails=True)
    world.disk.run()
    world.kill()
    world.log = world.open()
    world.append()
    last = world.flush()
    assert last == world.log.last_index
    for seed in range(CRASHES):
        disk = world.disk.twin()
        disk.crash(random.Random(seed))
        found = Log.open(disk, DIRECTORY, config=world.config, clock=ManualClock())
        assert found.last_index == last


def test_a_segment_that_was_cut_to_the_size_of_its_head_is_durable_when_it_is_opened(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(head_summary, "REST_BYTES_MIN", 1)
    world = World(segment_bytes=100_000, preallocate=True, segment_ms=1_000)
    world.append()
    world.flush()
    world.clock.advance(1_000)
    assert world.log.roll_if_due()
    world.kill()
    world.log = world.open()
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.run()
    assert alarm_count(world) == 0


def test_what_was_found_and_is_given_up_is_claimed_by_nothing() -> None:
    world = with_dirty_segments()
    world.kill()
    log = Log.open(world.disk, DIRECTORY, config=world.config, clock=world.clock, defer_flush=True)
    log.give_up(OSError(5, "the others could not be made durable"))
    assert alarm_count(world) == 0
    world.clock.advance(MARK_INTERVAL_MS)
    assert alarm_count(world) == 0


def test_a_summary_of_all_that_is_written_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(head_summary, "REST_BYTES_MIN", 1)
    world = World(segment_bytes=100_000)
    world.append()
    world.flush()
    world.disk.kill()
    assert world.files(".summary")
    assert not verify_log(world.disk, DIRECTORY).is_damaged


@pytest.mark.parametrize("loses_power", [False, True])
@pytest.mark.parametrize("is_reset", [False, True])
def test_a_cut_that_fails_is_followed_by_no_mark_of_what_was_cut(
    is_reset: bool, loses_power: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(segment_bytes=100_000)
    for _ in range(5):
        world.append()
    world.flush()
    path = f"{DIRECTORY}/{world.files()[0]}"
    flush_now, disk = world.disk.flush_now, world.disk

    def fail_for_the_log(file: File) -> None:
        if file.path == path:
            raise OSError(5, "flush failed")
        flush_now(file)

    with pytest.raises(OSError, match="failed"), monkeypatch.context() as patch:
        if is_reset:
            disk.failing.add("flush_directory")
            world.log.reset_to(Index(9), Offset(9), previous_epoch=world.log.last_epoch)
        else:  # The mark that is lowered is flushed, and what is cut then is not.
            patch.setattr(disk, "flush_now", fail_for_the_log)
            world.log.truncate(Index(2))
    world.disk.failing.clear()
    assert world.log.failed
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.run()
    world.kill()
    if loses_power:
        assert alarm_count(world) == 0
    world.open()


def test_a_log_that_was_removed_marks_none_that_follows() -> None:
    world = World(segment_bytes=100_000)
    for _ in range(5):
        world.append()
    world.flush()
    world.log.close()
    world.disk.remove_tree(DIRECTORY)
    old, world.clock = world.clock, ManualClock()
    world.log = world.open()
    old.advance(MARK_INTERVAL_MS)
    world.disk.kill()
    world.open()


def test_what_lay_beside_a_last_segment_that_is_gone_is_not_claimed_for_ever() -> None:
    """Its owner does not vote as if it had it."""
    world = World(segment_bytes=300)
    for _ in range(6):
        world.append()
        world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.run()
    world.log.close()
    world.disk.remove(f"{DIRECTORY}/{world.files()[-1]}")
    world.disk.flush_directory(DIRECTORY)
    with pytest.raises(StorageError, match="which were flushed"):
        world.open()
    world.clock.forget()
    world.log = world.open(cut_corruption=True)
    assert alarm_count(world) == 0
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.run()
    assert alarm_count(world) == 0
    world.disk.kill()
    world.open()


def test_an_end_that_fails_is_followed_by_no_seal() -> None:
    """Flushes that were asked for are answered later, beside the log that was opened meanwhile."""
    world = World(segment_bytes=1_100, preallocate=True)
    while len(world.files()) < 2:
        world.append()
    world.append()
    world.log.flush_soon(lambda result: None)
    world.disk.failing.add("truncate")
    world.log.close()
    world.disk.failing.clear()
    assert world.log.failed
    world.clock = ManualClock()
    world.log = world.open()
    world.log.truncate(Index(1))
    world.disk.run()
    world.disk.kill()
    assert world.open().last_index == 0


def test_a_cut_that_is_refused_leaves_what_was_being_noted() -> None:
    world = World(segment_bytes=500)
    sizes = [len(world.append()) for _ in range(6)]
    world.flush()
    world.log.close()
    world.kill()
    world.log = world.open()
    world.append()
    last = world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", sum(sizes[:2]) + 70)
    with pytest.raises(StorageError):
        world.log.truncate(Index(3))
    assert (world.log.last_index, world.log.failed) == (last, False)
    for _ in range(2):
        world.clock.advance(MARK_INTERVAL_MS)
        world.disk.run()
    assert max(marked(world)) == last


def test_a_batch_whose_offset_rotted_to_that_before_a_cut_does_not_say_where_to_cut() -> None:
    """No checksum covers an offset; what is between it and the cut was acknowledged."""
    world = World(segment_bytes=5_000)
    sizes = [len(world.append()) for _ in range(6)]
    last = world.flush()
    world.log.close()
    world.kill()
    world.log = world.open()
    path = f"{DIRECTORY}/{next(name for name in world.files() if name.endswith('.log'))}"
    world.disk.flip_bit(path, sum(sizes[:2]) + 7)
    with pytest.raises(StorageError):
        world.log.truncate(Index(4))
    assert world.log.last_index == last


def test_what_was_written_a_moment_ago_does_not_say_unverified_where_to_cut() -> None:
    """An attack: what is read is believed for a while (0040); what is cut is gone."""
    world = World(segment_bytes=100_000)
    sizes = [len(world.append()) for _ in range(12)]
    last = world.flush()
    path = f"{DIRECTORY}/{next(name for name in world.files() if name.endswith('.log'))}"
    world.disk.flip_bit(path, sum(sizes[:8]) + 7)
    with pytest.raises(StorageError):
        world.log.truncate(Index(10))
    assert world.log.last_index == last
