"""A log that was not closed is scanned from the end of its head, as if from its beginning."""

from collections.abc import Iterator

import pytest
from tests.storage.log_world import DIRECTORY, World
from tests.storage.storage_world import ForgetfulFile

from strandline.base.errors import StorageError
from strandline.model.ids import Index, Offset
from strandline.records.batch import read_header
from strandline.records.record import Record, build_batch
from strandline.storage.layout import SUMMARY
from strandline.storage.log.log import Log
from strandline.storage.recovery import head_summary

SEGMENT_BYTES = 1 << 20


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    """A log with one large segment, whose head is summarised each 10 KB or more."""
    monkeypatch.setattr(head_summary, "REST_BYTES_MIN", 10_000)
    return World(segment_bytes=SEGMENT_BYTES, index_interval_bytes=500)


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, int]]:
    """{suffix of a file: bytes read of it}."""
    counts: dict[str, int] = {}
    honest = ForgetfulFile.pread

    def pread(self: ForgetfulFile, length: int, position: int) -> bytes:
        data = honest(self, length, position)
        suffix = self.path.rsplit(".", 1)[1]
        counts[suffix] = counts.get(suffix, 0) + len(data)
        return data

    monkeypatch.setattr(ForgetfulFile, "pread", pread)
    yield counts


def fill(world: World, batches: int, *, epoch: int = 1) -> None:
    for number in range(batches):
        world.append(3, timestamp=1_000 * number, size=200, epoch=epoch)
        if number % 5 == 0:
            world.flush()


def told(log: Log) -> tuple[object, ...]:
    """Everything that a scan finds out."""
    return (
        log.start_index,
        log.last_index,
        log.end_offset,
        log.last_epoch,
        list(log.epochs),
        list(log.configurations),
        log.max_timestamp(),
        log.size_bytes(),
        log.producers.checkpoint(),
        [log.offset_of(Index(index)) for index in range(log.last_index + 1)],
        [log.offset_for_time(time, log.end_offset) for time in range(0, 100_000, 900)],
        log.read_entries(Index(0), SEGMENT_BYTES).data,
    )


def test_only_what_is_behind_the_head_is_read(world: World, read_bytes: dict[str, int]) -> None:
    fill(world, 200)
    size = world.log.size_bytes()
    read_bytes.clear()
    log = world.open()
    assert log.size_bytes() == size
    assert read_bytes["log"] < size / 3


def test_it_is_what_a_whole_scan_would_find(world: World) -> None:
    for epoch in range(1, 5):
        world.mark(epoch)
        fill(world, 30, epoch=epoch)
        records = [Record(0, 5_000, None, b"v" * 100)]
        options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": epoch - 1}
        batch = build_batch(records, base_offset=world.log.end_offset, epoch=epoch, **options)
        world.write(bytes(batch))
    world.flush()
    world.append(1, epoch=4)
    assert world.files(SUMMARY)
    known = told(world.log)
    assert told(world.open()) == known
    for name in world.files(SUMMARY):
        world.disk.remove(f"{DIRECTORY}/{name}")
    assert told(world.open()) == known


def test_it_goes_on_being_so_from_kill_to_kill(world: World, read_bytes: dict[str, int]) -> None:
    fill(world, 100)
    for _ in range(3):
        world.log = world.open()
        read_bytes.clear()
        assert told(world.open())[1] == world.log.last_index
        fill(world, 10)
    size = world.log.size_bytes()
    read_bytes.clear()
    world.open()
    assert read_bytes["log"] < size / 2


def test_a_head_summary_is_not_used_after_a_cut_below_its_end(world: World) -> None:
    fill(world, 100)
    world.log.truncate(Index(30))
    assert not world.files(SUMMARY)
    known = told(world.log)
    assert told(world.open()) == known


def test_a_flush_under_way_during_a_cut_leaves_no_summary(world: World) -> None:
    for number in range(100):
        world.append(3, timestamp=number, size=200)
    world.log.flush_soon(lambda _: None)
    world.log.truncate(Index(30))
    for _ in range(100):
        world.append(3, epoch=2, size=150)
    world.disk.run()
    world.clock.run()
    assert not world.files(SUMMARY)
    known = told(world.log)
    assert told(world.open()) == known


def test_damage_in_the_head_is_not_served(world: World) -> None:
    fill(world, 200)
    path = f"{DIRECTORY}/{world.files()[0]}"
    file = world.disk.open(path)
    assert isinstance(file, ForgetfulFile)
    file.content.seen[2_000] ^= 1
    log = world.open()
    with pytest.raises(StorageError):
        log.read_records(Offset(0), 50_000, log.end_offset)


def test_a_head_that_is_gone_is_missed(world: World) -> None:
    """The summary says that it was durable."""
    fill(world, 200)
    file = world.disk.open(f"{DIRECTORY}/{world.files()[0]}")
    file.truncate(5_000)
    with pytest.raises(StorageError, match="flushed"):
        world.open()


def test_a_log_that_grows_is_summarised_seldom(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[int] = []
    honest = head_summary.write_seal

    def write_seal(disk: object, segment: object, files: head_summary.SealFiles) -> None:
        written.append(files.summary.size_bytes)
        honest(disk, segment, files)  # type: ignore[arg-type]

    monkeypatch.setattr(head_summary, "write_seal", write_seal)
    monkeypatch.setattr(head_summary, "REST_BYTES_MIN", 1)
    for _ in range(300):
        header = read_header(world.append(3, size=200))
        assert header is not None
        world.flush()
    assert sum(written) < 10 * world.log.size_bytes()
