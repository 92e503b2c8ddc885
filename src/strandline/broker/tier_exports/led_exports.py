"""One partition that this broker leads: its exports into its buckets.

How:    what would be exported depends on marks that are cheap to compare. Only if they differ from
        those of the last success is an export made and written.
Owns:   an `Exporter` a bucket, from when this broker leads until it does no more.
Source: decision 0061."""

from __future__ import annotations

from typing import NamedTuple

from strandline.model.cluster import Cluster
from strandline.model.ids import Index, Offset
from strandline.replication.replica.replica import Replica
from strandline.tiered.exports.export import Export, RetiredObject
from strandline.tiered.exports.exporter import Exporter
from strandline.tiered.exports.names import ExportNumber, PartitionPlace


class Marks(NamedTuple):
    """Equal marks, equal exports."""

    epoch: int
    tier_index: int
    partition_count: int
    topic_config: dict[str, str]


class BucketExports:
    """The exports of one partition into one bucket."""

    def __init__(self, exporter: Exporter, generation: int) -> None:
        self.exporter = exporter
        self.generation = generation
        """How often the bucket had been replaced when this began."""
        self.said: Marks | None = None
        """What the bucket's newest export says; None while that is not known."""
        self.due_ms = 0
        """Not before that."""
        self.is_under_way = False
        self.check_ms = 0
        """When to see whether the bucket has lost the newest export; 0: not set yet."""


def marks_of(replica: Replica, cluster: Cluster) -> Marks:
    """What the present exports of a partition depend on."""
    topic = cluster.topics[cluster.groups[replica.group].topic]
    return Marks(
        replica.epoch, replica.tier.state.index, len(topic.partitions), dict(topic.configs)
    )


def place_of(replica: Replica, cluster: Cluster) -> PartitionPlace:
    """Where a partition is in a bucket."""
    partition = cluster.groups[replica.group]
    return PartitionPlace(cluster.cluster_id, cluster.topics[partition.topic].id, partition.index)


def export_of(replica: Replica, cluster: Cluster, bucket: str, *, now_ms: int) -> Export:
    """What the leader of a partition says of one bucket now. The replica's state is that of all
    that is committed."""
    assert replica.can_serve_reads
    assert replica.tier.is_known
    state = replica.tier.state
    partition = cluster.groups[replica.group]
    topic = cluster.topics[partition.topic]
    known = state.buckets.get(bucket)
    end = state.live_end(bucket)
    return Export(
        cluster_id=cluster.cluster_id,
        topic=topic.name,
        topic_id=topic.id,
        partition=partition.index,
        partition_count=len(topic.partitions),
        topic_config=dict(topic.configs),
        number=ExportNumber(replica.epoch, Index(max(state.index, 0)), cluster.version),
        written_ms=now_ms,
        high_watermark=Offset(max(replica.high_watermark, end)),
        log_start_offset=state.deleted_before,
        end_offset=end,
        live=tuple(state.live(bucket)),
        retired=tuple(
            RetiredObject(one.name, one.at_ms)
            for one in (known.removals.values() if known is not None else ())
            if one.was_live
        ),
    )
