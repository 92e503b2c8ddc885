"""An answered put survives, an unanswered one is there or not, and damage is mistaken for neither.

Source: design section 4, "Hard state"."""

import random

import msgspec
import pytest
from tests.storage.journal_world import PATH, Answers, fresh_disk, open_journal, state
from tests.storage.storage_world import ManualClock, PowerFailure

from strandline.base.errors import StorageError
from strandline.model.ids import BrokerId, Epoch, GroupId, Index
from strandline.raft.group.configuration import Configuration
from strandline.storage.state_journal import SEAL_FLUSH_MS, GroupState, last_record


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
