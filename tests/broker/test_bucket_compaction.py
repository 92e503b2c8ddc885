"""The objects of a compacted topic are cleaned in their bucket: a real leader, uploader and log,
stores in memory.

Source: decision 0066."""

import random
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.broker.led_tier_world import World, run

from strandline.broker.tiering import attempt as attempt_module
from strandline.broker.tiering import rewrites as rewrites_module
from strandline.broker.tiering import uploads as uploads_module
from strandline.broker.tiering.tier_context import TierPlan
from strandline.model.ids import Epoch, Offset
from strandline.records.batch import iterate_headers
from strandline.records.record import Record, build_batch, decode_records
from strandline.tiered.objects.store import StoreError
from strandline.tiered.segments.trailer import Trailer
from strandline.tiered.state.commands import Abandon, GoLive, IntendReplace, MarkClean, Replace

EAST = TierPlan(buckets=("east",))
Pair = tuple[bytes, bytes | None]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "RETRY_MS_MIN", 1)
    monkeypatch.setattr(attempt_module, "WAIT_MS", 50)
    monkeypatch.setattr(rewrites_module, "RETRY_MS_MIN", 1)
    monkeypatch.setattr(rewrites_module, "RETRY_MS_MAX", 1)


def compacted(world: World, **config: object) -> None:
    """The topic is compacted, in passes over all that is there."""
    world.log.config = replace(
        world.log.config,
        segment_bytes=20_000,
        compacted=True,
        delete=False,
        min_cleanable_dirty_ratio=0.01,
        **config,  # type: ignore[arg-type]
    )


def write(world: World, *pairs: Pair, producer_id: int = -1) -> None:
    """One batch."""
    log = world.log
    now_ms = world.clock.wall_ms()
    records = [Record(at, now_ms, key, value) for at, (key, value) in enumerate(pairs)]
    world.log_world.write(
        bytes(
            build_batch(
                records,
                base_offset=log.end_offset,
                epoch=Epoch(1),
                producer_id=producer_id,
                producer_epoch=0 if producer_id >= 0 else -1,
                base_sequence=0 if producer_id >= 0 else -1,
            )
        )
    )


def segment(world: World, *pairs: Pair) -> None:
    """A closed segment of one batch."""
    write(world, *pairs)
    world.log._roll()


def table(data: bytes) -> dict[bytes, bytes | None]:
    """What these batches make, tombstones included."""
    found: dict[bytes, bytes | None] = {}
    for header in iterate_headers(data):
        for one in decode_records(data[header.position : header.position + header.size]):
            assert one.key is not None
            found[one.key] = one.value
    return found


def values(data: bytes) -> dict[bytes, bytes]:
    return {key: value for key, value in table(data).items() if value is not None}


def records_of(data: bytes) -> list[tuple[int, bytes | None]]:
    """(offset, key) of every record."""
    return [
        (header.base_offset + one.offset_delta, one.key)
        for header in iterate_headers(data)
        for one in decode_records(data[header.position : header.position + header.size])
    ]


def is_clean(world: World, bucket: str = "east") -> bool:
    known = world.tier.state.buckets.get(bucket)
    return (
        known is not None
        and known.clean_before == world.log.closed.end_offset
        and known.replacement is None
    )


def test_the_last_record_of_each_key_stays_at_its_offset() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        compacted(world)
        segment(world, (b"a", b"1"), (b"b", b"1"), (b"a", b"2"))
        segment(world, (b"c", b"1"), (b"b", b"2"))
        segment(world, (b"a", b"3"))
        before = world.log_data()
        await world.run(lambda: is_clean(world))
        data = world.data_of("east")
        assert records_of(data) == [(3, b"c"), (4, b"b"), (5, b"a")]
        assert table(data) == table(before)
        headers = list(iterate_headers(data))
        assert headers[0].base_offset == 0
        assert all(a.next_offset == b.base_offset for a, b in pairwise(headers))
        live = world.tier.state.live("east")
        assert (live[0].base_offset, live[-1].end_offset) == (0, 6)

    run(scenario)


def test_a_pass_cleans_what_earlier_passes_have_left() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        compacted(world)
        for round_ in range(4):
            for key in (b"a", b"b", b"c"):
                segment(world, (key, b"%d" % round_), (key + b"x", b"%d" % round_))
            await world.run(lambda: is_clean(world))
        data = world.data_of("east")
        assert len(records_of(data)) == 6
        assert set(table(data).values()) == {b"3"}

    run(scenario)


