"""Lets a partition begin with the records that its buckets have.

Why:    the group of a partition whose logs were lost, or that is restored, begins behind the
        records in the buckets. Its first checkpoint says where they are.
How:    awaits history --read the buckets that the controller's record names--> first checkpoint
        The leader tries again until each bucket has what the record says. Meanwhile producers
        write, and readers get an error that clients retry. Nothing is uploaded or exported.
Owns:   the reads under way.
Source: decision 0067."""

import asyncio
import logging
from collections.abc import Callable

from msgspec.structs import replace

from strandline.base.clock import Clock
from strandline.model.cluster import BucketRange
from strandline.model.ids import GroupId, Offset
from strandline.replication.replica.replica import Replica
from strandline.tiered.exports.history import read_history
from strandline.tiered.exports.names import PartitionPlace
from strandline.tiered.objects.store import ObjectStore, StoreError
from strandline.tiered.state.commands import BucketImage

READ_MS_MAX = 120_000
"""One partition's history takes no longer to read."""
RETRY_MS_MIN = 1_000
RETRY_MS_MAX = 60_000
READS_AT_ONCE = 8
"""Partitions whose history is read side by side."""

_log = logging.getLogger("strandline.broker")


class HistoryLoader:
    """See the module. `store`: a bucket that is surely this cluster's, or StoreError; `place_of`:
    where a group's objects are; `generation`: how often a bucket was replaced."""

    def __init__(
        self,
        clock: Clock,
        store: Callable[[str], ObjectStore],
        place_of: Callable[[GroupId], PartitionPlace],
        generation: Callable[[str], int],
    ) -> None:
        self._clock = clock
        self._store = store
        self._place_of = place_of
        self._generation = generation
        self._tasks: dict[GroupId, asyncio.Task[None]] = {}
        self._retry_ms: dict[GroupId, tuple[int, int]] = {}
        """{group: (not before that, the pause after the next failure)}"""

    def stop(self) -> None:
        """End all reads; the next leader begins again."""
        for task in list(self._tasks.values()):
            task.cancel()

    def look(self, replica: Replica) -> None:
        """Begin to read the history of a partition that is led here, if that is due."""
        group = replica.group
        due_ms, _ = self._retry_ms.get(group, (0, 0))
        is_due = self._clock.monotonic_ms() >= due_ms and len(self._tasks) < READS_AT_ONCE
        if group not in self._tasks and is_due and replica.tier.is_settled:
            task = asyncio.get_running_loop().create_task(self._load(replica))
            self._tasks[group] = task

    async def _load(self, replica: Replica) -> None:
        group = replica.group
        try:
            async with asyncio.timeout(READ_MS_MAX / 1000):
                images, deleted_before = await self._read(replica)
            if replica.tier.begin_with(images, deleted_before):
                _log.info(
                    "%s: begins with offsets %d to %d, out of buckets",
                    replica.name,
                    min(one.live[0].base_offset for one in images),
                    replica.log.start_offset - 1,
                )
                self._retry_ms.pop(group, None)
        except (StoreError, TimeoutError) as error:
            _, pause_ms = self._retry_ms.get(group, (0, RETRY_MS_MIN))
            now_ms = self._clock.monotonic_ms()
            self._retry_ms[group] = now_ms + pause_ms, min(2 * pause_ms, RETRY_MS_MAX)
            _log.warning(
                "%s: its history is not readable yet, trying again in %d ms: %s",
                replica.name,
                pause_ms,
                error or "no answer in time",
            )
        finally:
            del self._tasks[group]

    async def _read(self, replica: Replica) -> tuple[list[BucketImage], Offset]:
        """(what the buckets have, below which offset the records are deleted). Raises
        StoreError."""
        place = self._place_of(replica.group)
        images, deleted_before = [], Offset(0)
        for one in replica.tier.history:
            generation = self._generation(one.bucket)
            found = await read_history(
                self._store(one.bucket),
                place,
                lambda line: _log.error("%s: %s; an older export is read", replica.name, line),
            )
            cut = None if found is None else found.cut(Offset(one.start), Offset(one.end))
            if found is None or cut is None:
                raise StoreError(_lack(one, found.missing if found is not None else ()))
            images.append(replace(cut.image(one.bucket), generation=generation))
            deleted_before = max(deleted_before, found.export.log_start_offset)
        return images, min(deleted_before, replica.log.start_offset)


def _lack(wanted: BucketRange, missing: tuple[str, ...]) -> str:
    names = f": it lacks {', '.join(missing[:3])}" if missing else ""
    return f"bucket {wanted.bucket} does not have offsets {wanted.start} to {wanted.end - 1}{names}"
