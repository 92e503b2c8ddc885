"""What was put and answered survives; what was not is there or not; rot is not mistaken for either.

Source: design section 4, "Hard state"."""

import random
from errno import ENOSPC

import msgspec
import pytest
from tests.storage.storage_world import ForgetfulDisk, PowerFailure

from strandline.base.disk import is_full
from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.configuration import Configuration
from strandline.storage.state_journal import GroupState, StateJournal, last_record

PATH = "/data/state.journal"


def state(epoch: int, vote: int = -1) -> GroupState:
    voters = tuple(BrokerId(n) for n in range(3))
    return GroupState(Epoch(epoch), BrokerId(vote), Configuration(voters) if vote >= 0 else None)


def fresh_disk() -> ForgetfulDisk:
    disk = ForgetfulDisk()
    disk.make_directories("/data")
    return disk


class Answers:
    """Counts what was answered."""

    def __init__(self) -> None:
        self.errors: list[OSError | None] = []

    def __call__(self, error: OSError | None) -> None:
        self.errors.append(error)


def test_an_unknown_group_has_no_state() -> None:
    journal = StateJournal.open(fresh_disk(), PATH)
    assert journal.get(GroupId(1)) is None
    assert journal.groups() == []


def test_a_put_is_answered_only_when_it_is_durable() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    answers = Answers()
    journal.put(GroupId(1), state(3, 2), answers)
    journal.put(GroupId(2), state(4), answers)
    assert journal.get(GroupId(1)) == state(3, 2)
    assert answers.errors == []
    disk.run()
    assert answers.errors == [None, None]
    disk.crash(random.Random(1))
    again = StateJournal.open(disk, PATH)
    assert again.groups() == [1, 2]
    assert (again.get(GroupId(1)), again.get(GroupId(2))) == (state(3, 2), state(4))


def test_a_promised_vote_survives() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    promised = GroupState(Epoch(3), BrokerId(2), None, promised=Epoch(4))
    journal.put(GroupId(1), promised, Answers())
    disk.run()
    disk.crash(random.Random(1))
    assert StateJournal.open(disk, PATH).get(GroupId(1)) == promised


def test_a_record_of_an_earlier_release_promises_nothing() -> None:
    """It ends before that field; and a broker of that release reads ours without it."""

    class Earlier(msgspec.Struct, frozen=True, array_like=True):
        epoch: int
        vote: int
        configuration: Configuration | None
        amnesiac: bool = False

    encode = msgspec.msgpack.encode
    earlier = Earlier(3, 2, None, True)
    later = GroupState(Epoch(3), BrokerId(2), None, amnesiac=True)
    assert msgspec.msgpack.decode(encode(earlier), type=GroupState) == later
    later = msgspec.structs.replace(later, promised=Epoch(4))
    assert msgspec.msgpack.decode(encode(later), type=Earlier) == earlier


def test_what_only_grows_is_kept_by_later_puts_and_over_compaction() -> None:
    """Which loss it was told to forget by, and which rejoining it comes after."""
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    journal.put(GroupId(1), GroupState(Epoch(3), BrokerId(2), None, forgotten=4), Answers())
    journal.put(GroupId(1), GroupState(Epoch(3), BrokerId(2), None, rejoined=7), Answers())
    journal.put(GroupId(1), GroupState(Epoch(5), BrokerId(1), None, rejoined=6), Answers())
    assert journal._compact()
    disk.run()
    disk.crash(random.Random(1))
    found = StateJournal.open(disk, PATH).get(GroupId(1))
    assert found == GroupState(Epoch(5), BrokerId(1), None, forgotten=4, rejoined=7)


def test_what_is_forgotten_by_a_declared_loss_says_nothing_of_the_log_after_it() -> None:
    journal = StateJournal.open(fresh_disk(), PATH)
    known = GroupState(Epoch(3), BrokerId(2), None, joined=Index(100))
    journal.put(GroupId(1), known, Answers())
    journal.put(GroupId(1), msgspec.structs.replace(known, joined=Index(20)), Answers())
    assert journal.get(GroupId(1)) == known
    given_up = GroupState(Epoch(4), BrokerId(2), None, forgotten=1, joined=Index(20))
    journal.put(GroupId(1), given_up, Answers())
    assert journal.get(GroupId(1)) == given_up


def test_a_removed_group_is_gone_after_a_restart() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    journal.put(GroupId(1), state(3), Answers())
    journal.remove(GroupId(1))
    journal.remove(GroupId(5))
    assert journal.get(GroupId(1)) is None
    disk.run()
    journal.close()
    assert StateJournal.open(disk, PATH).groups() == []


def test_a_failed_flush_fails_everything_after_it() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
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
    journal = StateJournal.open(disk, PATH)
    disk.failing.add("pwrite")
    answers = Answers()
    journal.put(GroupId(1), state(1), answers)
    assert answers.errors == []
    disk.run()
    assert isinstance(answers.errors[0], OSError)


def test_a_put_without_space_changes_nothing_and_may_be_tried_again() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
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
    again = StateJournal.open(disk, PATH)
    assert (again.get(GroupId(1)), again.get(GroupId(2))) == (state(epoch - 1), state(7))


def test_a_journal_uses_what_little_space_there_is() -> None:
    """It asked for 256 KB or nothing: where less was left, no vote was given."""
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    disk.open(PATH).truncate(0)
    disk.capacity = disk.used() + (20 << 10)
    journal = StateJournal.open(disk, PATH)
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
    journal = StateJournal.open(disk, PATH)
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
    assert StateJournal.open(disk, PATH).get(GroupId(1)) == state(3, 1)


