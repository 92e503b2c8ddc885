"""The leader's work on a partition's buckets: a real log and uploader, a store in memory.

Source: decision 0059."""

import asyncio

import pytest
from tests.broker.led_tier_world import BUCKETS, HOUR_MS, World, run
from tests.storage.log_world import World as LogWorld
from tests.tiered.exports.stores import MemoryStore

from strandline.base.errors import StorageError
from strandline.broker.tiering import led_tier as led_module
from strandline.broker.tiering import uploads as uploads_module
from strandline.broker.tiering.tier_context import CopyLag, TierPlan
from strandline.model.ids import Offset
from strandline.records.batch import iterate_headers
from strandline.tiered.objects.store import StoreError
from strandline.tiered.state.commands import Abandon, Forget, GoLive, Intend, Retire


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "RETRY_MS_MIN", 1)
    monkeypatch.setattr(led_module, "BACKOFF_MS_MIN", 1)
    monkeypatch.setattr(led_module, "AVOIDED_MS", 1)


def test_every_bucket_gets_the_closed_segments_byte_for_byte() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        await world.run(world.is_live)
        assert world.data_of("east") == world.data_of("west") == world.log_data()
        assert (
            len(world.of(Intend))
            == len(world.of(GoLive))
            == 2 * len(world.log_world.segment_starts()[:-1])
        )
        assert world.of(Abandon) == []
        world.fill(20)
        await world.run(world.is_live)
        assert world.data_of("west") == world.log_data()

    run(scenario)


def test_large_segments_go_in_several_objects() -> None:
    async def scenario(world: World) -> None:
        world.object_bytes_max = 500
        world.fill(100)
        await world.run(world.is_live)
        assert len(world.tier.state.live("east")) > 10
        assert world.data_of("east") == world.log_data()

    run(scenario, segment_bytes=5_000)


def test_the_active_segment_and_an_idle_log_cause_no_command() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        await world.run(world.is_live)
        count = len(world.tier.commands)
        world.log_world.append(2)
        await world.settle()
        assert len(world.tier.commands) == count

    run(scenario, segment_bytes=100_000)


def test_another_leader_and_a_restarted_uploader_go_on_from_the_state() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        gates = {name: asyncio.Event() for name in BUCKETS}
        for name, store in world.stores.items():
            store.gate = gates[name].wait  # type: ignore[assignment]
        await world.run(lambda: len(world.of(Intend)) == 4)
        world.led.stop()
        world.uploads.stop()
        world.uploads = world.new_uploads()
        world.led = world.new_leader()
        for gate in gates.values():
            gate.set()
        await world.run(world.is_live)
        assert len(world.of(Abandon)) == 4, "the new uploader did not begin them"
        assert world.data_of("east") == world.data_of("west") == world.log_data()

    run(scenario)


def test_another_leader_takes_the_uploads_over_that_run() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        gate = asyncio.Event()
        for store in world.stores.values():
            store.gate = gate.wait  # type: ignore[assignment]
        await world.run(lambda: len(world.of(Intend)) == 4)
        await world.settle()
        world.led.stop()
        world.led = world.new_leader()
        gate.set()
        await world.run(world.is_live)
        assert world.of(Abandon) == []

    run(scenario)


def test_an_upload_without_progress_is_given_up_for_another_name() -> None:
    async def scenario(world: World) -> None:
        world.stall_ms = 100
        world.fill()

        def refuse(operation: str, name: str) -> None:
            raise StoreError("503")

        world.stores["west"].fail = refuse
        await world.run(
            lambda: any(one.bucket == "west" for one in world.of(Abandon)) and world.is_live("east")
        )
        work = world.led.work["west"]
        assert work.pending_bytes > 0
        assert work.pending_since_ms > 0
        await world.run(lambda: not world.led.work["east"].pending_bytes)
        world.stores["west"].fail = lambda operation, name: None
        await world.run(world.is_live)
        names = [one.name for one in world.of(Intend)]
        assert len(set(names)) == len(names)
        assert world.data_of("west") == world.log_data()

    run(scenario)


