"""A process that starts after a failed flush makes durable what it reads.

Source: ATC'20, "Can Applications Recover from fsync Failures?": the pages of a failed flush count
as clean; they can be read, and no later flush writes them."""

import random
from collections.abc import Callable

import pytest
from tests.storage.journal_world import PATH, Answers, fresh_disk, open_journal, state
from tests.storage.log_world import DIRECTORY, World
from tests.storage.storage_world import Content, ForgetfulDisk

from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, GroupId, Index, Offset
from strandline.storage.log.flushed_mark import MARK_BYTES
from strandline.storage.log.log import Log

MARK_INTERVAL_MS = 5_000


def fail_flushes(disk: ForgetfulDisk) -> None:
    """What is asked for by now fails; later flushes do not."""
    disk.failing.add("flush")
    disk.run()
    disk.failing.clear()


def killed(disk: ForgetfulDisk) -> None:
    """The process ends, and nothing else does."""
    disk.flushes.clear()


def written_by(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> list[tuple[int, int]]:
    """(position, length) of each write to any file while `act` runs."""
    honest = Content.change
    found: list[tuple[int, int]] = []

    def change(self: Content, position: int, data: bytes | None) -> None:
        if data is not None:
            found.append((position, len(data)))
        honest(self, position, data)

    with monkeypatch.context() as patch:
        patch.setattr(Content, "change", change)
        act()
    return found


# ---- the journal -----------------------------------------------------------------------------


def journal_that_fails() -> ForgetfulDisk:
    """(epoch 3, vote 1) was answered; (epoch 4, vote 2) failed, and its process is gone."""
    disk = fresh_disk()
    journal = open_journal(disk)
    answers = Answers()
    journal.put(GroupId(1), state(3, 1), answers)
    disk.run()
    journal.put(GroupId(1), state(4, 2), answers)
    fail_flushes(disk)
    assert [error is None for error in answers.errors] == [True, False]
    killed(disk)
    return disk


@pytest.mark.parametrize("seed", range(20))
def test_a_vote_that_is_read_after_a_failed_flush_is_durable(seed: int) -> None:
    disk = journal_that_fails()
    assert open_journal(disk).get(GroupId(1)) == state(4, 2)
    disk.crash(random.Random(seed))
    assert open_journal(disk).get(GroupId(1)) == state(4, 2)


def test_a_vote_that_the_cache_evicted_is_a_torn_tail() -> None:
    disk = journal_that_fails()
    disk.evict()
    assert open_journal(disk).get(GroupId(1)) == state(3, 1)


@pytest.mark.parametrize("seed", range(20))
def test_a_journal_whose_flush_failed_is_opened_for_ever(seed: int) -> None:
    """What was not durable must not be followed by a record that says it had been."""
    disk = journal_that_fails()
    journal = open_journal(disk)
    answers = Answers()
    journal.put(GroupId(2), state(5, 1), answers)
    disk.run()
    assert answers.errors == [None]
    disk.crash(random.Random(seed))
    again = open_journal(disk)
    assert (again.get(GroupId(1)), again.get(GroupId(2))) == (state(4, 2), state(5, 1))


def test_a_journal_that_cannot_be_made_durable_is_not_opened() -> None:
    disk = journal_that_fails()
    disk.failing.add("flush")
    with pytest.raises(OSError, match="flush failed"):
        open_journal(disk)


def test_only_what_no_record_says_was_durable_is_written_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    for epoch in range(1, 50):
        journal.put(GroupId(1), state(epoch, 1), Answers())
        disk.run()
    end = journal._end
    journal.put(GroupId(1), state(50, 1), Answers())
    killed(disk)
    (again, seal) = written_by(monkeypatch, lambda: open_journal(disk))
    assert again == (end, journal._end - end)
    assert seal[0] == journal._end


def test_rot_of_what_was_compacted_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A compacted journal bears its name only once it is durable, and its records say so."""
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 600)
    disk = fresh_disk()
    journal = open_journal(disk)
    largest = 0
    for epoch in range(1, 100):
        journal.put(GroupId(epoch % 4), state(epoch, 1), Answers())
        disk.run()
        if journal._end < largest:
            break
        largest = journal._end
    else:
        raise AssertionError("it was never compacted")
    disk.flip_bit(PATH, 40)
    with pytest.raises(StorageError, match="a state that was durable"):
        open_journal(disk)


# ---- logs ------------------------------------------------------------------------------------


def log_that_fails(count: int = 3, **config: int) -> World:
    """Index 0 was flushed; the flush of `count` more failed, and the process is gone."""
    world = World(**{"segment_bytes": 100_000, **config})
    world.append()
    assert world.flush() == 0
    for _ in range(count):
        world.append()
    world.log.flush_soon(lambda result: None)
    fail_flushes(world.disk)
    assert world.log.failed
    killed(world.disk)
    world.clock.forget()
    return world


@pytest.mark.parametrize("segment_bytes", [300, 100_000])
@pytest.mark.parametrize("seed", range(20))
def test_entries_that_are_read_after_a_failed_flush_are_durable(
    seed: int, segment_bytes: int
) -> None:
    world = log_that_fails(12, segment_bytes=segment_bytes)
    found = world.open()
    assert found.flushed_index == found.last_index == 12
    world.disk.crash(random.Random(seed))
    assert world.open().last_index == 12


@pytest.mark.parametrize("seed", range(20))
def test_the_same_where_many_logs_are_flushed_together(seed: int) -> None:
    world = log_that_fails(12, segment_bytes=300)
    log = Log.open(world.disk, DIRECTORY, config=world.config, clock=world.clock, defer_flush=True)
    for file in world.files():
        world.disk.flush_now(world.disk.open(f"{DIRECTORY}/{file}"))
    log.mark_found_durable()
    world.disk.crash(random.Random(seed))
    assert world.open().last_index == log.last_index == 12


def test_entries_that_the_cache_evicted_are_a_torn_tail() -> None:
    world = log_that_fails()
    world.disk.evict()
    assert world.open().last_index == 0


def test_a_log_that_cannot_be_made_durable_is_not_opened() -> None:
    world = log_that_fails()
    world.disk.failing.add("flush")
    with pytest.raises(OSError, match="flush failed"):
        world.open()


@pytest.mark.parametrize("seed", range(20))
def test_what_is_appended_behind_it_stays_there(seed: int) -> None:
    world = log_that_fails()
    world.log = world.open()
    world.append(epoch=2)
    assert world.flush() == 4
    world.disk.crash(random.Random(seed))
    assert world.open().last_index == 4


def test_what_a_mark_says_is_durable_is_not_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle broker has thousands of logs: none of them is written to when it was killed."""
    world = World(segment_bytes=100_000)
    sizes = [len(world.append()) for _ in range(3)]
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    assert written_by(monkeypatch, world.open) == []
    sizes += [len(world.append()) for _ in range(2)]
    world.flush()
    written = written_by(monkeypatch, world.open)
    assert written[0][0] == sum(sizes[:3])
    assert sum(length for _, length in written) == sum(sizes[3:])


def test_nothing_is_written_again_after_an_orderly_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(segment_bytes=300)
    for _ in range(12):
        world.append()
    world.log.close()
    assert written_by(monkeypatch, world.open) == []


def test_a_log_that_grows_fast_is_marked_by_its_bytes() -> None:
    """What is written again at a start is bounded by bytes, too, and not by time alone."""
    world = World(segment_bytes=1 << 30)
    world.append(size=MARK_BYTES // 2)
    world.flush()
    world.append(size=MARK_BYTES // 2)
    world.flush()
    position = world.log.size_bytes()
    world.append()
    world.flush()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", position + 65)
    assert world.open().last_index == 1
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", 65)
    with pytest.raises(StorageError, match="the batch of index 0, which was flushed"):
        world.open()


@pytest.mark.parametrize("operation", ["reset", "remove_first"])
def test_where_saying_what_is_begun_fails_the_log_has_failed(operation: str) -> None:
    world = World(segment_bytes=300)
    for _ in range(10):
        world.append(size=100)
    world.flush()
    world.disk.failing.add("create")
    with pytest.raises(OSError, match="create failed"):
        if operation == "reset":
            world.log.reset_to(Index(70), Offset(60), previous_epoch=Epoch(2))
        else:
            world.log.remove_segments_before(Index(5))
    world.disk.failing.clear()
    assert world.log.failed
    world.clock.advance(MARK_INTERVAL_MS)
    world.kill()
    assert world.open().last_index == 9
