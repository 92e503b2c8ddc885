"""The metrics of tiered storage: their table, and their values.

Why:    uploads that stop without a word, and fill disks, are what users of other tiered storage
        report most.
How:    The counts are kept where the work is done; gauges are those of the last look at each
        partition, which is at most a minute old, and new whenever a segment is closed or uploaded.
Owns:   nothing.
Source: decisions 0023 and 0059; Kafka's KIP-405 and KIP-963 for the names in Kafka."""

from collections import Counter
from collections.abc import Mapping

from strandline.admin.metric import Kind, Metric
from strandline.broker.broker import Broker
from strandline.broker.tiering.tiering import Tiering

_TOPIC = "kafka.server:type=BrokerTopicMetrics,name="
_FROM_TO = ("from_region", "bucket")

TIERED_METRICS = (
    Metric(
        name="strandline_tiered_uploads_total",
        kind=Kind.COUNTER,
        labels=_FROM_TO,
        help="Objects that this broker put into a bucket and read back.",
        kafka=f"{_TOPIC}RemoteCopyRequestsPerSec",
    ),
    Metric(
        name="strandline_tiered_uploaded_bytes_total",
        kind=Kind.COUNTER,
        labels=_FROM_TO,
        help=(
            "Their bytes, by the region that they came from. Where that is not the region of "
            "`bucket`, they crossed regions."
        ),
        kafka=f"{_TOPIC}RemoteCopyBytesPerSec",
    ),
    Metric(
        name="strandline_tiered_sent_bytes_total",
        kind=Kind.COUNTER,
        labels=_FROM_TO,
        help="Bytes of all puts of such objects, those that failed included.",
    ),
    Metric(
        name="strandline_tiered_requests_total",
        kind=Kind.COUNTER,
        labels=("bucket", "request"),
        help=(
            "Requests that this broker sent to a bucket: put (parts and copies, too), get, list "
            "(pages) and delete; retries within one deadline are not counted."
        ),
    ),
    Metric(
        name="strandline_tiered_received_bytes_total",
        kind=Kind.COUNTER,
        labels=("bucket",),
        help="Bytes of objects that this broker read from a bucket, for any purpose.",
    ),
    Metric(
        name="strandline_tiered_errors_total",
        kind=Kind.COUNTER,
        labels=("bucket",),
        help="Uploads, puts and deletions that did not succeed here.",
        kafka=f"{_TOPIC}RemoteCopyErrorsPerSec",
    ),
    Metric(
        name="strandline_tiered_deleted_objects_total",
        kind=Kind.COUNTER,
        labels=("bucket",),
        help="Retired and abandoned objects that this broker deleted.",
        kafka=f"{_TOPIC}RemoteDeleteRequestsPerSec",
    ),
    Metric(
        name="strandline_tiered_replaced_objects_total",
        kind=Kind.COUNTER,
        labels=("bucket",),
        help="Objects that this broker replaced by a merged or compacted one.",
    ),
    Metric(
        name="strandline_tiered_rewritten_bytes_total",
        kind=Kind.COUNTER,
        labels=("bucket",),
        help="Bytes of data that this broker read from the replaced objects.",
    ),
    Metric(
        name="strandline_tiered_repaired_objects_total",
        kind=Kind.COUNTER,
        labels=("bucket",),
        help="Objects that a bucket had lost or damaged, and that this broker put again.",
    ),
    Metric(
        name="strandline_tiered_pending_bytes",
        labels=("bucket",),
        help="Bytes of closed segments, of partitions led here, that a bucket lacks.",
        kafka=f"{_TOPIC}RemoteCopyLagBytes",
    ),
    Metric(
        name="strandline_tiered_oldest_pending_seconds",
        labels=("bucket",),
        help="How long ago the oldest of these segments was closed; 0 for none.",
    ),
    Metric(
        name="strandline_tiered_late_partitions",
        help=(
            "Partitions led here whose closed segments are missing from a bucket for longer than "
            "`remote.copy.lag.max.ms`, or are more than `remote.copy.lag.max.bytes`."
        ),
    ),
    Metric(
        name="strandline_tiered_refusing_partitions",
        help=(
            "Partitions led here that refuse writes, because their closed segments that wait for a "
            "bucket are more than `remote.copy.lag.max.bytes`."
        ),
    ),
    Metric(
        name="strandline_tiered_full_in_seconds",
        help=(
            "With late partitions: how long until this broker's disk is full, or a partition led "
            "here is at `remote.copy.lag.max.bytes`, at the rate of the last quarter of an hour. "
            "No series if neither comes nearer."
        ),
    ),
    Metric(
        name="strandline_tiered_live_bytes",
        labels=("bucket",),
        help="Bytes of live objects of partitions led here.",
        kafka=f"{_TOPIC}RemoteLogSizeBytes",
    ),
    Metric(
        name="strandline_tiered_live_objects",
        labels=("bucket",),
        help="Live objects of partitions led here.",
    ),
    Metric(
        name="strandline_tiered_pending_deletions",
        labels=("bucket",),
        help="Retired and abandoned objects of partitions led here that are not deleted yet.",
        kafka=f"{_TOPIC}RemoteDeleteLagSegments",
    ),
    Metric(
        name="strandline_tiered_partition_pending_bytes",
        labels=("topic", "partition", "bucket"),
        help=(
            "As `strandline_tiered_pending_bytes`, for each partition led here that has tiered "
            "storage, up to `[metrics] partition_count_max`."
        ),
        kafka=f"{_TOPIC}RemoteCopyLagBytes,topic=...",
    ),
    Metric(
        name="strandline_tiered_partition_oldest_pending_seconds",
        labels=("topic", "partition", "bucket"),
        help="As `strandline_tiered_oldest_pending_seconds`, for each of these partitions.",
    ),
)
"""Metrics of every broker; without tiered storage they have no series."""

