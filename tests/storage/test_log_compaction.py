"""Compaction keeps the last value of each key, every offset and every index, and survives crashes.

Source: design section 4; Kafka's log cleaner."""

import random
from dataclasses import replace

import pytest
from tests.storage.storage_world import ForgetfulDisk, ManualClock, PowerFailure

from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records import batch_cleaner
from strandline.records.batch import (
    DELETE_HORIZON_BIT,
    BatchHeader,
    crc_matches,
    iterate_headers,
    read_header,
    seal,
)
from strandline.records.marker import build_epoch_marker
from strandline.records.record import (
    Record,
    build_batch,
    decode_batches,
    decode_records,
    rebuild_batch,
)
from strandline.storage.config import LogConfig
from strandline.storage.log.log import Log
from strandline.storage.producers.producers import SEQUENCE_COUNT
from strandline.storage.recovery.verification import verify_log

DIRECTORY = "/data/topic-0.1"
HOUR_MS = 3_600_000
CONFIG = LogConfig(
    segment_bytes=900,
    segment_ms=1000,
    index_interval_bytes=200,
    delete=False,
    compacted=True,
    delete_retention_ms=HOUR_MS,
    min_cleanable_dirty_ratio=0.0,
    preallocate=False,
)


class World:
    """A compacted log, and what was ever written to it."""

    def __init__(self, config: LogConfig = CONFIG) -> None:
        self.disk = ForgetfulDisk()
        self.disk.make_directories("/data")
        self.clock = ManualClock()
        self.config = config
        self.written: list[tuple[int, Record]] = []
        self.log = self.open()

    def open(self) -> Log:
        return Log.open(self.disk, DIRECTORY, config=self.config, clock=self.clock)

    def append(
        self,
        pairs: list[tuple[bytes | None, bytes | None]],
        *,
        codec: int = 0,
        epoch: int = 1,
        producer: tuple[int, int] = (-1, -1),
        has_times: bool = True,
    ) -> None:
        base = self.log.end_offset
        records = [
            Record(n, self.clock.wall + n if has_times else -1, key, value, (("h", b"x"),))
            for n, (key, value) in enumerate(pairs)
        ]
        batch = build_batch(
            records,
            base_offset=base,
            epoch=epoch,
            codec=codec,
            producer_id=producer[0],
            producer_epoch=min(producer[0], 0),
            base_sequence=producer[1],
        )
        header = read_header(batch)
        assert header is not None
        self.log.append([batch], [header])
        self.written += [(base + n, record) for n, record in enumerate(records)]

    def mark(self, epoch: int) -> None:
        marker = build_epoch_marker(self.log.end_offset, Epoch(epoch), self.clock.wall)
        header = read_header(marker)
        assert header is not None
        self.log.append([marker], [header])

    def close_segment(self) -> None:
        """Roll, and make it durable."""
        self.clock.advance(self.config.segment_ms)
        self.log.roll_if_due()
        self.flush()

    def flush(self) -> None:
        results: list[Index | OSError] = []
        self.log.flush_soon(results.append)
        self.disk.run()
        self.clock.run()
        assert results == [self.log.last_index]

    def compact(self, *, bytes_max: int = 300, outlived: Offset | None = None) -> int:
        """One whole pass in slices; returns how many slices there were. `outlived`: all of it."""
        count = 1
        end = self.log.end_offset
        while self.log.compact(
            end, outlived=end if outlived is None else outlived, bytes_max=bytes_max
        ):
            count += 1
            self.disk.run()
        assert not verify_log(self.disk, DIRECTORY).is_damaged
        return count

    def records(self) -> list[tuple[Offset, Record]]:
        data = self.log.read_records(self.log.start_offset, 1 << 30, self.log.end_offset).bytes()
        return [
            (offset, Record(0, record.timestamp, record.key, record.value, record.headers))
            for offset, record in decode_batches(data)
        ]

    def expected(self, records: list[tuple[int, Record]]) -> list[tuple[int, Record]]:
        return [
            (offset, Record(0, r.timestamp, r.key, r.value, r.headers)) for offset, r in records
        ]


def last_values(records: list[tuple[int, Record]]) -> dict[bytes | None, bytes]:
    """What a table built from the log holds."""
    table: dict[bytes | None, bytes] = {}
    for _, record in records:
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return table


