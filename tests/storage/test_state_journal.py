"""What was put and answered survives; what was not is there or not; rot is not mistaken for either.

Source: design section 4, "Hard state"."""

import random
from collections.abc import Callable
from errno import ENOSPC

import msgspec
import pytest
from tests.storage.storage_world import ForgetfulDisk, ManualClock, PowerFailure

from strandline.base.disk import is_full
from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.group.configuration import Configuration
from strandline.storage.state_journal import SEAL_FLUSH_MS, GroupState, StateJournal, last_record

PATH = "/data/state.journal"


def state(epoch: int, vote: int = -1) -> GroupState:
    voters = tuple(BrokerId(n) for n in range(3))
    return GroupState(Epoch(epoch), BrokerId(vote), Configuration(voters) if vote >= 0 else None)


def fresh_disk() -> ForgetfulDisk:
    disk = ForgetfulDisk()
    disk.make_directories("/data")
    return disk


def open_journal(
    disk: ForgetfulDisk,
    path: str = PATH,
    *,
    clock: ManualClock | None = None,
    use_reserve: Callable[[], bool] = lambda: False,
) -> StateJournal:
    return StateJournal.open(disk, path, clock=clock or ManualClock(), use_reserve=use_reserve)


class Answers:
    """Counts what was answered."""

    def __init__(self) -> None:
        self.errors: list[OSError | None] = []

    def __call__(self, error: OSError | None) -> None:
        self.errors.append(error)


def test_an_unknown_group_has_no_state() -> None:
    journal = open_journal(fresh_disk())
    assert journal.get(GroupId(1)) is None
    assert journal.groups() == []


def test_a_put_is_answered_only_when_it_is_durable() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    answers = Answers()
    journal.put(GroupId(1), state(3, 2), answers)
    journal.put(GroupId(2), state(4), answers)
    assert journal.get(GroupId(1)) == state(3, 2)
    assert answers.errors == []
    disk.run()
    assert answers.errors == [None, None]
    disk.crash(random.Random(1))
    again = open_journal(disk)
    assert again.groups() == [1, 2]
    assert (again.get(GroupId(1)), again.get(GroupId(2))) == (state(3, 2), state(4))


def test_a_promised_vote_survives() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    promised = GroupState(Epoch(3), BrokerId(2), None, promised=Epoch(4))
    journal.put(GroupId(1), promised, Answers())
    disk.run()
    disk.crash(random.Random(1))
    assert open_journal(disk).get(GroupId(1)) == promised


def test_a_record_of_an_earlier_release_promises_nothing() -> None:
    """It ends before that field; and a broker of that release reads ours without it."""

    class Earlier(msgspec.Struct, frozen=True, array_like=True):
        epoch: int
        vote: int
        configuration: Configuration | None
        lost_state: bool = False

    encode = msgspec.msgpack.encode
    earlier = Earlier(3, 2, None, True)
    later = GroupState(Epoch(3), BrokerId(2), None, lost_state=True)
    assert msgspec.msgpack.decode(encode(earlier), type=GroupState) == later
    later = msgspec.structs.replace(later, promised=Epoch(4))
    assert msgspec.msgpack.decode(encode(later), type=Earlier) == earlier


def test_what_only_grows_is_kept_by_later_puts_and_over_compaction() -> None:
    """Which loss it was told to forget by, and which rejoining it comes after."""
    disk = fresh_disk()
    journal = open_journal(disk)
    journal.put(GroupId(1), GroupState(Epoch(3), BrokerId(2), None, forgotten=4), Answers())
    journal.put(GroupId(1), GroupState(Epoch(3), BrokerId(2), None, rejoined=7), Answers())
    journal.put(GroupId(1), GroupState(Epoch(5), BrokerId(1), None, rejoined=6), Answers())
    assert journal._compact()
    disk.run()
    disk.crash(random.Random(1))
    found = open_journal(disk).get(GroupId(1))
    assert found == GroupState(Epoch(5), BrokerId(1), None, forgotten=4, rejoined=7)


def test_what_is_forgotten_by_a_declared_loss_says_nothing_of_the_log_after_it() -> None:
    journal = open_journal(fresh_disk())
    known = GroupState(Epoch(3), BrokerId(2), None, joined=Index(100))
    journal.put(GroupId(1), known, Answers())
    journal.put(GroupId(1), msgspec.structs.replace(known, joined=Index(20)), Answers())
    assert journal.get(GroupId(1)) == known
    given_up = GroupState(Epoch(4), BrokerId(2), None, forgotten=1, joined=Index(20))
    journal.put(GroupId(1), given_up, Answers())
    assert journal.get(GroupId(1)) == given_up


