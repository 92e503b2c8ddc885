"""Keeps the views of one cluster's partitions up to date, out of its bucket.

Why:    the source cluster is asked nothing: it may be far away, or gone.
How:    a round: read all heads; where one names a higher export than is served, read that. A view
        without a hint is listed: at first, and then now and then. The listing is the truth, heads
        are cheap. An error of the store leaves everything as it is, and the next round tries again.
Owns:   the views; one per bucket and cluster id.
Source: decision 0061."""

import asyncio
import logging
from collections.abc import Callable, Iterable

from strandline.base.clock import Clock
from strandline.tiered.exports.heads import Hint, Key, hints_of, read_heads
from strandline.tiered.exports.names import PartitionPlace, topics_prefix
from strandline.tiered.exports.reading import ReadExport, read_hinted, read_newest
from strandline.tiered.objects.claim import read_claim
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.replicas.view import NEVER_MS, ReplicaView, ViewState

PARTITIONS_AT_ONCE = 8
LISTING_INTERVAL_MS = 600_000
"""A view that no hint has confirmed for so long is listed, if the source writes no heads."""
OVERDUE_INTERVAL_MS = 60_000
"""The same, if it writes heads: the partition may have no leader, or be deleted."""

_log = logging.getLogger("strandline.tiered")


class ReplicaSource:
    """See the module. `bucket`: its name here, for readers of its objects and for messages."""

    def __init__(
        self,
        open_store: Callable[[], ObjectStore],
        *,
        bucket: str,
        cluster_id: str,
        clock: Clock,
    ) -> None:
        self.bucket = bucket
        self.cluster_id = cluster_id
        self.views: dict[ReplicaView, Key] = {}
        """{view: its partition}; several topics here may be copies of one."""
        self._names: dict[ReplicaView, str] = {}
        """{view: the name of the topic at the source}"""
        self.failure = ""
        """Why the last round failed; empty after one that did not."""
        self.failed_rounds = 0
        self.damaged_exports = 0
        self._open_store = open_store
        self._clock = clock

    @property
    def store(self) -> ObjectStore:
        """The bucket. Raises StoreError if it cannot be opened, for want of credentials."""
        return self._open_store()

    def open(self, key: Key, on_change: Callable[[], None], *, topic: str = "") -> ReplicaView:
        """A view of a partition, empty at first. `topic`: its name at the source."""
        view = ReplicaView(self.bucket, on_change)
        self.views[view], self._names[view] = key, topic
        return view

    def close(self, view: ReplicaView) -> None:
        """Look at a partition no more."""
        self.views.pop(view, None)
        self._names.pop(view, None)

    async def refresh(self) -> None:
        """One round; it raises nothing."""
        began_ms = self._clock.monotonic_ms()
        views = dict(self.views)
        try:
            heads = await read_heads(self.store, self.cluster_id)
        except StoreError as error:
            self._fail(views, error, began_ms)
            return
        hints = hints_of(heads)
        newest_ms = max((one.written_ms for one in heads), default=NEVER_MS)
        gate = asyncio.Semaphore(PARTITIONS_AT_ONCE)
        failures: list[StoreError] = []

        async def look(view: ReplicaView, key: Key) -> None:
            async with gate:
                view.tried_ms = began_ms
                try:
                    await self._look(key, view, hints.get(key), newest_ms)
                except StoreError as error:
                    view.failure = str(error)
                    failures.append(error)
                else:
                    if view.export is not None and view.state is not ViewState.DELETED:
                        view.failure = ""
                    view.checked_ms = began_ms

        await asyncio.gather(*(look(view, key) for view, key in views.items()))
        if failures:
            self._fail((), failures[0], began_ms)
        elif self.failure:
            _log.info("bucket %s of cluster %s answers again", self.bucket, self.cluster_id)
            self.failure = ""

    # ---- one partition ---------------------------------------------------------------------------

    async def _look(self, key: Key, view: ReplicaView, hint: Hint | None, newest_ms: int) -> None:
        place = PartitionPlace(self.cluster_id, *key)
        if hint is not None:
            number = view.number
            if number is None or hint.number > number:
                found = await read_hinted(self.store, place, hint.number, view.pages, self._report)
                if found is not None:
                    self._adopt(place, view, found)
                    if view.number != hint.number:
                        return  # It contradicts what is served, and so would the listing.
            if view.number == hint.number and view.is_ready:
                view.confirm(hint.as_of_ms)
                if not view.must_list:
                    return
        if self._must_list(view, newest_ms):
            await self._list(place, view)

    def _must_list(self, view: ReplicaView, newest_ms: int) -> bool:
        """Whether the heads, of which the newest is of `newest_ms`, did not say enough."""
        if view.listed_ms == NEVER_MS or not view.is_ready or view.must_list:
            return True
        # Brokers of the source are at work, and none of them confirms this partition's export.
        is_overdue = newest_ms > view.as_of_ms
        interval_ms = OVERDUE_INTERVAL_MS if is_overdue else LISTING_INTERVAL_MS
        return self._clock.monotonic_ms() - view.listed_ms >= interval_ms

    async def _list(self, place: PartitionPlace, view: ReplicaView) -> None:
        began_ms = self._clock.monotonic_ms()
        above = None if view.state is ViewState.DELETED else view.number
        found = await read_newest(
            self.store, place, above=above, known=view.pages, report=self._report
        )
        if found is not None:
            self._adopt(place, view, found)
        elif await self._is_deleted(place):
            topic = self._names.get(view, "")
            view.delete(is_made_anew=bool(topic) and await self._has_other(topic))
        elif view.export is None:
            view.failure = "the bucket has no export of the partition yet"
        view.on_listed(began_ms)

    async def _is_deleted(self, place: PartitionPlace) -> bool:
        """Whether the bucket is that cluster's, and has neither an export of the partition nor its
        topic. Raises StoreError if it is not that cluster's."""
        async for _ in self.store.list(place.exports_prefix):
            return False
        suffix = f"/{place.topic_id}"
        async for one in self.store.list(topics_prefix(self.cluster_id)):
            if one.name.endswith(suffix):
                return False
        owner = await read_claim(self.store)
        if owner != self.cluster_id:
            raise StoreError(f"it is of cluster {owner} now, not of {self.cluster_id}")
        return True

    async def _has_other(self, topic: str) -> bool:
        """Whether the source has a topic of this name, which must be another one. Raises
        StoreError."""
        async for _ in self.store.list(topics_prefix(self.cluster_id, topic)):
            return True
        return False

    def _adopt(self, place: PartitionPlace, view: ReplicaView, found: ReadExport) -> None:
        reason = view.adopt(found)
        if reason:
            self._report(f"{place.prefix}: {reason}")

    # ---- failures --------------------------------------------------------------------------------

    def _report(self, line: str) -> None:
        self.damaged_exports += 1
        _log.error("bucket %s: %s; the next lower export serves", self.bucket, line)

    def _fail(self, views: Iterable[ReplicaView], error: StoreError, began_ms: int) -> None:
        self.failed_rounds += 1
        for view in views:
            view.failure, view.tried_ms = str(error), began_ms
        if not self.failure:
            _log.warning(
                "bucket %s of cluster %s cannot be read: %s; what was read of it is served on",
                self.bucket,
                self.cluster_id,
                error,
            )
        self.failure = str(error) or type(error).__name__
