"""Deletes what the buckets hold of deleted topics; the active controller's broker does it.

Why:    a deleted topic has no leader any more that could retire its objects. Kafka deletes them
        with the topic.
How:    each topic with exports has an object that names its id, `topics/<name>/<id>`. Every
        `LOOK_MS` the active controller lists them, and compares the ids with the deleted topics in
        its state, which has everything committed:

            id deleted --for the grace, seen by the same controller all the time--> all objects of
            the topic are deleted, and last the object that names it

        An id that the state does not have is no proof: a declared loss may have cut it off. The
        names in the bucket are the work list; a new controller begins the grace anew. Objects of
        topics that were forgotten, or that arrive later, are orphans (`tiered gc`).
Owns:   since when this controller has seen each deleted id in a bucket.
Source: decision 0059."""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from strandline.base.clock import Clock
from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.operations.single_flight import SingleFlight
from strandline.broker.tiering.claims import Claims
from strandline.broker.tiering.deleting import DELETED_AT_ONCE_MAX
from strandline.tiered.exports.names import topics_prefix
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.store import StoreError

LOOK_MS = 60_000
"""One listing per bucket: about 40,000 requests a month."""

_log = logging.getLogger("strandline.broker")


class DeletedTopics:
    """See the module. `deleted`: is told (bucket, how many objects are gone)."""

    def __init__(
        self,
        clock: Clock,
        controller: ControllerHost,
        buckets: Buckets,
        claims: Claims,
        *,
        grace_ms: int,
        deleted: Callable[[str, int], None],
    ) -> None:
        self._clock = clock
        self._controller = controller
        self._buckets = buckets
        self._claims = claims
        self._grace_ms = grace_ms
        self._deleted = deleted
        self._work = SingleFlight()
        self._due_ms = 0
        self._seen_ms: dict[UUID, int] = {}

    def stop(self) -> None:
        """End what is under way."""
        self._work.stop()

    def look(self) -> None:
        """Begin a round if one is due and this broker is the active controller."""
        if not self._controller.knows_everything:
            self._seen_ms.clear()
            return
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._due_ms and not self._work.is_under_way:
            self._due_ms = now_ms + LOOK_MS
            self._claims.look()
            self._work.begin(self._round)

    async def _round(self) -> None:
        found: dict[UUID, dict[str, str]] = {}
        for bucket in self._buckets.names:
            if not self._claims.is_claimed(bucket):
                self._due_ms = 0  # It has just been asked for.
                continue
            try:
                async with asyncio.timeout(LOOK_MS / 1000):
                    await self._list(bucket, found)
            except (StoreError, TimeoutError) as error:
                _log.info("bucket %s: its topics cannot be listed: %s", bucket, error)
        now_ms = self._clock.monotonic_ms()
        deleted = self._deleted_of(found)
        self._seen_ms = {one: self._seen_ms.get(one, now_ms) for one in deleted}
        for topic_id in deleted:
            if now_ms - self._seen_ms[topic_id] >= self._grace_ms:
                await self._delete(topic_id, found[topic_id])

    async def _list(self, bucket: str, found: dict[UUID, dict[str, str]]) -> None:
        """Add {topic id: {bucket: the object that names it}}."""
        async for one in self._buckets.store(bucket).list(
            topics_prefix(self._controller.cluster.cluster_id)
        ):
            try:
                topic_id = UUID(one.name.rpartition("/")[2])
            except ValueError:
                continue
            found.setdefault(topic_id, {})[bucket] = one.name

    def _deleted_of(self, found: dict[UUID, dict[str, str]]) -> list[UUID]:
        """The ids of deleted topics; none if this broker may not know all that is committed."""
        if not self._controller.knows_everything:
            return []
        return [one for one in found if one in self._controller.cluster.deleted_tiered]

    async def _delete(self, topic_id: UUID, names: dict[str, str]) -> None:
        cluster_id = self._controller.cluster.cluster_id
        for bucket, name in names.items():
            store = self._buckets.store(bucket)
            count = 0
            try:
                await self._claims.confirm(bucket, self._claims.generation(bucket))
                batch: list[str] = []
                async for one in store.list(f"{cluster_id}/{topic_id}/"):
                    batch.append(one.name)
                    if len(batch) >= DELETED_AT_ONCE_MAX:
                        await store.delete(batch)
                        count += len(batch)
                        batch = []
                await store.delete([*batch, name])
                count += len(batch) + 1
            except StoreError as error:
                _log.warning("bucket %s: %s stays for now: %s", bucket, name, error)
            if count:
                self._deleted(bucket, count)
                _log.info("bucket %s: %d objects of %s are deleted", bucket, count, name)
