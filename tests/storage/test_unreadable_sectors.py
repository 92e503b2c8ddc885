"""Sectors that the disk does not give out: as bad as wrong bytes, at the start, in a scrub, and
beside a segment.

Source: reliability reference 3; decision 0007."""

import contextlib
from errno import EIO

import pytest
from tests.storage.storage_world import ForgetfulFile
from tests.storage.test_flushed_mark import settle
from tests.storage.test_interrupted_cuts import write_by_producer
from tests.storage.test_log import DIRECTORY, World

from strandline.base.errors import StorageError


def lose(patch: pytest.MonkeyPatch, suffix: str, at: int | None = None) -> None:
    """Files whose paths end so are given out no more; or the byte at `at` of them alone."""
    pread = ForgetfulFile.pread

    def unreadable(self: ForgetfulFile, length: int, position: int) -> bytes:
        if self.path.endswith(suffix) and (at is None or position <= at < position + length):
            raise OSError(EIO, "Input/output error")
        return pread(self, length, position)

    patch.setattr(ForgetfulFile, "pread", unreadable)


def ended_in_order() -> World:
    """Several segments with all that lies beside them."""
    world = World(segment_bytes=300)
    write_by_producer(world, 12)
    world.flush()
    settle(world)
    world.log.close()
    world.kill()
    return world


@pytest.mark.parametrize("suffix", [".summary", ".index", ".timeindex"])
def test_what_spares_a_scan_and_cannot_be_read_costs_one(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ended_in_order()
    lose(monkeypatch, suffix)
    assert world.open().last_index == 11


@pytest.mark.parametrize("suffix", [".producers", ".flushed"])
def test_what_nothing_else_says_and_cannot_be_read_is_damage(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the log is copied from another replica; an OSError would keep it closed for good."""
    world = ended_in_order()
    lose(monkeypatch, suffix)
    with contextlib.suppress(StorageError):
        assert world.open().last_index == 11


def test_a_sector_that_cannot_be_read_at_the_start_is_damage_as_a_wrong_one_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(segment_bytes=100_000)
    sizes = [len(world.append()) for _ in range(6)]
    world.flush()
    settle(world)
    world.kill()
    lose(monkeypatch, ".log", 3 * sizes[0] + 5)
    with pytest.raises(StorageError):
        world.open()
    # Whose owner has lost what he acknowledged anyway goes on.
    assert world.open(cut_corruption=True).last_index <= 2


@pytest.mark.parametrize("slice_bytes", [100, 1_000, 32 << 10])
@pytest.mark.parametrize("bad", [10, 150, 250, 350])
def test_a_scrub_finds_a_sector_that_cannot_be_read_wherever_it_lies_in_a_slice(
    bad: int, slice_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(segment_bytes=500)
    for _ in range(12):
        world.append()
    world.flush()
    path = f"{DIRECTORY}/{world.files()[0]}"
    lose(monkeypatch, path, bad)
    scrub = world.log.mending.scrub(world.log.start_index)
    while scrub.step(slice_bytes):
        pass
    assert [gap.path for gap in scrub.gaps] == [path]


def test_a_scrub_passes_a_sector_that_cannot_be_read_where_the_index_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(segment_bytes=500, index_interval_bytes=1)
    for _ in range(12):
        world.append()
    world.flush()
    world.log.close()
    world.kill()
    world.log = world.open()
    (first, *_), path = world.files(), f"{DIRECTORY}/{world.files()[0]}"
    world.disk.remove(f"{DIRECTORY}/{first[:-4]}.index")
    lose(monkeypatch, path, 150)
    scrub = world.log.mending.scrub(world.log.start_index)
    while scrub.step(1_000):
        pass
    assert [gap.path for gap in scrub.gaps] == [path]