def all_headers(log: Log) -> list[BatchHeader]:
    """All batches, as a follower would get them; checks that no index is missing."""
    headers: list[BatchHeader] = []
    index = log.start_index
    while index <= log.last_index:
        entries = log.read_entries(index, 500)
        assert entries.first_index == index
        for header in iterate_headers(entries.data):
            assert crc_matches(entries.data, header)
            headers.append(header)
            index = Index(index + header.index_count)
        assert index == entries.last_index + 1
    return headers


def fill(world: World, rng: random.Random, batches: int, *, keys: int = 8) -> None:
    """Random updates and deletions of a few keys, two producers, some markers."""
    epoch = max(1, world.log.last_epoch)
    for _ in range(batches):
        if rng.random() < 0.1:
            epoch += 1
            world.mark(epoch)
            continue
        pairs = [
            (b"k%d" % rng.randrange(keys), None if rng.random() < 0.2 else rng.randbytes(20))
            for _ in range(rng.randint(1, 6))
        ]
        producer = rng.choice((-1, 7, 8))
        if producer < 0:
            world.append(pairs, codec=rng.choice((0, 1, 2, 3, 4)), epoch=epoch)
        else:
            entry = world.log.producers.get(producer)
            sequence = 0 if entry is None else entry.window[-1].last_sequence + 1
            world.append(pairs, epoch=epoch, producer=(producer, sequence))


