"""When a compacted log is compacted: the dirty ratio, the two lags, and when segments close.

Source: Kafka's min.cleanable.dirty.ratio, min.compaction.lag.ms, max.compaction.lag.ms,
segment.jitter.ms and preallocate."""

from dataclasses import replace

import pytest
from tests.storage.log_world import World as PlainWorld
from tests.storage.test_log_compaction import CONFIG, HOUR_MS, World

from strandline.model.ids import Offset

LAG_MS = 60_000


def fill(world: World, value: bytes, count: int = 10) -> None:
    """Values of one key, and a closed segment of them."""
    for _ in range(count):
        world.append([(b"k", value)])
    world.close_segment()


def values(world: World) -> list[bytes | None]:
    return [record.value for _, record in world.records()]


def test_a_ratio_of_one_waits_until_everything_is_new() -> None:
    world = World(replace(CONFIG, min_cleanable_dirty_ratio=1.0, segment_bytes=1 << 20))
    fill(world, b"1")
    world.compact()
    assert values(world) == [b"1"]
    fill(world, b"2")
    world.compact()
    assert values(world) == [b"1"] + [b"2"] * 10


def test_a_ratio_begins_once_that_share_is_new() -> None:
    world = World(replace(CONFIG, min_cleanable_dirty_ratio=0.6, segment_bytes=1 << 20))
    for number in range(10):
        world.append([(b"k%d" % number, b"1")])
    world.close_segment()
    world.compact()
    fill(world, b"2", count=10)
    world.compact()
    assert values(world).count(b"2") == 10, "half of the bytes is new"
    fill(world, b"2", count=10)
    world.compact()
    assert values(world).count(b"2") == 1, "two thirds of the bytes are new"


def test_a_young_record_is_not_compacted() -> None:
    world = World(replace(CONFIG, min_compaction_lag_ms=LAG_MS))
    fill(world, b"1")
    world.compact()
    assert values(world) == [b"1"] * 10
    world.clock.advance(LAG_MS)
    fill(world, b"2")
    world.compact()
    assert values(world) == [b"1"] + [b"2"] * 10
    world.clock.advance(LAG_MS)
    world.compact()
    assert values(world) == [b"2"]


def test_a_record_without_a_timestamp_is_as_young_as_its_file() -> None:
    world = World(replace(CONFIG, min_compaction_lag_ms=LAG_MS))
    world.disk.now_ms = world.clock.wall_ms
    for _ in range(10):
        world.append([(b"k", b"1")], has_times=False)
    world.close_segment()
    world.compact()
    assert values(world) == [b"1"] * 10
    world.clock.advance(LAG_MS)
    world.compact()
    assert values(world) == [b"1"]


def test_an_old_record_is_compacted_however_little_is_new() -> None:
    """Its segment is closed for that, although it has room and is not old."""
    world = World(
        replace(
            CONFIG,
            segment_ms=HOUR_MS,
            segment_bytes=1 << 20,
            min_cleanable_dirty_ratio=1.0,
            max_compaction_lag_ms=LAG_MS,
        )
    )
    for number in range(100):
        world.append([(b"k%d" % number, b"1")])
    world.clock.advance(LAG_MS)
    assert world.log.roll_if_due()
    world.flush()
    world.compact()
    world.append([(b"k1", b"2")])
    world.clock.advance(LAG_MS - 1)
    assert not world.log.roll_if_due()
    world.clock.advance(2)
    assert world.log.roll_if_due()
    world.flush()
    world.compact()
    found = [record.value for _, record in world.records() if record.key == b"k1"]
    assert found == [b"2"]


def test_a_record_that_was_found_when_the_log_was_opened_is_as_old_as_it_says() -> None:
    config = replace(CONFIG, segment_ms=HOUR_MS, max_compaction_lag_ms=LAG_MS)
    world = World(config)
    world.append([(b"k", b"1")])
    world.flush()
    world.clock.advance(LAG_MS - 1_000)
    world.log.close()
    world.log = world.open()
    assert not world.log.roll_if_due()
    world.clock.advance(1_001)
    assert world.log.roll_if_due()
    assert not world.log.roll_if_due()


def test_the_highest_lag_does_not_outweigh_the_lowest() -> None:
    config = replace(CONFIG, min_compaction_lag_ms=2 * LAG_MS, max_compaction_lag_ms=LAG_MS)
    world = World(config)
    fill(world, b"1")
    world.clock.advance(LAG_MS + 1)
    world.compact()
    assert values(world) == [b"1"] * 10


def test_only_a_log_with_a_closed_segment_of_new_records_has_work() -> None:
    world = World()
    world.append([(b"k", b"1")])
    assert not world.log.has_uncompacted
    world.close_segment()
    assert world.log.has_uncompacted
    assert not world.log.compact(Offset(0), outlived=Offset(0))
    assert world.log.has_uncompacted, "it was not committed"
    world.compact()
    assert not world.log.has_uncompacted


def closed_after(world: PlainWorld, *, until_ms: int, every_ms: int) -> int:
    """After which time the active segment is closed."""
    world.append()
    for waited in range(every_ms, until_ms + every_ms, every_ms):
        world.clock.advance(every_ms)
        if world.log.roll_if_due():
            return waited
    raise AssertionError("it was never closed")


def test_jitter_closes_each_segment_at_its_own_time_and_never_late() -> None:
    world = PlainWorld(segment_ms=1_000, segment_jitter_ms=500)
    found = [closed_after(world, until_ms=1_000, every_ms=10) for _ in range(20)]
    assert min(found) >= 500
    assert len(set(found)) > 10
    plain = PlainWorld(segment_ms=1_000)
    assert closed_after(plain, until_ms=1_000, every_ms=10) == 1_000


def test_more_jitter_than_time_closes_a_segment_at_any_time() -> None:
    world = PlainWorld(segment_ms=100, segment_jitter_ms=1_000_000)
    assert {closed_after(world, until_ms=100, every_ms=1) <= 100 for _ in range(20)} == {True}


@pytest.mark.parametrize("ahead", [False, True])
def test_a_preallocated_segment_has_all_its_space_from_the_first_batch_on(*, ahead: bool) -> None:
    world = PlainWorld(segment_bytes=100_000, preallocate=ahead, preallocate_segment=True)
    world.append()
    assert [world.disk.open(f"/data/topic-0.1/{one}").size() for one in world.files()] == [100_000]
    world.flush()
    world.log.close()
    assert world.disk.used() < 10_000, "a log that is closed gives it back"
    world.log = world.open()
    world.append()
    assert world.flush() == 1


def test_a_disk_without_that_much_space_takes_the_batch_all_the_same() -> None:
    world = PlainWorld(segment_bytes=100_000, preallocate_segment=True)
    world.disk.capacity = world.disk.used() + 10_000
    world.append()
    assert world.flush() == 0
