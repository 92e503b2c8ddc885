"""The keys of a topic, under Kafka's names and with Kafka's defaults.

Why:    tools set topic keys by Kafka's names; storage, replication and the produce path read typed
        values.
How:    the topic's own value wins, then the cluster-wide key that gives its default, then Kafka's
        default.
Owns:   nothing; rebuilt whenever the topic's or the cluster's configuration changes.
Source: Kafka's topic configuration reference; STYLE, "Configuration"."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from strandline.config.keys import INT_MAX, LONG_MAX, Key, Value, key, keys_of
from strandline.config.stored_topic_keys import STORED_TOPIC_KEYS
from strandline.config.topic_read_replica import (
    READ_REPLICA_OF,
    SOURCE_ID,
    TopicReadReplica,
    read_replica_conflict,
)
from strandline.config.topic_tiering import (
    TieringValues,
    resolve_tiering,
    tiering_conflict,
)

DAY_MS = 86_400_000
_LAGS = ("min.compaction.lag.ms", "max.compaction.lag.ms")
NOTHING: Mapping[str, str] = {}
COMPRESSION_TYPES = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


def _check_throttled(value: Value) -> str | None:
    """Kafka's form: `*`, or partition:broker of each replica."""
    assert isinstance(value, tuple)
    pairs = [one.split(":") for one in value]
    if value == ("*",) or all(
        len(one) == 2 and all(part.isdecimal() for part in one) for one in pairs
    ):
        return None
    return "must be * or a list of partition:broker, as in 0:4,1:5"


