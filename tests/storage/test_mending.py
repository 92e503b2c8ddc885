"""Damage in a log is found wherever it lies, and another replica's batches take its place.

Source: reliability reference 3; Protocol-Aware Recovery for Consensus-Based Storage, FAST'18."""

import contextlib
import random
from dataclasses import replace
from errno import EIO
from unittest.mock import Mock

import pytest
from tests.storage.log_world import World
from tests.storage.storage_world import PowerFailure
from tests.storage.test_damage import DIRECTORY, closed_world, entries, every_byte, records, times
from tests.storage.test_log_compaction import CONFIG as COMPACTED
from tests.storage.test_log_compaction import World as CompactedWorld

from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.records.batch import BatchHeader, iterate_headers
from strandline.records.cleaning import filler
from strandline.records.record import Record, build_batch, rebuild_batch
from strandline.records.record import decode_batches as decode
from strandline.storage.layout import CLEANED, LOG, SUMMARY
from strandline.storage.log.checksum_verification import Place
from strandline.storage.log.log import Log
from strandline.storage.log.segment import Segment
from strandline.storage.recovery.mending import fits_in_place
from strandline.storage.recovery.rewriting import Rewrite
from strandline.storage.recovery.scrubbing import Gap
from strandline.storage.recovery.verification import verify_log

SLICE = 100


def scrubbed(log: Log) -> list[Gap]:
    """What a whole pass finds."""
    scrub = log.mending.scrub(log.start_index)
    while scrub.step(SLICE):
        pass
    return scrub.gaps


def entries_of(peer: Log, gap: Gap) -> bytes:
    """What another replica has for a gap."""
    found = bytearray()
    index = gap.start.raft_index
    while index <= gap.last_index:
        read = peer.read_entries(index, SLICE)
        found += read.data
        index = Index(read.last_index + 1)
    return bytes(found)


def contents(log: Log) -> list[object]:
    return [records(log), entries(log), times(log)]


def flip(world: World, rng: random.Random, count: int) -> None:
    logs = [name for name in world.files() if name.endswith(".log")]
    for _ in range(count):
        path = f"{DIRECTORY}/{rng.choice(logs)}"
        size = world.disk.open(path).size()
        if size:
            world.disk.flip_bit(path, rng.randrange(size))


def test_a_sound_log_has_no_gaps() -> None:
    world = closed_world()
    log = world.open()
    assert not scrubbed(log)
    world.append(2, epoch=9)
    assert not scrubbed(log)


def test_every_flipped_byte_of_a_segment_is_found() -> None:
    world = closed_world()
    sound = contents(world.open())
    for _ in every_byte(world, stride=3):
        log = world.open()
        gaps = scrubbed(log)
        assert len(gaps) <= 1
        if not gaps:  # Not in a segment, or in what its name and summary say anyway.
            assert contents(log) == sound
        else:
            gap = gaps[0]
            assert gap.start.raft_index <= gap.last_index
            assert log.mending.find_again(gap) == gap


def test_what_rots_below_the_page_cache_is_found_wherever_a_slice_ends() -> None:
    """A brief seed: the last batch of a slice reaches beyond it, and what lies there was looked at
    in the page cache."""
    world = closed_world()
    log = world.open()
    world.disk.sync()
    assert not scrubbed(log)
    closed = log._row.segments[:-1]
    assert any(segment.size_bytes > 2 * SLICE for segment in closed)
    for segment in closed:
        path = segment.path(LOG)
        for position in range(0, segment.size_bytes, 3):
            world.disk.flip_bit_below(path, position)
            (gap,) = scrubbed(log)
            assert gap.segment is segment
            assert gap.start.position <= position < gap.end.position
            world.disk.flip_bit_below(path, position)
            world.disk.evict()
    assert not scrubbed(log)


def test_a_segment_that_is_closed_while_it_is_looked_at_is_read_from_the_disk_from_then_on() -> (
    None
):
    world = closed_world()
    log = world.open()
    segment = log._row.active
    assert segment.size_bytes > 2 * SLICE
    scrub = log.mending.scrub(segment.name.base_index)
    scrub.step(SLICE)
    log._roll()
    world.disk.sync()
    world.disk.flip_bit_below(segment.path(LOG), segment.size_bytes - 1)
    while scrub.step(SLICE):
        pass
    (gap,) = scrub.gaps
    assert gap.segment is segment


