"""What a start calls corruption, and what a torn tail.

Source: design section 4, "Recovery cuts a torn tail"."""

import contextlib
import random
from typing import Any

import pytest
from tests.storage.log_world import DIRECTORY, MARK_INTERVAL_MS, World
from tests.storage.storage_world import PowerFailure

from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.storage.recovery import recovery

# ---- failures ----


def test_rot_below_the_flushed_mark_is_corruption_and_above_it_a_torn_tail() -> None:
    for flushed_index, is_corruption in ((3, True), (2, True), (1, False), (-1, False)):
        world = World(segment_bytes=100_000)
        sizes = [len(world.append()) for _ in range(4)]
        world.flush()
        world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", sum(sizes[:2]) + 65)
        if is_corruption:
            with pytest.raises(StorageError, match="the batch of index 2, which was flushed"):
                world.open(flushed_index=flushed_index)
            assert world.open(flushed_index=flushed_index, cut_corruption=True).last_index == 1
        else:
            assert world.open(flushed_index=flushed_index).last_index == 1


def test_a_lost_segment_below_a_sealed_one_is_corruption() -> None:
    world = World()
    for _ in range(30):
        world.append(size=100)
    world.flush()
    names = world.files()
    world.disk.remove(f"{DIRECTORY}/{names[1]}")
    with pytest.raises(StorageError, match="which were flushed"):
        world.open()
    found = world.open(cut_corruption=True)
    assert found.last_index == world.log._row.segments[0].end_index - 1


class _KilledError(Exception):
    """The process ends here."""


def test_a_cut_of_corruption_that_is_interrupted_leaves_a_log_that_opens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mark says no more than the log has, before the segments behind it are removed."""
    world = World()
    for _ in range(30):
        world.append(size=100)
    world.flush()
    world.log.close()
    world.kill()
    names = world.files()
    world.disk.remove(f"{DIRECTORY}/{names[1]}")
    remove, calls = recovery.remove_segment_files, iter(range(2))

    def remove_once(*arguments: Any) -> None:
        if next(calls):
            raise _KilledError
        remove(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(recovery, "remove_segment_files", remove_once)
        with pytest.raises(_KilledError):
            world.open(cut_corruption=True)
    world.kill()
    assert world.open().last_index == int(names[1].split("-")[0]) - 1


def test_a_log_that_ends_before_what_was_flushed_is_corrupt() -> None:
    world = World(segment_bytes=100_000)
    world.append()
    world.append()
    world.flush()
    assert world.open(flushed_index=1).last_index == 1
    path = f"{DIRECTORY}/{world.files()[0]}"
    for is_removed in (False, True):
        if is_removed:
            world.disk.remove(path)
        else:
            world.disk.open(path).truncate(0)
        with pytest.raises(StorageError, match="entries up to index 1, which were flushed"):
            world.open(flushed_index=1)
    assert world.open(flushed_index=1, cut_corruption=True).last_index == -1


def test_damage_below_what_a_killed_log_had_flushed_is_corruption() -> None:
    world = World(segment_bytes=100_000)
    sizes = [len(world.append()) for _ in range(3)]
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    sizes += [len(world.append()) for _ in range(2)]
    world.flush()  # Too soon after the last one to be noted.
    path = f"{DIRECTORY}/{world.files()[0]}"
    for at in range(5):
        position = sum(sizes[:at]) + 65
        world.disk.flip_bit(path, position)
        if at < 3:
            with pytest.raises(StorageError, match=f"the batch of index {at}, which was flushed"):
                world.open()
        world.disk.flip_bit(path, position)
    world.disk.flip_bit(path, sum(sizes[:4]) + 65)
    assert world.open().last_index == 3
    world.disk.flip_bit(path, sizes[0] + 65)
    assert world.open(cut_corruption=True).last_index == 0
    assert world.open().last_index == 0


def test_a_log_that_is_not_written_to_any_more_notes_what_is_durable() -> None:
    world = World(segment_bytes=100_000)
    world.append()
    world.flush()
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", 65)
    with pytest.raises(StorageError, match="which was flushed"):
        world.open()


def test_a_segment_that_is_gone_though_it_was_flushed_is_corruption() -> None:
    for is_closed in (False, True):
        world = World(segment_bytes=100_000)
        world.append()
        world.flush()
        world.clock.advance(MARK_INTERVAL_MS)
        if is_closed:
            world.log.close()
        world.disk.remove(f"{DIRECTORY}/{world.files()[0]}")
        for _ in range(2):
            with pytest.raises(StorageError, match="entries up to index 0, which were flushed"):
                world.open()
        assert world.open(cut_corruption=True).last_index == -1
        assert world.open().last_index == -1


@pytest.mark.parametrize("seed", range(20))
def test_what_was_cut_or_replaced_is_not_missed(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    for _ in range(20):
        world.append(size=100)
    assert world.flush() == 19
    world.clock.advance(MARK_INTERVAL_MS)
    world.disk.run()
    world.disk.fuse = rng.randint(0, 15)
    with contextlib.suppress(PowerFailure):
        if seed % 2:
            world.log.truncate(Index(rng.randint(3, 19)))
        else:
            world.log.reset_to(Index(9), Offset(9), previous_epoch=Epoch(1))
    world.disk.crash(rng)
    found = world.open()
    assert found.last_index >= 2