def _check_gzip_level(value: Value) -> str | None:
    assert isinstance(value, int)
    return None if value == -1 or 1 <= value <= 9 else f"must be -1, or 1 to 9, not {value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicConfig(TopicReadReplica):
    """A topic's configuration. Field `retention_ms` is Kafka's `retention.ms`."""

    cleanup_policy: tuple[str, ...] = key(
        ("delete",),
        "`delete` removes old segments, `compact` keeps the last value of each key; both "
        "together do both. Empty: all records stay.",
        choices=("delete", "compact"),
        cluster_name="log.cleanup.policy",
        example="compact",
        reloadable=True,
    )
    compression_type: str = key(
        "producer",
        "The codec of stored batches. With `producer` a batch stays as its producer sent it. With "
        "any other value the leader compresses each batch anew that has another codec, which takes "
        "its CPU.",
        choices=COMPRESSION_TYPES,
        cluster_name="compression.type",
        reloadable=True,
    )
    compression_gzip_level: int = key(
        -1,
        "The level at which the leader compresses batches if `compression.type` is `gzip`. -1: "
        "gzip's own.",
        cluster_name="compression.gzip.level",
        check=_check_gzip_level,
        reloadable=True,
    )
    compression_lz4_level: int = key(
        9,
        "The level at which the leader compresses batches if `compression.type` is `lz4`. With 9 "
        "it compresses fast; every other value takes more time.",
        minimum=1,
        maximum=17,
        cluster_name="compression.lz4.level",
        reloadable=True,
    )
    compression_zstd_level: int = key(
        3,
        "The level at which the leader compresses batches if `compression.type` is `zstd`.",
        minimum=-131_072,
        maximum=22,
        cluster_name="compression.zstd.level",
        reloadable=True,
    )
    compressed_validation_enable: bool = key(
        True,
        "Whether the leader decompresses a producer's batches to validate the records in them. "
        "That takes 12 to 45 us of CPU for a batch of 16 KB. If not, a batch with garbage in it "
        "may stop the topic's consumers; the leader still decompresses the batches of compacted "
        "topics, and those whose header has no sound time.",
        own=True,
        cluster_name="default.compressed.validation.enable",
        reloadable=True,
        example="false",
    )
    delete_retention_ms: int = key(
        DAY_MS,
        "How long a compacted topic keeps a tombstone readable, for readers that start at the "
        "beginning.",
        unit="ms",
        minimum=0,
        cluster_name="log.cleaner.delete.retention.ms",
        reloadable=True,
        long=True,
    )
    flush_messages: int = key(
        LONG_MAX,
        "The most unflushed records on a replica that no acknowledgement waits for: records "
        "with acks=0 and acks=1, and all records with `write.caching`.",
        minimum=1,
        cluster_name="log.flush.interval.messages",
        reloadable=True,
        long=True,
    )
    flush_ms: int = key(
        100,
        "The longest time that a replica leaves such records unflushed; never longer than a "
        "minute, whatever the value. Kafka's default is never.",
        unit="ms",
        minimum=0,
        cluster_name="log.flush.interval.ms",
        reloadable=True,
        long=True,
    )
    follower_replication_throttled_replicas: tuple[str, ...] = key(
        (),
        "A key of Kafka's tools: the copies that `follower.replication.throttled.rate` limits. "
        "Here it limits all copies, whatever the value.",
        cluster_name="follower.replication.throttled.replicas",
        check=_check_throttled,
        example="0:4,1:5",
        reloadable=True,
    )
    index_interval_bytes: int = key(
        4096,
        "Bytes of log between two entries of a segment's offset index.",
        unit="bytes",
        minimum=0,
        cluster_name="log.index.interval.bytes",
        reloadable=True,
    )
    internal_segment_bytes: int = key(
        0,
        "As `segment.bytes`, without its minimum: for tests, which need small segments. It wins "
        "over `segment.bytes`.",
        unit="bytes",
        minimum=14,
        reloadable=True,
        internal=True,
    )
    leader_replication_throttled_replicas: tuple[str, ...] = key(
        (),
        "A key of Kafka's tools: the copies that `leader.replication.throttled.rate` limits. "
        "Here it limits all copies, whatever the value.",
        cluster_name="leader.replication.throttled.replicas",
        check=_check_throttled,
        example="0:1,1:2",
        reloadable=True,
    )
    max_compaction_lag_ms: int = key(
        LONG_MAX,
        "With compaction: a segment whose first record is older than this is closed and compacted "
        "however little of the log is new.",
        unit="ms",
        minimum=1,
        cluster_name="log.cleaner.max.compaction.lag.ms",
        reloadable=True,
        long=True,
    )
    max_message_bytes: int = key(
        1_048_588,
        "The largest record batch that the broker accepts, in the size in which it arrives "
        "(compressed or not).",
        unit="bytes",
        minimum=0,
        cluster_name="message.max.bytes",
        reloadable=True,
    )
    message_timestamp_after_max_ms: int = key(
        3_600_000,
        "How far a record's timestamp may be ahead of the broker's clock (with CreateTime).",
        unit="ms",
        minimum=0,
        cluster_name="log.message.timestamp.after.max.ms",
        reloadable=True,
        long=True,
    )
    message_timestamp_before_max_ms: int = key(
        LONG_MAX,
        "How far a record's timestamp may be behind the broker's clock (with CreateTime).",
        unit="ms",
        minimum=0,
        cluster_name="log.message.timestamp.before.max.ms",
        reloadable=True,
        long=True,
    )
    message_timestamp_type: str = key(
        "CreateTime",
        "`CreateTime` keeps the producer's timestamps, `LogAppendTime` replaces them by the "
        "leader's.",
        choices=("CreateTime", "LogAppendTime"),
        cluster_name="log.message.timestamp.type",
        reloadable=True,
    )
    min_cleanable_dirty_ratio: float = key(
        0.5,
        "Compaction of a log begins once this share of the bytes that it may compact is new. With "
        "0 it begins with the first closed segment.",
        minimum=0,
        maximum=1,
        cluster_name="log.cleaner.min.cleanable.ratio",
        reloadable=True,
    )
    min_compaction_lag_ms: int = key(
        0,
        "With compaction: a segment is not compacted until its newest record is older than this.",
        unit="ms",
        minimum=0,
        cluster_name="log.cleaner.min.compaction.lag.ms",
        reloadable=True,
        long=True,
    )
    min_insync_replicas: int = key(
        1,
        "How many replicas must flush a batch before the leader answers acks=all; never fewer "
        "than a majority of the voters, never more than there are.",
        minimum=1,
        cluster_name="min.insync.replicas",
        reloadable=True,
    )
    preallocate: bool = key(
        False,
        "Whether a new segment reserves `segment.bytes` of disk space at once. If false, the "
        "broker's key `storage.preallocate` decides whether it reserves space in steps.",
        cluster_name="log.preallocate",
        reloadable=True,
    )
    replica_lag_time_max_ms: int = key(
        30_000,
        "How long a replica that the leader hears from may lag and still count as in sync; with "
        "`voters.shrink.enable` it leaves the voters after that. Records that no "
        "acknowledgement waits for may lag `flush.ms` longer. In Kafka this is a key of brokers "
        "only.",
        unit="ms",
        minimum=1,
        cluster_name="replica.lag.time.max.ms",
        reloadable=True,
        long=True,
    )
    retention_bytes: int = key(
        -1,
        "The partition size above which old segments are removed; -1, as any number below 0, for "
        "no limit.",
        unit="bytes",
        cluster_name="log.retention.bytes",
        example="1073741824",
        reloadable=True,
        long=True,
    )
    retention_ms: int = key(
        7 * DAY_MS,
        "The age of a segment's newest record above which the segment is removed; -1 for no limit.",
        unit="ms",
        minimum=-1,
        cluster_name="log.retention.ms",
        reloadable=True,
        long=True,
    )
    segment_bytes: int = key(
        1024 * 1024 * 1024,
        "The size at which a segment is closed and the next one begins.",
        unit="bytes",
        minimum=1024 * 1024,
        cluster_name="log.segment.bytes",
        reloadable=True,
    )
    segment_jitter_ms: int = key(
        0,
        "The most by which a segment is closed before it reaches `segment.ms`. Each segment has "
        "its own part of it, so that the segments of many partitions are not closed at once.",
        unit="ms",
        minimum=0,
        cluster_name="log.roll.jitter.ms",
        reloadable=True,
        long=True,
    )
    segment_ms: int = key(
        7 * DAY_MS,
        "The age of its first record at which a segment is closed even if it is small.",
        unit="ms",
        minimum=1,
        cluster_name="log.roll.ms",
        reloadable=True,
        long=True,
    )
    strandline_retention_records: int = key(
        -1,
        "How many records a partition keeps at least. A segment is removed once this many "
        "committed records follow it. A segment that holds this many is closed at the next "
        "check, so a partition keeps at most about twice as many, plus the records between two "
        "checks. -1 for no limit; the other retentions apply too.",
        own=True,
        minimum=-1,
        cluster_name="strandline.log.retention.records",
        example="100000",
        reloadable=True,
        long=True,
    )
    unclean_leader_election_enable: bool = key(
        False,
        "Whether a replica that lacks acknowledged records may become leader by itself. The value "
        "is stored and changes nothing: Strandline never allows it. If all replicas that have the "
        "records are lost, an operator decides (`strandline partition declare-lost`).",
        cluster_name="unclean.leader.election.enable",
        reloadable=True,
    )

    write_caching: bool = key(
        False,
        "Answer acks=all once as many replicas have the records in memory as would otherwise "
        "have to flush them. That is faster, but the records are lost if one of these replicas "
        "loses power within `flush.ms`, and the other replicas that have them fail or are cut "
        "off before they send them again.",
        own=True,
        cluster_name="strandline.log.write.caching",
        example="true",
        reloadable=True,
    )

    @property
    def is_compacted(self) -> bool:
        """Whether the last value of each key is kept."""
        return "compact" in self.cleanup_policy

    @property
    def is_deleted(self) -> bool:
        """Whether old segments are removed."""
        return "delete" in self.cleanup_policy

    @property
    def segment_bytes_max(self) -> int:
        """The size at which a segment is closed, that of a test included."""
        return self.internal_segment_bytes or self.segment_bytes

    @property
    def tiering(self) -> TieringValues:
        """The limits in force of tiered storage."""
        retention_ms, retention_bytes = self.total_retention
        return resolve_tiering(self, retention_ms=retention_ms, retention_bytes=retention_bytes)

    @property
    def total_retention(self) -> tuple[int, int]:
        """(ms, bytes) after which records go by their age or place; -1 for never."""
        return (self.retention_ms, self.retention_bytes) if self.is_deleted else (-1, -1)

    @property
    def has_log_append_time(self) -> bool:
        """Whether the leader writes the timestamps."""
        return self.message_timestamp_type == "LogAppendTime"

    @classmethod
    def from_overrides(
        cls,
        cluster_defaults: Mapping[str, str],
        overrides: Mapping[str, str],
        derived: Mapping[str, str] = NOTHING,
    ) -> "TopicConfig":
        """The configuration of a topic with these values set; texts, by Kafka's names.

        `derived`: defaults that come from other keys of the topic.

        Never fails, because it is called on replay: of a number that an older or newer broker
        accepted and this one does not, the nearest legal one counts; any other such value is
        passed over for the next in line."""
        values: dict[str, Value] = {}
        for rows, texts in (  # Each wins over the ones before.
            (_OWN_KEYS_BY_NAME, derived),
            (_OWN_KEYS_BY_CLUSTER_NAME, cluster_defaults),
            (_OWN_KEYS_BY_NAME, overrides),
        ):
            for name, text in texts.items():
                row = rows.get(name)
                if row is not None:
                    with contextlib.suppress(ValueError):
                        values[row.field] = row.parse_nearest(text)
        if not values:
            return DEFAULT_TOPIC_CONFIG
        return cls(**values)  # type: ignore[arg-type]