@pytest.mark.parametrize("seed", range(40))
def test_gaps_are_filled_with_what_another_replica_has(seed: int) -> None:
    rng = random.Random(seed)
    world, peer = closed_world(), closed_world().open()
    sound = contents(peer)
    flip(world, rng, rng.choice((1, 1, 2, 5)))
    log = world.open()
    for gap in scrubbed(log):
        data = log.mending.fitting(gap, entries_of(peer, gap))
        assert fits_in_place(gap, data, is_same=True)
        log.mending.fill(gap, data)
    assert not scrubbed(log)
    results: list[Index | OSError] = []
    log.flush_soon(results.append)
    world.disk.run()
    world.clock.run()
    assert results == [log.last_index]
    world.disk.crash(rng)
    assert contents(world.open()) == sound


def test_damage_in_the_segment_that_is_written_is_mended_too() -> None:
    world, peer = closed_world(), closed_world().open()
    log = world.open()
    active = log._row.active
    assert active.size_bytes
    world.disk.flip_bit(active.path(".log"), active.size_bytes // 2)
    (gap,) = scrubbed(log)
    assert gap.segment is active
    log.mending.fill(gap, log.mending.fitting(gap, entries_of(peer, gap)))
    assert contents(log) == contents(peer)


@pytest.mark.parametrize("wrong", ["epoch", "bit", "short", "nothing", "others"])
def test_what_does_not_fit_is_refused(wrong: str) -> None:
    world, peer = closed_world(), closed_world().open()
    log = world.open()
    segment = log._row.segments[1]
    world.disk.flip_bit(segment.path(".log"), segment.size_bytes // 2)
    (gap,) = scrubbed(log)
    data = bytearray(entries_of(peer, gap))
    if wrong == "epoch":
        data[15] ^= 1
    elif wrong == "bit":
        data[-1] ^= 1
    elif wrong == "short":
        del data[-1]
    elif wrong == "nothing":
        data.clear()
    else:
        data[:] = peer.read_entries(peer.start_index, 100).data
    with pytest.raises(StorageError, match="a replacement that fits up to"):
        log.mending.fitting(gap, bytes(data))


def test_a_gap_that_retention_removed_is_gone() -> None:
    world = closed_world()
    log = world.open()
    segment = log._row.segments[0]
    world.disk.flip_bit(segment.path(".log"), segment.size_bytes // 2)
    (gap,) = scrubbed(log)
    log.remove_segments_before(log._row.segments[1].name.base_index)
    assert log.mending.find_again(gap) is None
    assert not scrubbed(log)


def compacted_pair(rng: random.Random) -> tuple[CompactedWorld, CompactedWorld]:
    """The same entries twice, not compacted yet."""
    worlds = CompactedWorld(), CompactedWorld()
    for number in range(60):
        if number % 9 == 0:
            for world in worlds:
                world.mark(1 + number // 9)
        pairs = [(b"k%d" % rng.randrange(8), rng.randbytes(rng.randrange(80))) for _ in range(3)]
        for world in worlds:
            world.append(list(pairs), epoch=1 + number // 9)
        if number % 7 == 6:
            for world in worlds:
                world.close_segment()
    for world in worlds:
        world.flush()
    return worlds


def newest(log: Log) -> dict[bytes | None, tuple[int, bytes | None]]:
    """{key: (offset, value)} of the last record of each key."""
    found: dict[bytes | None, tuple[int, bytes | None]] = {}
    data = log.read_records(log.start_offset, 1 << 30, log.end_offset).bytes()
    for offset, record in decode(data):
        found[record.key] = (offset, record.value)
    return found


@pytest.mark.parametrize("who", ["peer", "own", "both"])
@pytest.mark.parametrize("seed", range(10))
def test_logs_that_were_compacted_at_different_times_mend_each_other(who: str, seed: int) -> None:
    rng = random.Random(seed)
    world, peer = compacted_pair(rng)
    expected = newest(peer.log)
    for compacted in {"peer": [peer], "own": [world], "both": [world, peer]}[who]:
        end = compacted.log.end_offset
        while compacted.log.compact(end, outlived=end, bytes_max=10_000):
            compacted.disk.run()
    log = world.log
    clean = log.compacted_index
    assert (clean >= 0) == (who != "peer")
    repaired: list[Index] = []
    for segment in rng.sample(list(log._row.segments), 3):
        if segment.size_bytes:
            world.disk.flip_bit(segment.path(".log"), rng.randrange(segment.size_bytes))
    for segment in list(log._row.segments):
        gaps = [gap for gap in scrubbed(log) if gap.segment is segment]
        if not gaps:
            continue
        replacements = [(gap, log.mending.fitting(gap, entries_of(peer.log, gap))) for gap in gaps]
        repaired += [gap.start.raft_index for gap in gaps]
        if all(fits_in_place(*one, is_same=False) for one in replacements):
            for one in replacements:
                log.mending.fill(*one)
            continue
        rewrite = log.mending.rewrite(replacements)
        while rewrite.step(300):
            world.disk.run()
            with contextlib.suppress(StorageError):  # The compactor has its turns meanwhile.
                log.compact(log.end_offset, outlived=log.end_offset, bytes_max=300)
            cleaned = rewrite.take()
            if cleaned is not None:
                log.mending.replace(cleaned)
                break
    assert not scrubbed(log)
    # What came from the peer may have been compacted less.
    assert all(log.compacted_index < index for index in repaired)
    assert newest(log) == expected
    assert (log.end_offset, log.last_index) == (peer.log.end_offset, peer.log.last_index)
    world.flush()
    world.disk.crash(rng)
    again = world.open()
    assert not scrubbed(again)
    assert newest(again) == expected


def test_what_is_expected_for_a_part_that_is_gone_is_nothing() -> None:
    """Retention has taken the segment with the gap meanwhile."""
    world, _ = compacted_pair(random.Random(1))
    log = world.log
    start = log._row.segments[1].name.base_index
    log.remove_segments_before(start)
    assert log.start_index == start
    log.mending.expect(Index(0))
    assert log.compacted_index == start - 1


def test_a_segment_whose_index_cannot_be_rebuilt_is_rewritten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its headers are damaged, and the files beside it were lost in a crash."""
    world, peer = closed_world(), closed_world().open()
    flip(world, random.Random(1), 1)
    (gap,) = scrubbed(world.open())
    data = entries_of(peer, gap)
    assert fits_in_place(gap, data, is_same=True)
    rotten = StorageError(gap.path, 0, expected="a header", found="rot")
    monkeypatch.setattr(Segment, "index", property(Mock(side_effect=rotten)))
    assert not fits_in_place(gap, data, is_same=True)


@pytest.mark.parametrize("is_closed", [False, True])
def test_what_was_mended_in_place_leaves_no_index_that_was_made_from_its_damage(
    is_closed: bool,
) -> None:
    world = World(segment_bytes=100_000, index_interval_bytes=1, segment_ms=1_000)
    batches = [world.append(timestamp=1_000 + 10 * n) for n in range(6)]
    world.flush()
    world.log.close()
    for name in [*world.files(".index"), *world.files(".timeindex")]:
        world.disk.remove(f"{DIRECTORY}/{name}")  # Neither they nor the summary are flushed.
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{world.files()[0]}", len(batches[0]) + 41)  # maxTimestamp
    world.clock.forget()
    world.log = world.open()
    if is_closed:
        world.append(timestamp=2_000)
        world.clock.advance(1_000)
        assert world.log.roll_if_due()
        world.flush()
    (gap,) = scrubbed(world.log)
    data = world.log.mending.fitting(gap, batches[1])
    assert fits_in_place(gap, data, is_same=True)
    world.log.mending.fill(gap, data)
    world.flush()
    if not is_closed:
        world.clock.advance(1_000)
        assert world.log.roll_if_due()
    world.flush()
    assert [world.log.offset_for_time(1_000 + 10 * n, world.log.end_offset) for n in range(6)] == [
        (1_000 + 10 * n, n) for n in range(6)
    ]
    assert not verify_log(world.disk, DIRECTORY).is_damaged


def with_a_gap_and_no_index(count: int) -> tuple[World, Gap, bytes]:
    """(a log whose first segment has damage in its third batch and lost its index, that, what
    belongs there)."""
    world = World(segment_bytes=6_000, index_interval_bytes=1)
    batches = [world.append(size=800) for _ in range(count)]
    world.flush()
    world.log.close()
    first = world.files()[0]
    world.disk.remove(f"{DIRECTORY}/{first[:-4]}.index")
    world.disk.sync()
    world.disk.flip_bit(f"{DIRECTORY}/{first}", 2 * len(batches[0]) + 200)
    world.clock.forget()
    world.log = world.open()
    (gap,) = scrubbed(world.log)
    data = world.log.mending.fitting(gap, batches[2])
    assert fits_in_place(gap, data, is_same=True)
    return world, gap, data


def test_a_segment_whose_index_cannot_be_made_once_more_is_flushed_all_the_same() -> None:
    """It is scanned at the next start."""
    world, gap, data = with_a_gap_and_no_index(30)
    world.log.mending.fill(gap, data)
    world.disk.flip_bit(gap.segment.path(LOG), 4 * len(data) + 16)
    gap.segment.drop_index()
    assert world.flush() == world.log.last_index


def test_what_was_mended_is_flushed_though_the_rest_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, gap, data = with_a_gap_and_no_index(5)

    def unreadable(segment: Segment) -> object:
        raise OSError(EIO, "pread failed")

    monkeypatch.setattr(Segment, "_build_index", unreadable)
    world.log.mending.fill(gap, data)
    assert gap.segment.is_dirty
    assert not world.log.failed


@pytest.mark.parametrize(("batch", "byte"), [(7, 7), (7, 15), (10, 7)])
def test_batches_that_a_rewrite_keeps_are_verified(batch: int, byte: int) -> None:
    """A gap may wait for days for who has it, and what is written is believed: no checksum covers
    an offset, or an epoch, that rots elsewhere meanwhile."""
    world = World(segment_bytes=100_000, index_interval_bytes=1)
    world.mark(1)
    for _ in range(10):
        world.append()
    world.clock.advance(world.config.segment_ms)
    world.log.roll_if_due()
    world.append()
    world.flush()
    sound = contents(world.log)
    path = f"{DIRECTORY}/{world.files()[0]}"
    data = world.disk.names[DIRECTORY][world.files()[0]].seen
    starts = [header.position for header in iterate_headers(data)]
    world.disk.flip_bit(path, starts[3] + 70)
    (gap,) = scrubbed(world.log)
    record = Record(0, world.clock.wall, b"key", b"as another replica has it after a compaction")
    other = bytes(build_batch([record], base_offset=gap.start.offset, epoch=Epoch(1)))
    assert not fits_in_place(gap, other, is_same=True)
    world.clock.advance(world.config.trust_ms)
    world.disk.flip_bit(path, starts[batch] + byte, 5)
    rewrite = world.log.mending.rewrite([(gap, world.log.mending.fitting(gap, other))])
    with pytest.raises(StorageError):
        while rewrite.step(SLICE):
            world.disk.run()
            world.clock.run()
    rewrite.abandon()
    world.disk.flip_bit(path, starts[batch] + byte, 5)
    world.disk.flip_bit(path, starts[3] + 70)
    assert contents(world.log) == sound


def test_a_cut_whose_place_is_hidden_leaves_what_mends_it_under_way() -> None:
    """The leader asks for it again and again meanwhile."""
    rng = random.Random(1)
    world, peer = compacted_pair(rng)
    end = peer.log.end_offset
    while peer.log.compact(end, outlived=end, bytes_max=10_000):
        peer.disk.run()
    log = world.log
    segment = log._row.segments[1]
    header, following = list(segment.headers(0, segment.size_bytes))[-2:]
    at = log._row.history.index_of(following.base_offset)
    world.disk.flip_bit(segment.path(LOG), header.position + 70)
    gaps = scrubbed(log)
    rewrite = log.mending.rewrite(
        [(gap, log.mending.fitting(gap, entries_of(peer.log, gap))) for gap in gaps]
    )
    while rewrite.step(300):
        with pytest.raises(StorageError):
            log.truncate(at)
        world.disk.run()
        if (cleaned := rewrite.take()) is not None:
            log.mending.replace(cleaned)
            break
    assert not scrubbed(log)


def with_a_marker_between_two_batches() -> CompactedWorld:
    """A compacted log whose first segment has batches of keys a and b on both sides of a marker; a
    and b are written again later."""
    world = CompactedWorld(replace(COMPACTED, segment_bytes=100_000, index_interval_bytes=4_096))
    world.mark(1)
    world.append([(b"s", bytes(30))])
    world.append([(b"a", bytes(40)), (b"a", bytes(73))])
    world.mark(2)
    for key in (b"b", b"c", b"d"):
        world.append([(key, bytes(40)), (key, bytes(73))], epoch=2)
    world.close_segment()
    for key in (b"a", b"b"):
        world.append([(key, b"new")], epoch=2)
        world.close_segment()
    world.append([(b"e", b"e")], epoch=2)
    world.flush()
    return world


def batch_of(world: CompactedWorld, offset: int) -> BatchHeader:
    """The batch that begins at an offset of the first segment."""
    segment = world.log._row.segments[0]
    headers = segment.headers(0, segment.size_bytes)
    return next(one for one in headers if one.base_offset == offset and not one.is_marker)


def compact_batch(world: CompactedWorld, offset: int) -> None:
    """Have nothing left of a batch, and nothing of the others changed."""
    segment, header = world.log._row.segments[0], batch_of(world, offset)
    index = world.log.index_of(header.base_offset)
    start = Place(header.position, header.base_offset, index)
    end = Place(
        header.position + header.size, header.next_offset, Index(index + header.index_count)
    )
    empty = filler(header.base_offset, header.next_offset, header.partition_leader_epoch)
    assert replaced(world, world.log.mending.rewrite([(Gap(segment, start, end), bytes(empty))]))


def replaced(world: CompactedWorld, rewrite: Rewrite) -> bool:
    """Write a segment anew, to the end; whether it has taken its place."""
    while rewrite.step(1_000):
        world.disk.run()
        cleaned = rewrite.take()
        if cleaned is not None:
            world.log.mending.replace(cleaned)
            return True
    return False


def test_what_takes_as_many_bytes_and_moves_a_marker_is_not_written_in_place() -> None:
    """An attack: here the second of two batches is empty, there the first one is."""
    world, peer = with_a_marker_between_two_batches(), with_a_marker_between_two_batches()
    compact_batch(world, 3)
    compact_batch(peer, 1)
    header = batch_of(world, 1)
    world.disk.flip_bit(world.log._row.segments[0].path(LOG), header.position + 70)
    (gap,) = scrubbed(world.log)
    data = world.log.mending.fitting(gap, entries_of(peer.log, gap))
    assert len(data) == gap.end.position - gap.start.position
    assert not fits_in_place(gap, data, is_same=False)
    assert replaced(world, world.log.mending.rewrite([(gap, data)]))
    assert not scrubbed(world.log)
    world.flush()
    assert not verify_log(world.disk, DIRECTORY).is_damaged
    assert newest(world.log) == newest(peer.log)


def test_a_part_that_would_end_behind_a_marker_of_this_log_is_not_known_to_fit() -> None:
    """An attack: the marker says the same offset as what follows it."""
    world, peer = with_a_marker_between_two_batches(), with_a_marker_between_two_batches()
    whole = peer.log.read_entries(peer.log.index_of(Offset(1)), 1).data
    segment, header = world.log._row.segments[0], batch_of(world, 1)
    (marker,) = segment.markers_in(header.position, header.position + header.size + 1)
    # As compaction may leave it: less, by just the bytes of the marker.
    rebuilt = (
        rebuild_batch(header, [Record(0, world.clock.wall, b"a", bytes(size))])
        for size in range(header.size)
    )
    batch = next(one for one in rebuilt if len(one) == len(whole) - marker.size)
    end = Place(header.position + header.size, Offset(3), marker.raft_index)
    start = Place(header.position, header.base_offset, world.log.index_of(header.base_offset))
    assert replaced(world, world.log.mending.rewrite([(Gap(segment, start, end), bytes(batch))]))
    segment = world.log._row.segments[0]
    world.disk.flip_bit(segment.path(LOG), header.position + 70)
    (gap,) = scrubbed(world.log)
    data, place = world.log.mending.fitting_start(gap, whole)
    assert data == whole
    assert world.log.mending.part(gap, data, place, is_same=False) is None


@pytest.mark.parametrize("seed", range(4))
def test_a_power_failure_while_a_mended_segment_takes_its_place_undoes_nothing(seed: int) -> None:
    """An attack: the claims of the damaged one had gone, and the new one was removed."""
    for fuse in range(40):
        world, peer = compacted_pair(random.Random(seed))
        end = peer.log.end_offset
        while peer.log.compact(end, outlived=end, bytes_max=10_000):
            peer.disk.run()
        log, last = world.log, world.log.last_index
        world.disk.sync()
        world.disk.flush_directory(DIRECTORY)
        segment = log._row.segments[2]
        second = list(segment.headers(0, segment.size_bytes))[1]
        world.disk.flip_bit(segment.path(LOG), second.position + 70)
        gaps = scrubbed(log)
        pairs = [(gap, log.mending.fitting(gap, entries_of(peer.log, gap))) for gap in gaps]
        world.disk.fuse = fuse
        has_ended = False
        try:
            has_ended = replaced(world, log.mending.rewrite(pairs))
        except PowerFailure:
            world.clock.forget()
            world.disk.crash(random.Random(fuse))
            world.log = world.open()
        world.disk.fuse = -1
        assert world.log.last_index == last
        if has_ended:
            assert newest(world.log) == newest(peer.log)
            break
    assert has_ended


@pytest.mark.parametrize("written", ["nothing", "some", "half a batch"])
def test_a_segment_that_was_not_written_to_its_end_does_not_take_the_place_of_another(
    written: str,
) -> None:
    world = closed_world()
    log = world.open()
    sound = contents(log)
    segment = log._row.segments[0]
    count = len(list(segment.headers(0, segment.size_bytes)))
    second = list(segment.headers(0, segment.size_bytes))[1]
    assert count > 2
    size = {"nothing": 0, "some": second.position, "half a batch": segment.size_bytes - 1}[written]
    log.close()
    world.disk.remove(segment.path(SUMMARY))
    cleaned = world.disk.open(segment.path(CLEANED), create=True)
    cleaned.pwrite((segment.file.pread(size, 0),), 0)
    world.clock.forget()
    assert contents(world.open()) == sound
    assert not world.disk.exists(segment.path(CLEANED))


def test_a_log_that_was_cut_behind_damage_and_mended_is_not_said_to_be_damaged() -> None:
    """What damage hides counts as being as late as anything that was there."""
    world = World(segment_bytes=100_000, index_interval_bytes=600, segment_ms=1_000)
    batches = [world.append(timestamp=1_000 + n) for n in range(6)]
    world.flush()
    (name,) = [name for name in world.files() if name.endswith(".log")]
    world.disk.flip_bit(f"{DIRECTORY}/{name}", len(batches[0]) + 70)
    world.clock.advance(60_000)
    world.log.truncate(Index(5))
    batches[5:] = [world.append(timestamp=1_000), world.append(timestamp=1_000)]
    (gap,) = scrubbed(world.log)
    world.log.mending.fill(gap, world.log.mending.fitting(gap, b"".join(batches[1:6])))
    world.clock.advance(1_000)
    assert world.log.roll_if_due()
    world.flush()
    segment = world.log._row.segments[0]
    assert (segment.max_timestamp, segment.max_timestamp_offset) == (1_005, 0)
    assert not verify_log(world.disk, DIRECTORY).is_damaged
    assert world.log.offset_for_time(1_004, world.log.end_offset) == (1_004, 4)
    assert world.log.offset_for_time(1_005, world.log.end_offset) is None
