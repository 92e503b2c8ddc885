"""Forgets cached chunks of objects that no partition here names any more.

Why:    a deleted topic's records must not stay on a broker's disk until other chunks push them out.
How:    each `LOOK_MS`: have partitions gone from this broker since the last sweep? Then the objects
        that the others name are listed, and the chunks of all others go. The first sweep after a
        start waits until every partition knows its objects: files may be of a topic that was
        deleted meanwhile. A chunk that goes although it is named comes from the bucket again.
Owns:   which partitions were here at the last sweep.
Source: decision 0060."""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping

from strandline.base.clock import Clock
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.operations.ticker import Ticker
from strandline.model.cluster import Partition
from strandline.model.ids import GroupId
from strandline.replication.replica.replica import Replica
from strandline.tiered.reading.chunk_files import object_id_of
from strandline.tiered.reading.reader import RemoteReader
from strandline.tiered.replicas.view import ReplicaView

LOOK_MS = 60_000

_log = logging.getLogger("strandline.broker")
_Named = tuple[str, str]
"""(bucket, name of an object)"""


class CacheSweep:
    """See the module. `replicas`: the partitions here; `views`: those that are read replicas."""

    def __init__(
        self,
        clock: Clock,
        reader: RemoteReader,
        *,
        replicas: Mapping[GroupId, Replica],
        views: Callable[[], Iterable[tuple[Partition, ReplicaView]]],
    ) -> None:
        self._reader = reader
        self._replicas = replicas
        self._views = views
        self._seen: frozenset[GroupId] | None = None
        self._work = SingleFlight()
        self._ticker = Ticker(
            clock, self._look, interval_ms=LOOK_MS, log=_log, failure="cannot sweep the cache"
        )

    def start(self) -> None:
        """Look for the first time after one interval."""
        self._ticker.start()

    def stop(self) -> None:
        """End it."""
        self._ticker.stop()
        self._work.stop()

    def _look(self) -> None:
        if self._work.is_under_way or not self._reader.is_started:
            return
        here = frozenset(self._here())
        if self._seen is not None and here >= self._seen:
            self._seen = here
            return
        named = self._named()
        if named is not None:
            self._seen = here
            self._work.begin(lambda: self._sweep(named))

    def _here(self) -> Iterator[GroupId]:
        yield from (group for group, one in self._replicas.items() if one.tier.is_in_use)
        yield from (partition.group for partition, _ in self._views())

    def _named(self) -> list[_Named] | None:
        """All objects that partitions here name; None while one does not know its own."""
        found: list[_Named] = []
        for replica in self._replicas.values():
            if replica.tier.is_in_use and not replica.tier.is_known:
                return None
            for bucket, state in replica.tier.state.buckets.items():
                found += [(bucket, one.name) for one in state.live]
        for _, view in self._views():
            if view.export is None:
                return None
            found += [(view.bucket, one.name) for one in view.export.live]
        return found

    async def _sweep(self, named: list[_Named]) -> None:
        def ids() -> frozenset[str]:
            return frozenset(object_id_of(bucket, name) for bucket, name in named)

        count = self._reader.cache.keep_only(await self._reader.work.compute(ids))
        if count:
            _log.info("%d cached chunks of partitions that are gone from here are removed", count)