def is_compacted(cluster_defaults: Mapping[str, str], overrides: Mapping[str, str]) -> bool:
    """Whether a topic with these values is compacted; quick where nothing says so."""
    is_said = "cleanup.policy" in overrides or "log.cleanup.policy" in cluster_defaults
    return is_said and TopicConfig.from_overrides(cluster_defaults, overrides).is_compacted


_OWN_KEYS = keys_of(TopicConfig, dotted=True)
_OWN_KEYS_BY_NAME = {row.name: row for row in _OWN_KEYS}
_OWN_KEYS_BY_CLUSTER_NAME = {row.cluster_name: row for row in _OWN_KEYS if row.cluster_name}

TOPIC_KEYS_BY_NAME: dict[str, Key] = {
    row.name: row for row in sorted((*_OWN_KEYS, *STORED_TOPIC_KEYS), key=lambda row: row.name)
}
"""Every topic key, internal ones too."""

TOPIC_KEYS: tuple[Key, ...] = tuple(row for row in TOPIC_KEYS_BY_NAME.values() if not row.internal)
"""Every topic key that a topic always has, by name."""

DEFAULT_TOPIC_CONFIG = TopicConfig()


def validate_topic_config(name: str, value: str) -> str | None:
    """Why a topic may not have this value, in one line; None when it may."""
    row = TOPIC_KEYS_BY_NAME.get(name)
    if row is None:
        return unknown_key(name, TOPIC_KEYS_BY_NAME)
    return row.refuse(value)


