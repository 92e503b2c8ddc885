"""Snapshots on the disk through power failures at every step, rot, and a full disk.

Source: decision 0062."""

import random
from contextlib import suppress

import pytest
from tests.controller.test_snapshots import bytes_of, history, plain, replayed
from tests.storage.storage_world import ForgetfulDisk, PowerFailure

from strandline.base.errors import OperatorError
from strandline.broker.snapshots.files import SnapshotFiles, SnapshotId
from strandline.controller.snapshots.format import BadSnapshotError, checksum
from strandline.model.ids import Epoch, Offset

DIRECTORY = "/data/snapshots"
STEPS_MAX = 40


def opened(disk: ForgetfulDisk) -> SnapshotFiles:
    files = SnapshotFiles(disk, DIRECTORY)
    files.open()
    return files


def made(offset: int) -> tuple[SnapshotId, bytes]:
    data = bytes_of(replayed(history()[:offset]), offset=offset)
    return SnapshotId(Offset(offset), Epoch(3), len(data), checksum(data)), data


def add(disk: ForgetfulDisk, files: SnapshotFiles, offset: int) -> None:
    """Add one, to its end."""
    errors: list[OSError | None] = []
    files.add(*made(offset), errors.append)
    disk.run()
    assert errors == [None]


def receive(disk: ForgetfulDisk, files: SnapshotFiles, offset: int) -> None:
    """Copy one in chunks, to its end."""
    snapshot, data = made(offset)
    for position in range(0, len(data), 700):
        files.put_chunk(snapshot, position, data[position : position + 700])
    assert files.read_incoming(snapshot) == data
    errors: list[OSError | None] = []
    files.add_incoming(snapshot, errors.append)
    disk.run()
    assert errors == [None]


def loaded(disk: ForgetfulDisk) -> int:
    """The offset of what a start finds, which is whole; 0 for nothing."""
    found = opened(disk).load()
    if found is None:
        return 0
    head, state = found
    assert plain(state) == plain(replayed(history()[: head.offset]))
    return head.offset


@pytest.mark.parametrize("way", [add, receive])
@pytest.mark.parametrize("seed", range(8))
def test_a_power_failure_at_any_step_leaves_the_last_durable_snapshot_or_the_next(
    way: object, seed: int
) -> None:
    for fuse in range(STEPS_MAX):
        disk = ForgetfulDisk()
        files = opened(disk)
        durable, offset = 0, 8
        disk.fuse = fuse
        with suppress(PowerFailure):
            for offset in (8, 12, 15, 18):
                way(disk, files, offset)  # type: ignore[operator]
                durable = offset
        disk.crash(random.Random(seed * 1_000 + fuse))
        assert loaded(disk) in (durable, offset)
        add(disk, opened(disk), 20)
        assert loaded(disk) == 20


def test_the_two_newest_stay_and_the_log_is_needed_from_the_older_one_on() -> None:
    disk = ForgetfulDisk()
    files = opened(disk)
    assert files.needless_before == 0
    add(disk, files, 5)
    assert files.needless_before == 0, "one damaged file must not cost the state"
    add(disk, files, 9)
    assert files.needless_before == 5
    add(disk, files, 12)
    assert [one.offset for one in files.kept] == [9, 12]
    assert len(disk.list_directory(DIRECTORY)) == 2


def test_a_damaged_snapshot_is_passed_over_for_an_older_one() -> None:
    disk = ForgetfulDisk()
    files = opened(disk)
    add(disk, files, 5)
    add(disk, files, 9)
    content = disk.names[DIRECTORY][made(9)[0].name]
    content.seen[40] ^= 1
    assert loaded(disk) == 5
    assert opened(disk).needless_before == 0, "what was not read is not relied on"


def test_a_snapshot_under_the_name_of_another_is_damaged() -> None:
    disk = ForgetfulDisk()
    add(disk, opened(disk), 5)
    disk.rename(f"{DIRECTORY}/{made(5)[0].name}", f"{DIRECTORY}/{made(9)[0].name}")
    assert loaded(disk) == 0


def test_a_flush_that_fails_leaves_what_was_there() -> None:
    disk = ForgetfulDisk()
    files = opened(disk)
    add(disk, files, 5)
    for failing in ("pwrite", "flush", "rename", "flush_directory"):
        disk.failing = {failing}
        errors: list[OSError | None] = []
        files.add(*made(9), errors.append)
        disk.run()
        assert isinstance(errors[0], OSError), failing
        assert [one.offset for one in files.kept] == [5]
    disk.failing = set()
    add(disk, files, 9)
    assert loaded(disk) == 9


def test_a_copy_goes_on_after_a_restart_where_it_was() -> None:
    disk = ForgetfulDisk()
    files = opened(disk)
    snapshot, data = made(9)
    files.put_chunk(snapshot, 0, data[:100])
    assert opened(disk).incoming() == (snapshot, 100)
    opened(disk).put_chunk(snapshot, 100, data[100:])
    assert opened(disk).read_incoming(snapshot) == data


def test_a_copy_that_differs_from_its_name_is_refused() -> None:
    disk = ForgetfulDisk()
    files = opened(disk)
    snapshot, data = made(9)
    with pytest.raises(BadSnapshotError, match="whole"):
        files.read_incoming(snapshot)
    files.put_chunk(snapshot, 0, data[:-1] + b"x")
    with pytest.raises(BadSnapshotError, match="checksum"):
        files.read_incoming(snapshot)
    other = SnapshotId(Offset(10), Epoch(3), len(data), checksum(data))
    files.put_chunk(other, 0, data)
    with pytest.raises(BadSnapshotError, match="offset 9"):
        files.read_incoming(other)


def test_what_an_earlier_life_left_is_discarded() -> None:
    disk = ForgetfulDisk()
    add(disk, opened(disk), 5)
    opened(disk).discard()
    assert loaded(disk) == 0


def test_a_snapshot_of_a_newer_version_is_not_passed_over() -> None:
    """The log may not have what it holds."""
    disk = ForgetfulDisk()
    files = opened(disk)
    add(disk, files, 5)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("strandline.controller.snapshots.format.FORMAT", 0)
        with pytest.raises(OperatorError, match="newer version"):
            opened(disk).load()
