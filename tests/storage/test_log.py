"""What a log promises, one sentence at a time; `test_log_model.py` mixes them at random.

Source: design section 4; Kafka for retention, OffsetForLeaderEpoch and ListOffsets."""

import random

import pytest
from tests.storage.log_world import DIRECTORY, World

from strandline.base.errors import ApiError, StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import read_header, seal
from strandline.records.marker import build_configuration_marker, build_epoch_marker
from strandline.records.record import Record, build_batch


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


def test_a_reset_starts_an_empty_log_at_the_given_index() -> None:
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
