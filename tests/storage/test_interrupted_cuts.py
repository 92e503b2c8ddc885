"""A cut that a kill or damage interrupts: cut entries stay away, kept entries stay.

Source: Raft thesis 3.5, of leaders whose entries replace others; "Protocol-Aware Recovery",
FAST'18."""

import contextlib
import random
from collections.abc import Callable
from errno import EIO

import pytest
from tests.storage.log_world import DIRECTORY, World
from tests.storage.storage_world import ForgetfulDisk, ManualClock, PowerFailure
from tests.storage.test_claims import CRASHES, alarm_count
from tests.storage.test_flushed_mark import marked, settle

from strandline.base.disk import File
from strandline.base.errors import StorageError
from strandline.model.ids import Index
from strandline.records.record import Record, build_batch
from strandline.storage.log.log import Log
from strandline.storage.log.segment import Segment
from strandline.storage.recovery import head_summary


def bytes_after(disk: ForgetfulDisk, world: World, seed: int) -> bytes:
    """What is found after the power has failed."""
    twin = disk.twin()
    twin.crash(random.Random(seed))
    log = Log.open(twin, DIRECTORY, config=world.config, clock=ManualClock())
    return log.read_records(log.start_offset, 1 << 20, log.end_offset).bytes()


def killed_before_a_flush_of_the_log(world: World, act: Callable[[], object]) -> None:
    """The process ends in the middle of a cut, or of a start: the file is cut, and not flushed."""
    path = f"{DIRECTORY}/{world.files()[0]}"
    flush_now = world.disk.flush_now

    def end(file: File) -> None:
        if file.path == path:  # type: ignore[attr-defined]
            raise PowerFailure
        flush_now(file)

    with pytest.MonkeyPatch.context() as patch, contextlib.suppress(PowerFailure):
        patch.setattr(world.disk, "flush_now", end)
        act()
    world.kill()


def test_a_cut_to_nothing_that_a_kill_kept_from_its_flush_is_durable_at_the_next_start() -> None:
    world = World(segment_bytes=100_000)
    for _ in range(6):
        world.append(size=300, epoch=2)
    world.flush()
    killed_before_a_flush_of_the_log(world, lambda: world.log.truncate(Index(0)))
    world.log = world.open()
    assert world.log.last_index == -1
    # By another leader: of an earlier epoch than what was cut.
    written = b"".join(world.append(size=300, epoch=1) for _ in range(3))
    for seed in range(CRASHES):
        found = bytes_after(world.disk, world, seed)
        assert written.startswith(found), "what was cut is back"


