"""What a bucket has of a partition whose logs are lost: only objects that are there and line up.

Source: decision 0067."""

import asyncio

import pytest
from tests.tiered.exports.states import PLACE, state
from tests.tiered.exports.stores import MemoryStore

from strandline.model.ids import Epoch, Offset
from strandline.records.record import Record, build_batch
from strandline.tiered.exports.history import BucketHistory, read_history
from strandline.tiered.exports.writing import write_export
from strandline.tiered.objects.store import StoreError
from strandline.tiered.segments.names import SegmentName
from strandline.tiered.segments.writer import SegmentWriter

EPOCH = 4
"""Of the newest export, which has the segments [0, 5): the offsets 0 to 50."""


def export(store: MemoryStore, *, present: bool = True) -> None:
    exported = state(0, 5, number=(EPOCH, 120))
    asyncio.run(write_export(store, exported, (), "a"))
    for one in exported.live if present else ():
        store.objects[one.name] = (bytes(one.size_bytes), 0)


def put(
    store: MemoryStore,
    base: int,
    end: int,
    *,
    epoch: int = EPOCH,
    leader: int = 0,
    attempt: int = 1,
) -> str:
    """A whole object, as an uploader makes it. `leader`: the epoch in its name, if another one."""
    writer = SegmentWriter(Offset(base), Offset(end))
    for at in range(base, end):
        records = [Record(0, at, b"k", b"%d" % at)]
        writer.add(bytes(build_batch(records, base_offset=at, epoch=epoch)))
    name = SegmentName(
        PLACE.cluster_id,
        str(PLACE.topic_id),
        PLACE.partition,
        Offset(base),
        Epoch(leader or epoch),
        f"{attempt:016x}",
    )
    made = writer.finish(str(name))
    store.objects[str(name)] = (b"".join(map(bytes, made.parts)), 0)
    return str(name)


def history(store: MemoryStore) -> BucketHistory:
    found = asyncio.run(read_history(store, PLACE))
    assert found is not None
    return found


def bounds(found: BucketHistory) -> tuple[int, int]:
    return found.live[0].base_offset, found.end_offset


def test_a_bucket_without_an_export_has_no_history() -> None:
    store = MemoryStore()
    put(store, 0, 10)
    assert asyncio.run(read_history(store, PLACE)) is None


def test_all_that_the_export_names_is_there() -> None:
    store = MemoryStore()
    export(store)
    found = history(store)
    assert (bounds(found), found.missing, found.added_count) == ((0, 50), (), 0)
    image = found.image("east")
    assert (image.live, image.end_offset, image.intents) == (found.live, 50, ())


def test_the_run_behind_a_missing_object_counts() -> None:
    store = MemoryStore()
    export(store)
    names = [one.name for one in history(store).live]
    del store.objects[names[1]]
    store.objects[names[2]] = (b"another size", 0)
    found = history(store)
    assert bounds(found) == (30, 50)
    assert found.missing == (names[1], names[2])
    # Without its last object the export's end is not reached, so nothing follows it.
    del store.objects[names[4]]
    put(store, 50, 60)
    found = history(store)
    assert (bounds(found), found.added_count) == ((30, 40), 0)


def test_an_object_that_a_late_listing_lacks_is_there() -> None:
    store = MemoryStore()
    export(store)
    hidden = history(store).live[0].name
    listed = store.list

    async def late(prefix: str) -> object:
        async for one in listed(prefix):
            if one.name != hidden:
                yield one

    store.list = late  # type: ignore[assignment, method-assign]
    assert bounds(history(store)) == (0, 50)


def test_objects_behind_the_export_count_if_they_line_up() -> None:
    store = MemoryStore()
    export(store)
    names = [put(store, 50, 60), put(store, 60, 65, epoch=EPOCH + 1)]
    put(store, 70, 80)  # Behind a gap.
    found = history(store)
    assert (bounds(found), found.added_count) == ((0, 65), 2)
    assert [one.name for one in found.live[-2:]] == names
    assert found.live[-1].epochs == ((EPOCH + 1, 60),)


def test_of_several_attempts_the_longest_counts() -> None:
    store = MemoryStore()
    export(store)
    put(store, 50, 55, attempt=1)
    longer = put(store, 50, 60, attempt=2)
    assert history(store).live[-1].name == longer


def test_an_object_of_an_earlier_leader_than_the_exports_does_not_count() -> None:
    """It may be of a past that was declared lost."""
    store = MemoryStore()
    export(store)
    put(store, 50, 60, epoch=EPOCH - 1)
    assert bounds(history(store)) == (0, 50)
    put(store, 50, 60, epoch=EPOCH - 1, leader=EPOCH)
    assert bounds(history(store)) == (0, 60)


@pytest.mark.parametrize("cut", [1, 40, 300])
def test_a_cut_or_changed_object_does_not_count(cut: int) -> None:
    store = MemoryStore()
    export(store)
    name = put(store, 50, 60)
    data, _ = store.objects[name]
    store.objects[name] = (data[:-cut], 0)
    assert bounds(history(store)) == (0, 50)
    changed = bytearray(data)
    changed[-cut] ^= 1
    store.objects[name] = (bytes(changed), 0)
    assert bounds(history(store)) == (0, 50)
    store.objects[name] = (data, 0)
    assert bounds(history(store)) == (0, 60)


def test_an_error_of_the_store_is_no_absence() -> None:
    store = MemoryStore()
    export(store, present=False)

    def fail(operation: str, name: str) -> None:
        if name.endswith(".segment"):
            raise StoreError("gone")

    store.fail = fail
    with pytest.raises(StoreError):
        history(store)


def test_a_cut_ends_where_an_object_does_or_is_none() -> None:
    store = MemoryStore()
    export(store)
    found = history(store)
    cut = found.cut(Offset(10), Offset(30))
    assert cut is not None and bounds(cut) == (0, 30)
    assert found.cut(Offset(0), Offset(33)) is None
    assert found.cut(Offset(0), Offset(60)) is None
    store.objects.pop(found.live[0].name)
    assert history(store).cut(Offset(0), Offset(50)) is None
