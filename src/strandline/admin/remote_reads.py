"""Metrics of reading old records from buckets.

How:    rows of the table, and their values; without `[tiered] buckets` they have none.
Source: KIP-405 for names that Kafka has; decisions 0023 and 0060."""

from collections import Counter
from collections.abc import Mapping

from strandline.admin.metric import Kind, Metric
from strandline.broker.fetch.remote_log import RemoteLog

REASONS = ("unanswered", "absent", "wrong_bytes")
"""Why a range had no usable bytes."""
_TOPICS = "kafka.server:type=BrokerTopicMetrics,name="


def _total(name: str, text: str, *labels: str, kafka: str = "") -> Metric:
    return Metric(
        name=f"strandline_remote_{name}_total",
        kind=Kind.COUNTER,
        help=text,
        labels=labels,
        kafka=f"{_TOPICS}{kafka}" if kafka else "",
    )


REMOTE_METRICS = (
    _total(
        "fetch_requests",
        "Ranges that this broker asked of a bucket.",
        "bucket",
        kafka="RemoteFetchRequestsPerSec",
    ),
    _total(
        "fetch_bytes",
        "Bytes that this broker downloaded from a bucket.",
        "bucket",
        kafka="RemoteFetchBytesPerSec",
    ),
    _total(
        "fetch_errors",
        "Ranges without usable bytes: unanswered, absent or wrong_bytes.",
        "bucket",
        "reason",
        kafka="RemoteFetchErrorsPerSec",
    ),
    _total("fetch_seconds", "Time of the downloads that succeeded, together.", "bucket"),
    _total("served_bytes", "Bytes of records from buckets in responses to client fetches."),
    _total("fallbacks", "Reads that went on to another bucket."),
    _total("failed_reads", "Reads that no bucket could serve; clients retry."),
    Metric(
        name="strandline_remote_bucket_down",
        labels=("bucket",),
        help="1 for a bucket that did not answer this broker's last read.",
    ),
    Metric(
        name="strandline_remote_unusable_objects",
        help="Objects that a bucket lacks or has with wrong bytes, found within the last 30 s.",
    ),
    Metric(name="strandline_remote_cache_bytes", help="Bytes in the cache of downloaded chunks."),
    Metric(name="strandline_remote_cache_limit_bytes", help="Limit of these bytes."),
    _total("cache_hits", "Chunks that reads found in the cache."),
    _total("cache_misses", "Chunks that reads had to wait for."),
    _total("cache_damaged", "Cached chunks with a wrong checksum; they are downloaded again."),
    _total("cache_errors", "Failed operations of the disk of the cache."),
)

_Values = Mapping[tuple[str, ...], float]


def remote_figures(log: RemoteLog | None) -> dict[str, float | _Values]:
    """`REMOTE_METRICS`."""
    if log is None:
        return {row.name: {} for row in REMOTE_METRICS}
    reader = log.reader
    counters = reader.counters
    reasons = (counters.unanswered, counters.absent, counters.wrong_bytes)
    down = dict.fromkeys(counters.requests, 0) | dict.fromkeys(reader.failures.paused, 1)
    return {
        "strandline_remote_fetch_requests_total": _by_bucket(counters.requests),
        "strandline_remote_fetch_bytes_total": _by_bucket(counters.fetched_bytes),
        "strandline_remote_fetch_errors_total": {
            (bucket, reason): count
            for reason, counts in zip(REASONS, reasons, strict=True)
            for bucket, count in counts.items()
        },
        "strandline_remote_fetch_seconds_total": {
            (bucket,): ms / 1_000 for bucket, ms in counters.fetch_ms.items()
        },
        "strandline_remote_served_bytes_total": counters.served_bytes,
        "strandline_remote_fallbacks_total": counters.fallbacks,
        "strandline_remote_failed_reads_total": counters.failed_reads,
        "strandline_remote_bucket_down": {(bucket,): is_down for bucket, is_down in down.items()},
        "strandline_remote_unusable_objects": reader.failures.unusable_count,
        "strandline_remote_cache_bytes": reader.cache.size_bytes,
        "strandline_remote_cache_limit_bytes": reader.cache.bytes_max,
        "strandline_remote_cache_hits_total": counters.cache_hits,
        "strandline_remote_cache_misses_total": counters.cache_misses,
        "strandline_remote_cache_damaged_total": counters.cache_damaged,
        "strandline_remote_cache_errors_total": counters.cache_errors,
    }


def _by_bucket(counts: Counter[str]) -> _Values:
    return {(bucket,): count for bucket, count in counts.items()}
