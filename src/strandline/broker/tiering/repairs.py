"""Puts live objects again that a bucket has lost, or has with wrong bytes.

Why:    each bucket is a copy; a copy that is not made again is missing when the next one fails.
How:    a reader or an uploader finds an object missing or wrong --report--> the leader's broker
        leader: read the object --sound--> nothing
                  missing or damaged --> the same bytes again, from another bucket's equal object,
                  this log, or another bucket's objects of other ranges
                  --their checksums are the entry's--> put under the same name, and read back
        An object is a function of its range and its name, so the same name gets the same bytes, and
        neither the log nor an export changes. A source whose bytes make another object is not used.
        One object at a time, and `PAUSE_MS` between two.
Owns:   the queue of this broker; it may be lost: the next reader of the object reports it again.
Source: decision 0068."""

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import msgspec
from msgspec.structs import replace

from strandline.base.clock import Clock
from strandline.base.disk import Buffer
from strandline.base.errors import ProtocolError, StorageError
from strandline.broker.tiering.figures import TierFigures
from strandline.broker.tiering.memory_budget import MemoryBudget
from strandline.broker.tiering.sources import BucketSource, Source
from strandline.model.ids import BrokerId, GroupId
from strandline.network.calls import CallError, Calls
from strandline.tiered.collection.verify import Verdict, verify_entry
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer, TrailerError
from strandline.tiered.segments.writer import SegmentWriter, UnfitBatchError
from strandline.tiered.state.bucket import entries_between
from strandline.tiered.state.tier import TierState

METHOD = "tier.repair"
CALL_TIMEOUT_MS = 5_000
QUEUE_COUNT_MAX = 1_000
"""Objects that wait for their repair; further reports are forgotten, and come again."""
REPORTED_MS = 60_000
"""An object is reported, or looked at, so often at most."""
PAUSE_MS = 500
REPAIR_MS_MAX = 600_000
"""One object takes no longer."""

_log = logging.getLogger("strandline.broker")


class Found(msgspec.Struct, frozen=True, array_like=True):
    """An object that a broker has found missing or damaged."""

    group: GroupId
    bucket: str
    name: str


class Repaired(NamedTuple):
    """What became of an object. `reason`: a sentence, if it is not sound now."""

    verdict: Verdict
    is_put: bool = False
    reason: str = ""


class Repairing(Protocol):
    """What repairs need of their broker."""

    def group_of(self, name: str) -> GroupId | None:
        """The partition of an object, by its name."""

    def leader_of(self, group: GroupId) -> BrokerId:
        """The broker that leads it, as far as known."""

    def led_state(self, group: GroupId) -> TierState | None:
        """What the partition's log says, if this broker leads it for certain."""

    def local_source(self, group: GroupId, entry: SegmentEntry) -> Source | None:
        """The records of an object in this broker's log, if it has all of them."""

    def store(self, bucket: str) -> ObjectStore:
        """The store of a bucket. Raises StoreError."""

    def is_usable(self, bucket: str) -> bool:
        """Whether it is this cluster's, and the one of its name."""

    async def confirm(self, bucket: str) -> None:
        """Read now that it is the right bucket. Raises StoreError."""


