"""Small objects of a bucket are merged in it: a real leader, uploader and log, stores in memory.

Source: decision 0066."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.broker.led_tier_world import GROUP, World, run

from strandline.broker.tiering import attempt as attempt_module
from strandline.broker.tiering import rewrites as rewrites_module
from strandline.broker.tiering import uploads as uploads_module
from strandline.broker.tiering.tier_context import TierPlan
from strandline.model.ids import Offset
from strandline.tiered.objects.store import StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer
from strandline.tiered.state.commands import Abandon, GoLive, IntendReplace, Replace, Retire
from strandline.tiered.state.transitions import Phase
from strandline.tiered.upload.merging import RUN_COUNT_MIN

EAST = TierPlan(buckets=("east",))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "RETRY_MS_MIN", 1)
    monkeypatch.setattr(attempt_module, "WAIT_MS", 50)
    monkeypatch.setattr(rewrites_module, "RETRY_MS_MIN", 1)
    monkeypatch.setattr(rewrites_module, "RETRY_MS_MAX", 1)


def small_segments(world: World, count: int, *, retention_bytes: int = -1) -> None:
    """Closed segments of about 200 bytes each, of a topic with larger ones."""
    world.log.config = replace(
        world.log.config, segment_bytes=20_000, retention_bytes=retention_bytes
    )
    for _ in range(count):
        world.log_world.append(2)
        world.log._roll()


async def refused_replacement(world: World) -> None:
    """Until it is intended; the store refuses its object."""
    world.plan = EAST
    small_segments(world, RUN_COUNT_MIN - 1)
    await world.run(lambda: world.is_live("east"))

    def refuse(operation: str, name: str) -> None:
        if operation == "put" and world.of(IntendReplace):
            raise StoreError("503")

    world.stores["east"].fail = refuse
    small_segments(world, 1)
    await world.run(lambda: world.of(IntendReplace))


async def merged(world: World, bucket: str = "east") -> SegmentEntry:
    """The first object that takes the place of others."""
    await world.run(lambda: [one for one in world.of(Replace) if one.bucket == bucket])
    found: SegmentEntry = next(one for one in world.of(Replace) if one.bucket == bucket).entry
    return found


def trailer_of(world: World, entry: SegmentEntry, bucket: str = "east") -> Trailer:
    data = world.stores[bucket].objects[entry.name][0]
    return Trailer.parse(data[entry.data_bytes :], crc=entry.trailer_crc)


def counted(live: Sequence[SegmentEntry]) -> int:
    return sum(one.end_offset - one.base_offset for one in live)


def test_small_neighbours_become_one_object_with_the_same_bytes() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        world.delete_grace_ms = 10_000_000
        small_segments(world, RUN_COUNT_MIN)
        entry = await merged(world)
        assert (entry.base_offset, entry.end_offset) == (0, 2 * RUN_COUNT_MIN)
        await world.settle()
        assert [one.name for one in world.tier.state.live("east")] == [entry.name]
        assert world.data_of("east") == world.log_data()
        assert trailer_of(world, entry).digest() == entry.digest
        for one in world.of(GoLive):  # Readers of before go on until the grace is over.
            assert one.entry.name in world.stores["east"].objects
        count = len(world.tier.commands)
        await world.settle()
        assert len(world.tier.commands) == count, "there is nothing more to merge"

    run(scenario)


def test_each_bucket_merges_what_it_has_itself() -> None:
    async def scenario(world: World) -> None:
        small_segments(world, RUN_COUNT_MIN)
        await merged(world, "east")
        await merged(world, "west")
        assert world.data_of("east") == world.data_of("west") == world.log_data()
        puts = [name for what, name in world.stores["west"].calls if what == "get"]
        assert puts, "it was read out of its own bucket"

    run(scenario)


def test_replaced_objects_are_deleted_after_the_grace() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        small_segments(world, RUN_COUNT_MIN)
        entry = await merged(world)
        await world.run(lambda: list(world.stores["east"].objects) == [entry.name])
        await world.run(lambda: not world.tier.state.buckets["east"].removals)

    run(scenario)


def test_a_byte_is_written_again_a_few_times_only() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        for _ in range(20):
            small_segments(world, 4)
            await world.run(lambda: world.is_live("east"))
        await world.run(lambda: len(world.tier.state.live("east")) < 20)
        written = sum(one.entry.data_bytes for one in world.of(Replace))
        data_bytes = len(world.log_data())
        assert written < 3 * data_bytes
        assert world.data_of("east") == world.log_data()

    run(scenario)


def test_a_merged_object_is_a_small_part_of_what_retention_keeps() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        small_segments(world, 20, retention_bytes=16_000)
        entry = await merged(world)
        assert entry.data_bytes <= 2_000

    run(scenario)


def test_an_uploader_that_restarts_is_asked_anew() -> None:
    async def scenario(world: World) -> None:
        await refused_replacement(world)
        await world.settle()
        world.uploads.stop()
        world.uploads = world.new_uploads()
        world.stores["east"].fail = lambda operation, name: None
        await merged(world)
        assert len(world.of(Abandon)) == 1
        assert len({one.name for one in world.of(IntendReplace)}) == 2
        assert world.data_of("east") == world.log_data()
        await world.run(lambda: not world.tier.state.buckets["east"].removals)

    run(scenario)


def test_another_leader_takes_over_what_is_under_way() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        small_segments(world, RUN_COUNT_MIN)
        await world.run(
            lambda: (
                world.of(IntendReplace)
                and (GROUP, world.of(IntendReplace)[0].name) in world.uploads.known
            )
        )
        world.led.stop()
        world.led = world.new_leader()
        await merged(world)
        assert world.of(Abandon) == []
        assert len(world.of(IntendReplace)) == 1

    run(scenario)


def test_a_damaged_object_is_not_merged() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        small_segments(world, RUN_COUNT_MIN - 1)
        await world.run(lambda: world.is_live("east"))
        first = world.tier.state.live("east")[0]
        good, at_ms = world.stores["east"].objects[first.name]
        world.stores["east"].objects[first.name] = (good[:70] + b"\0" + good[71:], at_ms)
        small_segments(world, 1)
        await world.run(lambda: world.of(Abandon))
        assert world.of(Replace) == []
        assert first in world.tier.state.live("east")
        assert world.damaged == [], "nothing is wrong with the log"
        assert world.missing == {first.name}, "its leader may put it again"
        world.stores["east"].objects[first.name] = (good, at_ms)
        await merged(world)

    run(scenario)


def test_retention_that_takes_a_part_of_the_run_ends_the_replacement() -> None:
    async def scenario(world: World) -> None:
        await refused_replacement(world)
        world.log.config = replace(world.log.config, retention_records=6)
        await world.run(lambda: world.of(Retire))
        await world.run(lambda: world.of(Abandon))
        world.stores["east"].fail = lambda operation, name: None
        await world.settle()
        assert world.of(Replace) == []
        name = world.of(IntendReplace)[0].name
        assert world.tier.state.buckets["east"].phase_of(name) is not Phase.LIVE
        assert counted(world.tier.state.live("east")) >= 6
        assert world.tier.state.start("east") > Offset(0)

    run(scenario)
