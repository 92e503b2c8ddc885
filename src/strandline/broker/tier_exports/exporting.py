"""Has the buckets say what this broker's leaders know of them, and which exports are the newest.

Why:    read replicas, restores and `declare-lost` know a cluster by its buckets alone; and a
        retired object may be deleted only once the bucket's newest export does not count it.
How:    each tick compares the marks of every partition led here with those that were exported
        last. A partition that differs is exported, at most once an interval. Then the heads are
        written, if an export was, and now and then: they confirm partitions that are idle.
            A broker that led and was paused writes an older truth, under a lower name.
Owns:   the exporters of the partitions led here.
Source: decisions 0057 and 0061."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from strandline.base.clock import Clock
from strandline.base.errors import StrandlineError
from strandline.base.rng import Rng
from strandline.broker.operations.ticker import Ticker
from strandline.broker.tier_exports.led_exports import (
    BucketExports,
    Marks,
    export_of,
    marks_of,
    place_of,
)
from strandline.model.cluster import Cluster
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId
from strandline.replication.replica.replica import Replica
from strandline.tiered.exports.exporter import Exporter
from strandline.tiered.exports.heads import Key, write_heads
from strandline.tiered.exports.names import ExportNumber
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.segments.names import draw_attempt

WRITES_AT_ONCE = 4
"""Exports into one bucket."""
HEADS_PER_INTERVAL = 3
"""Heads are written again after so many intervals without an export."""
CONFIRMED_MS = 5_000
"""So long ago at most a bucket's identity was read before an export is put there."""
CHECK_MS = 600_000
"""How often an exporter sees whether the bucket still has its newest export."""
CALL_MS_MAX = 120_000
"""One export, or one object of heads, takes no longer."""

_log = logging.getLogger("strandline.broker")


class Stores(Protocol):
    """The buckets of a broker."""

    @property
    def names(self) -> Sequence[str]:
        """Every bucket."""

    def store(self, bucket: str) -> ObjectStore:
        """The store of a bucket. Raises StoreError for an unknown one."""


class BucketClaims(Protocol):
    """Which buckets are this cluster's, and those of their names."""

    def look(self) -> None:
        """Look at the buckets that are due."""

    def is_claimed(self, bucket: str) -> bool:
        """Whether it surely is."""

    def generation(self, bucket: str) -> int:
        """How often it was replaced."""

    async def confirm(self, bucket: str, generation: int, *, age_ms_max: int = 0) -> None:
        """Make sure. Raises StoreError."""


class Groups(Protocol):
    """The replicas of a broker."""

    @property
    def replicas(self) -> Mapping[GroupId, Replica]:
        """{group: its replica here}"""


