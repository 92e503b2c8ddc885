"""A disk that fails ends the journal; a full disk leaves it as it was.

Source: design section 4, "Hard state"; decision 0024."""

import random
from errno import ENOSPC

import pytest
from tests.storage.journal_world import PATH, Answers, fresh_disk, open_journal, state
from tests.storage.storage_world import ManualClock

from strandline.base.disk import is_full
from strandline.model.ids import GroupId
from strandline.storage.state_journal import SEAL_FLUSH_MS


def test_a_failed_flush_fails_everything_after_it() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    answers = Answers()
    journal.put(GroupId(1), state(1), answers)
    disk.failing.add("flush")
    disk.run()
    disk.failing.clear()
    journal.put(GroupId(1), state(2), answers)
    disk.run()
    assert len(answers.errors) == 2
    assert all(isinstance(error, OSError) for error in answers.errors)
    assert journal.failed


def test_a_failed_write_is_answered_with_its_error() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    disk.failing.add("pwrite")
    answers = Answers()
    journal.put(GroupId(1), state(1), answers)
    assert answers.errors == []
    disk.run()
    assert isinstance(answers.errors[0], OSError)


def test_a_put_without_space_changes_nothing_and_may_be_tried_again() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    disk.run()
    disk.capacity = disk.used()
    answers = Answers()
    epoch = 0
    while not any(answers.errors):
        epoch += 1
        journal.put(GroupId(1), state(epoch), answers)
        disk.run()
    assert epoch > 100, "space is taken ahead"
    journal.put(GroupId(2), state(1), answers)
    disk.run()
    assert [error is not None and is_full(error) for error in answers.errors[-2:]] == [True, True]
    assert (journal.get(GroupId(1)), journal.get(GroupId(2))) == (state(epoch - 1), None)
    assert not journal.failed
    disk.capacity = None
    journal.put(GroupId(2), state(7), answers)
    disk.run()
    assert answers.errors[-1] is None
    disk.crash(random.Random(1))
    again = open_journal(disk)
    assert (again.get(GroupId(1)), again.get(GroupId(2))) == (state(epoch - 1), state(7))


def test_a_journal_uses_what_little_space_there_is() -> None:
    """It asked for 256 KB or nothing: where less was left, no vote was given."""
    disk = fresh_disk()
    journal = open_journal(disk)
    disk.open(PATH).truncate(0)
    disk.capacity = disk.used() + (20 << 10)
    journal = open_journal(disk)
    answers = Answers()
    epoch = 0
    while not any(answers.errors):
        epoch += 1
        journal.put(GroupId(1), state(epoch), answers)
        disk.run()
    assert disk.capacity - 16 <= journal._end <= disk.capacity
    assert not journal.failed


def test_where_no_space_is_set_aside_half_a_put_is_taken_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("strandline.storage.state_journal._ALLOCATE_BYTES", 0)
    disk = fresh_disk()
    journal = open_journal(disk)
    answers = Answers()
    journal.put(GroupId(1), state(1, 1), answers)
    used = disk.used()
    disk.capacity = used + 20
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    assert disk.used() == used
    assert not journal.failed
    disk.capacity = None
    journal.put(GroupId(1), state(3, 1), answers)
    disk.run()
    assert [error is None for error in answers.errors] == [True, False, True]
    assert open_journal(disk).get(GroupId(1)) == state(3, 1)


def test_a_journal_without_space_for_compaction_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 2_000)
    disk = fresh_disk()
    journal = open_journal(disk)
    disk.capacity = disk.used()
    answers = Answers()
    for epoch in range(1, 100):
        journal.put(GroupId(1), state(epoch, 1), answers)
    disk.run()
    assert answers.errors == [None] * 99
    assert journal._end > 2_000
    assert disk.list_directory("/data") == ["state.journal"]
    disk.capacity = None
    journal.put(GroupId(1), state(100, 1), answers)
    disk.run()
    assert journal._end < 2_000
    assert open_journal(disk).get(GroupId(1)) == state(100, 1)


def test_a_journal_is_opened_on_a_full_disk_only_with_space_for_votes() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    journal.put(GroupId(1), state(1, 1), Answers())
    disk.run()
    disk.capacity = disk.used()
    journal = open_journal(disk)
    answers = Answers()
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    assert answers.errors == [None]
    disk.open(PATH).truncate(journal._end)
    disk.capacity = disk.used()
    with pytest.raises(OSError, match="No space left") as failure:
        open_journal(disk)
    assert failure.value.filename == PATH


def test_a_flush_that_finds_no_space_is_final() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    answers = Answers()
    journal.put(GroupId(1), state(1), answers)
    for _, _, done in disk.flushes:
        done(OSError(ENOSPC, "No space left on device"))
    assert journal.failed
    error = answers.errors[0]
    assert error is not None and not is_full(error)


def test_a_put_that_is_refused_is_no_reason_for_another_seal() -> None:
    disk, clock, answers = fresh_disk(), ManualClock(), Answers()
    journal = open_journal(disk, clock=clock)
    journal.put(GroupId(1), state(1, 1), answers)
    disk.run()
    clock.advance(SEAL_FLUSH_MS)
    disk.run()
    end = journal._end
    disk.full.update(("pwrite", "allocate"))
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    disk.full.clear()
    clock.advance(SEAL_FLUSH_MS)
    assert (journal._end, disk.flushes) == (end, [])


def test_a_seal_takes_no_space() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    ends = []
    for epoch in (1, 2, 3):
        journal.put(GroupId(1), state(epoch, 1), Answers())
        disk.run()
        ends.append(journal._end)
    assert ends[2] - ends[1] == ends[1] - ends[0]


def test_a_seal_without_space_releases_none() -> None:
    disk, clock = fresh_disk(), ManualClock()
    journal, answers = open_journal(disk, clock=clock), Answers()
    journal.put(GroupId(1), state(1, 1), answers)
    allocated_bytes = journal._allocated_bytes
    disk.full.add("pwrite")
    disk.run()
    assert (answers.errors, journal._allocated_bytes, journal.failed) == (
        [None],
        allocated_bytes,
        False,
    )
    disk.full.clear()
    clock.advance(SEAL_FLUSH_MS)
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    assert answers.errors == [None, None]
    assert open_journal(disk).get(GroupId(1)) == state(2, 1)
