"""Which partitions on this broker are copies, and the views of their sources.

Why:    a copy's Raft group has an empty log: it gives the partition leaders, metadata and fencing.
        Where the partition begins and ends, and its records, come from the source's bucket.
How:    each tick opens views for the copies here and closes the others, then lets each source look
        into its bucket. A request that finds no view opens one: no copy is ever served from its
        empty log. The leader of a copy's first partition adds partitions if the source has more.
Owns:   the sources, and {group: view}.
Source: decision 0061."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from strandline.base.clock import Clock
from strandline.base.errors import ApiError
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.config.bucket_urls import BucketUrl
from strandline.config.topic_read_replica import (
    READ_REPLICA_OF,
    SOURCE_ID,
    parse_replica_of,
    parse_source_id,
)
from strandline.controller.commands import CreatePartitions, MorePartitions, TopicResults
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import GroupId
from strandline.replication.host.replication import Replication
from strandline.tiered.objects.buckets import OpenStore
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.replicas.source import ReplicaSource
from strandline.tiered.replicas.view import ReplicaView

GROW_TIMEOUT_MS = 10_000

_log = logging.getLogger("strandline.broker")


READ_ONLY = "the topic is a copy of another cluster's (read.replica.of): write to its source"


class _SourceKey(NamedTuple):
    url: BucketUrl
    cluster_id: str


class _Open(NamedTuple):
    source: ReplicaSource
    view: ReplicaView


def is_read_replica(topic: Topic) -> bool:
    """Whether the topic is a copy of another cluster's topic."""
    return READ_REPLICA_OF in topic.configs


class ReadReplicas:
    """See the module. `open_store` opens a bucket by its URL, and may raise StoreError."""

    def __init__(
        self,
        *,
        clock: Clock,
        replication: Replication,
        controller: ControllerHost,
        open_store: OpenStore,
        interval_ms: int,
    ) -> None:
        self._clock = clock
        self._replication = replication
        self._controller = controller
        self._open_store = open_store
        self._sources: dict[_SourceKey, ReplicaSource] = {}
        self._rounds: dict[_SourceKey, SingleFlight] = {}
        self._again: set[_SourceKey] = set()
        """Sources to look at once more after the round under way."""
        self._growing = SingleFlight()
        self._open: dict[GroupId, _Open] = {}
        self._is_refresh_due = False
        self._ticker = Ticker(
            clock,
            self._tick,
            interval_ms=interval_ms,
            log=_log,
            failure="looking after read replicas failed",
        )

    def start(self) -> None:
        """Look after the copies here from now on."""
        self._ticker.start()
        self.refresh_soon()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()
        self._growing.stop()
        for one in self._rounds.values():
            one.stop()

    # ---- for requests ----------------------------------------------------------------------------

    def find(self, topic: Topic, partition: Partition) -> ReplicaView | None:
        """The view of a partition; None if the topic is no copy. A new one is empty."""
        if READ_REPLICA_OF not in topic.configs:
            return None
        known = self._open.get(partition.group)
        return known.view if known is not None else self._open_view(topic, partition)

    def refresh_soon(self) -> None:
        """Look into the buckets without waiting for the next tick."""
        if not self._is_refresh_due:
            self._is_refresh_due = True
            self._clock.call_soon(self._refresh)

    @property
    def views(self) -> Iterator[tuple[Partition, ReplicaView]]:
        """The copies on this broker, for metrics."""
        groups = self._controller.cluster.groups
        for group, one in self._open.items():
            if group in groups:
                yield groups[group], one.view

    def store(self, bucket: str) -> ObjectStore:
        """The bucket of a source, by the name that its views have. Raises KeyError, StoreError."""
        for source in self._sources.values():
            if source.bucket == bucket:
                return source.store
        raise KeyError(bucket)

    # ---- views -----------------------------------------------------------------------------------

    def _open_view(self, topic: Topic, partition: Partition) -> ReplicaView:
        source_id = parse_source_id(topic.configs[SOURCE_ID])
        wanted = parse_replica_of(topic.configs[READ_REPLICA_OF])
        url = wanted.url
        source = self._source(_SourceKey(url, source_id.cluster_id))
        key = (source_id.topic_id, partition.index)
        group = partition.group

        def notify() -> None:
            replica = self._replication.replicas.get(group)
            if replica is not None:
                replica.watchers.notify()

        view = source.open(key, notify, topic=wanted.topic or topic.name)
        self._open[group] = _Open(source, view)
        self.refresh_soon()
        return view

    def _source(self, key: _SourceKey) -> ReplicaSource:
        source = self._sources.get(key)
        if source is None:
            source = ReplicaSource(
                partial(self._open_store, key.url),
                bucket=f"{key.url}#{key.cluster_id}",
                cluster_id=key.cluster_id,
                clock=self._clock,
            )
            self._sources[key] = source
            self._rounds[key] = SingleFlight()
        return source

    def _tick(self) -> None:
        replicas, cluster = self._replication.replicas, self._controller.cluster
        for topic in cluster.topics.values():
            if is_read_replica(topic):
                for one in topic.partitions:
                    if one.group in replicas and one.group not in self._open:
                        self._open_view(topic, one)
        for group in [one for one in self._open if one not in replicas]:
            known = self._open.pop(group)
            known.source.close(known.view)
        for key in [key for key, one in self._sources.items() if not one.views]:
            self._rounds.pop(key).stop()
            del self._sources[key]
        self._refresh()
        self._grow()

    def _refresh(self) -> None:
        self._is_refresh_due = False
        for key, source in self._sources.items():
            under_way = self._rounds[key]
            if under_way.is_under_way:
                self._again.add(key)
            else:
                under_way.begin(partial(self._round, key, source))

    async def _round(self, key: _SourceKey, source: ReplicaSource) -> None:
        """Look into a bucket, and once more if that was asked for meanwhile."""
        await source.refresh()
        while key in self._again:
            self._again.discard(key)
            await source.refresh()

    # ---- partitions that the source has added ---------------------------------------------------

    def _grow(self) -> None:
        cluster = self._controller.cluster
        if self._growing.is_under_way:
            return
        more = []
        for topic in cluster.topics.values():
            if not is_read_replica(topic):
                continue
            first = self._replication.replicas.get(topic.partitions[0].group)
            if first is None or not first.is_leader:
                continue
            known = [self._open.get(one.group) for one in topic.partitions]
            exports = [one.view.export for one in known if one is not None]
            count = max((one.partition_count for one in exports if one is not None), default=0)
            if count > len(topic.partitions):
                more.append(MorePartitions(topic=topic.name, count=count, assignments=None))
        if more:
            self._growing.begin(lambda: self._add_partitions(CreatePartitions(tuple(more), False)))

    async def _add_partitions(self, command: CreatePartitions) -> None:
        try:
            answer = await self._controller.submit(command, timeout_ms=GROW_TIMEOUT_MS)
        except ApiError as error:
            _log.warning("cannot add the partitions that a source has: %s", error)
            return
        if isinstance(answer, TopicResults):
            for one in answer.topics:
                if one.error_code:
                    _log.warning("cannot add partitions to %s: %s", one.name, one.message)
