"""The metrics of read replicas and of exports: their table, and their values.

Why:    a copy that is late looks like a topic without news; and a bucket that takes no exports
        keeps its retired objects.
Owns:   nothing.
Source: decisions 0023 and 0061."""

from strandline.admin.metric import Kind, Metric
from strandline.broker.broker import Broker
from strandline.tiered.replicas.view import NEVER_MS

_PLACE = ("topic", "partition")

READ_REPLICA_METRICS = (
    Metric(
        name="strandline_read_replica_staleness_seconds",
        labels=_PLACE,
        help=(
            "How old the newest statement of the source's bucket is, for each partition here of a "
            "topic with `read.replica.of`, up to `[metrics] partition_count_max`. The difference "
            "between the clocks of the two clusters is part of it."
        ),
    ),
    Metric(
        name="strandline_read_replica_lag_records",
        labels=_PLACE,
        help="Records that the source had at that time and that are not in the bucket.",
    ),
    Metric(
        name="strandline_read_replica_unreadable_partitions",
        help="Such partitions here that cannot be read: nothing of the source has been found.",
    ),
    Metric(
        name="strandline_read_replica_failing_partitions",
        help="Partitions of read replicas here whose last look at the bucket failed.",
    ),
    Metric(
        name="strandline_exports_total",
        kind=Kind.COUNTER,
        help="Exports of partitions that this broker leads, in all buckets.",
    ),
    Metric(
        name="strandline_export_errors_total",
        kind=Kind.COUNTER,
        help="Exports that did not succeed, or are not known to have.",
    ),
    Metric(
        name="strandline_exports_pending",
        help="Buckets whose newest export of a partition led here says less than is committed.",
    ),
)
"""Metrics of every broker."""

_Values = dict[tuple[str, ...], float]


def read_replica_figures(broker: Broker) -> dict[str, float | _Values]:
    """`READ_REPLICA_METRICS`."""
    services = broker.services
    count_max = broker.config.metrics.partition_count_max
    staleness: _Values = {}
    lag: _Values = {}
    unreadable = failing = 0
    wall_ms = services.clock.wall_ms()
    for partition, view in services.read_replicas.views:
        unreadable += not view.is_ready
        failing += bool(view.failure)
        export, age_ms = view.export, view.staleness_ms(wall_ms)
        if export is not None and age_ms != NEVER_MS and len(lag) < count_max:
            labels = partition.topic, str(partition.index)
            staleness[labels] = age_ms / 1_000
            lag[labels] = export.high_watermark - export.end_offset
    exporting = services.exporting
    return {
        "strandline_read_replica_staleness_seconds": staleness,
        "strandline_read_replica_lag_records": lag,
        "strandline_read_replica_unreadable_partitions": unreadable,
        "strandline_read_replica_failing_partitions": failing,
        "strandline_exports_total": exporting.written_count,
        "strandline_export_errors_total": exporting.failed_count,
        "strandline_exports_pending": exporting.pending_count,
    }