@pytest.mark.parametrize("seed", range(12))
def test_the_table_is_the_same_and_only_old_values_go(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    for _ in range(3):
        fill(world, rng, 25)
        world.close_segment()
        size = world.log.size_bytes()
        epochs = list(world.log.epochs)
        producers = world.log.producers.checkpoint()
        world.compact()
        assert world.log.size_bytes() < size
        assert world.log.epochs == epochs
        all_headers(world.log)
        found = world.records()
        written = world.expected(world.written)
        assert {offset for offset, _ in found} <= {offset for offset, _ in written}
        assert [pair for pair in written if pair in found] == found
        assert last_values(found) == last_values(written)
        newest = {record.key: offset for offset, record in written}
        assert [(o, r) for o, r in written if newest[r.key] == o] == found
        world.log.close()
        world.log = world.open()
        assert world.records() == found
        assert world.log.producers.checkpoint() == producers


def test_a_tombstone_stays_for_its_retention_and_then_goes() -> None:
    world = World()
    world.append([(b"a", b"1"), (b"b", b"2")])
    world.append([(b"a", None)])
    world.close_segment()
    world.compact()
    assert [(o, r.key, r.value) for o, r in world.records()] == [(1, b"b", b"2"), (2, b"a", None)]
    timestamps = [record.timestamp for _, record in world.records()]
    assert timestamps == [record.timestamp for _, record in world.written[1:]]
    world.append([(b"c", b"3")])
    world.clock.advance(HOUR_MS - CONFIG.segment_ms - 1)
    world.close_segment()
    world.compact()
    assert [o for o, _ in world.records()] == [1, 2, 3]
    world.append([(b"c", b"4")])
    world.close_segment()
    world.compact()
    assert [(o, r.key, r.value) for o, r in world.records()] == [(1, b"b", b"2"), (4, b"c", b"4")]


def test_a_tombstone_that_a_replica_lacks_stays_however_old_it_is() -> None:
    world = World()
    world.append([(b"a", b"1"), (b"b", b"2")])
    world.append([(b"a", None)])
    world.close_segment()
    for held in (0, 2):
        world.compact(outlived=Offset(held))
        world.clock.advance(2 * HOUR_MS)
        world.append([(b"c", b"3")])
        world.close_segment()
    assert [(o, r.key) for o, r in world.records()][:2] == [(1, b"b"), (2, b"a")]
    world.compact(outlived=Offset(3))
    assert b"a" not in [r.key for _, r in world.records()]


def test_records_without_a_key_go_and_unreadable_batches_stay() -> None:
    world = World()
    world.append([(None, b"1"), (b"b", b"2")])
    base = world.log.end_offset
    batch = build_batch([Record(0, 5, b"b", b"2")], base_offset=base, epoch=1)
    batch[61] = 0x7F
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    world.log.append([batch], [header])
    world.close_segment()
    world.compact()
    headers = all_headers(world.log)
    assert [header.records_count for header in headers] == [1, 1]
    data = world.log.read_entries(Index(0), 10_000).data
    assert data.endswith(batch)


def test_small_segments_become_one_and_empty_batches_are_joined() -> None:
    world = World()
    for round_ in range(12):
        for _ in range(4):
            world.append([(b"k", b"value %d" % round_)])
        world.close_segment()
    assert len(segment_files(world)) == 13
    world.compact()
    world.append([(b"k", b"last")])
    world.close_segment()
    world.compact()
    assert len(segment_files(world)) == 2
    headers = all_headers(world.log)
    assert [header.records_count for header in headers] == [0, 1]
    assert headers[0].next_offset == 48
    assert [record.value for _, record in world.records()] == [b"last"]


@pytest.mark.parametrize("first", [0, SEQUENCE_COUNT - 5])
def test_the_last_batches_of_a_producer_stay_though_empty(first: int) -> None:
    """As many as it may still ask for again: who gets the log like this knows them by their
    headers alone. So it is where their sequences wrap."""
    world = World()
    sequences = [(first + number) % SEQUENCE_COUNT for number in range(8)]
    for sequence in sequences:
        world.append([(b"k", b"%d" % sequence)], producer=(7, sequence))
    world.append([(b"k", b"last")])
    before = world.log.producers.get(7)
    world.close_segment()
    world.compact()
    headers = all_headers(world.log)
    assert [(h.records_count, h.producer_id, h.base_sequence) for h in headers] == [
        (0, -1, -1),
        *((0, 7, sequence) for sequence in sequences[3:]),
        (1, -1, -1),
    ]
    follower = World()
    data = world.log.read_entries(Index(0), 1 << 20).data
    follower.log.append([data], list(iterate_headers(data)))
    for name in world.disk.list_directory(DIRECTORY):
        if not name.endswith(".log"):
            world.disk.remove(f"{DIRECTORY}/{name}")
    world.log = world.open()
    for log in (world.log, follower.log):
        entry = log.producers.get(7)
        assert before is not None and entry is not None
        assert entry.window == before.window


def test_a_follower_may_begin_inside_an_empty_batch() -> None:
    world = World()
    for _ in range(10):
        world.append([(b"k", b"1"), (b"k", b"2"), (b"k", b"3")])
    world.close_segment()
    world.compact()
    for first in range(world.log.last_index - 2):
        entries = world.log.read_entries(Index(first), 10_000)
        assert entries.first_index == first
        headers = list(iterate_headers(entries.data))
        assert headers[0].base_offset == first
        assert all(crc_matches(entries.data, header) for header in headers)
        follower = World()
        follower.log.reset_to(Index(first), Offset(first), previous_epoch=Epoch(1))
        follower.log.append([entries.data], headers)
        assert follower.log.last_index == entries.last_index
        rest = world.log.read_entries(Index(entries.last_index + 1), 10_000).data
        follower.log.append([rest], list(iterate_headers(rest)))
        assert follower.log.end_offset == world.log.end_offset
        assert follower.records() == world.records()


def test_a_map_that_is_full_cleans_in_parts() -> None:
    config = LogConfig(
        segment_bytes=900,
        delete=False,
        compacted=True,
        min_cleanable_dirty_ratio=0.0,
        compaction_map_bytes=2_000,
        preallocate=False,
    )
    world = World(config)
    rng = random.Random(1)
    for _ in range(100):
        world.append([(b"k%d" % rng.randrange(60), rng.randbytes(10)) for _ in range(4)])
    world.close_segment()
    for _ in range(60):
        world.compact()
    written = world.expected(world.written)
    assert last_values(world.records()) == last_values(written)
    newest = {record.key: offset for offset, record in written}
    assert len(world.records()) < 2 * len(newest)


def test_a_tombstone_that_the_map_does_not_reach_stays() -> None:
    """What it deletes is known to be gone only in the pass that has its key. Its time may be over
    all the same: it came from a leader that had compacted."""
    world = World(replace(CONFIG, segment_bytes=1 << 20, compaction_map_bytes=1_000))
    world.append([(b"a", b"1")])
    for number in range(20):
        world.append([(b"k%d" % number, b"2")])
    tombstone = build_batch([Record(0, 5, b"a", None)], base_offset=world.log.end_offset, epoch=1)
    header = read_header(tombstone)
    assert header is not None
    horizon = header.attributes | DELETE_HORIZON_BIT
    records = decode_records(tombstone)
    batch = rebuild_batch(header, records, attributes=horizon, base_timestamp=1)
    stamped = read_header(batch)
    assert stamped is not None
    world.log.append([batch], [stamped])
    world.close_segment()
    world.compact()
    assert [r.value for _, r in world.records() if r.key == b"a"] == [b"1", None]
    for _ in range(5):
        world.append([(b"other", b"3")])
        world.close_segment()
        world.compact()
    assert b"a" not in [record.key for _, record in world.records()]


def test_nothing_happens_below_the_limit_and_the_dirty_ratio() -> None:
    world = World()
    for _ in range(5):
        world.append([(b"k", b"1")] * 3)
    world.close_segment()
    before = world.log.size_bytes()
    assert not world.log.compact(Offset(1), outlived=Offset(1))
    world.compact()
    after = world.log.size_bytes()
    assert after < before
    assert not world.log.compact(world.log.end_offset, outlived=world.log.end_offset)
    assert world.log.size_bytes() == after


def test_a_truncation_or_a_reset_gives_the_pass_up() -> None:
    world = World()
    for _ in range(20):
        world.append([(b"k", b"1" * 50)] * 3)
    world.close_segment()
    assert world.log.compact(world.log.end_offset, outlived=Offset(0), bytes_max=100)
    assert world.log.compact(world.log.end_offset, outlived=Offset(0), bytes_max=100)
    world.log.truncate(Index(30))
    assert not [name for name in world.disk.list_directory(DIRECTORY) if "cleaned" in name]
    assert [offset for offset, _ in world.records()] == list(range(30))
    world.close_segment()
    world.compact()
    assert [offset for offset, _ in world.records()] == [29]


def test_a_full_disk_leaves_the_log_as_it_was() -> None:
    world = World()
    for _ in range(20):
        world.append([(b"k", b"1" * 50)] * 3)
    world.close_segment()
    before = world.records()
    world.disk.capacity = world.disk.used() + 10
    with pytest.raises(OSError, match="space"):
        world.compact()
    assert not world.log.failed
    assert world.records() == before
    world.disk.capacity = None
    world.compact()
    assert [offset for offset, _ in world.records()] == [59]


@pytest.mark.parametrize("seed", range(40))
def test_a_power_failure_at_any_moment_loses_nothing(seed: int) -> None:
    rng = random.Random(seed)
    world = World()
    fill(world, rng, 40)
    world.close_segment()
    for _ in range(4):
        written = world.expected(world.written)
        world.disk.fuse = rng.randint(0, 40)
        try:
            world.compact(bytes_max=rng.choice((100, 5_000)))
        except PowerFailure:
            pass
        world.clock.soon.clear()
        world.disk.crash(rng)
        world.log = world.open()
        all_headers(world.log)
        found = world.records()
        assert last_values(found) == last_values(written)
        assert [pair for pair in written if pair in found] == found


def test_decoding_after_compaction_keeps_codec_and_headers() -> None:
    world = World()
    for codec in range(5):
        world.append([(b"k", b"old"), (b"key %d" % codec, b"new" * 30)], codec=codec)
    world.append([(b"k", b"newest")])
    world.close_segment()
    world.compact()
    entries = world.log.read_entries(Index(0), 10_000)
    headers = list(iterate_headers(entries.data))
    assert [header.codec for header in headers] == [0, 1, 2, 3, 4, 0]
    for header in headers:
        for record in decode_records(entries.data, header.position):
            assert record.headers == (("h", b"x"),)


def segment_files(world: World) -> list[str]:
    return [name for name in world.disk.list_directory(DIRECTORY) if name.endswith(".log")]


@pytest.mark.parametrize("seed", range(30))
def test_all_that_producers_have_under_way_is_known_after_a_crash(seed: int) -> None:
    world = World()
    for sequence in range(5):
        world.append([(b"k", b"%d" % sequence)], producer=(7, sequence))
    world.close_segment()
    world.append([(b"k", bytes(900))])
    world.close_segment()
    world.append([(b"other", b"1")])
    world.flush()
    before = world.log.producers.get(7)
    world.compact()
    world.disk.crash(random.Random(seed))
    for path in world.disk.list_directory(DIRECTORY):  # They are not flushed, and may be lost.
        if path.endswith(".summary"):
            world.disk.remove(f"{DIRECTORY}/{path}")
    after = world.open().producers.get(7)
    assert before is not None and after is not None
    assert after.window == before.window


# ---- how far a log is clean ----------------------------------------------------------------------


def clean_keys(log: Log) -> list[bytes | None]:
    """The keys of all records up to where the log says that nothing there supersedes another."""
    data = log.read_records(log.start_offset, 1 << 30, log.end_offset).bytes()
    end = log.compacted_index
    return [record.key for offset, record in decode_batches(data) if log.index_of(offset) <= end]


def test_a_log_is_clean_up_to_where_a_pass_has_been_since_it_was_opened() -> None:
    world = World()
    assert world.log.compacted_index == world.log.start_index - 1
    world.append([(b"a", b"1")])
    world.append([(b"a", b"2")])
    world.close_segment()
    closed_index = world.log.last_index
    world.append([(b"a", b"3")])
    assert world.log.compacted_index == -1
    world.compact()
    assert world.log.compacted_index == closed_index
    assert clean_keys(world.log) == [b"a"]
    world.log.close()
    world.log = world.open()
    assert world.log.compacted_index == -1
    world.compact()
    assert world.log.compacted_index >= closed_index


def test_a_pass_whose_map_is_full_claims_no_more_than_the_segments_before() -> None:
    world = World(replace(CONFIG, compaction_map_bytes=1_000))
    for number in range(120):
        world.append([(b"%d" % (number // 2), b"x" * 50)])
    world.close_segment()
    last = world.log.last_index
    world.compact()
    first = world.log.compacted_index
    assert -1 < first < last
    while (before := world.log.compacted_index) < last:
        keys = clean_keys(world.log)
        assert len(keys) == len(set(keys))
        world.compact()
        assert world.log.compacted_index > before


def with_a_deleted_key() -> World:
    """Its value, and behind it its tombstone and a record of another key, in a segment each."""
    world = World()
    world.append([(b"k", b"1")])
    world.close_segment()
    world.append([(b"k", None)])
    world.append([(b"a", b"2")])
    world.close_segment()
    return world


def test_a_pass_that_meets_damage_has_cleaned_nothing() -> None:
    """A rotten tombstone deletes another key, or none: what it deletes would count as gone."""
    world = with_a_deleted_key()
    sealed = world.log._row.segments[1]
    starts = [header.position for header in sealed.headers(0, sealed.size_bytes)]
    epochs = {start + at for start in starts for at in range(12, 16)}  # No checksum covers them.
    for byte in set(range(sealed.size_bytes)) - epochs:
        world.disk.flip_bit(sealed.path(".log"), byte)
        with pytest.raises(StorageError):
            world.compact()
        assert world.log.compacted_index == -1
        world.disk.flip_bit(sealed.path(".log"), byte)
    world.compact()
    assert world.log.compacted_index > 0


def test_a_pass_that_breaks_off_starts_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its next step took it for one that was over."""
    world = with_a_deleted_key()

    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(batch_cleaner, "clean_records", fail)
        with pytest.raises(MemoryError):
            world.compact()
    assert world.log.compacted_index == -1
    world.compact()
    assert [record.key for _, record in world.records()] == [b"k", b"a"]
    assert clean_keys(world.log) == [b"k", b"a"]


def test_compaction_keeps_the_headers_of_what_is_committed_though_the_window_has_moved_on() -> None:
    """What is above the limit may be cut: then who knows the producer by what is left has to know
    what it wrote last, or refuses what it sends again."""
    world = World()
    for sequence in range(5):
        world.append([(b"k", b"v")], producer=(7, sequence))
    world.append([(b"k", b"w")])
    world.close_segment()
    committed = world.log.end_offset
    first = Index(world.log.last_index + 1)
    for sequence in range(5, 10):  # In flight: acknowledged by nobody else.
        world.append([(b"l", b"v")], producer=(7, sequence))
    while world.log.compact(committed, outlived=committed):
        world.disk.run()
    world.log.truncate(first)  # Another leader has none of them.
    world.log.close()
    for name in world.disk.list_directory(DIRECTORY):
        if name.endswith(".producers"):  # As for who copies this log: by its headers.
            world.disk.remove(f"{DIRECTORY}/{name}")
    world.log = world.open()
    entry = world.log.producers.get(7)
    assert entry is not None
    assert [one.last_sequence for one in entry.window] == [0, 1, 2, 3, 4]
