"""A flipped byte is never served: every byte of a log that was closed in order is flipped in turn.

Source: reliability reference 3 (a CRC per batch, checked on read)."""

import random
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.storage.log_world import DIRECTORY, World

from strandline.base.errors import StorageError
from strandline.model.ids import Index, Offset
from strandline.storage.log.checksum_verification import Place, Unverified
from strandline.storage.log.log import Log
from strandline.storage.log.reads import Entries
from strandline.storage.log.segment import Segment

MAX_BYTES = 400
"""Per read, so that reads begin and end within segments."""


def closed_world() -> World:
    """Some segments of data and markers of several epochs, all with their summaries."""
    world = World(index_interval_bytes=200)
    for epoch in range(1, 6):
        world.mark(epoch)
        for count in range(1, 5):
            world.append(count, epoch=epoch, timestamp=1_000 * epoch + count)
            world.clock.advance(1)
    world.log.close()
    return world


def compacted_world() -> World:
    """Segments of which compaction has left empty batches, and parts of others."""
    world = World(
        compacted=True, delete=False, min_cleanable_dirty_ratio=0, index_interval_bytes=200
    )
    for epoch in range(1, 4):
        world.mark(epoch)
        for number in range(12):
            world.append(1 + number % 3, epoch=epoch)
    while world.log.compact(world.log.end_offset, outlived=world.log.end_offset):
        world.disk.run()
    world.log.close()
    return world


def records(log: Log) -> list[bytes]:
    """What a consumer reads, from every offset on."""
    found = []
    for start in range(log.start_offset, log.end_offset, 7):
        offset = Offset(start)
        while offset < log.end_offset:
            slices = log.read_records(offset, MAX_BYTES, log.end_offset)
            found.append(slices.bytes())
            last = log.read_records(offset, 1, log.end_offset).size_bytes
            assert last and slices.size_bytes
            offset = Offset(offset + record_count(found[-1]))
    return found


def record_count(data: bytes) -> int:
    """Offsets from the first batch's base to the last batch's end."""
    count = position = 0
    while position < len(data):
        count += int.from_bytes(data[position + 23 : position + 27], "big") + 1
        position += int.from_bytes(data[position + 8 : position + 12], "big") + 12
    return count


def entries(log: Log) -> list[object]:
    """What followers get."""
    found: list[object] = []
    index = log.start_index
    while index <= log.last_index:
        read = log.read_entries(index, MAX_BYTES)
        found.append(read)
        index = Index(read.last_index + 1)
    return found


def times(log: Log) -> list[object]:
    """What ListOffsets finds."""
    asked = range(0, 7_000, 500)
    found = [log.offset_for_time(timestamp, log.end_offset) for timestamp in asked]
    return [*found, log.max_timestamp()]


def reopened(world: World) -> Log:
    log = world.open()
    assert all(segment.unverified for segment in log._row.segments if segment.size_bytes)
    return log


def note_walks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """(from, to) of what is looked at from now on."""
    looked_at: list[tuple[int, int]] = []
    walk = Unverified._walk

    def noting(
        self: Unverified, segment: Segment, first: Place, end: int, *, checks_next: bool
    ) -> Place:
        looked_at.append((first.position, end))
        return walk(self, segment, first, end, checks_next=checks_next)

    monkeypatch.setattr(Unverified, "_walk", noting)
    return looked_at


def every_byte(world: World, stride: int) -> Iterator[None]:
    """The log with one byte flipped, then another."""
    for name in world.files():
        path = f"{DIRECTORY}/{name}"
        for position in range(len(world.files()) % stride, world.disk.open(path).size(), stride):
            world.disk.flip_bit(path, position)
            yield
            world.disk.flip_bit(path, position)


@pytest.mark.parametrize("read", [records, entries, times])
def test_a_flipped_byte_is_an_error_or_makes_no_difference(
    read: Callable[[Log], list[object]],
) -> None:
    world = closed_world()
    sound = read(reopened(world))
    error_count = 0
    for _ in every_byte(world, stride=3):
        try:
            assert read(reopened(world)) == sound
        except StorageError as error:
            assert error.path.startswith(DIRECTORY)
            error_count += 1
    assert error_count > 100


def test_no_flipped_byte_of_what_consumers_and_followers_read_goes_unnoticed() -> None:
    world = closed_world()
    for _ in every_byte(world, stride=5):
        with pytest.raises(StorageError):
            entries(reopened(world))


def behind_damage(log: Log, index: Index) -> Entries | None:
    """What is found at `index`, if anything; beginning with it."""
    try:
        return log.read_behind_damage(index)
    except StorageError as error:
        assert error.path.startswith(DIRECTORY)
        return None


@pytest.mark.parametrize("world", [closed_world, compacted_world])
def test_what_is_found_behind_a_flipped_byte_is_right(world: Callable[[], World]) -> None:
    """Wherever the byte is, and whatever is looked for."""
    made = world()
    log = reopened(made)
    indexes = [Index(at) for at in range(log.start_index, log.last_index + 1)]
    sound = {at: log.read_behind_damage(at) for at in indexes}
    for at, found in sound.items():
        whole = log.read_entries(at, len(found.data))
        assert (whole.data, whole.first_index) == (found.data, found.first_index)
    refused_count = found_count = 0
    for _ in every_byte(made, stride=7):
        log = reopened(made)
        found_since_damage = False
        for at in indexes:
            found = behind_damage(log, at)
            if found is None:
                refused_count += 1
                continue
            assert found == sound[at]
            try:
                log.read_entries(at, 1)
            except StorageError:
                found_since_damage = True
        found_count += found_since_damage
    assert refused_count > 100 and found_count > 100


