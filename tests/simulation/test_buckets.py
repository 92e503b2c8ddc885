"""The simulated bucket does everything a real one may do; what `BucketStore` says of it holds."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import pytest

from strandline.simulation.buckets.backend import SimBackend
from strandline.simulation.buckets.bucket import BucketFaults, SimBucket
from strandline.simulation.world.clock import HostClock
from strandline.simulation.world.loop import SimLoop
from strandline.simulation.world.process import Process
from strandline.simulation.world.scheduler import Scheduler
from strandline.tiered.objects.bucket_store import BucketStore
from strandline.tiered.objects.limits import StoreLimits
from strandline.tiered.objects.store import (
    ObjectAbsentError,
    ObjectExistsError,
    ObjectStore,
    StoreError,
)

TIMEOUT_MS = 500
BAD = BucketFaults(
    slow_factor=2,
    throttled_share=0.1,
    applied_error_share=0.1,
    lost_before_share=0.05,
    lost_after_share=0.05,
    late_share=0.05,
    late_us=3_000_000,
    taken_share=0.1,
    half_body_share=0.05,
    missing_share=0.05,
)


@dataclass
class Rig:
    """A bucket, and one process with a store on it."""

    scheduler: Scheduler
    bucket: SimBucket
    process: Process
    loop: SimLoop

    def store(self) -> BucketStore:
        return BucketStore(
            SimBackend(self.bucket, self.process),
            title="bucket east",
            limits=StoreLimits(),
            timeout_ms=TIMEOUT_MS,
        )

    def run(self, main: Callable[[BucketStore], Awaitable[object]]) -> object:
        async def begin() -> object:
            return await main(self.store())

        result = self.loop.run_until_complete(begin())
        assert self.loop.errors == []
        return result


def rig(seed: int = 1, faults: BucketFaults | None = None) -> Rig:
    scheduler = Scheduler()
    bucket = SimBucket("east", scheduler, random.Random(seed), faults=faults or BucketFaults())
    process = Process(scheduler, "one")
    return Rig(scheduler, bucket, process, SimLoop(scheduler, process, HostClock(scheduler)))


async def names(store: ObjectStore, prefix: str = "") -> list[str]:
    return [one.name async for one in store.list(prefix)]


def test_it_is_a_store() -> None:
    async def main(store: BucketStore) -> None:
        for number in range(20):
            await store.put(f"a/{number:02}", [b"%d" % number])
        await store.create("b", b"1")
        with pytest.raises(ObjectExistsError):
            await store.create("b", b"2")
        assert await store.get_range("a/11", 1, 2) == b"1"
        assert await names(store, "a/1") == [f"a/{number}" for number in range(10, 20)]
        await store.delete(["a/11", "none"])
        with pytest.raises(ObjectAbsentError):
            await store.get("a/11")
        large = bytes(20 << 20)
        await store.put("large", [large])
        assert await store.get_range("large", 0, 5) == bytes(5)

    rig().run(main)


@pytest.mark.parametrize(
    ("faults", "is_error"),
    [
        (BucketFaults(applied_error_share=1.0), False),
        (BucketFaults(lost_after_share=0.5), False),
        (BucketFaults(lost_before_share=1.0), True),
        (BucketFaults(throttled_share=1.0), True),
        (BucketFaults(is_gone=True), True),
        (BucketFaults(late_share=1.0, late_us=5_000_000), True),
    ],
    ids=lambda one: "" if isinstance(one, bool) else str(one).partition("(")[2][:40],
)
def test_an_unclear_write_is_read_back(faults: BucketFaults, is_error: bool) -> None:
    made = rig(faults=faults)

    async def main(store: BucketStore) -> bool:
        try:
            await store.put("a", [b"1"])
        except StoreError:
            return True
        return False

    failed = made.run(main)
    if is_error:
        assert failed is True
    if not failed:
        assert made.bucket.get("a") == b"1"


def test_a_write_may_come_long_after_its_process_died() -> None:
    made = rig(faults=BucketFaults(late_share=1.0, late_us=5_000_000))
    made.process.run_now(lambda: made.loop.create_task(made.store().put("a", [b"1"])) and None)
    made.scheduler.run_until(1_000_000)
    made.process.kill()
    made.loop.close()
    assert made.bucket.get("a") is None
    made.scheduler.run_until(6_000_000)
    assert made.bucket.get("a") == b"1"


def test_a_listing_may_lag_and_an_object_is_still_not_absent() -> None:
    made = rig()

    async def main(store: BucketStore) -> None:
        await store.put("old", [b"1"])
        await asyncio.sleep(60)
        made.bucket.faults.list_lag_us = 10_000_000
        await store.put("new", [b"1"])
        await store.delete(["old"])
        assert await names(store) == ["old"]
        assert await store.get("new") == b"1"
        # The listing has it still, so it is not certainly absent.
        with pytest.raises(StoreError) as raised:
            await store.get("old")
        assert not isinstance(raised.value, ObjectAbsentError)
        await asyncio.sleep(11)
        assert await names(store) == ["new"]

    made.run(main)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_acknowledged_is_there_whatever_goes_wrong(seed: int) -> None:
    """A put that returned is there; a create that returned is the only one; an error is neither."""
    made = rig(seed, replace(BAD))
    rng = random.Random(seed)

    async def write(store: BucketStore, name: str, data: bytes, *, creates: bool) -> str:
        try:
            if creates:
                await store.create(name, data)
            else:
                await store.put(name, [data])
        except ObjectExistsError:
            return "taken"
        except StoreError:
            return "unclear"
        return "there"

    async def main(store: BucketStore) -> None:
        jobs = []
        for number in range(30):
            name = f"claim/{number % 5}" if number % 3 == 0 else f"put/{number}"
            jobs.append((name, b"%d" % number))
            await asyncio.sleep(rng.random() / 10)
        outcomes = await asyncio.gather(
            *(write(store, name, data, creates=name[0] == "c") for name, data in jobs)
        )
        made.bucket.faults = BucketFaults()
        await asyncio.sleep(10)
        winners = [
            job[0]
            for job, outcome in zip(jobs, outcomes, strict=True)
            if outcome == "there" and job[0][0] == "c"
        ]
        assert len(set(winners)) == len(winners), "two creates of one name succeeded"
        for (name, data), outcome in zip(jobs, outcomes, strict=True):
            if outcome == "there":
                assert await store.get(name) == data
            elif outcome == "taken":
                assert await store.get(name) != data

    made.run(main)


@pytest.mark.parametrize("seed", range(20))
def test_no_read_says_that_a_stored_object_is_absent(seed: int) -> None:
    made = rig(seed)

    async def main(store: BucketStore) -> int:
        errors = 0
        await store.put("a", [b"0123456789"])
        made.bucket.faults = replace(BAD, missing_share=0.5, late_share=0.0)
        for _ in range(40):
            try:
                assert await store.get_range("a", 2, 5) == b"234"
            except ObjectAbsentError as error:
                raise AssertionError("it is there") from error
            except StoreError:
                errors += 1
        return errors

    assert made.run(main)


def test_wrong_bytes_come_through_for_readers_to_find() -> None:
    made = rig(faults=BucketFaults(wrong_bytes_share=1.0))

    async def main(store: BucketStore) -> bytes:
        await store.put("a", [b"0123456789"])
        return await store.get("a")

    assert made.run(main) != b"0123456789"


def test_a_run_is_a_function_of_its_seed() -> None:
    def trace(seed: int) -> tuple[int, int, list[str]]:
        made = rig(seed, replace(BAD))

        async def main(store: BucketStore) -> None:
            for number in range(20):
                try:
                    await store.put(f"a/{number}", [b"1"])
                except StoreError:
                    continue

        made.run(main)
        return made.scheduler.now_us, made.bucket.counters.request_count, made.bucket.names()

    assert trace(3) == trace(3)
    assert trace(3) != trace(4)
