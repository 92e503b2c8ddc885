"""What a log promises, one sentence at a time; `test_log_model.py` mixes them at random.

Source: design section 4; Kafka for retention, OffsetForLeaderEpoch and ListOffsets."""

import contextlib
import random
from dataclasses import replace
from errno import ENOSPC
from itertools import pairwise

import pytest
from tests.storage.storage_world import ForgetfulDisk, ManualClock, PowerFailure

from strandline.base.errors import ApiError, StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import read_header, seal
from strandline.records.marker import build_configuration_marker, build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.storage.config import LogConfig
from strandline.storage.log.log import Log

DIRECTORY = "/data/topic-0.1"
HOUR_MS = 3_600_000
MARK_INTERVAL_MS = 5_000


class World:
    """A log and ways to write to it."""

    def __init__(self, **config: int | bool) -> None:
        self.disk = ForgetfulDisk()
        self.disk.make_directories("/data")
        self.clock = ManualClock()
        self.config = LogConfig(**{"segment_bytes": 1_000, "preallocate": False, **config})
        self.log = self.open()

    def open(self, *, flushed_index: int = -1, cut_corruption: bool = False) -> Log:
        return Log.open(
            self.disk,
            DIRECTORY,
            config=self.config,
            clock=self.clock,
            flushed_index=Index(flushed_index),
            cut_corruption=cut_corruption,
        )

    def kill(self) -> None:
        """The process ends, and nothing else does."""
        self.clock.forget()
        self.disk.kill()

    def append(
        self,
        count: int = 1,
        *,
        epoch: int = 1,
        timestamp: int | None = None,
        size: int = 30,
        attributes: int = 0,
        codec: int = 0,
    ) -> bytes:
        start = self.clock.wall if timestamp is None else timestamp
        records = [Record(n, start + n, b"key", b"v" * size) for n in range(count)]
        batch = bytes(
            build_batch(
                records,
                base_offset=self.log.end_offset,
                epoch=epoch,
                attributes=attributes,
                codec=codec,
            )
        )
        self.write(batch)
        return batch

    def write(self, batch: bytes) -> None:
        header = read_header(batch)
        assert header is not None
        self.log.append([batch], [header])

    def mark(self, epoch: int) -> bytes:
        marker = build_epoch_marker(self.log.end_offset, Epoch(epoch), self.clock.wall)
        self.write(marker)
        return marker

    def flush(self) -> Index | OSError:
        results: list[Index | OSError] = []
        self.log.flush_soon(results.append)
        assert results == [], "done is never called at once"
        self.disk.run()
        self.clock.run()
        return results[0]

    def files(self, suffix: str = ".log") -> list[str]:
        return [n for n in self.disk.list_directory(DIRECTORY) if n.endswith(suffix)]

    def segment_starts(self) -> list[int]:
        return [int(name.split("-")[0]) for name in self.files()]


def test_a_fresh_log_is_empty_and_begins_at_zero() -> None:
    log = World().log
    assert (log.start_offset, log.start_index, log.end_offset, log.last_index) == (0, 0, 0, -1)
    assert (log.flushed_index, log.previous_epoch, log.last_epoch) == (-1, 0, 0)
    assert (log.epochs, log.configurations, log.size_bytes()) == ([], [], 0)
    assert log.max_timestamp() is None
    assert log.offset_for_time(0, Offset(0)) is None
    assert log.epoch_of(Index(-1)) == 0
    assert log.read_records(Offset(0), 1_000, Offset(0)).bytes() == b""


def test_flushed_follows_a_flush_and_never_an_append() -> None:
    world = World()
    world.append(3)
    assert (world.log.last_index, world.log.flushed_index) == (2, -1)
    assert world.flush() == 2
    assert world.log.flushed_index == 2
    results: list[Index | OSError] = []
    world.append()
    world.log.flush_soon(results.append)
    world.append()
    world.disk.run()
    assert results == [3]
    assert (world.log.flushed_index, world.log.last_index) == (3, 4)


def test_a_flush_covers_every_segment_that_was_written() -> None:
    world = World()
    for _ in range(30):
        world.append(size=100)
    assert len(world.files()) > 3
    assert world.flush() == 29
    world.disk.crash(random.Random(1))
    assert world.open().last_index == 29


