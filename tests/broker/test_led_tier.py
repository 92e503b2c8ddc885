"""The leader's work on a partition's buckets: a real log and uploader, a store in memory.

Source: decision 0059."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from tests.storage.log_world import World as LogWorld
from tests.tiered.exports.stores import MemoryStore

from strandline.base.errors import StorageError
from strandline.broker.tiering import led_tier as led_module
from strandline.broker.tiering import uploads as uploads_module
from strandline.broker.tiering.figures import TierFigures
from strandline.broker.tiering.led_tier import LedTier
from strandline.broker.tiering.memory_budget import MemoryBudget
from strandline.broker.tiering.sources import BucketSource, LocalSource, Source
from strandline.broker.tiering.tier_context import CopyLag, Deleted, LedReplica, TierPlan
from strandline.broker.tiering.uploads import NotHereError, Uploads
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.network.loop_clock import LoopClock
from strandline.protocol.errors import Error
from strandline.records.batch import iterate_headers
from strandline.storage.log.log import Log
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.commands import Abandon, Command, Forget, GoLive, Intend, Retire
from strandline.tiered.state.tier import TierState
from strandline.tiered.state.transitions import Refusal

GROUP = GroupId(7)
SELF = BrokerId(1)
BUCKETS = ("east", "west")
HOUR_MS = 3_600_000


class FakeTier:
    """Applies commands a moment after they are proposed, as a group without followers does."""

    def __init__(self, log: Any) -> None:
        self.state = TierState()
        self.is_known = True
        self.log = log
        self.commands: list[Command] = []
        self.refusals: list[object] = []

    def propose(self, command: Command, done: Callable[[Error, Refusal | None], None]) -> None:
        asyncio.get_running_loop().call_soon(self._commit, command, done)

    def _commit(self, command: Command, done: Callable[[Error, Refusal | None], None]) -> None:
        self.commands.append(command)
        index = Index(self.state.index + 1)
        refusal = self.state.apply(index, Epoch(1), command, log_end=self.log.end_offset)
        if refusal is not None:
            self.refusals.append(refusal)
        done(Error.NONE, refusal)


class FakeReplica:
    """The leader's replica, alone."""

    refusal = ""

    group = GROUP
    self_id = SELF
    name = "t-0"
    epoch = Epoch(1)
    configuration: Any = SimpleNamespace(members=(SELF,))

    def __init__(self, tier: FakeTier, log: Log, errors: list[Exception]) -> None:
        self.tier = tier
        self.log = log
        self._errors = errors

    @property
    def committed_end(self) -> Offset:
        return self.log.end_offset

    def may_count(self, broker: BrokerId) -> bool:
        return True

    def on_unreadable(self, error: OSError | StorageError) -> None:
        self._errors.append(error)

    def refuse_writes(self, reason: str) -> None:
        self.refusal = reason


