"""The mark tells durable entries from a torn tail, also after a power failure.

Source: design section 4; `storage.disk.flushed_mark`; "Protocol-Aware Recovery", FAST'18."""

import contextlib
import random

import pytest
from tests.storage.log_world import DIRECTORY, MARK_INTERVAL_MS, World
from tests.storage.storage_world import ManualClock, PowerFailure
from tests.storage.test_log_compaction import World as CompactedWorld

from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.storage.layout import parse_name
from strandline.storage.log.flushed_mark import MARK_BYTES
from strandline.storage.log.log import Log
from strandline.storage.log.sealing import create_mark, read_flushed, write_flushed
from strandline.storage.recovery import head_summary

SEEDS = range(30)


def marked(world: World | CompactedWorld) -> list[int]:
    """What the marks say, one for each segment that has any."""
    names = [name for name in world.disk.list_directory(DIRECTORY) if name.endswith(".flushed")]
    found = [parse_name(name) for name in names]
    return [read_flushed(world.disk, DIRECTORY, one[0]) for one in found if one is not None]


def settle(world: World | CompactedWorld) -> None:
    """The mark is due, written and flushed."""
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.run()


def lose_power(world: World, seed: int) -> None:
    world.clock.forget()
    world.disk.crash(random.Random(seed))


def flip(world: World, number: int, position: int = 65) -> None:
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[number]}", position)


def check_missed(world: World) -> None:
    """The log is refused, or has what is damaged refused to who reads it."""
    with pytest.raises(StorageError):
        world.open().read_records(Offset(0), 10_000, Offset(1))


@pytest.mark.parametrize("seed", SEEDS)
def test_damage_of_what_was_durable_is_no_torn_tail_after_a_failure_of_power(seed: int) -> None:
    world = World(segment_bytes=100_000)
    size = len(world.append())
    world.append()
    world.flush()
    settle(world)
    world.append()
    lose_power(world, seed)
    flip(world, 0, size + 65)
    with pytest.raises(StorageError, match="the batch of index 1, which was flushed"):
        world.open()


@pytest.mark.parametrize("seed", SEEDS)
def test_so_is_that_of_a_segment_that_was_closed_since(seed: int) -> None:
    """Its summary says so, too, but nobody has flushed that."""
    world = World(segment_bytes=300)
    world.append()
    world.flush()
    settle(world)
    while len(world.files()) < 2:
        world.append()
    world.flush()
    if seed % 2:
        settle(world)
        assert len(world.files(".flushed")) == 1, "the newest says more"
    lose_power(world, seed)
    flip(world, 0)
    check_missed(world)


@pytest.mark.parametrize("seed", SEEDS)
def test_at_no_time_is_there_none_that_speaks_of_what_came_before(seed: int) -> None:
    """Whenever the power fails, what was durable 5 s ago is missed where it is damaged."""
    rng = random.Random(seed)
    world = World(segment_bytes=300)
    noted = -1
    world.disk.fuse = rng.randint(10, 150)
    try:
        for _ in range(100):
            world.append()
            before = world.flush()
            assert isinstance(before, int)
            if rng.random() < 0.3:
                settle(world)
                noted = before
    except PowerFailure:
        pass
    if noted < 0:
        return
    lose_power(world, seed)
    assert max(marked(world)) >= noted
    flip(world, 0)
    check_missed(world)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_cut_is_not_missed(seed: int) -> None:
    """Also where the mark that spoke of it was just being flushed, or lies beside a segment that
    was closed, and is written to again."""
    rng = random.Random(seed)
    world = World(segment_bytes=300)
    for _ in range(8):
        world.append()
        world.flush()
        if rng.random() < 0.5:
            settle(world)
    world.clock.advance(MARK_INTERVAL_MS)
    with contextlib.suppress(PowerFailure):
        world.disk.fuse = rng.randint(0, 30)
        world.log.truncate(Index(rng.randint(1, 6)))
        world.disk.run()
        settle(world)
        end = world.log.last_index
        for _ in range(rng.randint(0, 3)):
            world.append()
        if rng.random() < 0.5:
            world.flush()
            settle(world)
        assert max(marked(world)) <= world.log.last_index
        assert end >= 0
    lose_power(world, seed)
    world.open()


