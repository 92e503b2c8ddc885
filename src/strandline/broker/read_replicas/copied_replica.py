"""A replica of a copy, as reads see it: led and fenced here, with the source's offsets and records.

Why:    Fetch, ListOffsets and OffsetForLeaderEpoch ask a replica where it begins and ends. A copy's
        own log is empty and says nothing.
How:    a view may be late: another broker here may have served a newer export. A reader that is
        beyond its end is told so only after the bucket was listed since the reader asked.
Owns:   nothing; one per request and partition.
Source: decision 0061."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from strandline.broker.context import Services
from strandline.broker.partitions import check_epoch
from strandline.broker.read_replicas.hosting import is_read_replica
from strandline.broker.read_replicas.serving import refusal
from strandline.model.cluster import Partition, Topic
from strandline.model.ids import Epoch, GroupId, Offset
from strandline.protocol.errors import Error
from strandline.replication.replica.replica import Replica
from strandline.replication.replica.tier import RemoteOffsetError
from strandline.replication.waiters import Watch
from strandline.tiered.reading.ranges import RemotePartition
from strandline.tiered.reading.times import TimedOffset
from strandline.tiered.replicas.view import ReplicaView

LISTING_MS_MAX = 5_000
LOOK_MS = 50


class CopiedReplica:
    """See the module. `offset`: where the reader is."""

    __slots__ = ("_began_ms", "_services", "_topic", "offset", "replica", "view")

    def __init__(
        self,
        services: Services,
        topic: Topic,
        replica: Replica,
        view: ReplicaView,
        offset: int,
    ) -> None:
        self.replica = replica
        self.view = view
        self.offset = offset
        self._services = services
        self._topic = topic
        self._began_ms = services.clock.monotonic_ms()

    # ---- the group here --------------------------------------------------------------------------

    @property
    def group(self) -> GroupId:
        """Its Raft group in this cluster."""
        return self.replica.group

    @property
    def name(self) -> str:
        """For logs."""
        return self.replica.name

    def check(self, client_epoch: int, *, serves_as_follower: bool) -> Error:
        """Why it cannot be read here now; NONE if it can."""
        replica = self.replica
        if self._services.replication.replicas.get(replica.group) is not replica:
            return Error.NOT_LEADER_OR_FOLLOWER
        if replica.failed is not None:
            return Error.KAFKA_STORAGE_ERROR
        if not (replica.can_serve_reads if replica.is_leader else serves_as_follower):
            return Error.NOT_LEADER_OR_FOLLOWER
        error = check_epoch(replica, client_epoch)
        return error or refusal(self._services, self._topic, replica, self.view)

    def watch(self, callback: Callable[[], None]) -> Watch:
        """See `Replica.watch`; called also if the view changes, or the bucket has been listed."""
        return self.replica.watch(callback)

    # ---- the source ------------------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        """Whether a reader here gets a leader's answers: it is at or below the end, or it is
        certain that it is beyond the end. Otherwise the bucket is listed soon."""
        return self.replica.is_leader and (
            self.offset <= self.view.high_watermark or self._is_listed()
        )

    def _is_listed(self) -> bool:
        if self.view.listed_ms > self._began_ms:
            return True
        self.view.must_list = True
        self._services.read_replicas.refresh_soon()
        return False

    @property
    def high_watermark(self) -> Offset:
        """Where the records end that can be read."""
        return self.view.high_watermark

    @property
    def log_end_offset(self) -> Offset:
        """The same: what is not in the bucket is not known."""
        return self.view.high_watermark

    @property
    def log_start_offset(self) -> Offset:
        """Where they begin."""
        return self.view.start_offset

    @property
    def local_log_start_offset(self) -> Offset:
        """None of them are in a log here."""
        return self.view.high_watermark

    @property
    def remote_partition(self) -> RemotePartition:
        """Where their objects are."""
        view = self.view
        return RemotePartition(self.replica.name, view, (view.bucket,))

    def epoch_end_offset(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """See `ReplicaView.epoch_end_offset`."""
        return self.view.epoch_end_offset(epoch)

    async def epoch_end_offset_for_certain(self, epoch: Epoch) -> tuple[Epoch, Offset]:
        """The same; an epoch that is yet to come is looked for in the bucket first."""
        deadline_ms = self._began_ms + LISTING_MS_MAX
        while True:
            found = self.epoch_end_offset(epoch)
            if found[0] >= 0 or self._services.clock.monotonic_ms() >= deadline_ms:
                return found
            if self._is_listed():
                return self.epoch_end_offset(epoch)
            await asyncio.sleep(LOOK_MS / 1000)

    def is_remote(self, offset: Offset) -> bool:
        """Whether the record there is in the bucket."""
        return offset < self.view.high_watermark

    def read(self, offset: Offset, max_bytes: int) -> NoReturn:
        """Says that the records are in the bucket. Raises RemoteOffsetError."""
        raise RemoteOffsetError(offset)


def copy_of(
    services: Services, topic: Topic, partition: Partition, replica: Replica, offset: int = -1
) -> CopiedReplica | None:
    """What answers for this replica to a reader at `offset`; None if the topic is no copy."""
    if not is_read_replica(topic):
        return None
    view = services.read_replicas.find(topic, partition)
    return None if view is None else CopiedReplica(services, topic, replica, view, offset)


# ---- ListOffsets ---------------------------------------------------------------------------------


class FoundOffset(NamedTuple):
    """-1 for no time, offset, epoch."""

    timestamp: int
    offset: int
    epoch: int


def start_of(copy: CopiedReplica) -> FoundOffset:
    """Where the partition begins."""
    view = copy.view
    return FoundOffset(-1, view.start_offset, view.epoch_at(view.start_offset))


def end_of(copy: CopiedReplica) -> FoundOffset:
    """Where it ends; in the log here, which is empty, it also begins there."""
    view = copy.view
    return FoundOffset(-1, view.high_watermark, view.epoch_at(view.high_watermark))


def last_of(copy: CopiedReplica) -> FoundOffset:
    """Its last record."""
    view = copy.view
    if view.start_offset >= view.high_watermark:
        return FoundOffset(-1, -1, -1)
    last = Offset(view.high_watermark - 1)
    return FoundOffset(-1, last, view.epoch_at(last))


def record_of(copy: CopiedReplica, found: TimedOffset | None) -> FoundOffset:
    """A record that was found by its time."""
    if found is None:
        return FoundOffset(-1, -1, -1)
    return FoundOffset(found.timestamp, found.offset, copy.view.epoch_at(found.offset))
