"""Only what is old, unknown to the leader's log and named by no export is ever deleted."""

import asyncio
from uuid import UUID

import pytest
from tests.tiered.exports.stores import MemoryStore

from strandline.model.ids import Epoch, Index, Offset
from strandline.tiered.collection.collect import (
    GRACE_MS_MIN,
    Answer,
    Collected,
    UncertainError,
    collect,
)
from strandline.tiered.collection.orphans import Place
from strandline.tiered.exports.export import Export
from strandline.tiered.exports.names import ExportNumber
from strandline.tiered.exports.writing import write_export
from strandline.tiered.objects.store import StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.names import SegmentName

TOPIC, OTHER = UUID(int=1), UUID(int=2)
NOW_MS = 100 * GRACE_MS_MIN
OLD_MS, YOUNG_MS = NOW_MS - GRACE_MS_MIN, NOW_MS - GRACE_MS_MIN + 1


def segment(base: int, *, topic: UUID = TOPIC, partition: int = 0, cluster: str = "ours") -> str:
    return str(SegmentName(cluster, str(topic), partition, Offset(base), Epoch(1), f"{base:016x}"))


class Leaders:
    """What leaders know, and when they are asked."""

    def __init__(self, store: MemoryStore) -> None:
        self.store = store
        self.known: dict[Place, Answer | None] = {}
        """None: no leader answers."""

    async def ask(self, place: Place) -> Answer:
        self.store.calls.append(("ask", f"{place.topic_id.int}/{place.partition}"))
        answer = self.known.get(place, Answer(()))
        if answer is None:
            raise UncertainError("no leader")
        return answer


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def leaders(store: MemoryStore) -> Leaders:
    return Leaders(store)


def put(store: MemoryStore, *names: str, at_ms: int = OLD_MS) -> None:
    for name in names:
        store.objects[name] = (b"data", at_ms)


def run(store: MemoryStore, leaders: Leaders, *, deletes: bool = True) -> Collected:
    return asyncio.run(
        collect(
            store,
            cluster_id="ours",
            ask_leader=leaders.ask,
            now_ms=NOW_MS,
            grace_ms=GRACE_MS_MIN,
            deletes=deletes,
        )
    )


def test_an_old_object_that_no_log_knows_goes(store: MemoryStore, leaders: Leaders) -> None:
    put(store, segment(0), segment(10))
    leaders.known[Place(TOPIC, 0)] = Answer([segment(0)])
    found = run(store, leaders)
    assert sorted(store.objects) == [segment(0)]
    assert [one.name for one in found.sorted.orphans] == [segment(10)]
    assert (found.deleted_count, found.partition_count) == (1, 1)


def test_without_being_told_to_nothing_goes(store: MemoryStore, leaders: Leaders) -> None:
    put(store, segment(0))
    found = run(store, leaders, deletes=False)
    assert sorted(store.objects) == [segment(0)]
    assert [one.name for one in found.sorted.orphans] == [segment(0)]
    assert found.deleted_count == 0


def test_a_young_object_stays(store: MemoryStore, leaders: Leaders) -> None:
    put(store, segment(0), at_ms=YOUNG_MS)
    assert [one.name for one in run(store, leaders).sorted.young] == [segment(0)]
    assert store.objects


def test_a_partition_whose_leader_does_not_answer_is_left_alone(
    store: MemoryStore, leaders: Leaders
) -> None:
    put(store, segment(0), segment(0, partition=1))
    leaders.known[Place(TOPIC, 0)] = None
    found = run(store, leaders)
    assert sorted(store.objects) == [segment(0)]
    assert found.uncertain == [(Place(TOPIC, 0), "no leader")]


