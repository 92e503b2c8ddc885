"""Records in buckets by their timestamp, against a plain search of the log.

Source: Kafka's ListOffsets; decision 0060."""

import asyncio
import random
from pathlib import Path

import pytest
from tests.tiered.reading.reading_world import Buckets, ReadWorld, batch, fail

from strandline.model.ids import Offset
from strandline.records.record import decode_batches
from strandline.tiered.reading.failures import UnreadableError


def _random_log(seed: int) -> tuple[Buckets, list[tuple[int, int]]]:
    """Buckets, and (timestamp, offset) of each record; times go up and down."""
    rng = random.Random(seed)
    log, records, offset = [], [], 0
    for _ in range(40):
        count = rng.randint(1, 5)
        times = [1_000 + 5 * offset + rng.randint(-80, 80) for _ in range(count)]
        log.append(batch(offset, count=count, value_bytes=rng.choice([1, 200, 2_000]), time=times))
        offset += count
    for at, record in decode_batches(b"".join(log)):
        records.append((record.timestamp, int(at)))
    buckets = Buckets()
    buckets.put("near", log[:13])
    buckets.put("near", log[13:25])
    buckets.put("near", log[25:])
    return buckets, records


@pytest.mark.parametrize("seed", range(5))
def test_the_first_record_at_or_after_a_time(tmp_path: Path, seed: int) -> None:
    buckets, records = _random_log(seed)
    rng = random.Random(seed)

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        for _ in range(60):
            timestamp = rng.randint(800, 1_900)
            start = rng.randint(0, 40)
            end = rng.randint(start, len(records))
            wanted = [one for one in records if one[0] >= timestamp and start <= one[1] < end]
            found = await world.reader.times.first_at(
                world.partition, timestamp, start_offset=Offset(start), end_offset=Offset(end)
            )
            assert found == (wanted[0] if wanted else None)

    asyncio.run(run())


@pytest.mark.parametrize("seed", range(5))
def test_the_first_record_with_the_highest_time(tmp_path: Path, seed: int) -> None:
    buckets, records = _random_log(seed)

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        for start in range(0, len(records), 3):
            wanted = max(
                (one for one in records if one[1] >= start), key=lambda one: (one[0], -one[1])
            )
            found = await world.reader.times.highest(
                world.partition, start_offset=Offset(start), end_offset=Offset(len(records))
            )
            assert found == wanted

    asyncio.run(run())


def test_a_time_that_only_entries_are_needed_for_asks_no_bucket(tmp_path: Path) -> None:
    buckets, records = _random_log(1)
    near = buckets.stores["near"]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        end = Offset(len(records))
        times = world.reader.times
        assert await times.highest(world.partition, start_offset=Offset(0), end_offset=end)
        late = await times.first_at(
            world.partition, 1 << 40, start_offset=Offset(0), end_offset=end
        )
        assert late is None
        assert near.calls == []

    asyncio.run(run())


def test_a_bucket_that_does_not_answer_is_an_error_and_no_absence(tmp_path: Path) -> None:
    buckets, records = _random_log(1)
    buckets.stores["near"].fault = fail  # type: ignore[assignment]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        with pytest.raises(UnreadableError):
            await world.reader.times.first_at(
                world.partition, 1_000, start_offset=Offset(0), end_offset=Offset(len(records))
            )

    asyncio.run(run())
