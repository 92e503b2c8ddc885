"""The seal behind the last state, and the durable end that each file states.

Source: design section 4, "Hard state"."""

import random

import msgspec
import pytest
from tests.storage.journal_world import PATH, Answers, fresh_disk, open_journal, state
from tests.storage.storage_world import ForgetfulDisk, ManualClock

from strandline.base.disk import is_full
from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, GroupId
from strandline.raft.group.configuration import Configuration
from strandline.storage.state_journal import SEAL_FLUSH_MS, StateJournal, last_record


def test_a_seal_is_flushed_once_for_many_puts_and_kept() -> None:
    disk, clock = fresh_disk(), ManualClock()
    journal, answers = open_journal(disk, clock=clock), Answers()
    for group in range(1, 50):
        journal.put(GroupId(group), state(1, 1), answers)
        disk.run()
        clock.advance(SEAL_FLUSH_MS - 1)
        assert not disk.flushes
    assert answers.errors == [None] * 49
    assert len(clock.timers) == 1
    end = journal._end
    clock.advance(1)
    assert len(disk.flushes) == 1
    disk.run()
    assert journal._durable_end == journal._end > end
    clock.advance(10 * SEAL_FLUSH_MS)
    disk.run()
    assert not disk.flushes
    end = journal._end
    again = open_journal(disk, clock=clock)
    clock.advance(10 * SEAL_FLUSH_MS)
    assert not disk.flushes, "a seal needs no other one"
    again.put(GroupId(1), state(2, 1), answers)
    disk.run()
    assert last_record(disk.open(PATH).pread(10_000, 0)[: again._end]) == end
    clock.advance(SEAL_FLUSH_MS)
    assert len(disk.flushes) == 1, "a state that follows one does"


def test_a_put_before_the_seal_is_flushed_takes_its_place() -> None:
    """And none is flushed behind a put that is not durable yet."""
    disk, clock = fresh_disk(), ManualClock()
    journal = open_journal(disk, clock=clock)
    journal.put(GroupId(1), state(1, 1), Answers())
    disk.run()
    end = journal._end
    journal.put(GroupId(1), state(2, 1), Answers())
    clock.advance(SEAL_FLUSH_MS)
    assert len(disk.flushes) == 1, "the put's own"
    assert last_record(disk.open(PATH).pread(10_000, 0)) == end
    disk.run()
    clock.advance(SEAL_FLUSH_MS)
    assert len(disk.flushes) == 1


def test_a_seal_that_cannot_be_flushed_ends_the_journal() -> None:
    """The next record would be behind pages of which nobody knows what they hold."""
    disk, clock = fresh_disk(), ManualClock()
    journal, answers = open_journal(disk, clock=clock), Answers()
    journal.put(GroupId(1), state(1, 1), answers)
    disk.run()
    clock.advance(SEAL_FLUSH_MS)
    disk.failing.add("flush")
    disk.run()
    disk.failing.clear()
    assert journal.failed
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    assert answers.errors[0] is None
    assert answers.errors[1] is not None
    assert open_journal(disk).get(GroupId(1)) == state(1, 1)


def test_a_state_is_durable_though_its_seal_cannot_be_written() -> None:
    """Nothing else is, after that."""
    disk = fresh_disk()
    journal, answers = open_journal(disk), Answers()
    journal.put(GroupId(1), state(1, 1), answers)
    disk.failing.add("pwrite")
    disk.run()
    assert (answers.errors, journal.failed) == ([None], True)


@pytest.mark.parametrize("is_sealed", [False, True])
def test_a_closed_journal_flushes_nothing_later(is_sealed: bool) -> None:
    """Neither a seal that was written, nor one behind what is answered after the end."""
    disk, clock = fresh_disk(), ManualClock()
    journal = open_journal(disk, clock=clock)
    journal.put(GroupId(1), state(1, 1), Answers())
    disk.run()
    if is_sealed:
        disk.failing.add("flush")
        journal.close()
        disk.failing.clear()
    else:
        clock.advance(SEAL_FLUSH_MS)
        disk.run()
        journal.put(GroupId(2), state(1, 1), Answers())
        journal.close()
        disk.run()
    clock.advance(SEAL_FLUSH_MS)
    assert not disk.flushes


def compacted_journal(
    monkeypatch: pytest.MonkeyPatch, disk: ForgetfulDisk, clock: ManualClock
) -> tuple[StateJournal, int]:
    """(a journal whose last put wrote all anew, and is not answered yet, the epoch of that); the
    seal behind the one before it is due in a while."""
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 600)
    journal = open_journal(disk, clock=clock)
    for epoch in range(1, 100):
        file = journal._file
        journal.put(GroupId(1), state(epoch, 1), Answers())
        if journal._file is not file:
            return journal, epoch
        disk.run()
    raise AssertionError("it is never written anew")