class World:
    """One broker that leads a partition with buckets in two regions. It is all that it asks."""

    def __init__(self, *, segment_bytes: int = 1_000, **log: int) -> None:
        self.log_world = LogWorld(segment_bytes=segment_bytes, retention_ms=-1, **log)
        self.log = self.log_world.log
        self.tier = FakeTier(self.log)
        self.stores = {name: MemoryStore() for name in BUCKETS}
        self.figures = TierFigures()
        self.damaged: list[str] = []
        self.errors: list[Exception] = []
        self.may_delete_all = True
        self.generations: dict[str, int] = {}
        # What a context has.
        self.broker_id = SELF
        self.clock = LoopClock(asyncio.get_running_loop())
        self.rng = random.Random(1)
        self.calls: Any = None
        self.interval_ms = 1
        self.recheck_ms = 1
        self.stall_ms = 60_000
        self.delete_grace_ms = 0
        self.object_bytes_max = 100_000
        self.uploads = self.new_uploads()
        self.plan = TierPlan(buckets=BUCKETS)
        self.led = self.new_leader()

    def new_uploads(self) -> Uploads:
        return Uploads(
            clock=self.clock,
            broker=self,
            memory=MemoryBudget(1 << 20),
            figures=self.figures,
            stall_ms=50,
        )

    def new_leader(self) -> LedTier:
        return LedTier(FakeReplica(self.tier, self.log, self.errors), self, lambda: None)

    def has_bucket(self, bucket: str) -> bool:
        return bucket in BUCKETS

    def generation(self, bucket: str) -> int:
        return self.generations.get(bucket, 0)

    async def confirm_bucket(self, bucket: str, generation: int, *, age_ms_max: int) -> None:
        if generation != self.generation(bucket):
            raise StoreError("it was replaced")

    def take_turn(self, bucket: str) -> bool:
        return True

    def labels_of(self, broker: BrokerId) -> Labels:
        return Labels(region="east")

    def bucket_labels(self, bucket: str) -> Labels:
        return Labels(region=bucket)

    def place_of(self, group: GroupId) -> tuple[str, str, int]:
        return "cluster", "topic", 0

    def durable_end(self, replica: LedReplica) -> Offset:
        return self.log.end_offset

    def may_delete(self, replica: LedReplica, bucket: str, name: str) -> bool:
        return self.may_delete_all

    def delete(self, bucket: str, names: Sequence[str], done: Deleted) -> None:
        async def work() -> None:
            try:
                await self.stores[bucket].delete(names)
            except StoreError:
                done(is_done=False)
            else:
                done(is_done=True)

        self.deleting = asyncio.get_running_loop().create_task(work())

    # What uploads ask.

    def store(self, bucket: str) -> ObjectStore:
        return self.stores[bucket]

    def find_source(self, group: GroupId, intent: Intend) -> tuple[Source, str] | None:
        start, end = intent.base_offset, intent.end_offset
        if start >= self.log.start_offset:
            parts = self.log.closed.file_ranges(start, end)
            return LocalSource(parts, None), "east"
        for other in BUCKETS:
            entry = self.tier.state.find(other, start) if other != intent.bucket else None
            if entry is not None:
                return BucketSource(self.stores[other], entry), other
        raise NotHereError("nowhere")

    def ends_of_live(self, group: GroupId, bucket: str) -> Sequence[SegmentEntry]:
        return self.tier.state.live(bucket)

    def on_damaged(self, group: GroupId, intent: Intend) -> None:
        self.damaged.append(intent.name)

    # What tests do.

    def fill(self, count: int = 40, *, timestamp: int | None = None) -> None:
        for _ in range(count):
            self.log_world.append(2, timestamp=timestamp)

    async def run(self, until: Callable[[], object]) -> None:
        """Look until something is true; fails after many looks."""
        for _ in range(3_000):
            if until():
                return
            self.look()
            await asyncio.sleep(0.001)
        raise AssertionError("it did not come to that")

    async def settle(self) -> None:
        """Look often, and see what has not happened."""
        for _ in range(50):
            self.look()
            await asyncio.sleep(0)

    def look(self) -> None:
        now_ms = self.clock.monotonic_ms()
        if self.led.is_due(now_ms, self.plan):
            self.led.look(now_ms, self.plan)

    def is_live(self, *buckets: str) -> bool:
        """Whether all closed segments are live."""
        ends = {self.tier.state.live_end(one) for one in buckets or BUCKETS}
        return ends == {self.log.closed.end_offset} and not any(
            self.tier.state.pending(one) for one in buckets or BUCKETS
        )

    def of(self, kind: type) -> list[Any]:
        return [one for one in self.tier.commands if isinstance(one, kind)]

    def data_of(self, bucket: str) -> bytes:
        """All data that is live in a bucket, in order."""
        objects = self.stores[bucket].objects
        return b"".join(
            objects[one.name][0][: one.data_bytes] for one in self.tier.state.live(bucket)
        )

    def log_data(self, start: int = 0) -> bytes:
        """The data of the closed segments of the log, from an offset."""
        end = self.log.closed.end_offset
        parts = self.log.closed.file_ranges(Offset(start), end)
        return b"".join(part.read() for part in parts)


def run(scenario: Callable[[World], Coroutine[Any, Any, None]], **world: int) -> None:
    """Run a scenario in a new world."""

    async def go() -> None:
        made = World(**world)
        await scenario(made)
        assert made.tier.refusals == []
        made.led.stop()
        made.uploads.stop()

    asyncio.run(go())


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
