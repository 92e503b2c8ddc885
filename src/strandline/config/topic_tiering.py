"""The keys of a topic that say what of it goes to object stores, when, and how long it stays local.

Why:    Kafka's tools set most of them by Kafka's names; two are ours.
How:    -2 of a local retention means the same as the total one, as in Kafka; -1 of a copy lag means
        the local retention. `TieringValues` has them resolved.
Owns:   nothing.
Source: KIP-405, KIP-950, KIP-1241; decision 0057."""

from dataclasses import dataclass

from strandline.config.keys import key
from strandline.config.topic_placement import TopicPlacement

FROM_RETENTION = -2
"""Of a local retention: as the total one."""
FROM_LOCAL_RETENTION = -1
"""Of a copy lag: as the local retention."""
NO_LIMIT = -1
KEEP, REFUSE_WRITES = "keep", "refuse-writes"
"""Values of `remote.copy.lag.max.action`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicTiering(TopicPlacement):
    """The part of a topic's configuration that is about tiered storage; with that about places,
    because classes with slots have one parent."""

    local_retention_bytes: int = key(
        FROM_RETENTION,
        "With `remote.storage.enable`: how many bytes of a partition stay on the broker's disk. "
        "Segments that are not yet in the topic's buckets stay in any case. -1 for no limit, -2 "
        "for `retention.bytes`; that is no limit unless `cleanup.policy` has delete.",
        unit="bytes",
        minimum=FROM_RETENTION,
        cluster_name="log.local.retention.bytes",
        reloadable=True,
        long=True,
    )
    local_retention_ms: int = key(
        FROM_RETENTION,
        "With `remote.storage.enable`: how long segments stay on the broker's disk. Segments that "
        "are not yet in the topic's buckets stay in any case. -1 for no limit, -2 for "
        "`retention.ms`; that is no limit unless `cleanup.policy` has delete.",
        unit="ms",
        minimum=FROM_RETENTION,
        cluster_name="log.local.retention.ms",
        reloadable=True,
        long=True,
    )
    remote_copies_min: int = key(
        0,
        "How many of the topic's buckets must have a segment before the local retention may remove "
        "it; 0 for all of them.",
        own=True,
        minimum=0,
        maximum=100,
        cluster_name="strandline.remote.copies.min",
        example="1",
        reloadable=True,
    )
    remote_copy_lag_bytes: int = key(
        0,
        "A replica uploads a closed segment once the partition has this many bytes after it, or "
        "once `remote.copy.lag.ms` is over. 0: at once, with any `remote.copy.lag.ms`. -1: as "
        "`local.retention.bytes`.",
        unit="bytes",
        minimum=FROM_LOCAL_RETENTION,
        cluster_name="log.remote.copy.lag.bytes",
        reloadable=True,
        long=True,
    )
    remote_copy_lag_max_action: str = key(
        KEEP,
        "What a partition does above `remote.copy.lag.max.bytes`. `keep`: it takes writes, and "
        "keeps everything, until the disk is full. `refuse-writes`: producers get a retriable "
        "error until a bucket has taken enough. Neither removes records that no bucket has.",
        own=True,
        choices=(KEEP, REFUSE_WRITES),
        cluster_name="strandline.remote.copy.lag.max.action",
        example=REFUSE_WRITES,
        reloadable=True,
    )
    remote_copy_lag_max_bytes: int = key(
        NO_LIMIT,
        "How many bytes of closed segments a partition may keep on the disk for buckets that lack "
        "them. Above it an alarm is raised, and `remote.copy.lag.max.action` applies; segments are "
        "due at once. It counts what the local retention may not remove: with `remote.copies.min` "
        "a bucket that is not needed counts for nothing. -1 for no limit.",
        own=True,
        unit="bytes",
        minimum=NO_LIMIT,
        cluster_name="strandline.remote.copy.lag.max.bytes",
        example="10737418240",
        reloadable=True,
        long=True,
    )
    remote_copy_lag_max_ms: int = key(
        900_000,
        "How long a closed segment that is due may be missing from a bucket until an alarm is "
        "raised.",
        own=True,
        unit="ms",
        minimum=1_000,
        cluster_name="strandline.remote.copy.lag.max.ms",
        reloadable=True,
        long=True,
    )
    remote_copy_lag_ms: int = key(
        0,
        "A replica uploads a closed segment once its newest record is this old, or once "
        "`remote.copy.lag.bytes` is reached. 0: at once, with any `remote.copy.lag.bytes`. "
        "-1: as `local.retention.ms`.",
        unit="ms",
        minimum=FROM_LOCAL_RETENTION,
        cluster_name="log.remote.copy.lag.ms",
        reloadable=True,
        long=True,
    )
    remote_log_copy_disable: bool = key(
        False,
        "Whether no further segments go to the topic's buckets. Those that are there stay "
        "readable. Segments that are in no bucket stay on the broker's disk until the total "
        "retention removes them.",
        reloadable=True,
    )
    remote_log_delete_on_disable: bool = key(
        False,
        "Whether all objects of the topic are deleted when `remote.storage.enable` becomes false. "
        "It can become false only with this key.",
        reloadable=True,
    )
    remote_storage_enable: bool = key(
        False,
        "Whether closed segments go to object stores: to every bucket in `[tiered] buckets` of the "
        "brokers' files whose region the topic's placement policy allows.",
        reloadable=True,
        example="true",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TieringValues:
    """The limits in force of a topic, resolved; -1 for no limit."""

    local_retention_ms: int
    local_retention_bytes: int
    copy_lag_ms: int
    """0: at once; -1: never by age."""
    copy_lag_bytes: int
    """0: at once; -1: never by size."""


def resolve_tiering(
    tiering: TopicTiering, *, retention_ms: int, retention_bytes: int
) -> TieringValues:
    """The limits in force next to these total retentions."""
    local_ms = _within(tiering.local_retention_ms, retention_ms)
    local_bytes = _within(tiering.local_retention_bytes, retention_bytes)
    lag_ms, lag_bytes = tiering.remote_copy_lag_ms, tiering.remote_copy_lag_bytes
    return TieringValues(
        local_retention_ms=local_ms,
        local_retention_bytes=local_bytes,
        copy_lag_ms=local_ms if lag_ms == FROM_LOCAL_RETENTION else _within(lag_ms, local_ms),
        copy_lag_bytes=(
            local_bytes if lag_bytes == FROM_LOCAL_RETENTION else _within(lag_bytes, local_bytes)
        ),
    )


def tiering_conflict(
    tiering: TopicTiering, *, retention_ms: int, retention_bytes: int
) -> str | None:
    """Why a topic with these values contradicts itself, in one line; None when it does not."""
    if not tiering.remote_storage_enable:
        return None
    totals = (
        ("ms", tiering.local_retention_ms, retention_ms, tiering.remote_copy_lag_ms),
        ("bytes", tiering.local_retention_bytes, retention_bytes, tiering.remote_copy_lag_bytes),
    )
    for unit, local, total, lag in totals:
        if total != NO_LIMIT and (local == NO_LIMIT or local > total):
            return f"local.retention.{unit} ({local}) must not be above retention.{unit} ({total})"
        in_force = _within(local, total)
        if in_force != NO_LIMIT and lag > in_force:
            return (
                f"remote.copy.lag.{unit} ({lag}) must not be above the local.retention.{unit} in "
                f"force ({in_force})"
            )
    return None


def _within(value: int, total: int) -> int:
    """A limit that is never above another one; -1 for no limit, -2 for the other one."""
    if value in (FROM_RETENTION, NO_LIMIT):
        return total
    return value if total == NO_LIMIT else min(value, total)