def test_a_journal_that_has_no_room_to_be_compacted_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("strandline.storage.state_journal._COMPACT_BYTES_MIN", 2_000)
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
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
    assert StateJournal.open(disk, PATH).get(GroupId(1)) == state(100, 1)


def test_a_journal_is_opened_on_a_full_disk_only_with_room_for_votes() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    journal.put(GroupId(1), state(1, 1), Answers())
    disk.run()
    disk.capacity = disk.used()
    journal = StateJournal.open(disk, PATH)
    answers = Answers()
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    assert answers.errors == [None]
    disk.open(PATH).truncate(journal._end)
    disk.capacity = disk.used()
    with pytest.raises(OSError, match="No space left") as failure:
        StateJournal.open(disk, PATH)
    assert failure.value.filename == PATH


def test_a_flush_that_finds_no_space_is_final() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
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
            journal = StateJournal.open(disk, PATH)
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
    journal = StateJournal.open(disk, PATH)
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
    again = StateJournal.open(disk, PATH)
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
    journal = StateJournal.open(disk, PATH)
    for epoch in range(1, 6):
        journal.put(GroupId(epoch), state(epoch, 1), Answers())
        disk.run()
    disk.flip_bit(PATH, 40)
    with pytest.raises(StorageError, match="a state that was durable"):
        StateJournal.open(disk, PATH)


@pytest.mark.parametrize("is_opened_anew", [False, True])
def test_rot_of_the_last_state_is_refused_too(is_opened_anew: bool) -> None:
    """It would be a vote that is forgotten."""
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    for epoch in (1, 2):
        begin = journal._end
        journal.put(GroupId(1), state(epoch, 1), Answers())
        disk.run()
    if is_opened_anew:
        StateJournal.open(disk, PATH).close()
    disk.kill()
    disk.flip_bit(PATH, begin + 20)
    with pytest.raises(StorageError, match="a state that was durable"):
        StateJournal.open(disk, PATH)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_lost_before_it_was_flushed_is_no_rot(seed: int) -> None:
    """Whichever sectors of the next record, and of the seal in whose place it is, survive."""
    disk = fresh_disk()
    rng = random.Random(seed)
    journal = StateJournal.open(disk, PATH)
    known: dict[GroupId, GroupState | None] = {}
    for epoch in range(1, 40):
        journal.put(GroupId(epoch % 3), state(epoch, 1), Answers())
        if rng.random() < 0.8:
            disk.run()
            known = {group: journal.get(group) for group in journal.groups()}
        if rng.random() < 0.3:
            disk.crash(rng)
            journal = StateJournal.open(disk, PATH)
            for group, found in known.items():
                now = journal.get(group)
                assert found is not None and now is not None and now.epoch >= found.epoch
            known = {group: journal.get(group) for group in journal.groups()}


def test_a_seal_takes_no_room() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    ends = []
    for epoch in (1, 2, 3):
        journal.put(GroupId(1), state(epoch, 1), Answers())
        disk.run()
        ends.append(journal._end)
    assert ends[2] - ends[1] == ends[1] - ends[0]


def test_the_last_record_begins_where_the_one_before_it_ends() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
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
    journal = StateJournal.open(disk, PATH)
    journal.put(GroupId(1), state(1, 1), Answers())
    disk.run()
    end = journal._end
    for group in (2, 3, 4):
        journal.put(GroupId(group), state(2, 1), Answers())
    disk.flip_bit(PATH, end + 20)
    again = StateJournal.open(disk, PATH)
    assert again.groups() == [1]


def test_what_was_cut_as_a_torn_tail_never_follows_what_is_put_later() -> None:
    disk = fresh_disk()
    journal = StateJournal.open(disk, PATH)
    journal.put(GroupId(1), state(1, 1), Answers())
    disk.run()
    end = journal._end
    for epoch in (2, 3):
        journal.put(GroupId(1), state(epoch, 1), Answers())
    disk.kill()
    disk.flip_bit(PATH, end + 20)
    journal = StateJournal.open(disk, PATH)
    journal.put(GroupId(1), state(4, 1), Answers())
    disk.run()
    assert StateJournal.open(disk, PATH).get(GroupId(1)) == state(4, 1)


def test_what_was_read_after_a_kill_is_durable() -> None:
    for seed in range(20):
        disk = fresh_disk()
        journal = StateJournal.open(disk, PATH)
        journal.put(GroupId(1), state(1, 1), Answers())
        disk.flushes.clear()
        assert StateJournal.open(disk, PATH).get(GroupId(1)) == state(1, 1)
        disk.crash(random.Random(seed))
        assert StateJournal.open(disk, PATH).get(GroupId(1)) == state(1, 1)


def test_what_becomes_durable_once_the_journal_is_closed_is_not_told_to_have_failed() -> None:
    disk = fresh_disk()
    journal, answers = StateJournal.open(disk, PATH), Answers()
    journal.put(GroupId(1), state(1, 1), answers)
    journal.close()
    disk.failing.add("pwrite")  # As a file is that was closed.
    disk.run()
    assert answers.errors == [None]


def test_a_seal_that_finds_no_room_gives_none_away() -> None:
    disk = fresh_disk()
    journal, answers = StateJournal.open(disk, PATH), Answers()
    journal.put(GroupId(1), state(1, 1), answers)
    allocated = journal._allocated
    disk.full.add("pwrite")
    disk.run()
    assert (answers.errors, journal._allocated, journal.failed) == ([None], allocated, False)
    disk.full.clear()
    journal.put(GroupId(1), state(2, 1), answers)
    disk.run()
    assert answers.errors == [None, None]
    assert StateJournal.open(disk, PATH).get(GroupId(1)) == state(2, 1)