class Exporting:
    """See the module. `buckets_of`: the buckets that a partition's topic uses now."""

    def __init__(
        self,
        *,
        broker_id: BrokerId,
        clock: Clock,
        rng: Rng,
        groups: Groups,
        cluster: Cluster,
        stores: Stores,
        claims: BucketClaims,
        buckets_of: Callable[[GroupId], Sequence[str]],
        check_interval_ms: int,
        export_interval_ms: int,
        grace_ms: int,
    ) -> None:
        self._broker_id = broker_id
        self._clock = clock
        self._rng = rng
        self._groups = groups
        self._cluster = cluster
        self._stores = stores
        self._claims = claims
        self._buckets_of = buckets_of
        self._interval_ms = export_interval_ms
        self._grace_ms = grace_ms
        self._led: dict[GroupId, dict[str, BucketExports]] = {}
        """{partition led here: {bucket: its exports}}"""
        self._quiet: dict[GroupId, tuple[int, int, int, bool]] = {}
        """{partition whose buckets say all: epoch, tier's index, cluster's version, True}; while
        these stay, there is nothing to compare."""
        self._heads_due_ms: dict[str, int] = {}
        """{bucket: when its heads are written again at the latest}"""
        self._heads_under_way: set[str] = set()
        self._failed: set[str] = set()
        """Buckets that did not take the last export."""
        self._gates: defaultdict[str, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(WRITES_AT_ONCE)
        )
        """{bucket: bounds its exports at one time}: one that hangs holds up no other."""
        self._paused_ms: dict[str, int] = {}
        """{bucket that did not take an export: left alone until then}"""
        self._tasks: set[asyncio.Task[None]] = set()
        self.written_count = 0
        self.failed_count = 0
        self.damaged_count = 0
        self._ticker = Ticker(
            clock,
            self._tick,
            interval_ms=check_interval_ms,
            log=_log,
            failure="exports of tiered storage failed",
        )

    def start(self) -> None:
        """Look for the first time after one interval; a broker without buckets never does."""
        if self._stores.names:
            self._ticker.start()

    def stop(self) -> None:
        """End all work; the next leader goes on."""
        self._ticker.stop()
        for task in list(self._tasks):
            task.cancel()

    def has_no_live(self, group: GroupId, bucket: str, name: str) -> bool:
        """Whether the bucket's newest export is known, and does not count this object: then it may
        be deleted after the grace."""
        known = self._led.get(group, {}).get(bucket)
        return known is not None and known.exporter.has_no_live(name)

    @property
    def pending_count(self) -> int:
        """Partitions and buckets whose newest export says less than this broker knows."""
        return sum(
            1
            for group, buckets in self._led.items()
            if (replica := self._leader(group)) is not None
            for one in buckets.values()
            if one.said != marks_of(replica, self._cluster)
        )

    # ---- exports ---------------------------------------------------------------------------------

    def _leader(self, group: GroupId) -> Replica | None:
        """The replica of a partition that is led here, and that may speak for it."""
        replica = self._groups.replicas.get(group)
        if (
            replica is None
            or replica.failed is not None
            or group not in self._cluster.groups
            or not replica.tier.is_in_use
            or not replica.tier.is_known
            or not replica.can_serve_reads
        ):
            return None
        return replica

    def _tick(self) -> None:
        now_ms, replicas = self._clock.monotonic_ms(), self._groups.replicas
        version = self._cluster.version
        for group in [one for one in self._led if one not in replicas]:
            self._forget(group)
        for group, replica in replicas.items():
            quiet = self._quiet.get(group)
            if quiet is None and not replica.is_leader:
                if group in self._led:
                    self._forget(group)
            elif quiet == (replica.epoch, replica.tier.state.index, version, replica.is_leader):
                continue
            elif group == CONTROLLER_GROUP or self._leader(group) is None:
                self._forget(group)
            elif self._look_at(replica, now_ms):
                self._quiet[group] = replica.epoch, replica.tier.state.index, version, True
            else:
                self._quiet.pop(group, None)
        self._check_some(now_ms)
        self._look_at_heads(now_ms)

    def _forget(self, group: GroupId) -> None:
        """It is not led here, or its leader may not speak for it now."""
        self._led.pop(group, None)
        self._quiet.pop(group, None)

    def _look_at(self, replica: Replica, now_ms: int) -> bool:
        """Begin the exports that are due; whether the buckets say all already."""
        buckets = self._led.setdefault(replica.group, {})
        wanted = dict.fromkeys([*self._buckets_of(replica.group), *replica.tier.state.buckets])
        marks = marks_of(replica, self._cluster)
        for bucket in wanted:
            one = buckets.get(bucket)
            generation = self._claims.generation(bucket)
            if one is None or (one.generation != generation and not one.is_under_way):
                one = self._open(replica, bucket, generation)
                if one is None:
                    continue
                buckets[bucket] = one
            due_ms = max(one.due_ms, self._paused_ms.get(bucket, 0))
            if one.said != marks and not self._claims.is_claimed(bucket):
                self._claims.look()  # It says why, if it is a wrong one.
            elif one.said != marks and not one.is_under_way and now_ms >= due_ms:
                one.is_under_way = True
                one.due_ms = now_ms + self._interval_ms
                self._begin(self._write(replica, bucket, one))
        return all(one.said == marks for one in buckets.values())

    def _open(self, replica: Replica, bucket: str, generation: int) -> BucketExports | None:
        try:
            store = self._stores.store(bucket)
        except StoreError:
            return None  # Its uploads say so.
        exporter = Exporter(
            store,
            place_of(replica, self._cluster),
            draw_attempt=lambda: draw_attempt(self._rng),
            report=lambda line: self._report(bucket, line),
            grace_ms=self._grace_ms,
        )
        return BucketExports(exporter, generation)

    async def _write(self, replica: Replica, bucket: str, one: BucketExports) -> None:
        try:
            async with self._gates[bucket], asyncio.timeout(CALL_MS_MAX / 1000):
                if self._clock.monotonic_ms() < self._paused_ms.get(bucket, 0):
                    return
                await self._claims.confirm(bucket, one.generation, age_ms_max=CONFIRMED_MS)
                if self._leader(replica.group) is not replica:
                    return
                marks: Marks = marks_of(replica, self._cluster)
                now_ms = self._clock.wall_ms()
                state = export_of(replica, self._cluster, bucket, now_ms=now_ms)
                if await one.exporter.write(state):
                    self.written_count += 1
                    self._heads_due_ms[bucket] = 0
                if one.exporter.says(state):
                    one.said = marks
        except (StrandlineError, StoreError, TimeoutError) as error:
            self.failed_count += 1
            self._paused_ms[bucket] = self._clock.monotonic_ms() + self._interval_ms
            if bucket not in self._failed:
                self._failed.add(bucket)
                _log.warning(
                    "bucket %s does not take exports, of %s for one: %s; retired objects stay "
                    "there until it does",
                    bucket,
                    replica.name,
                    error or "no answer in time",
                )
        else:
            if bucket in self._failed:
                self._failed.discard(bucket)
                _log.info("bucket %s takes exports again", bucket)
        finally:
            one.is_under_way = False

    def _check_some(self, now_ms: int) -> None:
        """Begin the checks of newest exports that are due, each at a time of its own."""
        for group, buckets in self._led.items():
            for bucket, one in buckets.items():
                if not one.check_ms:
                    spread_ms = self._rng.getrandbits(32) % (CHECK_MS // 2)
                    one.check_ms = now_ms + CHECK_MS // 2 + spread_ms
                elif now_ms >= one.check_ms and not one.is_under_way:
                    one.is_under_way = True
                    one.check_ms = now_ms + CHECK_MS
                    self._begin(self._check(group, bucket, one))

    async def _check(self, group: GroupId, bucket: str, one: BucketExports) -> None:
        try:
            async with self._gates[bucket], asyncio.timeout(CALL_MS_MAX / 1000):
                await self._claims.confirm(bucket, one.generation)
                if not await one.exporter.check():
                    one.said = None
                    self._quiet.pop(group, None)
        except (StrandlineError, StoreError, TimeoutError) as error:
            _log.debug("bucket %s does not say which exports it has: %s", bucket, error)
        finally:
            one.is_under_way = False

    def _report(self, bucket: str, line: str) -> None:
        self.damaged_count += 1
        _log.error("bucket %s: %s; the next lower export is taken", bucket, line)

    # ---- heads -----------------------------------------------------------------------------------

    def _look_at_heads(self, now_ms: int) -> None:
        led = {bucket for buckets in self._led.values() for bucket in buckets}
        for bucket in led:
            due_ms = self._heads_due_ms.get(bucket, 0)
            if now_ms >= due_ms and bucket not in self._heads_under_way:
                newest = self._newest(bucket)
                if newest:
                    self._heads_under_way.add(bucket)
                    self._heads_due_ms[bucket] = now_ms + HEADS_PER_INTERVAL * self._interval_ms
                    as_of_ms = self._clock.wall_ms()
                    self._begin(self._write_heads(bucket, as_of_ms, newest))

    def _newest(self, bucket: str) -> dict[Key, ExportNumber]:
        """The exports in the bucket that say all that their leaders know now."""
        found: dict[Key, ExportNumber] = {}
        for group, buckets in self._led.items():
            one, replica = buckets.get(bucket), self._leader(group)
            if one is None or replica is None or one.exporter.newest is None:
                continue
            if one.said == marks_of(replica, self._cluster):
                place = place_of(replica, self._cluster)
                found[place.topic_id, place.partition] = one.exporter.newest.number
        return found

    async def _write_heads(
        self, bucket: str, as_of_ms: int, newest: dict[Key, ExportNumber]
    ) -> None:
        try:
            async with asyncio.timeout(CALL_MS_MAX / 1000):
                store = self._stores.store(bucket)
                generation = self._claims.generation(bucket)
                await self._claims.confirm(bucket, generation, age_ms_max=CONFIRMED_MS)
                await write_heads(
                    store, self._cluster.cluster_id, self._broker_id, as_of_ms, newest
                )
        except (StoreError, TimeoutError) as error:
            self.failed_count += 1
            _log.debug("bucket %s does not take heads: %s", bucket, error)
        finally:
            self._heads_under_way.discard(bucket)

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