Values = dict[tuple[str, ...], float]


def tiered_figures(broker: Broker) -> dict[str, float | Values]:
    """`TIERED_METRICS`."""
    tiering = broker.services.tiering
    found: dict[str, float | Values] = {one.name: {} for one in TIERED_METRICS}
    traffic = broker.services.buckets.traffic
    found["strandline_tiered_requests_total"] = {
        (bucket, request): float(count)
        for bucket, one in traffic.items()
        for request, count in (
            ("put", one.put_count),
            ("get", one.get_count),
            ("list", one.list_count),
            ("delete", one.delete_count),
        )
    }
    found["strandline_tiered_received_bytes_total"] = {
        (bucket,): float(one.received_bytes) for bucket, one in traffic.items()
    }
    found["strandline_tiered_late_partitions"] = 0
    found["strandline_tiered_refusing_partitions"] = 0
    if tiering is None:
        return found
    late = found["strandline_tiered_late_partitions"] = len(tiering.lagging())
    found["strandline_tiered_refusing_partitions"] = len(tiering.refusing())
    full_in_ms = tiering.full_in_ms() if late else None
    if full_in_ms is not None:
        found["strandline_tiered_full_in_seconds"] = full_in_ms / 1_000
    figures = tiering.figures
    found["strandline_tiered_uploads_total"] = _floats(figures.upload_counts)
    found["strandline_tiered_uploaded_bytes_total"] = _floats(figures.uploaded_bytes)
    found["strandline_tiered_sent_bytes_total"] = _floats(figures.sent_bytes)
    found["strandline_tiered_errors_total"] = _by_bucket(tiering, figures.error_counts)
    found["strandline_tiered_repaired_objects_total"] = _by_bucket(tiering, figures.repaired_counts)
    found["strandline_tiered_deleted_objects_total"] = _by_bucket(tiering, figures.deleted_counts)
    found["strandline_tiered_replaced_objects_total"] = _by_bucket(tiering, figures.replaced_counts)
    found["strandline_tiered_rewritten_bytes_total"] = _by_bucket(tiering, figures.rewritten_bytes)
    return found | _gauges(broker, tiering)


def _gauges(broker: Broker, tiering: Tiering) -> dict[str, float | Values]:
    cluster, wall_ms = broker.services.cluster, tiering.clock.wall_ms()
    count_max = broker.config.metrics.partition_count_max
    pending: Counter[str] = Counter()
    live_bytes: Counter[str] = Counter()
    live: Counter[str] = Counter()
    removals: Counter[str] = Counter()
    oldest: dict[str, float] = {}
    each_pending: Values = {}
    each_oldest: Values = {}
    for group, led in tiering.led.items():
        replica = broker.replication.replicas.get(group)
        partition = cluster.groups.get(group)
        if replica is None or partition is None:
            continue
        for bucket, state in replica.tier.state.buckets.items():
            live_bytes[bucket] += state.size_bytes
            live[bucket] += len(state.live)
            removals[bucket] += len(state.removals)
        for bucket, work in led.work.items():
            since_ms = work.pending_since_ms
            age_s = max(0, wall_ms - since_ms) / 1_000 if since_ms >= 0 else 0.0
            pending[bucket] += work.pending_bytes
            oldest[bucket] = max(oldest.get(bucket, 0.0), age_s)
            if len(each_pending) < count_max:
                labels = partition.topic, str(partition.index), bucket
                each_pending[labels], each_oldest[labels] = work.pending_bytes, age_s
    return {
        "strandline_tiered_pending_bytes": _by_bucket(tiering, pending),
        "strandline_tiered_oldest_pending_seconds": _by_bucket(tiering, oldest),
        "strandline_tiered_live_bytes": _by_bucket(tiering, live_bytes),
        "strandline_tiered_live_objects": _by_bucket(tiering, live),
        "strandline_tiered_pending_deletions": _by_bucket(tiering, removals),
        "strandline_tiered_partition_pending_bytes": each_pending,
        "strandline_tiered_partition_oldest_pending_seconds": each_oldest,
    }


def _floats(counts: Mapping[tuple[str, str], int]) -> Values:
    return {labels: float(count) for labels, count in counts.items()}


def _by_bucket(tiering: Tiering, values: dict[str, int] | dict[str, float]) -> Values:
    """A series for each bucket of the broker's file."""
    return {(one,): values.get(one, 0) for one in tiering.buckets.names}
