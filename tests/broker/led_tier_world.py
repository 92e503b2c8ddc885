"""One leader's work on a partition's buckets: a real log and uploader, stores in memory.

Source: decisions 0059 and 0066."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

from tests.storage.log_world import World as LogWorld
from tests.tiered.exports.stores import MemoryStore

from strandline.base.errors import StorageError
from strandline.broker.tiering.figures import TierFigures
from strandline.broker.tiering.led_tier import LedTier
from strandline.broker.tiering.memory_budget import MemoryBudget
from strandline.broker.tiering.messages import Cleaning
from strandline.broker.tiering.rewriting import Rewriting, RunSource
from strandline.broker.tiering.sources import BucketSource, LocalSource, Source
from strandline.broker.tiering.tier_context import Deleted, LedReplica, TierPlan
from strandline.broker.tiering.uploads import NotHereError, Uploads
from strandline.model.cluster import Labels
from strandline.model.ids import BrokerId, Epoch, GroupId, Index, Offset
from strandline.network.loop_clock import LoopClock
from strandline.protocol.errors import Error
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.bucket import entries_between
from strandline.tiered.state.commands import Command, Intend, IntendReplace
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

    def __init__(self, world: "World") -> None:
        self.tier = world.tier
        self.log = world.log
        self._world = world

    @property
    def outlived_offset(self) -> Offset:
        before = self.tier.state.clean_before
        return self._world.outlived if before is None else min(self._world.outlived, before)

    @property
    def committed_end(self) -> Offset:
        return self.log.end_offset

    def may_count(self, broker: BrokerId) -> bool:
        return True

    def refuse_writes(self, reason: str) -> None:
        self.refusal = reason

    def on_unreadable(self, error: OSError | StorageError) -> None:
        self._world.errors.append(error)


class World:
    """One broker that leads a partition with buckets in two regions. It is all that it asks."""

    def __init__(self, *, segment_bytes: int = 1_000, **log: int) -> None:
        self.log_world = LogWorld(segment_bytes=segment_bytes, retention_ms=-1, **log)
        self.log = self.log_world.log
        self.tier = FakeTier(self.log)
        self.stores = {name: MemoryStore() for name in BUCKETS}
        self.figures = TierFigures()
        self.damaged: list[str] = []
        self.missing: set[str] = set()
        self.errors: list[Exception] = []
        self.may_delete_all = True
        self.generations: dict[str, int] = {}
        self.outlived = Offset(0)
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
        self.rewriting = Rewriting(self.clock, None, bytes_per_s=0)
        self.uploads = self.new_uploads()
        self.plan = TierPlan(buckets=BUCKETS)
        self.led = self.new_leader()

    def new_uploads(self) -> Uploads:
        return Uploads(
            clock=self.clock,
            broker=self,
            memory=MemoryBudget(1 << 20),
            rewrite_memory=MemoryBudget(1 << 20),
            figures=self.figures,
            stall_ms=50,
        )

    def new_leader(self) -> LedTier:
        return LedTier(FakeReplica(self), self, lambda: None)

    def has_bucket(self, bucket: str) -> bool:
        return bucket in BUCKETS

    def generation(self, bucket: str) -> int:
        return self.generations.get(bucket, 0)

    async def confirm_bucket(self, bucket: str, generation: int, *, age_ms_max: int) -> None:
        if generation != self.generation(bucket):
            raise StoreError("it was replaced")

    def take_turn(self, bucket: str) -> bool:
        return True

    def take_rewrite_turn(self, group: GroupId, bucket: str) -> bool:
        return True

    def end_rewrite(self, group: GroupId, bucket: str) -> None:
        return None

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

    def find_run(
        self, group: GroupId, intent: IntendReplace, cleaning: Cleaning | None
    ) -> tuple[RunSource, str] | None:
        live = self.tier.state.live(intent.bucket)
        run = entries_between(live, intent.base_offset, intent.end_offset)
        dirty: Sequence[SegmentEntry] = ()
        if cleaning is not None:
            dirty = entries_between(live, cleaning.dirty_start, cleaning.dirty_end)
        store = self.stores[intent.bucket]
        source = self.rewriting.source(
            store, run, dirty=dirty, cleaning=cleaning, group=group, bucket=intent.bucket
        )
        return source, intent.bucket

    def report_missing(self, bucket: str, name: str) -> None:
        self.missing.add(name)

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
