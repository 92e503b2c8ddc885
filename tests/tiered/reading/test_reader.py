"""Reading out of buckets: whole batches from the right one on, whatever fails.

Source: decision 0060; KIP-74 for the first batch."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from tests.tiered.reading.reading_world import (
    Buckets,
    ReadWorld,
    absent,
    batch,
    batches,
    bytes_of,
    fail,
    flip,
    halve,
    offsets_of,
)

from strandline.tiered.reading import ranged_store
from strandline.tiered.reading.failures import COMPLAINT_MS, OBJECT_PAUSE_MS, PAUSE_MS_MIN


def _two_buckets() -> tuple[Buckets, list[bytes]]:
    """One log of 60 batches in two buckets, which cut it at other places."""
    log = batches(60)
    buckets = Buckets()
    for start, end in ((0, 20), (20, 40), (40, 60)):
        buckets.put("near", log[start:end])
    for start, end in ((0, 30), (30, 60)):
        buckets.put("far", log[start:end])
    return buckets, log


def test_every_offset_gives_the_batch_that_has_it_first(tmp_path: Path) -> None:
    log = [batch(3 * at, count=3, value_bytes=50 + at) for at in range(40)]
    buckets = Buckets()
    buckets.put("near", log[:25])
    buckets.put("near", log[25:])

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.reader.start()
        for offset in range(120):
            read = await world.read(offset, max_bytes=700)
            data = bytes_of(read)
            assert data.startswith(log[offset // 3])
            assert data == b"".join(log[offset // 3 :])[: len(data)]
            assert offsets_of(read)[0] == offset // 3 * 3
            assert len(data) <= 700

    asyncio.run(run())


def test_a_read_goes_over_the_end_of_an_object_and_ends_with_the_last_one(tmp_path: Path) -> None:
    buckets, log = _two_buckets()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        first = await world.read(0, min_bytes=1 << 20)
        assert bytes_of(first) == b"".join(log)
        assert first.next_offset == 60
        # What the local log has is not read from a bucket.
        second = await world.read(0, min_bytes=1 << 20, end_offset=20)
        assert bytes_of(second) == b"".join(log[:20])

    asyncio.run(run())


def test_the_first_batch_comes_however_large_it_is(tmp_path: Path) -> None:
    log = [batch(0, value_bytes=5_000), batch(1, value_bytes=10)]
    buckets = Buckets()
    buckets.put("near", log)

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        assert bytes_of(await world.read(0, max_bytes=1)) == log[0]
        assert bytes_of(await world.read(1, max_bytes=1)) == log[1]

    asyncio.run(run())


def test_offsets_that_compaction_removed_at_an_objects_end_lead_to_the_next_one(
    tmp_path: Path,
) -> None:
    log = batches(10)
    last = batch(20, time=5_000)
    buckets = Buckets()
    buckets.put("near", log, end=20)
    buckets.put("near", [last], end=30)

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        assert offsets_of(await world.read(10)) == [20]
        gone = await world.read(25)
        assert (gone.size_bytes, gone.next_offset, gone.is_failed) == (0, 30, False)

    asyncio.run(run())


def test_an_object_without_records_is_passed_over(tmp_path: Path) -> None:
    buckets = Buckets()
    buckets.put("near", batches(3))
    buckets.put("near", [], end=8)
    buckets.put("near", [batch(8)])

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        assert offsets_of(await world.read(3)) == [8]

    asyncio.run(run())


@pytest.mark.parametrize("fault", [fail, absent, flip, halve])
def test_another_bucket_gives_what_the_nearest_one_does_not(tmp_path: Path, fault: object) -> None:
    buckets, log = _two_buckets()
    buckets.stores["near"].fault = fault  # type: ignore[assignment]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        read = await world.read(25, min_bytes=1 << 20)
        assert bytes_of(read) == b"".join(log[25:])
        assert world.reader.counters.fallbacks > 0

    asyncio.run(run())


def test_wrong_bytes_are_never_served_but_counted(tmp_path: Path) -> None:
    buckets = Buckets()
    entry = buckets.put("near", batches(20))

    def damage_data(name: str, start: int, end: int) -> object:
        return flip() if start < entry.data_bytes else None

    buckets.stores["near"].fault = damage_data  # type: ignore[assignment]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        read = await world.read(0)
        assert (read.is_failed, read.slices) == (True, [])
        assert world.reader.counters.wrong_bytes.total() == 1
        assert world.reader.failures.unusable_count == 1
        # The object is left alone for a while, and then tried again.
        calls = len(buckets.stores["near"].calls)
        assert (await world.read(0)).is_failed
        assert len(buckets.stores["near"].calls) == calls
        buckets.stores["near"].fault = lambda *_: None
        world.clock.advance(OBJECT_PAUSE_MS)
        assert offsets_of(await world.read(0))[0] == 0
        assert world.reader.failures.unusable_count == 0

    asyncio.run(run())


def test_another_object_under_the_name_is_not_served_though_it_is_whole(tmp_path: Path) -> None:
    buckets, others = Buckets(), Buckets()
    entry = buckets.put("near", batches(20), name="c/t/0/one")
    other = others.put("near", [batch(at, time=9_000 + at) for at in range(20)], name="c/t/0/one")
    assert (other.data_bytes, other.size_bytes) == (entry.data_bytes, entry.size_bytes)
    buckets.stores["near"].objects = others.stores["near"].objects

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        assert (await world.read(0)).is_failed
        assert world.reader.counters.wrong_bytes.total() == 1

    asyncio.run(run())


def test_a_bucket_that_does_not_answer_is_left_alone_longer_each_time(tmp_path: Path) -> None:
    buckets = Buckets()
    buckets.put("near", batches(5))
    near = buckets.stores["near"]
    near.fault = fail  # type: ignore[assignment]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        asked_at = []
        for _ in range(40):
            before = len(near.calls)
            assert (await world.read(0)).is_failed
            if len(near.calls) > before:
                asked_at.append(world.clock.now)
            world.clock.advance(PAUSE_MS_MIN)
        pauses = [later - earlier for earlier, later in pairwise(asked_at)]
        assert pauses == [500, 1_000, 2_000, 4_000, 8_000]
        assert world.reader.failures.paused == ["near"]
        near.fault = lambda *_: None
        world.clock.advance(30_000)
        assert offsets_of(await world.read(0))[0] == 0
        assert world.reader.failures.paused == []

    asyncio.run(run())


def test_what_cannot_be_read_is_logged_now_and_then(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    buckets = Buckets()
    buckets.put("near", batches(5))
    buckets.stores["near"].fault = fail  # type: ignore[assignment]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        for _ in range(4 * COMPLAINT_MS // 500):
            assert (await world.read(0)).is_failed
            world.clock.advance(500)

    asyncio.run(run())
    told = [one.message for one in caplog.records if "clients try again" in one.message]
    assert len(told) == 4
    assert told[0].startswith("t-0: offset 0 cannot be read now: near: 503")


def test_what_the_cache_has_is_read_while_the_bucket_is_down(tmp_path: Path) -> None:
    buckets = Buckets()
    buckets.put("near", batches(5))

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.read(0)
        buckets.put("near", batches(5, base=5))
        buckets.stores["near"].fault = fail  # type: ignore[assignment]
        assert (await world.read(5)).is_failed
        assert offsets_of(await world.read(0)) == [0, 1, 2, 3, 4]

    asyncio.run(run())


def test_a_download_outlives_its_reader_and_serves_all_who_ask(tmp_path: Path) -> None:
    buckets = Buckets()
    buckets.put("near", batches(5))
    near = buckets.stores["near"]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        near.gate.clear()
        impatient, patient = world.begin(0), world.begin(2)
        while not near.calls:
            await asyncio.sleep(0)
        impatient.drop()
        near.gate.set()
        assert patient.task is not None
        await patient.task
        assert offsets_of(patient) == [2, 3, 4]
        assert len(near.calls) == 2  # The trailer and the one chunk, once each.
        assert offsets_of(await world.read(0)) == [0, 1, 2, 3, 4]
        assert len(near.calls) == 2

    asyncio.run(run())


def test_what_is_here_is_told_at_once_and_the_rest_when_it_comes(tmp_path: Path) -> None:
    buckets = Buckets()
    entry = buckets.put("near", batches(30))
    near = buckets.stores["near"]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.read(0, max_bytes=1)
        near.gate.clear()
        read = world.begin(0, min_bytes=entry.data_bytes)
        told = asyncio.Event()
        read.watch(told.set)
        await told.wait()
        first_bytes = read.size_bytes
        assert 0 < first_bytes <= 1_024 and not read.is_over
        near.gate.set()
        assert read.task is not None
        await read.task
        assert read.size_bytes == entry.data_bytes

    asyncio.run(run())


def test_a_store_that_never_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranged_store, "RANGE_MS_MAX", 200)
    buckets, log = _two_buckets()
    buckets.stores["near"].gate.clear()

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        assert bytes_of(await world.read(59)) == log[59]

    asyncio.run(run())


def test_a_sequential_reader_finds_its_chunks_on_their_way(tmp_path: Path) -> None:
    """Ranges of 1 chunk, doubling to 8, also over the end of an object."""
    log = batches(600)
    buckets = Buckets()
    buckets.put("near", log[:400])
    buckets.put("near", log[400:])
    near = buckets.stores["near"]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        seen: list[int] = []
        waited = []
        while len(seen) < 600:
            misses = world.reader.counters.cache_misses
            seen += offsets_of(await world.read(len(seen), max_bytes=1_024))
            waited.append(world.reader.counters.cache_misses - misses)
            await world.settle()
        assert seen == list(range(600))
        assert sum(waited[2:]) == 0, [at for at, one in enumerate(waited) if one]
        data = [(end - start) for name, start, end in near.calls if (end - start) % 1_024 == 0]
        assert max(data) == 8_192
        # Nothing is fetched twice.
        asked = sorted((name, start) for name, start, _ in near.calls)
        assert len(asked) == len(set(asked))

    asyncio.run(run())


def test_a_single_read_fetches_nothing_ahead(tmp_path: Path) -> None:
    buckets = Buckets()
    buckets.put("near", batches(100))

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        await world.read(50, max_bytes=500)
        assert len(buckets.stores["near"].calls) == 2

    asyncio.run(run())


def test_bytes_in_flight_are_bounded_and_readers_wait_in_line(tmp_path: Path) -> None:
    buckets = Buckets()
    buckets.put("near", batches(100))
    near = buckets.stores["near"]

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)
        budget = world.reader.downloads.budget
        budget.bytes_max = 2_048
        await world.read(99)  # The trailer.
        near.gate.clear()
        calls = len(near.calls)
        reads = [world.begin(offset, max_bytes=200) for offset in range(0, 90, 10)]
        for _ in range(100):
            await asyncio.sleep(0)
        assert len(near.calls) == calls + 2
        assert budget.used_bytes == 2_048
        near.gate.set()
        await asyncio.gather(*(one.task for one in reads if one.task is not None))
        assert [offsets_of(one)[0] for one in reads] == list(range(0, 90, 10))
        assert budget.used_bytes == 0

    asyncio.run(run())


def test_an_entry_that_is_replaced_while_it_is_read_is_read_anew(tmp_path: Path) -> None:
    log = batches(10)
    buckets = Buckets()
    buckets.put("near", log[:5])
    buckets.put("near", log[5:])
    merged = Buckets()
    merged.put("near", log, name="c/t/0/merged")

    async def run() -> None:
        world = ReadWorld(tmp_path, buckets)

        def replace(*_: object) -> None:
            if buckets.entries["near"] != merged.entries["near"]:
                buckets.entries["near"] = merged.entries["near"]
                buckets.stores["near"].objects = merged.stores["near"].objects

        buckets.stores["near"].fault = replace  # type: ignore[assignment]
        assert offsets_of(await world.read(7)) == [7, 8, 9]

    asyncio.run(run())