def test_closed_segments_get_their_index_files_once_they_are_durable() -> None:
    world = World(index_interval_bytes=1)
    for _ in range(12):
        world.append(size=100)
    assert world.files(".index") == []
    world.flush()
    closed = [name.removesuffix(".log") for name in world.files()][:-1]
    assert [name.removesuffix(".index") for name in world.files(".index")] == closed
    assert [name.removesuffix(".timeindex") for name in world.files(".timeindex")] == closed
    content = world.disk.open(f"{DIRECTORY}/{closed[0]}.index")
    data = content.pread(content.size(), 0)
    batch_size = world.log.size_bytes() // 12
    entries = [
        (int.from_bytes(data[at : at + 4], "big"), int.from_bytes(data[at + 4 : at + 8], "big"))
        for at in range(0, len(data), 8)
    ]
    assert entries == [(n, n * batch_size) for n in range(1, len(entries) + 1)]


# ---- reading ----


def test_a_read_splits_around_markers_and_stops_below_the_limit() -> None:
    world = World(segment_bytes=100_000)
    world.mark(1)
    first = world.append(2)
    second = world.append(3)
    world.mark(1)
    third = world.append(1)
    log = world.log
    slices = log.read_records(Offset(0), 1 << 20, log.end_offset)
    assert [part.read() for part in slices.parts] == [first + second, third]
    assert slices.bytes() == first + second + third
    assert slices.size_bytes == len(first + second + third)
    assert log.read_records(Offset(1), 1 << 20, Offset(4)).bytes() == first
    assert log.read_records(Offset(1), 1 << 20, Offset(5)).bytes() == first + second
    assert log.read_records(Offset(3), 1 << 20, Offset(6)).bytes() == second + third
    assert log.read_records(Offset(0), 1 << 20, Offset(1)).bytes() == b""
    assert log.read_records(Offset(6), 1 << 20, Offset(6)).bytes() == b""


def test_a_read_gives_at_least_one_batch_when_asked_to() -> None:
    world = World(segment_bytes=100_000)
    first = world.append(2, size=500)
    world.append()
    log = world.log
    assert log.read_records(Offset(0), 1, Offset(3)).bytes() == first
    assert log.read_records(Offset(0), 1, Offset(1)).bytes() == b""
    assert log.read_records(Offset(0), 1, Offset(3), min_one=False).bytes() == b""


def test_a_read_goes_on_into_the_next_segment() -> None:
    world = World()
    batches = [world.append(size=100) for _ in range(20)]
    assert len(world.files()) > 2
    data = world.log.read_records(Offset(5), 1 << 20, Offset(18)).bytes()
    assert data == b"".join(batches[5:18])


def test_entries_begin_where_asked_and_tell_their_shape() -> None:
    world = World(segment_bytes=100_000)
    world.mark(1)
    world.append(2)
    payload = b'{"voters":[1]}'
    world.write(build_configuration_marker(world.log.end_offset, Epoch(1), payload, 5))
    world.mark(3)
    world.append(2, epoch=3)
    entries = world.log.read_entries(Index(1), 1 << 20)
    assert (entries.first_index, entries.last_index) == (1, 6)
    assert entries.runs == [(1, 3), (3, 6)]
    assert entries.configurations == [(3, payload)]
    inside = world.log.read_entries(Index(2), 1 << 20)
    assert inside.first_index == 1, "an index inside a batch is rounded down"
    assert world.log.batch_start(Index(2)) == 1
    assert world.log.configurations == [(3, payload)]
    assert world.log.read_entries(Index(0), 1).last_index == 0


def test_a_damaged_header_is_a_storage_error_to_a_reader() -> None:
    world = World(segment_bytes=100_000)
    first = world.append()
    world.append()
    world.flush()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", len(first) + 16)
    with pytest.raises(StorageError, match="expected the header of a record batch"):
        world.log.read_records(Offset(1), 1_000, Offset(2))


def test_many_closed_segments_keep_few_indexes_in_memory() -> None:
    world = World(index_interval_bytes=1)
    for _ in range(60):
        world.append(size=100)
    world.flush()
    for offset in range(60):
        assert len(world.log.read_records(Offset(offset), 1, Offset(60)).bytes()) > 100
    segments = world.log._row.segments
    loaded = [segment for segment in segments[:-1] if segment._index is not None]
    assert len(segments) > 8
    assert len(loaded) <= 2


# ---- times and epochs ----


