"""Tiered storage on one broker: leads the uploads of its partitions, and uploads as others ask.

Why:    one object knows the buckets, the budget and all that is under way, and nothing of it lies
        on the path of a produce request.
How:    every `check_interval_ms`, or sooner if something has changed, each partition that this
        broker leads is looked at (`LedTier`), if its state, its closed segments or its topic's plan
        have changed. Thousands of idle partitions cost a comparison each.
Owns:   the `LedTier` of each partition, the `Uploads`, the figures. One per broker.
Source: decisions 0057, 0059 and 0066."""

import asyncio
import contextlib
import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID

from strandline.base.errors import ApiError, StorageError
from strandline.base.rising import RisingLevel
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.topic_configs import TopicConfigs
from strandline.broker.operations.ticker import Ticker
from strandline.broker.tiering.claims import Claims
from strandline.broker.tiering.deleted_topics import DeletedTopics
from strandline.broker.tiering.figures import TierFigures
from strandline.broker.tiering.history import HistoryLoader
from strandline.broker.tiering.led_tier import LedTier
from strandline.broker.tiering.memory_budget import MemoryBudget
from strandline.broker.tiering.messages import METHOD, Cleaning
from strandline.broker.tiering.repair_context import RepairContext
from strandline.broker.tiering.repairs import Repairs
from strandline.broker.tiering.rewriting import Rewriting, RunSource
from strandline.broker.tiering.sources import PIECE_BYTES, BucketSource, LocalSource, Source
from strandline.broker.tiering.tier_context import Deleted, LedReplica, TierPlan
from strandline.broker.tiering.topic_plans import TopicPlans
from strandline.broker.tiering.uploads import NotHereError, Uploads
from strandline.config.broker import BrokerConfig
from strandline.model.cluster import Labels
from strandline.model.ids import CONTROLLER_GROUP, BrokerId, GroupId, Index, Offset
from strandline.records.batch import iterate_headers
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.bucket import entries_between
from strandline.tiered.state.commands import Intend, IntendReplace
from strandline.tiered.state.transitions import Phase

THREADS_MAX = 2
"""Read and check segments; the store's own threads send them."""
RECHECK_MS_MAX = 60_000
UNDER_WAY_MAX = 64
"""Uploads to one bucket that this broker's partitions have under way, here and elsewhere."""
_SETTLED = (Phase.LIVE, Phase.RETIRED, Phase.ABANDONED)

_log = logging.getLogger("strandline.broker")