def test_a_bucket_that_lagged_behind_the_local_log_is_repaired_from_another() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        world.plan = TierPlan(buckets=("east",))
        await world.run(lambda: world.is_live("east"))
        everything = world.log_data()
        starts = world.log_world.segment_starts()
        world.log.remove_segments_before(world.log.index_of(Offset(starts[3])))
        assert world.log.start_offset == starts[3]
        world.plan = TierPlan(buckets=BUCKETS)
        await world.run(world.is_live)
        assert world.data_of("west") == everything
        assert ("east", "west") in world.figures.uploaded_bytes

    run(scenario)


def test_damaged_data_of_another_bucket_is_not_copied() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        world.plan = TierPlan(buckets=("east",))
        await world.run(lambda: world.is_live("east"))
        starts = world.log_world.segment_starts()
        world.log.remove_segments_before(world.log.index_of(Offset(starts[1])))
        first = world.tier.state.live("east")[0]
        good = world.stores["east"].objects[first.name][0]
        world.stores["east"].objects[first.name] = (good[:50] + b"\0" + good[51:], 0)
        world.plan = TierPlan(buckets=BUCKETS)
        await world.run(lambda: len(world.of(Abandon)) > 1)
        assert list(world.tier.state.live("west")) == []
        world.stores["east"].objects[first.name] = (good, 0)
        await world.run(world.is_live)

    run(scenario)


def test_a_damaged_log_is_not_uploaded() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        header = next(iterate_headers(world.log_data()))
        parts = world.log.closed.file_ranges(Offset(0), Offset(2))
        parts[0].file.pwrite([b"\xff\xff"], header.position + 70)
        await world.run(lambda: world.of(Abandon))
        assert world.damaged
        assert list(world.tier.state.live("east")) == []
        assert not any("/00000000000000000000-" in one for one in world.stores["east"].objects)

    run(scenario)


def test_unreadable_headers_are_reported_to_the_replica() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        parts = world.log.closed.file_ranges(Offset(0), Offset(2))
        parts[0].file.pwrite([b"\xff" * 30], 0)
        await world.run(lambda: world.errors)
        assert isinstance(world.errors[0], StorageError)
        assert world.tier.commands == []

    run(scenario, index_interval_bytes=100_000)


def test_total_retention_retires_then_deletes_then_forgets() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        await world.run(world.is_live)
        world.may_delete_all = False
        names = [one.name for one in world.tier.state.live("east")]
        world.log.config = LogWorld(retention_ms=-1, retention_bytes=3_000).config
        await world.run(lambda: len(world.of(Retire)) == 2)
        await world.settle()
        assert set(names) == set(world.stores["east"].objects), "an export still counts them"
        kept = [one.name for one in world.tier.state.live("east")]
        assert 0 < len(kept) < len(names)
        world.may_delete_all = True
        await world.run(lambda: len(world.of(Forget)) == 2)
        assert set(world.stores["east"].objects) == set(kept)
        assert not world.tier.state.buckets["east"].removals

    run(scenario)


def test_a_store_that_does_not_delete_is_asked_again_and_nothing_is_forgotten_before() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        await world.run(world.is_live)

        def refuse(operation: str, name: str) -> None:
            if operation == "delete":
                raise StoreError("503")

        world.stores["east"].fail = refuse
        world.plan = TierPlan(is_deleting_all=True)
        await world.run(lambda: {one.bucket for one in world.of(Forget)} == {"west"})
        await world.settle()
        assert len(world.tier.state.buckets["east"].removals) == len(world.stores["east"].objects)
        world.stores["east"].fail = lambda operation, name: None
        await world.run(lambda: not world.tier.state.buckets["east"].removals)
        assert not world.stores["east"].objects

    run(scenario)


def test_a_grace_holds_deletion_back() -> None:
    async def scenario(world: World) -> None:
        world.delete_grace_ms = HOUR_MS
        world.fill()
        await world.run(world.is_live)
        world.plan = TierPlan(is_deleting_all=True)
        await world.run(lambda: len(world.of(Retire)) == 2)
        await world.settle()
        assert world.of(Forget) == []
        assert world.stores["east"].objects

    run(scenario)


