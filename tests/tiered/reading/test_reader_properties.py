"""Whatever fails, a read gives whole batches of the log from the right one on, or nothing.

Source: decision 0060 ("wrong bytes are never served")."""

import asyncio
import os
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.tiered.reading.reading_world import (
    Buckets,
    ReadWorld,
    absent,
    batch,
    bytes_of,
    fail,
    flip,
    halve,
)

from strandline.records.batch import iterate_headers

FAULTS = (fail, absent, flip, halve)


def _log(rng: random.Random) -> list[bytes]:
    log, offset = [], 0
    for _ in range(rng.randint(1, 30)):
        count = rng.randint(1, 4)
        size = rng.choice([1, 60, 300, 3_000])
        log.append(batch(offset, count=count, value_bytes=size, time=1_000 + offset))
        offset += count
    return log


def _buckets(rng: random.Random, log: list[bytes]) -> Buckets:
    buckets = Buckets()
    for bucket in ("near", "far"):
        rest = list(log)
        while rest:
            count = rng.randint(1, len(rest))
            buckets.put(bucket, rest[:count], chunk_bytes=rng.choice([256, 1_000, 4_096]))
            del rest[:count]
    return buckets


def _break(rng: random.Random, world: ReadWorld, ratio: float) -> None:
    for store in world.buckets.stores.values():

        def fault(*args: object) -> object:
            return rng.choice(FAULTS)(*args) if rng.random() < ratio else None

        store.fault = fault  # type: ignore[assignment]


def _damage_cache(rng: random.Random, world: ReadWorld) -> None:
    for path in world.directory.rglob("*.chunk"):
        data = bytearray(path.read_bytes())
        if rng.random() < 0.3 and data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            path.write_bytes(data)


async def _history(rng: random.Random, directory: Path) -> None:
    log = _log(rng)
    whole = b"".join(log)
    starts = {one.base_offset: one.position for one in iterate_headers(whole)}
    nexts = {one.next_offset: one.position + one.size for one in iterate_headers(whole)}
    places = [
        (offset, one.position)
        for one in iterate_headers(whole)
        for offset in range(one.base_offset, one.next_offset)
    ]
    world = ReadWorld(
        directory, _buckets(rng, log), cache_bytes_max=rng.choice([0, 3_000, 1 << 20])
    )
    await world.reader.start()
    for _ in range(12):
        _break(rng, world, rng.choice([0.0, 0.2, 0.9]))
        if rng.random() < 0.2:
            await world.restart()
            if rng.random() < 0.5:
                _damage_cache(rng, world)
        for _ in range(rng.randint(1, 4)):
            offset, position = rng.choice(places)
            max_bytes = rng.choice([1, 500, 5_000, 1 << 20])
            min_bytes = rng.choice([1, 2_000, 1 << 20])
            read = await world.read(offset, max_bytes=max_bytes, min_bytes=min_bytes)
            data = bytes_of(read)
            assert whole[position : position + len(data)] == data
            assert read.is_failed or data
            if data:
                assert read.next_offset in nexts and nexts[read.next_offset] == position + len(data)
                first = next(iterate_headers(data))
                assert starts[first.base_offset] == position
                assert len(data) <= max(max_bytes, first.size)
        world.clock.advance(rng.choice([0, 1_000, 70_000]))
    _break(rng, world, 0.0)
    await world.settle()
    world.clock.advance(60_000)
    offset, position = rng.choice(places)
    last = await world.read(offset, min_bytes=1 << 20)
    assert bytes_of(last) == whole[position:], "a reader did not recover from faults"
    await world.reader.cache.stop()
    assert world.reader.downloads.budget.used_bytes == 0


def _run(seed: int) -> None:
    memory = "/dev/shm" if os.path.isdir("/dev/shm") else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        asyncio.run(_history(random.Random(seed), Path(directory)))


@pytest.mark.parametrize("seed", range(10))
def test_a_read_is_a_run_of_the_logs_batches_or_nothing(seed: int) -> None:
    _run(seed)


@pytest.mark.long
@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32))
def test_a_read_is_a_run_of_the_logs_batches_or_nothing_by_seed(seed: int) -> None:
    _run(seed)