def test_the_leader_is_asked_after_its_objects_were_listed(
    store: MemoryStore, leaders: Leaders
) -> None:
    """An object that is put between the question and the listing would look unknown."""
    put(store, segment(0), segment(0, partition=1))
    run(store, leaders, deletes=False)
    asked = [place for operation, place in store.calls if operation == "ask"]
    assert asked == ["1/0", "1/1"]
    listings = [at for at, (operation, _) in enumerate(store.calls) if operation == "list"]
    assert store.calls[0] == ("list", "ours/")
    assert listings[0] < store.calls.index(("ask", "1/0"))


def export_of(*entries: SegmentEntry) -> Export:
    return Export(
        cluster_id="ours",
        topic="flights",
        topic_id=TOPIC,
        partition=0,
        partition_count=1,
        topic_config={},
        number=ExportNumber(Epoch(1), Index(1), 1),
        written_ms=1,
        high_watermark=Offset(10),
        log_start_offset=Offset(0),
        end_offset=Offset(10),
        live=entries,
    )


def entry(base: int) -> SegmentEntry:
    name = segment(base)
    return SegmentEntry(
        name,
        Offset(base),
        Offset(base + 10),
        50,
        60,
        7,
        5,
        Offset(base),
        ((Epoch(1), Offset(base)),),
        b"",
    )


def test_what_an_export_names_stays_though_the_log_lost_it(
    store: MemoryStore, leaders: Leaders
) -> None:
    """After a declared loss: a read replica or a restore may need it."""
    put(store, segment(0), segment(10))
    asyncio.run(write_export(store, export_of(entry(0)), (), "a"))
    found = run(store, leaders)
    assert [one.name for one in found.sorted.exported] == [segment(0)]
    assert segment(0) in store.objects and segment(10) not in store.objects


@pytest.mark.parametrize("damage", ["wrong bytes", "no answer"])
def test_nothing_goes_while_an_export_cannot_be_read(
    store: MemoryStore, leaders: Leaders, damage: str
) -> None:
    put(store, segment(0))
    asyncio.run(write_export(store, export_of(entry(0)), (), "a"))
    (name,) = (one for one in store.objects if "/manifest/" in one)

    def fail(operation: str, what: str) -> None:
        if operation == "get" and what == name:
            raise StoreError("503")

    if damage == "wrong bytes":
        data, at_ms = store.objects[name]
        store.objects[name] = (data[:-1] + bytes([data[-1] ^ 1]), at_ms)
    else:
        store.fail = fail
    found = run(store, leaders)
    assert segment(0) in store.objects
    assert "an export cannot be read" in found.uncertain[0][1]


def test_all_segments_of_a_deleted_topic_go(store: MemoryStore, leaders: Leaders) -> None:
    put(store, segment(0), segment(0, topic=OTHER))
    put(store, segment(10), at_ms=YOUNG_MS)
    asyncio.run(write_export(store, export_of(entry(0)), (), "a"))
    leaders.known[Place(TOPIC, 0)] = Answer((), is_topic_gone=True)
    leaders.known[Place(OTHER, 0)] = Answer([segment(0, topic=OTHER)])
    run(store, leaders)
    left = [one for one in sorted(store.objects) if one.endswith(".segment")]
    assert left == sorted([segment(10), segment(0, topic=OTHER)])


@pytest.mark.parametrize(
    "name",
    [
        "claim.json",
        "ours/heads/1",
        "ours/topics/flights/x",
        f"ours/{TOPIC}/0/notes.txt",
        f"ours/{TOPIC}/0/0-1-x.segment",
        segment(0, cluster="theirs"),
    ],
)
def test_objects_of_other_names_are_no_concern(
    store: MemoryStore, leaders: Leaders, name: str
) -> None:
    put(store, name)
    found = run(store, leaders)
    assert found.partition_count == 0
    assert name in store.objects


def test_a_bucket_that_cannot_be_listed_is_an_error(store: MemoryStore, leaders: Leaders) -> None:
    def fail(operation: str, name: str) -> None:
        raise StoreError("503")

    store.fail = fail
    with pytest.raises(StoreError):
        run(store, leaders)