def test_a_removed_group_is_gone_after_a_restart() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    journal.put(GroupId(1), state(3), Answers())
    journal.remove(GroupId(1))
    journal.remove(GroupId(5))
    assert journal.get(GroupId(1)) is None
    disk.run()
    journal.close()
    assert open_journal(disk).groups() == []


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


def test_a_journal_that_has_no_room_to_be_compacted_goes_on(
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


def test_a_journal_is_opened_on_a_full_disk_only_with_room_for_votes() -> None:
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


@pytest.mark.parametrize("seed", range(60))
def test_after_power_failures_every_group_is_at_or_above_what_was_answered(seed: int) -> None:
    live(seed)


@pytest.mark.parametrize("seed", range(60))
def test_so_it_is_where_processes_were_killed_before(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As between the rename of a compacted journal and the flush of its name."""
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 600)
    monkeypatch.setattr("strandline.storage.state_journal._ALLOCATE_BYTES", 128)
    live(seed, killed_share=0.5)


def live(seed: int, *, killed_share: float = 0.0) -> None:
    """One journal's story."""
    rng = random.Random(seed)
    disk = fresh_disk()
    durable: dict[int, int] = {}
    put: dict[int, set[int]] = {}
    epoch = 0
    for _ in range(8):
        disk.fuse = rng.randint(0, 20) if rng.random() < 0.3 else -1
        try:
            journal = open_journal(disk)
            disk.fuse = -1
            for group, known in durable.items():
                found = journal.get(GroupId(group))
                assert found is not None
                assert found.epoch >= known
                assert found.epoch in put[group]
                durable[group] = found.epoch
            disk.fuse = rng.randint(0, 30) if rng.random() < 0.5 else -1
            for _ in range(rng.randint(0, 20)):
                epoch += 1
                group = rng.randint(1, 5)
                put.setdefault(group, set()).add(epoch)

                def done(error: OSError | None, group: int = group, epoch: int = epoch) -> None:
                    assert error is None
                    durable[group] = max(durable.get(group, 0), epoch)

                journal.put(GroupId(group), state(epoch, 1), done)
                if rng.random() < 0.3:
                    disk.run()
        except PowerFailure:
            pass
        if killed_share and rng.random() < killed_share:
            disk.kill()
        else:
            disk.crash(rng)


def test_the_journal_is_compacted_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 2_000)
    monkeypatch.setattr("strandline.storage.state_journal._ALLOCATE_BYTES", 512)
    rng = random.Random(4)
    disk = fresh_disk()
    journal = open_journal(disk)
    last: dict[int, int] = {}
    answers = Answers()
    for epoch in range(1, 500):
        group = rng.randint(1, 4)
        journal.put(GroupId(group), state(epoch, 1), answers)
        last[group] = epoch
        if rng.random() < 0.1:
            disk.run()
        assert disk.open(PATH).size() < 3_000
    disk.run()
    assert answers.errors == [None] * 499
    disk.crash(rng)
    again = open_journal(disk)
    assert {
        group: found.epoch for group in (1, 2, 3, 4) if (found := again.get(GroupId(group)))
    } == last


@pytest.mark.parametrize("seed", range(60))
def test_compaction_survives_a_power_failure_anywhere(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 600)
    monkeypatch.setattr("strandline.storage.state_journal._ALLOCATE_BYTES", 128)
    live(seed)


def test_rot_below_something_durable_is_refused() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    for epoch in range(1, 6):
        journal.put(GroupId(epoch), state(epoch, 1), Answers())
        disk.run()
    disk.flip_bit(PATH, 40)
    with pytest.raises(StorageError, match="a state that was durable"):
        open_journal(disk)


@pytest.mark.parametrize("is_opened_anew", [False, True])
def test_rot_of_the_last_state_is_refused_too(is_opened_anew: bool) -> None:
    """It would be a vote that is forgotten."""
    disk = fresh_disk()
    journal = open_journal(disk)
    for epoch in (1, 2):
        begin = journal._end
        journal.put(GroupId(1), state(epoch, 1), Answers())
        disk.run()
    if is_opened_anew:
        open_journal(disk).close()
    disk.kill()
    disk.flip_bit(PATH, begin + 20)
    with pytest.raises(StorageError, match="a state that was durable"):
        open_journal(disk)


@pytest.mark.parametrize("seed", range(60))
def test_what_is_lost_before_it_was_flushed_is_no_rot(seed: int) -> None:
    """Whichever sectors survive of the next record, and of the seal behind which, or in whose
    place it is."""
    disk, clock = fresh_disk(), ManualClock()
    rng = random.Random(seed)
    journal = open_journal(disk, clock=clock)
    known: dict[GroupId, GroupState | None] = {}
    for epoch in range(1, 40):
        journal.put(GroupId(epoch % 3), state(epoch, 1), Answers())
        if rng.random() < 0.8:
            disk.run()
            known = {group: journal.get(group) for group in journal.groups()}
        if seed % 2 and rng.random() < 0.7:
            clock.advance(rng.randint(1, SEAL_FLUSH_MS))
            if rng.random() < 0.5:
                disk.run()
                known = {group: journal.get(group) for group in journal.groups()}
        if rng.random() < 0.3:
            disk.crash(rng)
            journal = open_journal(disk, clock=clock)
            for group, found in known.items():
                now = journal.get(group)
                assert found is not None and now is not None and now.epoch >= found.epoch
            known = {group: journal.get(group) for group in journal.groups()}


ENDINGS = ["quiet", "closed", "opened anew", "a put is cut off"]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("seed", range(20))
def test_a_vote_that_rots_while_the_power_fails_is_missed(seed: int, ending: str) -> None:
    """The seal behind it is on the disk once nothing else is asked for, and stays there."""
    disk, clock = fresh_disk(), ManualClock()
    journal = open_journal(disk, clock=clock)
    for epoch in range(1, 30):  # The last one is in a sector of its own.
        begin = journal._end
        journal.put(GroupId(1), state(epoch, 1), Answers())
        disk.run()
    if ending == "closed":
        journal.close()
    elif ending == "opened anew":
        disk.kill()
        open_journal(disk, clock=clock)
    else:
        clock.advance(SEAL_FLUSH_MS)
        disk.run()
    if ending == "a put is cut off":
        journal.put(GroupId(1), state(30, 1), Answers())
    disk.crash(random.Random(seed))
    disk.flip_bit(PATH, begin + 20)
    with pytest.raises(StorageError, match="a state that was durable"):
        open_journal(disk)


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


def test_a_seal_takes_no_room() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    ends = []
    for epoch in (1, 2, 3):
        journal.put(GroupId(1), state(epoch, 1), Answers())
        disk.run()
        ends.append(journal._end)
    assert ends[2] - ends[1] == ends[1] - ends[0]


def test_the_last_record_begins_where_the_one_before_it_ends() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    assert last_record(b"") == 0
    ends = []
    for epoch in range(1, 4):
        journal.put(GroupId(epoch), state(epoch, 1), Answers())
        disk.run()
        data = disk.open(PATH).pread(1_000, 0)
        ends.append(last_record(data))
        assert ends[-1] == journal._end, "the seal"
        assert last_record(data[: journal._end]) == (ends[-2] if len(ends) > 1 else 0)


def test_a_hole_among_what_was_never_durable_is_a_torn_tail() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    journal.put(GroupId(1), state(1, 1), Answers())
    disk.run()
    end = journal._end
    for group in (2, 3, 4):
        journal.put(GroupId(group), state(2, 1), Answers())
    disk.flip_bit(PATH, end + 20)
    again = open_journal(disk)
    assert again.groups() == [1]


def test_what_was_cut_as_a_torn_tail_never_follows_what_is_put_later() -> None:
    disk = fresh_disk()
    journal = open_journal(disk)
    journal.put(GroupId(1), state(1, 1), Answers())
    disk.run()
    end = journal._end
    for epoch in (2, 3):
        journal.put(GroupId(1), state(epoch, 1), Answers())
    disk.kill()
    disk.flip_bit(PATH, end + 20)
    journal = open_journal(disk)
    journal.put(GroupId(1), state(4, 1), Answers())
    disk.run()
    assert open_journal(disk).get(GroupId(1)) == state(4, 1)


def test_what_was_read_after_a_kill_is_durable() -> None:
    for seed in range(20):
        disk = fresh_disk()
        journal = open_journal(disk)
        journal.put(GroupId(1), state(1, 1), Answers())
        disk.flushes.clear()
        assert open_journal(disk).get(GroupId(1)) == state(1, 1)
        disk.crash(random.Random(seed))
        assert open_journal(disk).get(GroupId(1)) == state(1, 1)


def test_what_becomes_durable_once_the_journal_is_closed_is_not_told_to_have_failed() -> None:
    disk = fresh_disk()
    journal, answers = open_journal(disk), Answers()
    journal.put(GroupId(1), state(1, 1), answers)
    journal.close()
    disk.failing.add("pwrite")  # As a file is that was closed.
    disk.run()
    assert answers.errors == [None]


def test_a_seal_that_finds_no_room_gives_none_away() -> None:
    disk, clock = fresh_disk(), ManualClock()
    journal, answers = open_journal(disk, clock=clock), Answers()
    journal.put(GroupId(1), state(1, 1), answers)
    allocated = journal._allocated
    disk.full.add("pwrite")
    disk.run()
    assert (answers.errors, journal._allocated, journal.failed) == ([None], allocated, False)
    disk.full.clear()
    clock.advance(SEAL_FLUSH_MS)
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    assert answers.errors == [None, None]
    assert open_journal(disk).get(GroupId(1)) == state(2, 1)
