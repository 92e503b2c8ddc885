"""What repairs ask of their broker: logs, buckets, and which broker leads.

Owns:   nothing.
Source: decision 0068."""

from concurrent.futures import Executor
from uuid import UUID

from strandline.broker.coordinators.controller_host import ControllerHost
from strandline.broker.tiering.claims import Claims
from strandline.broker.tiering.sources import LocalSource, Source
from strandline.model.ids import NO_BROKER, BrokerId, GroupId, Index
from strandline.replication.host.replication import Replication
from strandline.replication.replica.replica import Replica
from strandline.tiered.objects.buckets import Buckets
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.names import parse_segment_name
from strandline.tiered.state.tier import TierState


class RepairContext:
    """See `repairs.Repairing`."""

    def __init__(
        self,
        *,
        replication: Replication,
        controller: ControllerHost,
        buckets: Buckets,
        claims: Claims,
        threads: Executor,
    ) -> None:
        self._replication = replication
        self._controller = controller
        self._buckets = buckets
        self._claims = claims
        self._threads = threads

    def group_of(self, name: str) -> GroupId | None:
        """See `Repairing`."""
        parsed, cluster = parse_segment_name(name), self._controller.cluster
        if parsed is None or parsed.cluster_id != cluster.cluster_id:
            return None
        try:
            topic = cluster.topics.get(cluster.topic_names.get(UUID(parsed.topic_id), ""))
        except ValueError:
            return None
        if topic is None or parsed.partition >= len(topic.partitions):
            return None
        return topic.partitions[parsed.partition].group

    def leader_of(self, group: GroupId) -> BrokerId:
        """See `Repairing`."""
        replica = self._replication.replicas.get(group)
        return NO_BROKER if replica is None else replica.leader_id

    def led_state(self, group: GroupId) -> TierState | None:
        """See `Repairing`."""
        replica = self._led(group)
        return None if replica is None or not replica.tier.is_known else replica.tier.state

    def local_source(self, group: GroupId, entry: SegmentEntry) -> Source | None:
        """See `Repairing`."""
        replica = self._led(group)
        if replica is None or entry.base_offset < replica.log.start_offset:
            return None
        log = replica.log
        flushed = Index(log.flushed_index + 1)
        end = log.end_offset if flushed > log.last_index else log.offset_of(flushed)
        if min(end, replica.committed_end, log.closed.end_offset) < entry.end_offset:
            return None
        parts = log.closed.file_ranges(entry.base_offset, entry.end_offset)
        return LocalSource(parts, self._threads)

    def store(self, bucket: str) -> ObjectStore:
        """See `Repairing`."""
        return self._buckets.store(bucket)

    def is_usable(self, bucket: str) -> bool:
        """See `Repairing`."""
        return self._claims.is_claimed(bucket)

    async def confirm(self, bucket: str) -> None:
        """See `Repairing`."""
        await self._claims.confirm(bucket, self._claims.generation(bucket))

    def _led(self, group: GroupId) -> Replica | None:
        replica = self._replication.replicas.get(group)
        if replica is None or replica.failed is not None or not replica.can_serve_reads:
            return None
        return replica