def conflict_of(cluster_defaults: Mapping[str, str], overrides: Mapping[str, str]) -> str | None:
    """Why a topic with these values contradicts itself, in one line; None when it does not."""
    if READ_REPLICA_OF in overrides or SOURCE_ID in overrides:
        reason = read_replica_conflict(overrides)
        if reason is not None:
            return reason
    is_tiered = "remote.storage.enable" in overrides
    if not is_tiered and not any(
        name in overrides or TOPIC_KEYS_BY_NAME[name].cluster_name in cluster_defaults
        for name in _LAGS
    ):
        return None
    config = TopicConfig.from_overrides(cluster_defaults, overrides)
    if config.min_compaction_lag_ms > config.max_compaction_lag_ms:
        return (
            f"min.compaction.lag.ms ({config.min_compaction_lag_ms}) must not be above "
            f"max.compaction.lag.ms ({config.max_compaction_lag_ms})"
        )
    retention_ms, retention_bytes = config.total_retention
    return tiering_conflict(config, retention_ms=retention_ms, retention_bytes=retention_bytes)


def unknown_key(name: str, known: Mapping[str, Key]) -> str:
    """The refusal of a name that is not in a table, with the nearest one that is."""
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    return f"unknown key {name[:200]!r}" + (f" (did you mean {close[0]}?)" if close else "")


assert all(
    row.maximum is None or row.maximum <= INT_MAX for row in TOPIC_KEYS if row.type.value == 3
)