def test_an_object_without_records_keeps_its_offsets() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        compacted(world)
        segment(world, (b"a", b"1"), (b"a", b"2"))
        await world.run(lambda: is_clean(world))
        segment(world, (b"a", b"3"))
        await world.run(lambda: is_clean(world))
        (only,) = world.tier.state.live("east")
        assert (only.base_offset, only.end_offset) == (0, 3)
        assert records_of(world.data_of("east")) == [(2, b"a")]

    run(scenario)


@pytest.mark.parametrize("seed", range(8))
def test_any_table_is_that_of_the_log_after_every_step(seed: int) -> None:
    """Also between two replacements of one pass, with uploads, failures and other leaders."""
    rng = random.Random(seed)

    async def scenario(world: World) -> None:
        world.plan = EAST
        world.object_bytes_max = rng.choice((300, 2_000))
        compacted(world, compaction_map_bytes=rng.choice((300, 10_000)))
        everything = b""
        seen = 0

        def compare() -> bool:
            """Every state of the bucket is a table of the log up to there."""
            nonlocal seen
            end = world.tier.state.live_end("east")
            if len(world.tier.commands) != seen:
                seen = len(world.tier.commands)
                whole = [
                    everything[one.position : one.position + one.size]
                    for one in iterate_headers(everything)
                    if one.next_offset <= end
                ]
                assert values(world.data_of("east")) == values(b"".join(whole))
            return False

        for _ in range(6):
            for _ in range(rng.randrange(1, 5)):
                pairs: list[Pair] = [
                    (b"%d" % rng.randrange(12), rng.choice((None, b"v" * rng.randrange(1, 80))))
                    for _ in range(rng.randrange(1, 6))
                ]
                segment(world, *pairs)
            everything = world.log_data()
            if rng.random() < 0.5:

                def refuse(operation: str, name: str) -> None:
                    if rng.random() < 0.2:
                        raise StoreError("503")

                world.stores["east"].fail = refuse
            if rng.random() < 0.5:
                world.led.stop()
                world.led = world.new_leader()
            await world.run(lambda: compare() or is_clean(world))
            world.stores["east"].fail = lambda operation, name: None
        await world.run(lambda: compare() or is_clean(world))
        keys = [key for _, key in records_of(world.data_of("east"))]
        assert len(keys) == len(set(keys)), "one record of each key is left"

    run(scenario)


def test_a_map_that_is_full_goes_on_in_the_next_pass() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        compacted(world, compaction_map_bytes=300)
        for _ in range(2):
            write(world, *((b"%d" % at, b"v") for at in range(5)))
            segment(world, *((b"%d" % at, b"v") for at in range(5, 10)))
        await world.run(lambda: is_clean(world))
        assert len(world.of(MarkClean)) > 2
        assert len(records_of(world.data_of("east"))) == 10

    run(scenario)


def test_an_object_that_stays_as_it_is_is_not_put_again() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        world.object_bytes_max = 150
        compacted(world)
        segment(world, (b"a", b"1" * 60))
        segment(world, (b"b", b"1" * 60))
        await world.run(lambda: is_clean(world))
        assert world.of(Replace) == []
        assert len(world.of(Abandon)) >= 2
        await world.run(lambda: len(world.stores["east"].objects) == 2)

    run(scenario)


def test_a_tombstone_stays_until_all_have_outlived_it() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        compacted(world, delete_retention_ms=0)
        segment(world, (b"a", b"1"), (b"b", b"1"))
        segment(world, (b"a", None))
        await world.run(lambda: is_clean(world))
        assert table(world.data_of("east")) == {b"b": b"1", b"a": None}
        segment(world, (b"c", b"1"))
        await world.run(lambda: is_clean(world))
        assert b"a" in table(world.data_of("east")), "a member's log may have the value"
        world.outlived = Offset(3)
        segment(world, (b"d", b"1"))
        await world.run(lambda: is_clean(world))
        assert table(world.data_of("east")) == {b"b": b"1", b"c": b"1", b"d": b"1"}

    run(scenario)


def test_a_tombstone_stays_for_its_time() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        world.outlived = Offset(1_000)
        compacted(world, delete_retention_ms=3_600_000)
        segment(world, (b"a", b"1"))
        segment(world, (b"a", None))
        for key in (b"b", b"c", b"d"):
            segment(world, (key, b"1"))
            await world.run(lambda: is_clean(world))
        assert table(world.data_of("east"))[b"a"] is None
        assert len(records_of(world.data_of("east"))) == 4

    run(scenario)