def test_the_first_record_at_a_time_is_found_in_any_codec() -> None:
    world = World(segment_bytes=700, index_interval_bytes=1)
    for n in range(20):
        world.append(5, timestamp=1_000 * n, codec=n % 5)
    log = world.log
    for n in range(20):
        found = log.offset_for_time(1_000 * n + 3, log.end_offset)
        assert found == (1_000 * n + 3, 5 * n + 3)
    assert log.offset_for_time(0, log.end_offset) == (0, 0)
    assert log.offset_for_time(5, log.end_offset) == (1_000, 5)
    assert log.offset_for_time(19_005, log.end_offset) is None
    assert log.offset_for_time(10_000, Offset(50)) is None
    assert log.offset_for_time(10_000, Offset(51)) == (10_000, 50)
    assert log.max_timestamp() == (19_004, 99)


def test_times_that_go_back_are_found_all_the_same() -> None:
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    for timestamp in (500, 900, 100, 900, 950, 20):
        world.append(timestamp=timestamp)
    log = world.log
    assert log.offset_for_time(600, Offset(6)) == (900, 1)
    assert log.offset_for_time(901, Offset(6)) == (950, 4)
    assert log.max_timestamp() == (950, 4)
    log.truncate(Index(4))
    assert log.max_timestamp() == (900, 1)
    assert log.offset_for_time(901, Offset(4)) is None


def test_the_time_of_append_counts_for_a_whole_batch() -> None:
    world = World()
    world.append(3, timestamp=700, attributes=0x08)
    assert world.log.offset_for_time(701, Offset(3)) == (702, 0)


def test_a_batch_that_cannot_be_read_is_found_by_its_header() -> None:
    world = World()
    batch = bytearray(build_batch([Record(0, 700, b"k", b"v")], epoch=1))
    batch[61] = 0x7F
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    world.write(bytes(batch))
    assert world.log.offset_for_time(600, Offset(1)) == (700, 0)


def test_an_epoch_ends_where_the_next_known_one_begins() -> None:
    world = World()
    world.mark(2)
    world.append(3, epoch=2)
    world.mark(5)
    world.append(4, epoch=5)
    log = world.log
    assert log.epoch_end_offset(Epoch(5)) == (5, 7)
    assert log.epoch_end_offset(Epoch(2)) == (2, 3)
    assert log.epoch_end_offset(Epoch(4)) == (2, 3)
    assert log.epoch_end_offset(Epoch(1)) == (1, 0)
    assert log.epoch_end_offset(Epoch(6)) == (-1, -1)


# ---- rolling and retention ----


def test_a_segment_is_closed_when_it_is_full_or_old() -> None:
    world = World(segment_ms=HOUR_MS)
    assert not world.log.roll_if_due()
    world.append()
    world.clock.advance(HOUR_MS - 1)
    assert not world.log.roll_if_due()
    world.clock.advance(1)
    assert world.log.roll_if_due()
    assert not world.log.roll_if_due(), "an empty segment stays"
    assert world.segment_starts() == [0, 1]
    world.append(size=990)
    world.append()
    assert world.segment_starts() == [0, 1, 2], "one too large has a segment for itself"


def test_retention_by_time_removes_closed_segments_below_the_limit() -> None:
    world = World(retention_ms=HOUR_MS)
    for _ in range(30):
        world.append(size=100)
        world.clock.advance(60_000)
    starts = world.segment_starts()
    assert world.log.apply_retention(world.log.end_offset) == 0
    world.clock.advance(50 * 60_000)
    allowed = [start for start in starts if start <= 20]
    assert world.log.retention_start(Offset(30)).base_offset == allowed[-1]
    assert world.log.apply_retention(Offset(allowed[1])) == allowed[1]
    assert world.log.apply_retention(Offset(30)) == allowed[-1]
    assert world.segment_starts() == starts[len(allowed) - 1 :]
    assert world.log.start_index == world.log.start_offset
    assert world.log.epochs == [(1, world.log.start_index)]
    world.disk.crash(random.Random(1))


def test_an_expired_active_segment_is_closed_so_that_it_can_go() -> None:
    world = World(retention_ms=HOUR_MS)
    world.mark(1)
    world.append()
    world.clock.advance(HOUR_MS + 1)
    assert world.log.roll_if_due()
    assert world.log.apply_retention(Offset(1)) == 1
    assert (world.log.start_index, world.log.last_index, world.log.previous_epoch) == (2, 1, 1)
    assert (world.log.epochs, world.log.last_epoch) == ([], 1)
    world.clock.advance(HOUR_MS + 1)
    world.mark(2)
    world.clock.advance(HOUR_MS + 1)
    assert not world.log.roll_if_due(), "a marker alone is not worth a segment"