class Tiering:
    """See the module. It is the `TierContext` of its partitions, and `Uploading` of its uploads."""

    def __init__(
        self,
        *,
        config: BrokerConfig,
        rng: random.Random,
        replication: Replication,
        controller: ControllerHost,
        topic_configs: TopicConfigs,
        buckets: Buckets,
        claims: Claims,
    ) -> None:
        tiered = config.tiered
        self.broker_id: BrokerId = config.broker_id
        self.clock = replication.clock
        self.rng = rng
        self.calls = replication.calls
        self.buckets = buckets
        self.interval_ms = tiered.check_interval_ms
        self.recheck_ms = min(config.storage.retention_check_interval_ms, RECHECK_MS_MAX)
        self.stall_ms = tiered.upload_stall_timeout_ms
        self.delete_grace_ms = tiered.delete_grace_ms
        self.object_bytes_max = tiered.inflight_bytes_max // 4
        self.figures = TierFigures()
        self.may_delete_by: list[Callable[[GroupId, str, str], bool]] = []
        """Asked before an object is deleted: (group, bucket, name) -> whether it may be."""
        self.claims = claims
        claims.on_changed.append(self.look_soon)
        self._deleted_topics = DeletedTopics(
            self.clock,
            controller,
            buckets,
            self.claims,
            grace_ms=tiered.delete_grace_ms,
            deleted=self.figures.count_deleted,
        )
        self._replication = replication
        self._controller = controller
        self._labels = tiered.labels_of_buckets
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="tier")
        memory = MemoryBudget(tiered.inflight_bytes_max // 2)
        self.uploads = self._new_uploads(memory, tiered.inflight_bytes_max // 4)
        self.repairs = self._made_repairs(memory)
        self._history = HistoryLoader(
            self.clock, self.own_store, self.export_place, claims.generation
        )
        self._rewriting = Rewriting(
            self.clock, self._threads, bytes_per_s=tiered.rewrite_bytes_per_s
        )
        self._rewriters: dict[str, GroupId] = {}
        """{bucket: the partition led here whose objects are written again there now}"""
        self._plans = TopicPlans(controller.cluster, topic_configs, self._labels)
        self._led: dict[GroupId, LedTier] = {}
        self._under_way: Counter[str] = Counter()
        """{bucket: uploads under way of partitions led here}, counted at each look."""
        self._disk = RisingLevel()
        self._disk_bytes = 0
        self._first = 0
        self._undeleted: set[str] = set()
        """Buckets whose last deletion failed."""
        self._deletions: set[asyncio.Task[None]] = set()
        self._is_due = self._is_stopped = False
        self._ticker = Ticker(
            self.clock,
            self._look,
            interval_ms=self.interval_ms,
            log=_log,
            failure="cannot look after tiered storage",
        )
        self.calls.register(METHOD, self.uploads.on_call)

    def _new_uploads(self, memory: MemoryBudget, rewrite_bytes_max: int) -> Uploads:
        return Uploads(
            clock=self.clock,
            broker=self,
            memory=memory,
            rewrite_memory=MemoryBudget(rewrite_bytes_max),
            figures=self.figures,
            stall_ms=self.stall_ms,
        )

    def _made_repairs(self, memory: MemoryBudget) -> Repairs:
        context = RepairContext(
            replication=self._replication,
            controller=self._controller,
            buckets=self.buckets,
            claims=self.claims,
            threads=self._threads,
        )
        return Repairs(
            self.clock,
            self.calls,
            self_id=self.broker_id,
            broker=context,
            memory=memory,
            figures=self.figures,
        )

    @property
    def led(self) -> Mapping[GroupId, LedTier]:
        """{group that this broker leads and that has, or had, tiered storage: its work}"""
        return self._led

    def start(self) -> None:
        """Look for the first time after one interval."""
        self._ticker.start()

    def stop(self) -> None:
        """End all work; what the state says goes on elsewhere, or after a restart."""
        self._is_stopped = True
        self._ticker.stop()
        for led in self._led.values():
            led.stop()
        self._led.clear()
        self.uploads.stop()
        self.repairs.stop()
        self._history.stop()
        self.claims.stop()
        self._deleted_topics.stop()
        for task in list(self._deletions):
            task.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # ---- looking ---------------------------------------------------------------------------------

    def look_soon(self) -> None:
        """Look once more after the work in hand."""
        if not self._is_due and not self._is_stopped:
            self._is_due = True
            self.clock.call_soon(self._look_now)

    def _look_now(self) -> None:
        self._is_due = False
        if not self._is_stopped:
            self._look()

    def _look(self) -> None:
        """Look at all partitions that are led here and whose look is due."""
        replicas = self._replication.replicas
        self._settle_uploads()
        self._deleted_topics.look()
        if any(one.tier.is_in_use for one in replicas.values()):
            if self._disk.is_due(self.clock.monotonic_ms()):
                self._look_at_disk()
            self.claims.look()
        self._rewriting.forget_old()
        for group in [
            one for one in self._led if one not in replicas or not replicas[one].tier.is_in_use
        ]:
            self._led.pop(group).stop()
        for bucket in [at for at, one in self._rewriters.items() if one not in self._led]:
            del self._rewriters[bucket]
        self._under_way = Counter(
            bucket
            for led in self._led.values()
            for bucket, work in led.work.items()
            for _ in work.attempts
        )
        for replica in self._in_turn(list(replicas.values())):
            if replica.tier.is_in_use and replica.group != CONTROLLER_GROUP:
                self._look_at(replica)

    def _in_turn(self, replicas: list[Replica]) -> list[Replica]:
        """Another one first each time: the first ones must not take all turns of a bucket."""
        self._first = (self._first + UNDER_WAY_MAX) % max(1, len(replicas))
        return replicas[self._first :] + replicas[: self._first]

    def _look_at(self, replica: Replica) -> None:
        led = self._led.get(replica.group)
        if replica.failed is not None or not replica.can_serve_reads:
            if led is not None:
                self._led.pop(replica.group).stop()
            return
        if replica.tier.awaits_history:
            self._history.look(replica)
        if led is None:
            led = self._led[replica.group] = LedTier(replica, self, self.look_soon)
        now_ms, plan = self.clock.monotonic_ms(), self._plans.of(replica.group)
        if led.is_due(now_ms, plan):
            try:
                led.look(now_ms, plan)
            except Exception:  # One partition must not hold up the others.
                _log.exception("%s: cannot look after its buckets", replica.name)

    def _settle_uploads(self) -> None:
        """Forget uploads here whose intent is live or abandoned, or whose replica is gone."""
        for group, name in list(self.uploads.known):
            replica = self._replication.replicas.get(group)
            bucket = self.uploads.known[group, name].intent.bucket
            known = None if replica is None else replica.tier.state.buckets.get(bucket)
            upload = self.uploads.known[group, name]
            if replica is None or (
                known is not None
                and (known.phase_of(name) in _SETTLED or known.generation > upload.generation)
            ):
                self.uploads.settle(group, name)

    def lagging(self) -> list[GroupId]:
        """The partitions led here whose closed segments are missing from a bucket for too long, by
        `remote.copy.lag.max.ms` after they were due, or are above `remote.copy.lag.max.bytes`."""
        wall_ms = self.clock.wall_ms()
        found = []
        for group, led in self._led.items():
            plan = self._plans.of(group)
            late_ms = max(0, plan.lag.lag_ms) + plan.lag_max_ms
            if led.backlog.is_full or any(
                0 <= one.pending_since_ms < wall_ms - late_ms
                for bucket, one in led.work.items()
                if bucket in plan.buckets
            ):
                found.append(group)
        return found

    def refusing(self) -> list[GroupId]:
        """The partitions led here that refuse writes above `remote.copy.lag.max.bytes`."""
        return [group for group, led in self._led.items() if led.backlog.is_refusing]

    def full_in_ms(self) -> int | None:
        """How long until this broker's disk is full, or a partition led here is at its limit, at
        the present rate; None if neither comes nearer."""
        now_ms = self.clock.monotonic_ms()
        found = [led.backlog.full_in_ms(now_ms) for led in self._led.values()]
        found.append(self._disk.reaches_in_ms(now_ms, self._disk_bytes))
        return min((one for one in found if one is not None), default=None)

    def _look_at_disk(self) -> None:
        """Note how full the disk is; a disk that cannot say so is not counted."""
        with contextlib.suppress(OSError):
            used_bytes, free_bytes = self._replication.space()
            self._disk_bytes = used_bytes + free_bytes
            self._disk.note(self.clock.monotonic_ms(), used_bytes)

    def plan_of(self, group: GroupId) -> TierPlan:
        """What the partition's topic wants of its buckets."""
        return self._plans.of(group)

    # ---- what the leader's work asks -------------------------------------------------------------

    def has_bucket(self, bucket: str) -> bool:
        """See `TierContext`."""
        return bucket in self._labels

    def generation(self, bucket: str) -> int:
        """See `TierContext`."""
        return self.claims.generation(bucket)

    def take_turn(self, bucket: str) -> bool:
        """See `TierContext`."""
        if not self.claims.is_claimed(bucket) or self._under_way[bucket] >= UNDER_WAY_MAX:
            return False
        self._under_way[bucket] += 1
        return True

    def take_rewrite_turn(self, group: GroupId, bucket: str) -> bool:
        """See `TierContext`."""
        if not self.claims.is_claimed(bucket):
            return False
        return self._rewriters.setdefault(bucket, group) == group

    def end_rewrite(self, group: GroupId, bucket: str) -> None:
        """See `TierContext`."""
        if self._rewriters.get(bucket) == group:
            del self._rewriters[bucket]

    def labels_of(self, broker: BrokerId) -> Labels:
        """See `TierContext`."""
        known = self._controller.cluster.brokers.get(broker)
        return Labels() if known is None else known.labels

    def bucket_labels(self, bucket: str) -> Labels:
        """See `TierContext`."""
        return self._labels[bucket]

    def place_of(self, group: GroupId) -> tuple[str, str, int]:
        """See `TierContext`."""
        cluster = self._controller.cluster
        partition = cluster.groups[group]
        return cluster.cluster_id, str(cluster.topics[partition.topic].id), partition.index

    def export_place(self, group: GroupId) -> PartitionPlace:
        """Where a partition is in a bucket; raises StoreError if it is gone."""
        if group not in self._controller.cluster.groups:
            raise StoreError("the partition is gone")
        cluster_id, topic_id, index = self.place_of(group)
        return PartitionPlace(cluster_id, UUID(topic_id), index)

    def durable_end(self, replica: LedReplica) -> Offset:
        """See `TierContext`."""
        log = replica.log
        flushed = Index(log.flushed_index + 1)
        end = log.end_offset if flushed > log.last_index else log.offset_of(flushed)
        return min(end, replica.committed_end)

    def may_delete(self, replica: LedReplica, bucket: str, name: str) -> bool:
        """See `TierContext`."""
        return all(may(replica.group, bucket, name) for may in self.may_delete_by)

    def delete(self, bucket: str, names: Sequence[str], done: Deleted) -> None:
        """See `TierContext`."""
        task = asyncio.get_running_loop().create_task(self._delete(bucket, names, done))
        self._deletions.add(task)
        task.add_done_callback(self._deletions.discard)

    async def _delete(self, bucket: str, names: Sequence[str], done: Deleted) -> None:
        is_done = False
        try:
            async with asyncio.timeout(self.stall_ms / 1000):
                await self.claims.confirm(bucket, self.claims.generation(bucket))
                await self.store(bucket).delete(names)
            is_done = True
            self._undeleted.discard(bucket)
            self.figures.count_deleted(bucket, len(names))
        except (StoreError, TimeoutError) as error:
            self.figures.count_error(bucket)
            if bucket not in self._undeleted:  # One line stands for all partitions and attempts.
                self._undeleted.add(bucket)
                _log.warning("cannot delete %d objects of bucket %s: %s", len(names), bucket, error)
        done(is_done=is_done)

    # ---- what uploads ask ------------------------------------------------------------------------

    def store(self, bucket: str) -> ObjectStore:
        """The store of a bucket."""
        return self.buckets.store(bucket)

    def own_store(self, bucket: str) -> ObjectStore:
        """The store of a bucket that is surely this cluster's; raises StoreError."""
        if not self.claims.is_claimed(bucket):
            raise StoreError(f"bucket {bucket} is not known to be this cluster's yet")
        return self.buckets.store(bucket)

    def report_missing(self, bucket: str, name: str) -> None:
        """See `Uploading`."""
        self.repairs.report(bucket, name)

    def ends_of_live(self, group: GroupId, bucket: str) -> Sequence[SegmentEntry]:
        """See `Uploading`."""
        replica = self._replication.replicas.get(group)
        live = () if replica is None else replica.tier.state.live(bucket)
        return (live[0], live[-1]) if live else ()

    async def confirm_bucket(self, bucket: str, generation: int, *, age_ms_max: int) -> None:
        """See `Uploading`."""
        await self.claims.confirm(bucket, generation, age_ms_max=age_ms_max)

    def find_source(self, group: GroupId, intent: Intend) -> tuple[Source, str] | None:
        """See `Uploading`."""
        replica = self._uploading_replica(group, intent.bucket)
        if replica is None:
            return None
        start, end = intent.base_offset, intent.end_offset
        if start >= replica.log.start_offset:
            if self.durable_end(replica) < end:
                return None
            parts = replica.log.closed.file_ranges(start, end)
            return LocalSource(parts, self._threads), self.labels_of(self.broker_id).region
        return self._other_bucket(replica, intent)

    def find_run(
        self, group: GroupId, intent: IntendReplace, cleaning: Cleaning | None
    ) -> tuple[RunSource, str] | None:
        """See `Uploading`."""
        bucket = intent.bucket
        replica = self._uploading_replica(group, bucket)
        known = None if replica is None else replica.tier.state.buckets.get(bucket)
        if known is None or known.replacement != intent:
            return None
        run = entries_between(known.live, intent.base_offset, intent.end_offset)
        if tuple(one.name for one in run) != intent.names:
            raise NotHereError("retention has taken some of its objects")
        dirty: Sequence[SegmentEntry] = ()
        if cleaning is not None:
            dirty = entries_between(known.live, cleaning.dirty_start, cleaning.dirty_end)
        source = self._rewriting.source(
            self.store(bucket), run, dirty=dirty, cleaning=cleaning, group=group, bucket=bucket
        )
        return source, self.bucket_labels(bucket).region

    def _uploading_replica(self, group: GroupId, bucket: str) -> Replica | None:
        """The replica here, if uploads to the bucket may begin; None if that is not known yet.
        Raises NotHereError."""
        if not self.has_bucket(bucket):
            raise NotHereError(f"this broker's file has no bucket {bucket}")
        if bucket in self.claims.wrong:
            self.claims.look()
            raise NotHereError(self.claims.wrong[bucket])
        if not self.claims.is_claimed(bucket):
            self.claims.look()
            return None
        replica = self._replication.replicas.get(group)
        if replica is None or replica.failed is not None:
            raise NotHereError("this broker has no replica of the partition")
        return replica

    def _other_bucket(self, replica: Replica, intent: Intend) -> tuple[Source, str]:
        """Another bucket that has the records, the nearest to this broker first."""
        state = replica.tier.state
        for other in self.buckets.nearest(self.labels_of(self.broker_id)):
            entry = state.find(other, intent.base_offset) if other != intent.bucket else None
            if entry is not None and entry.end_offset >= intent.end_offset:
                return BucketSource(self.store(other), entry), self.bucket_labels(other).region
        raise NotHereError(
            f"neither this log nor another bucket has {intent.base_offset}..{intent.end_offset}"
        )

    def on_damaged(self, group: GroupId, intent: Intend) -> None:
        """See `Uploading`: verify the range as a reader would, which starts the repair."""
        replica = self._replication.replicas.get(group)
        if replica is None or intent.base_offset < replica.log.start_offset:
            return
        offset = intent.base_offset
        with contextlib.suppress(ApiError, OSError, StorageError):  # The replica has noted it.
            while offset < intent.end_offset:
                data = replica.read_verified(offset, PIECE_BYTES)
                after = [one.next_offset for one in iterate_headers(data)]
                if not after:
                    return
                offset = after[-1]
