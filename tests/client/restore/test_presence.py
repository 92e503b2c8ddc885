"""A cut in the past may name objects that are deleted since: the plan says exactly which records
they had, and takes what is left.

Source: `client.restore.presence`; decision 0063."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from msgspec.structs import replace
from tests.client.restore.lost_cluster import claim, entry, put_export, put_snapshot
from tests.tiered.exports.stores import MemoryStore

from strandline.client.restore.plan import PlannedPartition, plan_restore
from strandline.tiered.objects.store import ObjectInfo, StoreError

T1, T2 = 100, 200


async def _bucket() -> MemoryStore:
    """Objects of ten records, [0, 60) at T1 and [20, 80) at T2."""
    store = MemoryStore()
    await claim(store)
    await put_snapshot(store, at_ms=T1)
    await put_export(store, 0, 60, at_ms=T1)
    await put_export(store, 20, 80, at_ms=T2)
    return store


def bucket(*gone: int) -> MemoryStore:
    """The same without the objects that begin at these offsets."""
    store = asyncio.run(_bucket())
    for base in gone:
        del store.objects[entry(base, base + 10).name]
    return store


def planned(*stores: MemoryStore, as_of_ms: int | None = T1) -> PlannedPartition:
    named = {f"file:///{number}": store for number, store in enumerate(stores)}
    plan = asyncio.run(plan_restore(named, as_of_ms=as_of_ms, topics=("orders",)))
    return plan.topics[0].partitions[0]


CASES = {
    "within the grace": ((), (0, 60), "none known"),
    "what retention took first": (
        (0, 10),
        (20, 60),
        "20 before 20, deleted or lost objects: 0 to 20",
    ),
    "one in the middle": (
        (10,),
        (20, 60),
        "20 before 20, deleted or lost objects: 10 to 20",
    ),
    "the last one": ((50,), (0, 50), "10 from 50 on, at least, deleted or lost objects: 50 to 60"),
    "two apart": (
        (10, 50),
        (20, 50),
        "20 before 20, 10 from 50 on, at least, deleted or lost objects: 10 to 20, 50 to 60",
    ),
    "all": (
        (0, 10, 20, 30, 40, 50),
        (60, 60),
        "60 before 60, deleted or lost objects: 0 to 60",
    ),
}


@pytest.mark.parametrize(("gone", "left", "missing"), CASES.values(), ids=CASES)
def test_what_is_gone_is_said_exactly(
    gone: tuple[int, ...], left: tuple[int, int], missing: str
) -> None:
    one = planned(bucket(*gone))
    assert ((one.start, one.end), one.missing) == (left, missing)
    assert one.export is not None
    found = [(part.base_offset, part.end_offset) for part in one.export.live]
    assert found == [(base, base + 10) for base in range(*left, 10)]


def test_another_bucket_that_has_more_of_it_gives_the_partition() -> None:
    one = planned(bucket(0, 10), bucket(0))
    assert (one.start, one.end, one.bucket) == (10, 60, "file:///1")


def test_a_merged_object_stands_for_those_that_it_replaced() -> None:
    store = bucket(0, 10, 20)
    merged = replace(entry(0, 30, attempt=99), data_bytes=3_000, size_bytes=3_200)
    rest = tuple(entry(base, base + 10) for base in range(30, 80, 10))
    asyncio.run(put_export(store, 0, 80, at_ms=300, entries=(merged, *rest)))
    one = planned(store)
    assert (one.start, one.end, one.missing) == (0, 60, "none known")
    assert one.export is not None
    assert one.export.live[0] == merged


def test_a_compacted_object_does_not_stand_for_the_past() -> None:
    """Values are gone from it that later ones have superseded, behind the cut perhaps."""
    store = bucket(0, 10, 20)
    compacted = replace(entry(0, 30, attempt=99), data_bytes=2_900, size_bytes=3_100)
    rest = tuple(entry(base, base + 10) for base in range(30, 80, 10))
    asyncio.run(put_export(store, 0, 80, at_ms=300, entries=(compacted, *rest)))
    one = planned(store)
    assert (one.start, one.end, one.gone) == (30, 60, ((0, 30),))


def test_a_merged_object_that_reaches_beyond_the_cut_is_not_taken() -> None:
    store = bucket(40, 50)
    rest = tuple(entry(base, base + 10) for base in range(0, 40, 10))
    merged = entry(40, 80, attempt=99)
    asyncio.run(put_export(store, 0, 80, at_ms=300, entries=(*rest, merged)))
    one = planned(store)
    assert (one.start, one.end, one.gone) == (0, 40, ((40, 60),))


class LateListing(MemoryStore):
    """Its listings lack all segments."""

    async def list(self, prefix: str) -> AsyncIterator[ObjectInfo]:
        async for one in super().list(prefix):
            if not one.name.endswith(".segment"):
                yield one


def test_an_object_that_a_listing_lacks_is_asked_for() -> None:
    store = LateListing()
    store.objects = bucket(0).objects
    assert planned(store).gone == ((0, 10),)


def test_an_error_is_not_taken_for_absence() -> None:
    store = LateListing()
    store.objects = bucket().objects

    def fail(operation: str, name: str) -> None:
        if name.endswith(".segment"):
            raise StoreError("503")

    store.fail = fail
    with pytest.raises(StoreError):
        planned(store)


def test_a_time_before_the_oldest_export_says_when_that_was() -> None:
    store = bucket()
    for name in [one for one in store.objects if "/manifest/" in one and f"{T1:019d}-" in one]:
        del store.objects[name]
    one = planned(store)
    assert (one.start, one.end) == (0, 0)
    assert one.missing == "all: its oldest export is of 1970-01-01T00:00:01Z"
    assert planned(store, as_of_ms=None).missing == "none known"