def test_a_cut_to_a_head_that_a_kill_kept_from_its_flush_is_durable_at_the_next_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A torn tail behind what a summary tells is cut, and the process ends before its flush."""
    monkeypatch.setattr(head_summary, "REST_BYTES_MIN", 1)
    world = World(segment_bytes=100_000)
    kept = world.append(size=300, epoch=1)
    world.flush()
    settle(world)
    assert world.files(".summary")
    for _ in range(5):
        world.append(size=300, epoch=2)
    world.disk.sync()  # The kernel wrote it by itself, but for the sector that is torn.
    world.kill()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", len(kept) + 100)
    killed_before_a_flush_of_the_log(world, world.open)
    world.log = world.open()
    assert world.log.last_index == 0
    written = kept + world.append(size=300, epoch=1)
    for seed in range(CRASHES):
        found = bytes_after(world.disk, world, seed)
        assert written.startswith(found), "what was cut is back"


def write_by_producer(world: World, count: int) -> None:
    """So many batches of producer 7."""
    for sequence in range(count):
        batch = build_batch(
            [Record(0, 1000, b"k", b"v")],
            base_offset=world.log.end_offset,
            epoch=1,
            producer_id=7,
            producer_epoch=0,
            base_sequence=sequence,
        )
        world.write(bytes(batch))


@pytest.mark.parametrize("position", [7, 16])
@pytest.mark.parametrize("rotten", range(2, 5))
@pytest.mark.parametrize("index_interval_bytes", [1, 4096])
def test_a_cut_at_or_behind_a_header_that_has_rotten_is_refused_and_changes_nothing(
    rotten: int, position: int, index_interval_bytes: int
) -> None:
    """Also where this process wrote it: nobody proves that again."""
    world = World(segment_bytes=550, index_interval_bytes=index_interval_bytes)
    sizes = [len(world.append(timestamp=1000 + n)) for n in range(7)]
    last = world.flush()
    settle(world)
    assert len(world.files()) == 2 and len(set(sizes)) == 1
    files = world.files("")
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", rotten * sizes[0] + position)
    with contextlib.suppress(StorageError):  # It may be cut, too, where all that rotted goes.
        world.log.truncate(Index(4))
        assert world.log.last_index == 3
        return
    assert world.log.last_index == last
    assert world.files("") == files
    assert world.log.size_bytes() == sum(sizes)
    settle(world)
    assert max(marked(world)) == last


def test_a_cut_below_which_a_header_has_rotten_leaves_no_producer_of_what_was_cut() -> None:
    """He would be told that it is there, and send it no more."""
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    size = len(world.append())
    write_by_producer(world, 8)
    world.flush()
    settle(world)
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", size + 16)
    with contextlib.suppress(StorageError):
        world.log.truncate(Index(5))
    world.log.close()
    world.clock.forget()
    with contextlib.suppress(StorageError):  # As it may say at once.
        log = world.open()
        entry = log.producers.get(7)
        assert entry is None or entry.window[-1].base_offset <= log.last_index


def test_who_may_cut_damage_does_so_where_it_is_in_a_header_that_a_summary_spares() -> None:
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    sizes = [len(world.append()) for _ in range(10)]
    world.flush()
    settle(world)
    world.log.close()
    world.kill()
    assert len(world.files(".summary")) == 1
    for name in world.files(".index"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", sizes[0] + 16)
    with pytest.raises(StorageError):
        world.open()
    world.log = world.open(cut_corruption=True)
    assert world.log.last_index == 0
    assert alarm_count(world) == 0
    world.append()
    assert world.flush() == 1
    settle(world)
    assert alarm_count(world) == 0


def test_a_cut_behind_which_nothing_can_be_read_leaves_no_producer_of_what_was_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World(segment_bytes=100_000)
    write_by_producer(world, 6)
    world.flush()

    def unreadable(log: Log, segment: Segment) -> None:
        raise OSError(EIO, "pread failed")

    monkeypatch.setattr(Log, "_restore_producers", unreadable)
    world.log.truncate(Index(3))
    entry = world.log.producers.get(7)
    assert entry is not None
    assert [one.first_sequence for one in entry.window] == [1, 2]
    assert not world.log.failed


def test_a_cut_at_a_marker_whose_index_cannot_be_made_changes_nothing() -> None:
    """Nothing but the cut needs the index then."""
    world = World(segment_bytes=1000, index_interval_bytes=1)
    world.mark(1)
    for _ in range(3):
        world.append(size=100)
    world.mark(2)
    marker = world.log.last_index
    for _ in range(40):
        world.append(size=100, epoch=2)
    last = world.flush()
    (first, *_), segment = world.files(), world.log._row.segments[0]
    assert segment.end_index > marker
    segment.drop_index()
    world.disk.flip_bit(f"{DIRECTORY}/{first}", segment.markers[0].size + 16)
    world.disk.remove(f"{DIRECTORY}/{first[:-4]}.index")
    files = world.files("")
    with pytest.raises(StorageError):
        world.log.truncate(marker)
    assert (world.files(""), world.log.last_index, world.log.failed) == (files, last, False)


def test_who_may_cut_damage_does_so_where_the_index_of_the_end_is_lost() -> None:
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    sizes = [len(world.append(size=100)) for _ in range(6)]
    world.flush()
    world.log.close()
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", 3 * sizes[0] + 16)
    world.disk.flip_bit(f"{DIRECTORY}/{world.files('.index')[0]}", 0)
    with pytest.raises(StorageError):
        world.open()
    assert world.open(cut_corruption=True).last_index == 2
