"""Live objects that a bucket has lost or damaged are put again, and from no bad source.

Source: decision 0068."""

import asyncio
from collections.abc import Callable

import pytest
from tests.broker.cluster_world import VOTERS, ClusterWorld
from tests.broker.test_tiering_in_a_cluster import (
    check_objects,
    has_all,
    leader,
    state,
    tiered_cluster,
    write,
)
from tests.tiered.exports.stores import MemoryStore

from strandline.broker.tiering.repair_context import RepairContext
from strandline.broker.tiering.repairs import Repaired, Repairs, _rebuild, _Run
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.protocol.messages.repair_object import RepairObjectRequest, RepairObjectResponse
from strandline.records.record import Record, build_batch
from strandline.tiered.collection.verify import Verdict
from strandline.tiered.objects.store import ObjectAbsentError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.writer import SegmentWriter, UnfitBatchError


def repairs(world: ClusterWorld, broker: int) -> Repairs:
    tiering = world.broker(broker).services.tiering
    assert tiering is not None
    return tiering.repairs


def damage(world: ClusterWorld, bucket: str, name: str) -> bytes:
    """Flip a bit of an object; what it was."""
    data = world.buckets[bucket].get(name)
    assert data is not None
    world.buckets[bucket].put(name, bytes([data[0] ^ 1]) + data[1:])
    return data


def is_again(world: ClusterWorld, bucket: str, name: str, data: bytes) -> Callable[[], bool]:
    return lambda: world.buckets[bucket].get(name) == data


def test_what_a_reader_finds_missing_or_wrong_the_leader_puts_again() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        lost, wrong = (one.name for one in state(world).live("west")[:2])
        data = world.buckets["west"].get(lost)
        assert data is not None
        world.buckets["west"].lose(lost)
        other = damage(world, "west", wrong)
        index = state(world).index
        reader = next(one for one in VOTERS if one != world.leader_of("t"))
        remote = world.broker(reader).services.remote_log
        assert remote is not None
        process = world.hosts[reader].process
        assert process is not None

        def find() -> None:
            for name in (lost, wrong):
                remote.reader.failures.note("west", name, ObjectAbsentError("not there"))

        process.run_now(find)
        world.until(is_again(world, "west", lost, data), every_ms=200)
        world.until(is_again(world, "west", wrong, other), every_ms=200)
        world.advance(2_000)
        check_objects(world)
        assert state(world).index == index, "the log says nothing new"
        tiering = world.broker(world.leader_of("t")).services.tiering
        assert tiering is not None and tiering.figures.repaired_counts == {"west": 2}


def test_a_report_of_a_sound_object_changes_nothing() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        name = state(world).live("west")[0].name
        puts = world.buckets["west"].counters.put_count
        here = world.leader_of("t")
        group = leader(world).group
        done = world.do(here, repairs(world, here).repair(group, "west", name))
        assert (done.verdict, done.is_put) == (Verdict.SOUND, False)
        done = world.do(here, repairs(world, here).repair(group, "west", "another"))
        assert done.reason == "no log here says that it is live"
        world.advance(2_000)
        assert world.buckets["west"].counters.put_count <= puts + 2, "heads and exports alone"


def test_another_bucket_serves_if_no_log_has_the_records_and_a_bad_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(RepairContext, "local_source", lambda *_: None)
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        here, group = world.leader_of("t"), leader(world).group
        entry = state(world).live("west")[1]
        data = world.buckets["west"].get(entry.name)
        world.buckets["west"].lose(entry.name)
        kept = {}
        for other in ("east", "south"):
            twin = state(world).find(other, entry.base_offset)
            assert twin is not None
            kept[other] = twin.name, damage(world, other, twin.name)
        done = world.do(here, repairs(world, here).repair(group, "west", entry.name))
        assert done.verdict is Verdict.MISSING and not done.is_put
        assert "damaged" in done.reason
        assert world.buckets["west"].get(entry.name) is None
        name, sound = kept["south"]
        world.buckets["south"].put(name, sound)
        done = world.do(here, repairs(world, here).repair(group, "west", entry.name))
        assert done.is_put
        assert world.buckets["west"].get(entry.name) == data


