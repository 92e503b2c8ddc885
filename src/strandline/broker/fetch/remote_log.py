"""The records of partitions that are in buckets only, for the handlers of a broker.

Why:    a replica knows which objects have its old records; the reader knows buckets and the cache.
How:    every read asks the replica's committed state anew, and tries the bucket of this broker's
        own region first.
Owns:   the reader; one per broker.
Source: decision 0060."""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from strandline.base.clock import Clock
from strandline.base.disk import Disk
from strandline.broker.fetch.cache_sweep import CacheSweep
from strandline.config.broker import BrokerConfig
from strandline.model.cluster import Cluster
from strandline.model.ids import Offset
from strandline.replication.replica.replica import Replica
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.reading.ranged_store import StoreSource
from strandline.tiered.reading.ranges import RemotePartition
from strandline.tiered.reading.reader import RemoteReader
from strandline.tiered.reading.remote_read import RemoteRead
from strandline.tiered.reading.times import TimedOffset
from strandline.tiered.segments.entry import SegmentEntry

CACHE_DIRECTORY = "tiered-cache"
"""In the data directory, unless `[tiered] cache_directory` says another."""
Nearest = Callable[[], Sequence[str]]


class CommittedRange:
    """What the log of a replica says of buckets, as far as it is committed: a `TieredRange`."""

    __slots__ = ("_replica",)

    def __init__(self, replica: Replica) -> None:
        self._replica = replica

    def live(self, bucket: str) -> Sequence[SegmentEntry]:
        """See `TieredRange`."""
        return self._replica.tier.state.live(bucket)


@runtime_checkable
class CopiedPartition(Protocol):
    """A partition whose records are in another cluster's bucket."""

    @property
    def log_start_offset(self) -> Offset:
        """Where they begin."""

    @property
    def local_log_start_offset(self) -> Offset:
        """Where they end."""

    @property
    def remote_partition(self) -> RemotePartition:
        """Where they are."""


class _AllStores:
    """The buckets of this broker's file, and those that read replicas read from."""

    def __init__(self, buckets: Buckets, others: StoreSource) -> None:
        self._buckets = buckets
        self._others = others

    def store(self, bucket: str) -> ObjectStore:
        """See `StoreSource`."""
        own = bucket in self._buckets.names
        return self._buckets.store(bucket) if own else self._others.store(bucket)


RemoteSource = Replica | CopiedPartition


class RemoteLog:
    """See the module. `nearest`: the names of all buckets, the nearest one first."""

    def __init__(self, reader: RemoteReader, nearest: Nearest) -> None:
        self.reader = reader
        self._nearest = nearest
        self._starting: asyncio.Task[None] | None = None
        self.sweep: CacheSweep | None = None

    @classmethod
    def of(
        cls,
        config: BrokerConfig,
        *,
        buckets: Buckets,
        others: StoreSource,
        cluster: Cluster,
        disk: Disk,
        clock: Clock,
    ) -> "RemoteLog":
        """The records in the buckets of a broker's file, and in `others`."""
        own_id, tiered = config.broker_id, config.tiered
        default = os.path.join(config.broker.data_directory, CACHE_DIRECTORY)
        reader = RemoteReader(
            buckets=_AllStores(buckets, others),
            disk=disk,
            directory=tiered.cache_directory or default,
            clock=clock,
            cache_bytes_max=tiered.cache_bytes_max,
            inflight_bytes_max=tiered.inflight_bytes_max // 2,
        )

        def nearest() -> Sequence[str]:
            own = cluster.brokers.get(own_id)
            return buckets.names if own is None else buckets.nearest(own.labels)

        return cls(reader, nearest)

    def start(self) -> None:
        """Find what an earlier process left in the cache, beside everything else; once."""
        if self._starting is None:
            self._starting = asyncio.get_running_loop().create_task(self.reader.start())
            if self.sweep is not None:
                self.sweep.start()

    @property
    def is_in_use(self) -> bool:
        """Whether the broker's file names buckets, or a read replica was read."""
        return self._starting is not None

    def stop(self) -> None:
        """End all reads and downloads."""
        if self._starting is not None:
            self._starting.cancel()
        if self.sweep is not None:
            self.sweep.stop()
        self.reader.stop()

    def read(
        self, replica: RemoteSource, offset: Offset, *, max_bytes: int, min_bytes: int
    ) -> RemoteRead:
        """Begin to read whole batches from `offset` on, up to where the local log begins."""
        return self.reader.read(
            self._partition(replica),
            offset,
            max_bytes=max_bytes,
            min_bytes=min_bytes,
            end_offset=replica.local_log_start_offset,
        )

    async def first_at(self, replica: RemoteSource, timestamp: int) -> TimedOffset | None:
        """The first record before the local log at or after `timestamp`. Raises
        UnreadableError."""
        return await self.reader.times.first_at(
            self._partition(replica),
            timestamp,
            start_offset=replica.log_start_offset,
            end_offset=replica.local_log_start_offset,
        )

    async def highest(self, replica: RemoteSource) -> TimedOffset | None:
        """The record with the highest timestamp, of the objects that reach below the local log.
        Raises UnreadableError."""
        return await self.reader.times.highest(
            self._partition(replica),
            start_offset=replica.log_start_offset,
            end_offset=replica.local_log_start_offset,
        )

    def _partition(self, replica: RemoteSource) -> RemotePartition:
        if isinstance(replica, CopiedPartition):
            self.start()  # The broker's file may name no bucket.
            return replica.remote_partition
        return RemotePartition(replica.name, CommittedRange(replica), self._nearest())