def test_a_tombstone_waits_for_every_bucket() -> None:
    async def scenario(world: World) -> None:
        world.outlived = Offset(1_000)
        compacted(world, delete_retention_ms=0)

        def refuse(operation: str, name: str) -> None:
            if operation == "put" and world.of(IntendReplace):
                raise StoreError("503")

        world.stores["west"].fail = refuse
        segment(world, (b"a", b"1"))
        segment(world, (b"a", None))
        await world.run(lambda: is_clean(world, "east") and world.tier.state.live("west"))
        segment(world, (b"b", b"1"))
        await world.run(lambda: is_clean(world, "east"))
        assert table(world.data_of("east"))[b"a"] is None, "the value may be in the west"
        world.stores["west"].fail = lambda operation, name: None
        await world.run(lambda: is_clean(world, "west"))
        segment(world, (b"c", b"1"))
        await world.run(lambda: is_clean(world, "east") and is_clean(world, "west"))
        assert table(world.data_of("east")) == table(world.data_of("west"))
        assert b"a" not in table(world.data_of("east"))

    run(scenario)


def test_young_records_are_not_compacted() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        compacted(world, min_compaction_lag_ms=3_600_000)
        segment(world, (b"a", b"1"))
        segment(world, (b"a", b"2"))
        await world.run(lambda: world.is_live("east"))
        await world.settle()
        assert world.of(IntendReplace) == []

    run(scenario)


def test_producers_of_records_that_are_gone_stay_in_the_trailer() -> None:
    async def scenario(world: World) -> None:
        world.plan = EAST
        compacted(world)
        write(world, (b"a", b"1"), producer_id=7)
        world.log._roll()
        segment(world, (b"a", b"2"))
        await world.run(lambda: is_clean(world))
        (entry,) = world.tier.state.live("east")
        data = world.stores["east"].objects[entry.name][0]
        trailer = Trailer.parse(data[entry.data_bytes :], crc=entry.trailer_crc)
        assert [one.producer_id for one in trailer.producers] == [7]
        assert records_of(world.data_of("east")) == [(1, b"a")]

    run(scenario)


def test_a_bucket_that_lagged_is_repaired_from_one_that_is_cleaned() -> None:
    """Objects of the other bucket begin elsewhere, and have empty batches across its end."""

    async def scenario(world: World) -> None:
        compacted(world)

        def refuse(operation: str, name: str) -> None:
            raise StoreError("503")

        segment(world, (b"a", b"1"), (b"b", b"1"))
        await world.run(lambda: is_clean(world, "east") and is_clean(world, "west"))
        world.stores["west"].fail = refuse
        for _ in range(4):
            segment(world, (b"a", b"2"))
        await world.run(lambda: is_clean(world, "east"))
        segment(world, (b"a", b"3"), (b"c", b"1"))
        await world.run(lambda: is_clean(world, "east"))
        start = Offset(world.log_world.segment_starts()[-2])
        expected = table(world.log_data())
        world.log.remove_segments_before(world.log.index_of(start))
        world.stores["west"].fail = lambda operation, name: None
        await world.run(lambda: is_clean(world, "west"))
        assert table(world.data_of("west")) == table(world.data_of("east")) == expected
        assert [one.entry.base_offset for one in world.of(GoLive) if one.bucket == "west"][1] == 2

    run(scenario)


def test_a_compacted_log_is_uploaded_from_where_the_bucket_ends() -> None:
    """Compaction has left an empty batch across the bucket's end."""

    async def scenario(world: World) -> None:
        world.plan = replace_plan(is_copying_off=False)
        compacted(world)
        segment(world, (b"a", b"1"))
        await world.run(lambda: world.is_live("east"))
        world.plan = replace_plan(is_copying_off=True)
        for _ in range(3):
            segment(world, (b"a", b"2"))
        segment(world, (b"a", b"3"), (b"b", b"1"))
        world.log_world.flush()
        while world.log.compact(world.log.end_offset, outlived=Offset(0)):
            world.log_world.disk.run()
        first = next(iterate_headers(world.log_data()))
        assert (first.base_offset, first.next_offset) == (0, 4)
        world.plan = replace_plan(is_copying_off=False)
        await world.run(lambda: world.is_live("east") and is_clean(world))
        assert table(world.data_of("east")) == {b"a": b"3", b"b": b"1"}

    run(scenario)


def replace_plan(*, is_copying_off: bool) -> TierPlan:
    return TierPlan(buckets=("east",), is_copying_off=is_copying_off)