def test_a_leader_that_is_deposed_while_it_looks_puts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        here, group = world.leader_of("t"), leader(world).group
        name = state(world).live("west")[0].name
        world.buckets["west"].lose(name)
        states = [state(world)]
        monkeypatch.setattr(RepairContext, "led_state", lambda *_: states.pop() if states else None)
        done = world.do(here, repairs(world, here).repair(group, "west", name))
        assert done == Repaired(Verdict.UNREADABLE, reason="another broker leads it now")
        assert world.buckets["west"].get(name) is None


def test_a_bucket_whose_objects_were_removed_gets_new_ones_again() -> None:
    """The first and the last one are put again, so uploads go on."""
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        for name in world.buckets["west"].names():
            if name.endswith(".segment"):
                world.buckets["west"].lose(name)
        write(world)
        world.until(has_all(world), every_ms=500)
        live = state(world).live("west")
        assert world.buckets["west"].get(live[-1].name) is not None
        here, group = world.leader_of("t"), leader(world).group
        for entry in live:
            world.do(here, repairs(world, here).repair(group, "west", entry.name))
        check_objects(world)


def objects(store: MemoryStore, *ends: int) -> list[SegmentEntry]:
    """Objects end to end, of one record a batch."""
    found, base = [], 0
    for end in ends:
        writer = SegmentWriter(Offset(base), Offset(end))
        for at in range(base, end):
            writer.add(
                bytes(build_batch([Record(0, at, b"k", b"v" * 50)], base_offset=at, epoch=1))
            )
        made = writer.finish(f"{base}-{end}")
        asyncio.run(store.put(made.entry.name, made.parts))
        found.append(made.entry)
        base = end
    return found


def test_objects_of_other_ranges_make_the_same_object() -> None:
    store = MemoryStore()
    (whole,) = objects(store, 30)
    wanted = store.objects[whole.name][0]
    store = MemoryStore()
    run = objects(store, 7, 19, 40)
    parts = asyncio.run(_rebuild(_Run(store, run), whole))
    assert b"".join(map(bytes, parts)) == wanted
    first = store.objects[run[1].name][0]
    store.objects[run[1].name] = (bytes([first[0] ^ 1]) + first[1:], 0)
    with pytest.raises(UnfitBatchError):
        asyncio.run(_rebuild(_Run(store, run), whole))


def test_records_that_make_another_object_are_no_source() -> None:
    store = MemoryStore()
    (whole,) = objects(store, 30)
    writer = SegmentWriter(Offset(0), Offset(30))
    for at in range(30):
        writer.add(bytes(build_batch([Record(0, at, b"k", b"w" * 50)], base_offset=at, epoch=1)))
    other = writer.finish("other")
    asyncio.run(store.put("other", other.parts))
    with pytest.raises(UnfitBatchError, match="another object"):
        asyncio.run(_rebuild(_Run(store, [other.entry]), whole))


def test_the_leader_answers_an_operator_what_became_of_an_object() -> None:
    with tiered_cluster() as world:
        write(world)
        world.until(has_all(world), every_ms=200)
        name = state(world).live("west")[0].name
        world.buckets["west"].lose(name)
        topic = world.broker(1).services.cluster.topics["t"].id
        request = RepairObjectRequest(topic, 0, "west", name)
        here = world.leader_of("t")
        other = next(one for one in VOTERS if one != here)
        answer = world.ask(other, request, RepairObjectResponse, 0)
        assert answer.error_code == Error.NOT_LEADER_OR_FOLLOWER
        answer = world.ask(here, request, RepairObjectResponse, 0)
        assert (answer.is_put, answer.verdict, answer.reason) == (True, "sound", "")
        check_objects(world)
        answer = world.ask(
            here, RepairObjectRequest(topic, 5, "west", name), RepairObjectResponse, 0
        )
        assert answer.error_code == Error.UNKNOWN_TOPIC_OR_PARTITION