def test_a_cut_of_a_damaged_log_is_right_or_refused() -> None:
    world = closed_world()
    for at in (1, 9, 20, 33):
        sound = world.open()
        start = sound.batch_start(Index(at))
        for _ in every_byte(world, stride=11):
            copy = World()
            copy.disk.names = {
                path: {
                    name: replace(content, seen=bytearray(content.seen))
                    for name, content in names.items()
                }
                for path, names in world.disk.names.items()
            }
            log = copy.open()
            try:
                log.truncate(log.batch_start(Index(at)))
            except StorageError:
                assert not log.failed
            else:
                assert log.last_index == start - 1


@pytest.mark.parametrize("read", [records, entries])
def test_verified_bytes_are_trusted_for_a_while_and_not_longer(
    read: Callable[[Log], list[object]],
) -> None:
    world = closed_world()
    log = reopened(world)
    first = read(log)
    assert all(segment.unverified is None for segment in log._row.segments)
    for name in world.files():
        # As if it had happened after the bytes were looked at, and the cache had let go of them.
        world.disk.flip_bit(f"{DIRECTORY}/{name}", 100)
    world.clock.advance(world.config.trust_ms - 1)
    assert read(log) != first
    world.clock.advance(1)
    with pytest.raises(StorageError):
        read(log)


def test_no_flipped_byte_of_what_this_process_wrote_goes_unnoticed_for_long() -> None:
    world = World(index_interval_bytes=200, segment_bytes=1_000)
    for epoch in (1, 2):
        world.mark(epoch)
        for count in range(1, 8):
            world.append(count, epoch=epoch)
    world.flush()
    log = world.log
    sound = entries(log)
    assert len(log._row.segments) > 2
    count = 0
    for _ in every_byte(world, stride=5):
        world.clock.advance(world.config.trust_ms)
        with pytest.raises(StorageError):
            entries(log)
        count += 1
    world.clock.advance(world.config.trust_ms)
    assert (entries(log), count > 100) == (sound, True)


def test_what_was_written_a_moment_ago_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(segment_bytes=1 << 20)
    log = world.log
    looked_at = note_walks(monkeypatch)
    for _ in range(50):
        world.append()
        world.clock.advance(1)
        log.read_records(Offset(log.end_offset - 1), 1, log.end_offset)
    assert looked_at == []
    world.clock.advance(world.config.trust_ms)
    for _ in range(50):
        world.append()
        world.clock.advance(1)
        log.read_records(Offset(log.end_offset - 1), 1, log.end_offset)
    assert len(looked_at) == 1  # Once, of what was there when it was in doubt again.


@pytest.mark.parametrize(("size", "bound"), [(100, 1 << 20), (1_000, 5_000_000)])
def test_a_read_that_has_to_verify_is_short(size: int, bound: int) -> None:
    """By bytes, or by records, each of which may be a batch: it is the number of these that takes
    time."""
    world = World(segment_bytes=1 << 30)
    for _ in range(700):
        world.append(60, size=size)
    world.log.close()
    log = reopened(world)
    assert log.read_records(Offset(0), 1 << 30, log.end_offset).size_bytes <= bound
    records_read = log.read_entries(log.start_index, 1 << 30)
    assert records_read.last_index == log.last_index
    assert log.read_records(Offset(0), 1 << 30, log.end_offset).size_bytes > 2 * bound


def test_what_this_process_writes_is_not_verified_again() -> None:
    world = closed_world()
    world.config = replace(world.config, segment_bytes=100_000)
    log = world.log = world.open()
    active = log._row.active
    assert active.unverified is not None
    end = active.unverified.end
    world.append(epoch=5)
    assert (active.unverified.end, active.size_bytes > end) == (end, True)
    assert records(log)[-1]
    assert active.unverified is None


def test_damage_is_not_compacted_away() -> None:
    world = World(compacted=True, delete=False, min_cleanable_dirty_ratio=0)
    for _ in range(40):
        world.append(size=100)
    world.log.close()
    path = f"{DIRECTORY}/{world.files()[1]}"
    world.disk.flip_bit(path, 100)
    names = world.files("")
    log = world.open()
    with pytest.raises(StorageError, match="checksum"):
        while log.compact(log.end_offset, outlived=log.end_offset):
            world.disk.run()
    assert not log.failed
    assert [name for name in world.files("") if name.endswith(".cleaned")] == []
    assert set(world.files()) <= set(names)


@pytest.mark.parametrize("seed", range(20))
def test_ranges_are_verified_in_any_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    world = World(segment_bytes=1 << 20, index_interval_bytes=300)
    bounds = [0]
    for _ in range(60):
        world.append(rng.randint(1, 4))
        bounds.append(world.log._row.active.size_bytes)
    world.log.close()
    segment = reopened(world)._row.segments[0]
    looked_at = note_walks(monkeypatch)
    proved: set[int] = set()
    while segment.unverified is not None:
        low, high = sorted(rng.sample(range(len(bounds)), 2))
        looked_at.clear()
        segment.verify(bounds[low], bounds[high])
        wanted = set(range(low, high))
        assert bool(looked_at) == bool(wanted - proved)
        for start, end in looked_at:
            proved |= {at for at in range(60) if start <= bounds[at] and bounds[at + 1] <= end}
        proved |= wanted
        if wanted == proved and rng.random() < 0.02:
            break
    segment.verify(0, segment.size_bytes)
    assert segment.unverified is None