@pytest.mark.parametrize("is_answered", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_a_seal_of_the_file_before_a_compaction_is_none_of_the_one_after_it(
    seed: int, is_answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, clock = fresh_disk(), ManualClock()
    journal, epoch = compacted_journal(monkeypatch, disk, clock)
    clock.advance(SEAL_FLUSH_MS)
    if is_answered:
        disk.run()
    answers = Answers()
    journal.put(GroupId(1), state(epoch + 1, 2), answers)
    disk.run()
    assert answers.errors == [None]
    disk.crash(random.Random(seed))
    assert open_journal(disk).get(GroupId(1)) == state(epoch + 1, 2)


@pytest.mark.parametrize("seed", range(20))
def test_flushes_of_the_file_before_a_compaction_say_nothing_of_the_one_after_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 600)
    disk = fresh_disk()
    journal, answers = open_journal(disk), Answers()
    file, epoch = journal._file, 0
    while journal._file is file:
        epoch += 1
        journal.put(GroupId(1), state(epoch, 1), answers)
    monkeypatch.undo()
    disk.run()
    for later in range(20):  # The first of them is lost, and what is behind it is not.
        journal.put(GroupId(1), state(epoch + later, 1), answers)
    disk.crash(random.Random(seed))
    found = open_journal(disk).get(GroupId(1))
    assert found is not None and found.epoch >= epoch


@pytest.mark.parametrize("is_answered", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_what_a_compaction_wrote_is_said_to_be_durable_by_the_same_file(
    seed: int, is_answered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, clock = fresh_disk(), ManualClock()
    compacted_journal(monkeypatch, disk, clock)
    if is_answered:
        disk.run()
    disk.crash(random.Random(seed))
    disk.flip_bit(PATH, 20)
    with pytest.raises(StorageError, match="a state that was durable"):
        open_journal(disk)


def test_a_compaction_whose_new_name_may_be_lost_ends_the_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the disk is full: what is put next would go into the file that has lost its
    name."""
    disk, clock, answers = fresh_disk(), ManualClock(), Answers()
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 600)
    journal = open_journal(disk, clock=clock)
    disk.full.add("flush_directory")
    epoch = 0
    while not journal.failed and epoch < 100:
        epoch += 1
        journal.put(GroupId(1), state(epoch, 1), answers)
        disk.run()
    disk.full.clear()
    assert answers.errors[:-1] == [None] * (epoch - 1)
    assert answers.errors[-1] is not None and not is_full(answers.errors[-1])
    journal.put(GroupId(1), state(epoch + 1, 1), answers)
    disk.run()
    assert answers.errors[-1] is not None
    found = open_journal(disk).get(GroupId(1))
    assert found is not None and found.epoch >= epoch - 1


@pytest.mark.parametrize("seed", range(20))
def test_a_seal_that_was_cut_with_what_was_refused_is_not_kept(seed: int) -> None:
    """Where the disk gives less room than it took."""
    disk, clock, answers = fresh_disk(), ManualClock(), Answers()
    journal = open_journal(disk, clock=clock)
    journal.put(GroupId(1), state(1, 1), answers)
    disk.run()
    disk.full.add("pwrite")
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    disk.full.clear()
    clock.advance(SEAL_FLUSH_MS)
    journal.put(GroupId(1), state(3, 2), answers)
    disk.run()
    assert [error is None for error in answers.errors] == [True, False, True]
    disk.crash(random.Random(seed))
    assert open_journal(disk).get(GroupId(1)) == state(3, 2)


@pytest.mark.parametrize("seed", range(40))
def test_a_put_behind_a_seal_that_is_not_durable_yet_is_a_torn_tail(seed: int) -> None:
    disk, clock = fresh_disk(), ManualClock()
    journal = open_journal(disk, clock=clock)
    epoch = 0
    while journal._end % 512 < 512 - 32 or journal._end % 512 == 0:  # The seal ends the sector.
        epoch += 1
        wide = Configuration(tuple(BrokerId(n) for n in range(3 + epoch % 3)))
        journal.put(
            GroupId(1), msgspec.structs.replace(state(epoch, 1), configuration=wide), Answers()
        )
        disk.run()
        assert epoch < 500
    known = journal.get(GroupId(1))
    clock.advance(SEAL_FLUSH_MS)
    journal.put(GroupId(1), state(epoch + 1, 2), Answers())
    disk.crash(random.Random(seed))
    assert open_journal(disk).get(GroupId(1)) in (known, state(epoch + 1, 2))