@pytest.mark.parametrize("is_cut", [False, True])
def test_a_mark_goes_that_says_less_than_another_and_no_other(is_cut: bool) -> None:
    world = World(segment_bytes=300)
    world.append()
    world.flush()
    settle(world)
    while len(world.files()) < 3:
        world.append()
        world.flush()
    assert len(world.files(".flushed")) == 3
    world.clock.advance(MARK_INTERVAL_MS)
    if is_cut:  # The second segment is written to again, while the third one's mark is flushed.
        world.log.truncate(world.log._row.segments[2].name.base_index)
        world.log.truncate(Index(world.log.last_index))
    world.disk.run()
    assert len(world.files(".flushed")) == 1 + is_cut
    world.append()
    last = world.flush()
    settle(world)
    assert marked(world) == [last]


def test_it_is_due_once_for_all_that_was_flushed_meanwhile() -> None:
    world = World(segment_bytes=100_000)
    for _ in range(10):
        world.append()
        world.flush()
        world.clock.advance(MARK_INTERVAL_MS // 20)
    assert marked(world) == [-1]
    world.clock.advance(MARK_INTERVAL_MS)
    assert marked(world) == [9]
    assert len(world.disk.flushes) == 1
    world.disk.run()
    world.clock.advance(10 * MARK_INTERVAL_MS)
    assert not world.disk.flushes, "an idle log does nothing"


def test_one_is_under_way_at_a_time() -> None:
    world = World(segment_bytes=1 << 30)
    for _ in range(5):
        world.append(size=MARK_BYTES)
        pending = [one for one in world.disk.flushes if one[0] is not None]
        results: list[Index | OSError] = []
        world.log.flush_soon(results.append)
        first = world.disk.flushes[len(pending) :]
        world.disk.flushes[len(pending) :] = []
        for content, count, done in first:  # The log's flush alone is answered.
            content.flush_up_to(count)
            done(None)
        world.clock.run()
    assert len(world.disk.flushes) == 1
    assert marked(world) == [0]
    world.disk.run()
    assert marked(world) == [4]


def test_a_log_whose_mark_cannot_be_flushed_is_over() -> None:
    world = World(segment_bytes=100_000)
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.failing.add("flush")
    world.disk.run()
    world.disk.failing.clear()
    assert world.log.failed
    assert isinstance(world.flush(), OSError)
    world.clock.advance(10 * MARK_INTERVAL_MS)
    assert not world.disk.flushes


def test_a_mark_that_could_not_be_made_with_its_segment_is_made_later() -> None:
    world = World(segment_bytes=100_000)
    world.disk.remove(f"{DIRECTORY}/{world.files('.flushed')[0]}")
    world.append()
    world.flush()
    settle(world)
    lose_power(world, 1)
    assert marked(world) == [0]


@pytest.mark.parametrize("seed", SEEDS)
def test_what_a_start_found_beyond_the_mark_is_noted_without_another_append(seed: int) -> None:
    world = World(segment_bytes=300)
    for _ in range(6):
        world.append()
    world.flush()
    if seed % 2:
        world.log.close()
    world.kill()
    world.log = world.open()
    settle(world)
    lose_power(world, seed)
    flip(world, 0)
    check_missed(world)


def test_a_log_that_was_reset_has_its_own_mark() -> None:
    world = World(segment_bytes=300)
    for _ in range(6):
        world.append()
    world.flush()
    settle(world)
    world.log.reset_to(Index(40), Offset(38), previous_epoch=Epoch(1))
    assert marked(world) == [-1]
    world.append()
    assert world.flush() == 40
    settle(world)
    lose_power(world, 1)
    assert marked(world) == [40]


def test_a_mark_that_was_being_flushed_when_its_segment_was_closed_stays() -> None:
    world = World(segment_bytes=300)
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    while len(world.files()) < 2:
        world.append()
    world.disk.run()
    assert marked(world) == [0, -1]


def test_what_an_earlier_process_left_goes_too() -> None:
    world = World(segment_bytes=300)
    for _ in range(6):
        world.append()
        world.flush()
        if len(world.files()) < 2:
            settle(world)
    assert len(world.files(".flushed")) > 1
    world.kill()
    world.log = world.open()
    settle(world)
    assert marked(world) == [5]


def test_what_is_left_of_a_damaged_log_is_noted_anew() -> None:
    world = World(segment_bytes=100_000)
    size = len(world.append())
    world.append()
    world.flush()
    settle(world)
    flip(world, 0, size + 65)
    world.log = world.open(cut_corruption=True)
    lose_power(world, 1)
    assert marked(world) == [0]


# ---- no time without one ---------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("fails", [False, True])
def test_what_is_found_in_the_page_cache_alone_is_written_and_flushed_again(
    fails: bool, seed: int
) -> None:
    """Its flush was asked for and never answered, or it failed when nobody listened any more."""
    world = World(segment_bytes=100_000)
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    if fails:
        for content, count, _ in world.disk.flushes:
            content.lose_up_to(count)
    world.kill()
    world.log = world.open()
    settle(world)
    lose_power(world, seed)
    flip(world, 0)
    check_missed(world)


@pytest.mark.parametrize("seed", SEEDS)
def test_compaction_leaves_one_that_speaks_of_what_it_replaced(seed: int) -> None:
    world = CompactedWorld()
    for value in (b"1", b"2", b"3"):
        world.append([(value, value * 50), (b"a", value * 50)])
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.run()
    world.close_segment()
    world.compact()
    world.clock.forget()
    world.disk.crash(random.Random(seed))
    (name, *_) = [name for name in world.disk.list_directory(DIRECTORY) if name.endswith(".log")]
    world.disk.flip_bit(f"{DIRECTORY}/{name}", 65)
    with pytest.raises(StorageError):
        world.open().read_records(Offset(0), 10_000, Offset(6))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("is_idle", [False, True])
def test_a_cut_leaves_one_that_speaks_of_what_stays(is_idle: bool, seed: int) -> None:
    world = World(segment_bytes=300)
    for _ in range(6):
        world.append()
    world.flush()
    settle(world)
    world.log.truncate(Index(1 + seed % 4))
    if not is_idle:
        world.append(epoch=2)
        world.flush()
    lose_power(world, seed)
    flip(world, 0)
    check_missed(world)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_start_that_drops_a_segment_leaves_one_that_speaks_of_what_stays(seed: int) -> None:
    """The first segment has lost its end, which was not durable; the only mark was beside the
    second one."""
    world = World(segment_bytes=310)
    world.append()
    world.append()
    noted = world.flush()
    while len(world.files()) < 2:
        world.append()
    settle(world)
    assert marked(world) == [noted]
    world.disk.flush_directory(DIRECTORY)
    for crash in range(500):
        disk = world.disk.twin()
        disk.crash(random.Random(crash))
        log = Log.open(disk, DIRECTORY, config=world.config, clock=ManualClock())
        if log.last_index == noted and len(log._row.segments) == 1:
            break
    else:
        pytest.fail("no such crash")
    world.disk, world.clock = disk, ManualClock()
    lose_power(world, seed)
    flip(world, 0)
    check_missed(world)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_orderly_end_leaves_one_that_speaks_of_all(seed: int) -> None:
    world = World(segment_bytes=300)
    for _ in range(1 + seed % 5):
        world.append()
    world.flush()
    world.log.close()
    lose_power(world, seed)
    flip(world, -1)
    check_missed_up_to(world, 1 + seed % 5)


def check_missed_up_to(world: World, count: int) -> None:
    with pytest.raises(StorageError):
        log = world.open()
        assert log.last_index + 1 == count
        for offset in range(count):
            log.read_records(Offset(offset), 1, Offset(count))


# ---- when it fails, and how late it is -------------------------------------------------------


def test_a_name_that_cannot_be_flushed_ends_the_log() -> None:
    """The next flush of the directory would prove nothing."""
    world = World(segment_bytes=100_000)
    world.disk.remove(f"{DIRECTORY}/{world.files('.flushed')[0]}")
    world.append()
    world.flush()
    world.disk.failing.add("flush_directory")
    world.clock.advance(MARK_INTERVAL_MS)
    assert world.log.failed


def test_a_mark_without_space_is_tried_again() -> None:
    world = World(segment_bytes=100_000)
    world.append()
    world.flush()
    world.disk.full.add("pwrite")
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.full.clear()
    assert marked(world) == [-1]
    settle(world)
    assert marked(world) == [0]
    assert not world.log.failed


def test_a_cut_without_space_for_a_mark_leaves_none() -> None:
    world = World(segment_bytes=100_000)
    for _ in range(4):
        world.append()
    world.flush()
    settle(world)
    world.disk.full.add("pwrite")
    world.log.truncate(Index(2))
    assert marked(world) == []
    world.disk.full.clear()
    settle(world)
    assert marked(world) == [1]


def test_what_lies_there_before_a_segment_is_made_says_nothing_of_it() -> None:
    world = World(segment_bytes=300)
    world.append()
    name = world.log._row.end_name()
    write_flushed(world.disk, DIRECTORY, name, Index(99)).close()
    create_mark(world.disk, DIRECTORY, name)
    assert read_flushed(world.disk, DIRECTORY, name) == -1


def test_it_is_no_later_where_the_one_before_takes_long() -> None:
    world = World(segment_bytes=100_000)
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    slow, world.disk.flushes = world.disk.flushes, []
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS - 100)
    world.disk.flushes = slow
    world.disk.run()
    assert marked(world) == [0]
    world.clock.advance(200)
    assert marked(world) == [1]


