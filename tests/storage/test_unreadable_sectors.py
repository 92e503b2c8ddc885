"""A sector that the disk cannot read counts as damage: at a start, in a scrub, beside a segment.

Source: reliability reference 3; decision 0007."""

import contextlib
from errno import EIO

import pytest
from tests.storage.log_world import DIRECTORY, World
from tests.storage.storage_world import ForgetfulFile
from tests.storage.test_flushed_mark import settle
from tests.storage.test_interrupted_cuts import write_by_producer

from strandline.base.errors import StorageError
from strandline.model.ids import Index, Offset


def lose(patch: pytest.MonkeyPatch, suffix: str, at: int | None = None) -> list[int]:
    """Files whose paths end so are given out no more; or the byte at `at` of them alone. Returns
    the lengths that were asked for in vain, as they come."""
    pread = ForgetfulFile.pread
    asked: list[int] = []

    def unreadable(self: ForgetfulFile, length: int, position: int) -> bytes:
        if self.path.endswith(suffix) and (at is None or position <= at < position + length):
            asked.append(length)
            raise OSError(EIO, "Input/output error")
        return pread(self, length, position)

    patch.setattr(ForgetfulFile, "pread", unreadable)
    return asked


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
    assert world.open(cut_corruption=True).last_index == 2


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


def without(suffix: str) -> World:
    """Several segments, from which a failure of power took these files."""
    world = ended_in_order()
    for name in world.files(suffix):
        world.disk.remove(f"{DIRECTORY}/{name}")
    return world


def test_a_sector_of_a_closed_segment_closes_no_log_where_snapshots_are_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is mended once the log is open; an OSError would keep it closed for good."""
    world = without(".producers")
    lose(monkeypatch, world.files()[0], 150)
    log = world.open()
    assert (log.last_index, log.producers.is_incomplete) == (11, True)


def test_retention_goes_on_over_such_a_sector(monkeypatch: pytest.MonkeyPatch) -> None:
    world = without(".producers")
    world.log = world.open()
    lose(monkeypatch, world.files()[0], 150)
    start = world.log._row.segments[1].name.base_index
    world.clock.advance(world.config.trust_ms)
    world.log.remove_segments_before(start)
    assert world.log.start_index == start


def test_an_index_that_is_lost_beside_a_sector_that_cannot_be_read_is_damage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = without(".index")
    lose(monkeypatch, world.files()[-1], 5)
    with contextlib.suppress(StorageError):
        world.open()
    assert world.open(cut_corruption=True).last_index < 11


def test_a_sector_behind_the_end_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """In what was reserved."""
    world = World(segment_bytes=2_000, preallocate=True)
    write_by_producer(world, 3)
    world.flush()
    settle(world)
    end = world.log.size_bytes()
    world.kill()
    lose(monkeypatch, ".log", end + 5)
    with contextlib.suppress(StorageError):
        assert world.open().last_index == 2


@pytest.mark.parametrize("suffix", [".producers", ".flushed"])
def test_where_damage_may_be_cut_a_small_file_beside_costs_no_log(
    suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ended_in_order()
    lose(monkeypatch, suffix)
    assert world.open(cut_corruption=True).last_index == 11


@pytest.mark.parametrize("bad", [3, 4, 5])
def test_a_cut_goes_through_where_the_sector_goes_with_it(
    bad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(segment_bytes=100_000)
    sizes = [len(world.append()) for _ in range(6)]
    world.flush()
    world.clock.advance(world.config.trust_ms)
    lose(monkeypatch, ".log", sum(sizes[:bad]) + 70)
    world.log.truncate(Index(3))
    assert world.log.last_index == 2


@pytest.mark.parametrize("reader", ["scrub", "start", "consumer"])
def test_a_sector_is_asked_for_a_few_times_only(
    reader: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each time may cost the disk seconds, and everything waits."""
    world = World(segment_bytes=10_000_000)
    sizes = [len(world.append()) for _ in range(2_000)]
    world.flush()
    world.clock.advance(world.config.trust_ms)
    asked = lose(monkeypatch, ".log", sum(sizes) - 70)
    if reader == "scrub":
        scrub = world.log.mending.scrub(world.log.start_index)
        while scrub.step(256 << 10):
            pass
        assert scrub.gaps
    elif reader == "start":
        world.kill()
        with pytest.raises(StorageError):
            world.open(flushed_index=Index(1_999))
    else:
        with pytest.raises(StorageError):
            world.log.read_records(Offset(0), 10_000_000, world.log.end_offset)
    assert 0 < len(asked) < 20