def test_retention_by_size_keeps_at_least_so_much() -> None:
    world = World(retention_ms=-1, retention_bytes=3_000)
    for _ in range(60):
        world.append(size=100)
    world.log.apply_retention(world.log.end_offset)
    assert 3_000 <= world.log.size_bytes() < 4_000


def test_retention_by_size_counts_no_records_that_may_yet_be_cut_off() -> None:
    """Seed 56500964 of brief histories: a leader that nobody followed any more let acknowledged
    records go, for the sake of others that its successor cut off."""
    interval_bytes, committed = 200, Offset(35)
    world = World(retention_ms=-1, retention_bytes=3_000, index_interval_bytes=interval_bytes)
    sizes = [len(world.append(size=100)) for _ in range(60)]
    start = world.log.apply_retention(committed)
    assert start > 0
    kept = sum(sizes[start:committed])
    assert 3_000 <= kept < 3_000 + world.config.segment_bytes + interval_bytes + max(sizes)


def test_retention_by_size_counts_no_markers_that_may_yet_be_cut_off() -> None:
    world = World(retention_ms=-1)
    data = [world.append(size=100) for _ in range(30)]
    committed, second = world.log.end_offset, world.segment_starts()[1]
    for epoch in range(1, 40):
        world.mark(epoch)
    left = sum(map(len, data[second:]))
    world.log.config = replace(world.config, retention_bytes=left + 1)
    assert world.log.apply_retention(committed) == 0
    world.log.config = replace(world.config, retention_bytes=left)
    assert world.log.apply_retention(committed) == second
    world.log.config = replace(world.config, retention_bytes=0)
    assert world.log.apply_retention(committed) == committed, "nothing else is to be kept"


def test_of_a_closed_segment_whose_index_is_not_in_memory_nothing_is_read_for_retention() -> None:
    world = World(retention_ms=-1, retention_bytes=1_500, index_interval_bytes=200)
    sizes = [len(world.append(size=100)) for _ in range(60)]
    first, *others = world.log._row.segments
    for one in others[:-1]:
        one.drop_index()
    committed = Offset(first.end_offset * 3 + 3)  # In the middle of a closed one.
    start = world.log.apply_retention(committed)
    assert sum(sizes[start:committed]) >= 1_500
    assert all(one._index is None for one in others[:-1])


def test_retention_by_records_keeps_at_least_so_many_committed_ones() -> None:
    world = World(retention_ms=-1, retention_records=20)
    for _ in range(60):
        world.append(size=100)
    assert world.log.apply_retention(Offset(19)) == 0
    committed = Offset(50)
    kept = committed - world.log.apply_retention(committed)
    largest = max(b - a for a, b in pairwise(world.segment_starts()))
    assert 20 <= kept < 20 + largest
    assert world.log.apply_retention(committed) == committed - kept


def test_a_segment_that_holds_all_that_is_to_be_kept_is_closed() -> None:
    world = World(retention_ms=-1, retention_records=5, segment_bytes=1 << 20)
    for _ in range(4):
        world.append()
    assert not world.log.roll_if_due()
    world.append(3)
    assert world.log.roll_if_due()
    assert world.log.apply_retention(Offset(7)) == 0
    world.append(5)
    assert world.log.apply_retention(world.log.end_offset) == 7


def test_no_record_is_kept_longer_than_a_check_with_a_retention_of_none() -> None:
    world = World(retention_ms=-1, retention_records=0)
    world.mark(1)
    assert not world.log.roll_if_due(), "a marker alone is not worth a segment"
    world.append()
    assert world.log.roll_if_due()
    assert world.log.apply_retention(Offset(0)) == 0
    assert world.log.apply_retention(Offset(1)) == 1


def test_segments_of_deleted_records_go_whatever_else_is_to_be_kept() -> None:
    world = World(retention_ms=-1, delete=False)
    for _ in range(30):
        world.append(size=100)
    starts = world.segment_starts()
    for before, expected in ((starts[2] - 1, starts[1]), (starts[2], starts[2]), (30, starts[-1])):
        start = world.log.retention_start(Offset(30), deleted_before=Offset(before))
        assert start.base_offset == expected
    start = world.log.retention_start(Offset(starts[1]), deleted_before=Offset(30))
    assert start.base_offset == starts[1], "what is not committed stays"