def test_a_leader_whose_wall_clock_was_hours_behind_cuts_no_grace_short(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(world: World) -> None:
        world.delete_grace_ms = HOUR_MS
        world.fill()
        await world.run(world.is_live)
        wall_ms = world.clock.wall_ms
        with monkeypatch.context() as behind:
            behind.setattr(world.clock, "wall_ms", lambda: wall_ms() - 5 * HOUR_MS)
            world.plan = TierPlan(buckets=("west",))
            await world.run(lambda: world.tier.state.buckets["east"].removals)
        world.led.stop()
        world.led = world.new_leader()
        await world.settle()
        assert world.stores["east"].objects, "this leader has known them for a moment only"
        monotonic_ms = world.clock.monotonic_ms
        monkeypatch.setattr(world.clock, "monotonic_ms", lambda: monotonic_ms() + HOUR_MS)
        await world.run(lambda: not world.stores["east"].objects)

    run(scenario)


def test_a_bucket_that_the_policy_forbids_is_emptied_once_another_has_all() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        world.plan = TierPlan(buckets=("east",))
        await world.run(lambda: world.is_live("east"))
        world.plan = TierPlan(buckets=("west",))
        await world.run(lambda: world.is_live("west") and not world.stores["east"].objects)
        assert world.data_of("west") == world.log_data()

    run(scenario)


def test_a_bucket_that_was_emptied_gets_everything_again_before_another_one_is_emptied() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        data = world.log_data()
        for bucket, other in (("east", "west"), ("west", "east"), ("east", "west")):
            world.plan = TierPlan(buckets=(bucket,))
            await world.run(lambda to=bucket: world.is_live(to))  # type: ignore[misc]
            await world.run(lambda of=other: not world.stores[of].objects)  # type: ignore[misc]
            assert world.data_of(bucket) == data

    run(scenario)


def test_records_whose_objects_were_deleted_count_as_uploaded_once_they_are_again() -> None:
    async def scenario(world: World) -> None:
        world.fill()
        await world.run(world.is_live)
        world.plan = TierPlan(is_deleting_all=True)
        await world.run(lambda: not any(one.objects for one in world.stores.values()))
        assert world.tier.state.covered_end(0, BUCKETS, from_offset=Offset(0)) == 0
        world.plan = TierPlan(buckets=BUCKETS)
        data = world.log_data()
        await world.run(lambda: world.data_of("east") == world.data_of("west") == data)
        end = world.log.closed.end_offset
        assert world.tier.state.covered_end(0, BUCKETS, from_offset=Offset(0)) == end

    run(scenario)


def test_nothing_is_uploaded_to_a_bucket_that_lacks_all_that_was_until_it_is_back() -> None:
    async def scenario(world: World) -> None:
        world.plan = TierPlan(buckets=("east",))
        world.fill()
        await world.run(lambda: world.is_live("east"))
        store, world.stores["east"] = world.stores["east"], MemoryStore()
        world.fill()
        for _ in range(100):
            await world.settle()
        assert not world.stores["east"].objects
        assert not world.is_live("east")
        world.stores["east"] = store
        world.uploads.stop()
        world.uploads = world.new_uploads()
        await world.run(lambda: world.is_live("east"))
        assert world.data_of("east") == world.log_data()

    run(scenario)


def test_a_copy_lag_holds_uploads_back_by_age_and_by_size() -> None:
    async def scenario(world: World) -> None:
        now_ms = world.clock.wall_ms()
        world.plan = TierPlan(buckets=BUCKETS, lag=CopyLag(HOUR_MS, -1))
        world.fill(timestamp=now_ms)
        await world.settle()
        assert world.tier.commands == []
        world.plan = TierPlan(buckets=BUCKETS, lag=CopyLag(HOUR_MS, 3_000))
        await world.run(lambda: world.of(GoLive))
        await world.settle()
        left = world.log.closed.bytes_from(world.tier.state.live_end("east"))
        assert 2_000 < left < 5_000
        world.plan = TierPlan(buckets=BUCKETS, lag=CopyLag(0, 0))
        await world.run(world.is_live)

    run(scenario)


def test_nothing_new_is_copied_while_copying_is_off() -> None:
    async def scenario(world: World) -> None:
        world.plan = TierPlan(buckets=BUCKETS, is_copying_off=True)
        world.fill()
        await world.settle()
        assert world.tier.commands == []

    run(scenario)