class Repairs:
    """See the module; one per broker."""

    def __init__(
        self,
        clock: Clock,
        calls: Calls,
        *,
        self_id: BrokerId,
        broker: Repairing,
        memory: MemoryBudget,
        figures: TierFigures,
    ) -> None:
        self._clock = clock
        self._calls = calls
        self._self_id = self_id
        self._broker = broker
        self._memory = memory
        self._figures = figures
        self._queue: deque[Found] = deque()
        self._reported_ms: OrderedDict[tuple[str, str], int] = OrderedDict()
        """{(bucket, name): when it was last reported or taken}, oldest first."""
        self._turn = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._worker: asyncio.Task[None] | None = None
        calls.register(METHOD, self._on_call)

    def stop(self) -> None:
        """End all work; the queue is forgotten."""
        self._queue.clear()
        for task in [*self._tasks, *([self._worker] if self._worker else [])]:
            task.cancel()

    # ---- reports ---------------------------------------------------------------------------------

    def report(self, bucket: str, name: str) -> None:
        """An object is missing or wrong, as far as it was read here: have its leader look."""
        group = self._broker.group_of(name)
        if group is None or self._was_reported(bucket, name):
            return
        found = Found(group, bucket, name)
        leader = self._broker.leader_of(group)
        if leader == self._self_id:
            self._add(found)
        elif leader >= 0:
            task = asyncio.get_running_loop().create_task(self._tell(leader, found))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _was_reported(self, bucket: str, name: str) -> bool:
        now_ms, key = self._clock.monotonic_ms(), (bucket, name)
        if now_ms - self._reported_ms.get(key, -REPORTED_MS) < REPORTED_MS:
            return True
        self._reported_ms.pop(key, None)
        self._reported_ms[key] = now_ms
        if len(self._reported_ms) > QUEUE_COUNT_MAX:
            self._reported_ms.popitem(last=False)
        return False

    async def _tell(self, leader: BrokerId, found: Found) -> None:
        try:
            payload = msgspec.msgpack.encode(found)
            await self._calls.call(leader, METHOD, payload, timeout_ms=CALL_TIMEOUT_MS)
        except CallError as error:
            _log.info("cannot report %s to broker %d: %s", found.name, leader, error)

    async def _on_call(self, sender: BrokerId, payload: bytes) -> bytes:
        try:
            found = msgspec.msgpack.decode(payload, type=Found)
        except msgspec.MsgspecError as error:
            raise ProtocolError(f"broker {sender} sent an unreadable report") from error
        if not self._was_reported(found.bucket, found.name):
            self._add(found)
        return b""

    def _add(self, found: Found) -> None:
        if len(self._queue) >= QUEUE_COUNT_MAX or found in self._queue:
            return
        self._queue.append(found)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while self._queue:
            found = self._queue.popleft()
            try:
                await self.repair(found.group, found.bucket, found.name)
            except Exception:  # A task boundary: one object must not hold up the others.
                _log.exception("the repair of %s in %s failed", found.name, found.bucket)
            await asyncio.sleep(PAUSE_MS / 1000)

    # ---- one object ------------------------------------------------------------------------------

    async def repair(self, group: GroupId, bucket: str, name: str) -> Repaired:
        """Read an object of a partition that is led here, and put it again if that is needed."""
        async with self._turn:
            try:
                async with asyncio.timeout(REPAIR_MS_MAX / 1000):
                    done = await self._repair(group, bucket, name)
            except (StoreError, TimeoutError) as error:
                done = Repaired(Verdict.UNREADABLE, reason=str(error) or "no answer in time")
        if done.is_put:
            self._figures.count_repaired(bucket)
            _log.warning(
                "bucket %s: object %s was missing or wrong, and is put again", bucket, name
            )
        elif done.verdict in (Verdict.MISSING, Verdict.DAMAGED):
            _log.error(
                "bucket %s: object %s is %s, and cannot be put again: %s",
                bucket,
                name,
                done.verdict.value,
                done.reason,
            )
        return done

    async def _repair(self, group: GroupId, bucket: str, name: str) -> Repaired:
        """Raises StoreError."""
        entry = self._live(group, bucket, name)
        if entry is None:
            return Repaired(Verdict.UNREADABLE, reason="no log here says that it is live")
        await self._broker.confirm(bucket)
        store = self._broker.store(bucket)
        found = await verify_entry(store, entry)
        if found.verdict in (Verdict.SOUND, Verdict.UNREADABLE):
            return Repaired(found.verdict, reason=found.reason)
        reasons = [found.reason]
        async with self._memory.hold(entry.size_bytes * 5 // 4):
            state = self._broker.led_state(group)
            if state is None:
                return Repaired(Verdict.UNREADABLE, reason="another broker leads it now")
            for where, make in self._sources(state, group, bucket, entry):
                try:
                    parts = await make()
                except (OSError, StorageError, StoreError, TrailerError, UnfitBatchError) as error:
                    reasons.append(f"{where}: {error}")
                    continue
                if self._live(group, bucket, name) is None:
                    return Repaired(found.verdict, reason="it was retired meanwhile")
                await self._broker.confirm(bucket)
                await store.put(name, parts)
                after = await verify_entry(store, entry)
                return Repaired(after.verdict, after.verdict is Verdict.SOUND, after.reason)
        return Repaired(found.verdict, reason="; ".join(reasons))

    def _live(self, group: GroupId, bucket: str, name: str) -> SegmentEntry | None:
        state = self._broker.led_state(group)
        live = () if state is None else state.live(bucket)
        return next((one for one in live if one.name == name), None)

    def _sources(
        self, state: TierState, group: GroupId, bucket: str, entry: SegmentEntry
    ) -> list[tuple[str, Callable[[], Awaitable[Sequence[Buffer]]]]]:
        """(the source in words, a call that gives the object's bytes), the cheapest first. The call
        raises OSError, StorageError, StoreError, TrailerError, UnfitBatchError."""
        copies: list[tuple[str, Callable[[], Awaitable[Sequence[Buffer]]]]] = []
        runs: list[tuple[str, Callable[[], Awaitable[Sequence[Buffer]]]]] = []
        for other in state.buckets:
            if other == bucket or not self._broker.is_usable(other):
                continue
            store = self._broker.store(other)
            run = tuple(entries_between(state.live(other), entry.base_offset, entry.end_offset))
            if len(run) == 1 and _is_alike(run[0], entry):
                copies.append((f"bucket {other}", partial(_copy, store, run[0])))
            elif _covers(run, entry):
                runs.append((f"bucket {other}", partial(_rebuild, _Run(store, run), entry)))
        local = self._broker.local_source(group, entry)
        if local is not None:
            copies.append(("this broker's log", partial(_rebuild, local, entry)))
        return copies + runs


class _Run:
    """The records are in a run of another bucket's objects."""

    def __init__(self, store: ObjectStore, run: Sequence[SegmentEntry]) -> None:
        self._sources = [BucketSource(store, one) for one in run]
        self.size_bytes = sum(one.size_bytes for one in self._sources)

    async def read_into(self, writer: SegmentWriter, moved: Callable[[int], None]) -> None:
        """See `Source`."""
        for source in self._sources:
            await source.read_into(writer, moved)


def _is_alike(one: SegmentEntry, other: SegmentEntry) -> bool:
    """Whether two objects have the same bytes, but for their names."""
    return replace(one, name="", live_ms=-1) == replace(other, name="", live_ms=-1)


def _covers(run: Sequence[SegmentEntry], entry: SegmentEntry) -> bool:
    return (
        bool(run)
        and run[0].base_offset <= entry.base_offset
        and entry.end_offset <= run[-1].end_offset
    )


async def _copy(store: ObjectStore, entry: SegmentEntry) -> list[Buffer]:
    """The bytes of a whole object, each chunk checked. Raises StoreError, TrailerError,
    UnfitBatchError."""
    encoded = await store.get_range(entry.name, entry.data_bytes, entry.size_bytes)
    trailer = Trailer.parse(encoded, crc=entry.trailer_crc)
    parts: list[Buffer] = []
    for chunk in range(trailer.chunk_count):
        first, end = trailer.chunk_range(chunk)
        data = await store.get_range(entry.name, first, end)
        if not trailer.chunk_matches(chunk, data):
            raise UnfitBatchError(f"chunk {chunk} of {entry.name} is damaged")
        parts.append(data)
    return [*parts, encoded]


async def _rebuild(source: Source, entry: SegmentEntry) -> Sequence[Buffer]:
    """The object, made again of its records. Raises OSError, StorageError, StoreError,
    TrailerError, UnfitBatchError."""
    writer = SegmentWriter(entry.base_offset, entry.end_offset)
    await source.read_into(writer, lambda _: None)
    made = writer.finish(entry.name)
    if not _is_alike(made.entry, entry):
        raise UnfitBatchError("its records make another object than the one that was uploaded")
    return made.parts