def test_without_deletion_nothing_goes() -> None:
    world = World(retention_ms=0, retention_bytes=0, retention_records=0, delete=False)
    for _ in range(30):
        world.append(size=100)
    world.clock.advance(HOUR_MS)
    assert world.log.apply_retention(world.log.end_offset) == 0


def test_names_alone_tell_where_the_log_begins_after_retention() -> None:
    world = World(retention_ms=-1)
    for epoch in range(1, 8):
        world.mark(epoch)
        for _ in range(5):
            world.append(2, epoch=epoch, size=50)
    log = world.log
    log.remove_segments_before(Offset(40))
    expected = (log.start_offset, log.start_index, log.previous_epoch, log.last_index)
    assert log.start_offset > 0
    assert log.start_index - log.start_offset > 0
    for name in world.disk.list_directory(DIRECTORY):
        if not name.endswith(".log"):
            world.disk.remove(f"{DIRECTORY}/{name}")
    found = world.open()
    assert (
        found.start_offset,
        found.start_index,
        found.previous_epoch,
        found.last_index,
    ) == expected
    assert found.epochs == log.epochs
    assert found.epoch_of(Index(found.start_index - 1)) == found.previous_epoch


# ---- cutting ----


def test_truncation_takes_back_producers_epochs_and_configurations() -> None:
    world = World()
    world.mark(1)
    for sequence in range(10):
        records = [Record(0, 5, b"k", b"v" * 100)]
        world.write(
            bytes(
                build_batch(
                    records,
                    base_offset=world.log.end_offset,
                    epoch=1,
                    producer_id=7,
                    producer_epoch=0,
                    base_sequence=sequence,
                )
            )
        )
    world.write(build_configuration_marker(world.log.end_offset, Epoch(1), b"{}", 5))
    world.mark(2)
    log = world.log
    log.truncate(Index(12))
    assert (log.epochs, log.configurations) == ([(1, 0)], [(11, b"{}")])
    for end in (11, 8, 4):
        log.truncate(Index(end))
        assert log.configurations == []
        entry = log.producers.get(7)
        assert entry is not None
        assert entry.window[-1].last_sequence == end - 2
    log.truncate(Index(0))
    assert len(log.producers) == 0
    assert (log.last_index, log.epochs, log.end_offset) == (-1, [], 0)
    world.append()
    assert world.flush() == 0


def test_what_was_cut_does_not_come_back_when_only_later_writes_reach_the_disk() -> None:
    for seed in range(50):
        world = World(segment_bytes=100_000)
        world.mark(1)
        world.append(size=1_000)
        world.flush()
        world.log.truncate(Index(1))
        world.mark(2)
        kept = world.append(epoch=2, size=1_000)
        world.disk.crash(random.Random(seed))
        log = world.open()
        data = log.read_entries(Index(0), 1 << 20).data
        assert kept not in data or log.epochs == [(1, 0), (2, 1)]
        assert log.epoch_of(log.last_index) != 1 or log.last_index == 0


def test_a_reset_begins_anew_where_it_is_told() -> None:
    world = World()
    for _ in range(20):
        world.append(size=100)
    world.flush()
    log = world.log
    log.reset_to(Index(1_005), Offset(1_000), previous_epoch=Epoch(9))
    for found in (log, world.open()):
        assert (found.start_index, found.start_offset, found.previous_epoch) == (1_005, 1_000, 9)
        assert (found.last_index, found.end_offset, found.last_epoch) == (1_004, 1_000, 9)
        assert found.flushed_index == 1_004
    assert len(world.disk.list_directory(DIRECTORY)) == 2, "a segment and its mark"


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


def test_a_failed_write_ends_the_log() -> None:
    world = World()
    world.append()
    world.disk.failing.add("pwrite")
    with pytest.raises(OSError, match="pwrite failed"):
        world.append()
    world.disk.failing.clear()
    assert world.log.failed
    with pytest.raises(OSError, match="the log has failed"):
        world.append()
    assert isinstance(world.flush(), OSError)
    assert (world.log.last_index, world.log.flushed_index) == (0, -1)
    with pytest.raises(OSError, match="the log has failed"):
        world.log.truncate(Index(0))