def test_another_is_due_while_one_is_under_way() -> None:
    world = World(segment_bytes=100_000)
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    slow, world.disk.flushes = world.disk.flushes, []
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    assert marked(world) == [0]
    world.disk.flushes = slow
    world.disk.run()
    assert marked(world) == [1]


def test_bytes_are_counted_over_segments() -> None:
    world = World(segment_bytes=MARK_BYTES)
    for size in (MARK_BYTES // 2, MARK_BYTES // 3):
        world.append(size=size)
        world.flush()
    assert marked(world) == [-1]
    world.append(size=MARK_BYTES // 4)
    assert len(world.files()) == 2
    world.flush()
    assert max(marked(world)) == 2


@pytest.mark.parametrize("seed", SEEDS)
def test_an_orderly_end_leaves_one_of_what_was_found_and_noted_by_nobody(seed: int) -> None:
    """Its writer was killed before it was due, and who found it ends before it is."""
    world = World(segment_bytes=100_000)
    size = len(world.append())
    world.append()
    world.flush()
    world.kill()
    world.log = world.open()
    world.clock.advance(MARK_INTERVAL_MS - 1)
    world.log.close()
    lose_power(world, seed)
    flip(world, 0, size + 65)
    check_missed_up_to(world, 2)


def test_thousands_of_idle_logs_close_without_a_flush(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(segment_bytes=100_000)
    world.append()
    world.flush()
    settle(world)
    world.log.close()
    world.clock.forget()
    world.log = world.open()
    flushed: list[str] = []
    monkeypatch.setattr(world.disk, "flush_now", lambda file: flushed.append(file.path))
    world.log.close()
    assert not any(path.endswith(".flushed") for path in flushed)


def test_an_orderly_end_soon_after_a_start_marks_what_a_summary_alone_speaks_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The summary of a head is not flushed."""
    monkeypatch.setattr(head_summary, "REST_BYTES_MIN", 1)
    world = World(segment_bytes=100_000)
    size = len(world.append())
    world.append()
    world.flush()
    assert world.files(".summary")
    world.kill()
    world.log = world.open()
    world.log.close()
    for seed in SEEDS:
        disk = world.disk.twin()
        disk.crash(random.Random(seed))
        disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", size + 65)
        with pytest.raises(StorageError):
            log = Log.open(disk, DIRECTORY, config=world.config, clock=ManualClock())
            log.read_records(Offset(0), 1 << 20, Offset(2))
