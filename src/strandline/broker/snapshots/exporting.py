"""Writes the controller's state and the groups' committed offsets into the buckets.

Why:    if a cluster is lost with all its disks, its buckets have its old records; these objects say
        what the topics were, and how far the groups had come.
How:    each look: the active controller --its state, if anything was decided--> every bucket
                   the leader of a partition of `__consumer_offsets` --its groups' offsets, if any
                   was committed--> every bucket
        Objects are immutable, and their names have rising numbers (`tiered.cluster.names`). A put
        without a clear answer is tried again under a later name. Old ones go after
        `KEPT_MS`; the newest always stays.
Owns:   what this process has written of each log.
Source: decision 0063."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Protocol

from strandline.base.clock import Clock
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.coordinators.coordinator_host import CoordinatorHost
from strandline.broker.coordinators.coordinator_shard import CoordinatorShard
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.broker.snapshots.files import SnapshotId
from strandline.broker.snapshots.taking import Taking
from strandline.controller.snapshots.format import Head
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica
from strandline.tiered.cluster.names import (
    ClusterNumber,
    controller_prefix,
    list_numbers,
    offsets_prefix,
)
from strandline.tiered.cluster.offsets import GroupOffset, GroupOffsets, OffsetsBody, encode
from strandline.tiered.objects.store import ObjectStore, StoreError

EXPORT_INTERVALS = 6
"""The time between two looks, in times of `export_interval_ms` of partitions."""
KEPT_MS = 30 * 24 * 60 * 60 * 1000
"""How far back a restore can go, at least: as long as an hour's newest is kept."""
HOUR_MS = 60 * 60 * 1000
WRITES_PER_REMOVAL = 60
"""Old objects are looked for after so many new ones."""

_log = logging.getLogger("strandline.controller")


class Stores(Protocol):
    """The buckets of this broker."""

    def store(self, bucket: str) -> ObjectStore:
        """The store of one. Raises StoreError."""


class BucketClaims(Protocol):
    """Which buckets are this cluster's, and those of their names."""

    @property
    def claimed(self) -> frozenset[str]:
        """All that surely are."""

    def generation(self, bucket: str) -> int:
        """How often it was replaced."""

    async def confirm(self, bucket: str, generation: int, *, age_ms_max: int = 0) -> None:
        """Make sure. Raises StoreError."""


class ClusterExports:
    """See the module; one per broker with buckets."""

    def __init__(
        self,
        *,
        clock: Clock,
        controller: ControllerHost,
        coordinator: CoordinatorHost,
        buckets: Stores,
        claims: BucketClaims,
        interval_ms: int,
    ) -> None:
        self._clock = clock
        self._controller = controller
        self._coordinator = coordinator
        self._buckets = buckets
        self._claims = claims
        self._taking = Taking(clock)
        self._exporting = SingleFlight()
        self._written: dict[tuple[str, str], tuple[int, int, Offset]] = {}
        """{(bucket, prefix): (how often it was replaced, epoch of this leader, offset) of what it
        has for certain}"""
        self._write_counts: dict[tuple[str, str], int] = {}
        self._reported: set[str] = set()
        self._ticker = Ticker(
            clock,
            self._look,
            interval_ms=interval_ms,
            log=_log,
            failure="cannot export the cluster's state",
        )

    def start(self) -> None:
        """Look for the first time after one interval."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()
        self._taking.stop()
        self._exporting.stop()

    def _look(self) -> None:
        if not self._exporting.is_under_way and self._claims.claimed:
            self._exporting.begin(self.export)

    async def export(self) -> None:
        """Write whatever this broker leads, and the buckets lack."""
        replica = self._controller.replica
        cluster_id = self._controller.cluster.cluster_id
        if replica is not None and self._controller.is_active and cluster_id:
            await self._export_log(
                replica,
                self._controller.applied,
                controller_prefix(cluster_id),
                self._snapshot,
            )
        for shard in self._coordinator.shards:
            partition = self._controller.cluster.groups.get(shard.replica.group)
            if partition is not None and shard.error is Error.NONE and cluster_id:
                offset = shard.replica.committed_end
                await self._export_log(
                    shard.replica,
                    offset,
                    offsets_prefix(cluster_id, partition.index),
                    partial(self._offsets, shard, cluster_id, partition.index),
                )

    async def _export_log(
        self,
        replica: Replica,
        offset: Offset,
        prefix: str,
        make: Callable[[Offset], Awaitable[bytes]],
    ) -> None:
        """Write what one log says into each bucket that lacks it."""
        epoch = replica.epoch
        lacking = [
            (bucket, generation)
            for bucket in sorted(self._claims.claimed)
            for generation in (self._claims.generation(bucket),)
            if self._written.get((bucket, prefix)) != (generation, epoch, offset)
        ]
        if not lacking or not 0 < offset <= replica.committed_end:
            return
        number = ClusterNumber(epoch, offset, self._clock.wall_ms())
        data = await make(offset)
        for bucket, generation in lacking:
            key = bucket, prefix
            try:
                store = self._buckets.store(bucket)
                await self._claims.confirm(bucket, generation)
                await store.put(f"{prefix}{number}", [data])
                self._written[key] = generation, epoch, offset
                self._reported.discard(bucket)
                self._write_counts[key] = self._write_counts.get(key, 0) + 1
                if self._write_counts[key] % WRITES_PER_REMOVAL == 0:
                    await remove_old(store, prefix, now_ms=self._clock.wall_ms())
            except StoreError as error:
                if bucket not in self._reported:
                    self._reported.add(bucket)
                    _log.warning("bucket %s does not get the cluster's state: %s", bucket, error)

    async def _snapshot(self, offset: Offset) -> bytes:
        """A snapshot of the controller's state as it is now. A bucket has other readers than a
        broker's disk, so nothing of passwords is in it."""
        replica = self._controller.replica
        assert replica is not None
        head = Head(
            offset=offset,
            epoch=replica.epoch,
            cluster_id=self._controller.cluster.cluster_id,
            taken_ms=self._clock.wall_ms(),
        )
        made: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def on_taken(_: SnapshotId, data: bytes) -> None:
            if not made.done():
                made.set_result(data)

        self._taking.begin(self._controller.state, head, on_taken, has_secrets=False)
        return await made

    async def _offsets(
        self, shard: CoordinatorShard, cluster_id: str, partition: int, _: Offset
    ) -> bytes:
        coordinator = shard.coordinator
        groups = [
            GroupOffsets(
                one.group,
                tuple(
                    GroupOffset(
                        topic,
                        index,
                        committed.offset,
                        committed.leader_epoch,
                        committed.metadata,
                        committed.commit_ms,
                    )
                    for (topic, index), committed in sorted(
                        coordinator.committed(one.group).items()
                    )
                ),
            )
            for one in coordinator.list_groups()
        ]
        some = tuple(one for one in groups if one.offsets)
        return encode(OffsetsBody(cluster_id, partition, some))


async def remove_old(store: ObjectStore, prefix: str, *, now_ms: int) -> None:
    """Remove what is older than `KEPT_MS`, and of what is older than a day all but the newest of
    each hour. The newest of all stays. Raises StoreError."""
    numbers = await list_numbers(store, prefix)
    kept_hours: set[int] = set()
    needless = []
    for number in numbers[1:]:
        age_ms, hour = now_ms - number.written_ms, number.written_ms // HOUR_MS
        if age_ms <= 24 * HOUR_MS:
            continue
        if age_ms > KEPT_MS or hour in kept_hours:
            needless.append(f"{prefix}{number}")
        kept_hours.add(hour)
    if needless:
        await store.delete(needless)