def test_a_failed_flush_is_told_to_all_and_never_tried_again() -> None:
    world = World()
    world.append()
    results: list[Index | OSError] = []
    world.log.flush_soon(results.append)
    world.log.flush_soon(results.append)
    world.disk.failing.add("flush")
    world.disk.run()
    world.disk.failing.clear()
    assert [type(result) for result in results] == [OSError, OSError]
    assert world.log.failed
    assert isinstance(world.flush(), OSError)
    assert world.log.flushed_index == -1


def test_a_full_disk_refuses_before_anything_is_written() -> None:
    world = World(preallocate=True, segment_bytes=1 << 30)
    world.append()
    allocated = world.log._row.active.allocated
    assert allocated >= 16 << 10
    world.disk.capacity = world.disk.used()
    with pytest.raises(OSError, match="No space left") as failure:
        while True:
            world.append(size=100_000)
    assert failure.value.errno == ENOSPC
    assert not world.log.failed
    last = world.log.last_index
    world.disk.capacity = None
    world.append(size=100_000)
    assert world.flush() == last + 1


def test_a_disk_is_used_up_to_its_last_byte() -> None:
    world = World(preallocate=True, segment_bytes=1 << 30)
    world.disk.capacity = 10_000
    size = len(world.append())
    with pytest.raises(OSError, match="No space left"):
        for _ in range(10_000 // size):
            world.append()
    assert 10_000 - size < world.disk.used() <= 10_000
    assert world.flush() == world.log.last_index
    assert not world.log.failed


def test_space_that_was_reserved_and_never_written_to_is_kept_at_the_next_opening() -> None:
    world = World(preallocate=True, segment_bytes=1 << 30)
    size = len(world.append())
    assert world.flush() == 0
    path = f"{DIRECTORY}/{world.files()[0]}"
    reserved = world.disk.open(path).size()
    assert reserved > size
    world.disk.failing.add("truncate")
    world.log = world.open()  # Killed, and started.
    world.disk.failing.clear()
    assert world.log._row.active.allocated == reserved
    world.append()
    assert (world.flush(), world.open().last_index) == (1, 1)
    for position in (2 * size, reserved - 1):
        world.disk.open(path).pwrite((b"x",), position)
        assert world.open().last_index == 1
        assert world.disk.open(path).size() == 2 * size
        world.disk.open(path).truncate(reserved)


def test_a_disk_that_is_full_in_the_middle_of_a_write_leaves_the_log_as_it_was() -> None:
    world = World(preallocate=False, segment_bytes=1 << 30)
    world.append()
    assert world.flush() == 0
    used = world.disk.used()
    world.disk.capacity = used + 50
    for _ in range(2):
        with pytest.raises(OSError, match="No space left"):
            world.append(size=1_000)
        assert not world.log.failed
        assert (world.log.last_index, world.disk.used()) == (0, used)
    assert world.open().last_index == 0
    world.disk.capacity = None
    world.append(size=1_000)
    assert world.flush() == 1
    assert world.open().last_index == 1


def test_a_log_that_cannot_take_back_half_a_write_has_failed() -> None:
    for operation in ("truncate", "flush"):
        world = World(preallocate=False, segment_bytes=1 << 30)
        world.append()
        world.disk.capacity = world.disk.used() + 50
        world.disk.failing.add(operation)
        with pytest.raises(OSError, match=f"{operation} failed"):
            world.append(size=1_000)
        assert world.log.failed


@pytest.mark.parametrize("seed", range(30))
def test_what_a_full_disk_refused_does_not_come_back_in_the_place_of_what_followed(
    seed: int,
) -> None:
    world = World(preallocate=False, segment_bytes=1 << 30)
    world.append()
    assert world.flush() == 0
    refused = [
        build_batch([Record(0, 5, b"k", value * 600)], base_offset=offset, epoch=1)
        for offset, value in ((1, b"a"), (2, b"b"))
    ]
    headers = [header for batch in refused if (header := read_header(batch)) is not None]
    # There is room for the first of the two, as a whole.
    world.disk.capacity = world.disk.used() + len(refused[0])
    with pytest.raises(OSError, match="No space left"):
        world.log.append(refused, headers)
    world.disk.capacity = None
    kept = world.append(size=600)
    world.disk.crash(random.Random(seed))
    found = world.open()
    if found.last_index > 0:
        assert found.read_records(Offset(1), 10_000, found.end_offset).bytes() == kept


def test_a_full_disk_refuses_to_let_go_and_to_begin_anew_before_anything_is_removed() -> None:
    world = World(retention_bytes=1_000)
    for _ in range(30):
        world.append(size=100)
    assert world.flush() == 29
    files = world.files("")
    world.disk.full.add("create")
    with pytest.raises(OSError, match="No space left"):
        world.log.apply_retention(world.log.end_offset)
    with pytest.raises(OSError, match="No space left"):
        world.log.reset_to(Index(70), Offset(60), previous_epoch=Epoch(2))
    assert not world.log.failed
    assert (world.log.start_index, world.log.last_index) == (0, 29)
    assert world.files("") == files
    world.disk.full.clear()
    assert world.log.apply_retention(world.log.end_offset) > 0
    world.log.reset_to(Index(70), Offset(60), previous_epoch=Epoch(2))
    assert (world.log.start_index, world.log.last_index) == (70, 69)


def test_where_there_is_no_room_to_say_who_wrote_what_is_let_go_room_is_made_first() -> None:
    world = World(retention_bytes=1_000)
    for _ in range(30):
        world.append(size=100)
    assert world.flush() == 29
    for name in world.files(".producers"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.disk.capacity = world.disk.used()
    used = world.disk.used()
    assert world.log.apply_retention(world.log.end_offset) > 0
    assert world.disk.used() < used and not world.log.failed


def test_a_log_opens_on_a_full_disk_though_closed_segments_cannot_be_sealed() -> None:
    world = World()
    for _ in range(30):
        world.append(size=100)
    world.disk.run()
    for name in world.files(".summary"):
        world.disk.remove(f"{DIRECTORY}/{name}")
    world.disk.capacity = world.disk.used()
    world.disk.full.add("create")
    found = world.open()
    assert found.last_index == 29
    assert found.read_records(Offset(0), 1 << 20, found.end_offset).size_bytes == found.size_bytes()
    world.disk.full.clear()
    world.disk.capacity = None
    assert world.open().last_index == 29
    assert len(world.files(".summary")) == len(world.files()) - 1


def test_a_roll_without_room_leaves_the_log_as_it_was() -> None:
    world = World()
    world.append(size=700)
    before = world.log.last_index
    world.disk.full = {"create"}
    with pytest.raises(OSError, match="No space"):
        world.append(size=200)
    world.disk.full = set()
    assert not world.log.failed
    assert world.log.last_index == before
    world.append(size=200)
    assert world.flush() == before + 1
    assert world.open().last_index == before + 1


@pytest.mark.parametrize("operation", ["create", "flush_directory"])
def test_a_roll_that_fails_ends_the_log(operation: str) -> None:
    """The next flush of the directory would succeed, and prove nothing."""
    world = World()
    world.append(size=700)
    assert world.flush() == 0
    world.disk.failing = {operation}
    with pytest.raises(OSError, match="failed"):
        world.append(size=200)
    world.disk.failing = set()
    assert world.log.failed
    assert world.log.last_index == 0
    assert world.open().last_index == 0


def test_a_marker_that_is_none_changes_nothing() -> None:
    world = World()
    world.append()
    marker = bytearray(build_epoch_marker(world.log.end_offset, Epoch(1), 5))
    marker[-4] = 0x55
    with pytest.raises(ApiError):
        world.write(bytes(marker))
    assert world.log.last_index == 0
    world.append()
    assert world.flush() == 1


def test_an_append_that_leaves_a_gap_is_a_bug() -> None:
    world = World()
    batch = bytes(build_batch([Record(0, 5)], base_offset=3, epoch=1))
    with pytest.raises(AssertionError, match="offset 3, not 0"):
        world.write(batch)


def test_a_clean_restart_reads_no_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(preallocate=True)
    world.mark(1)
    for _ in range(30):
        world.append(size=100)
    world.log.close()
    monkeypatch.setattr("strandline.storage.recovery.recovery.verified_batches", None)
    monkeypatch.setattr("strandline.storage.recovery.recovery.replay_producers", None)
    log = world.open()
    assert (log.last_index, log.flushed_index) == (30, 30)
    world.log = log
    world.append(size=100)
    assert world.flush() == 31
