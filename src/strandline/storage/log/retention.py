"""Decides which closed segments a log may delete.

Why:    a topic says how long and how much it keeps. Records that readers may not have seen yet, and
        uncommitted records, never go.
How:    `expired_segments` judges closed segments; `is_due` says when to close the active one so
        that it can go: by time and by records. A limit in bytes counts whole segments.
        Records that another leader may still cut off count for nothing: a leader without followers
        keeps appending, and would delete acknowledged records for ones that are never committed.
        A segment whose records have no timestamp, or one that no producer was allowed to send, is
        as old as its file's last change: it must not stay for ever.
        With tiered storage the local retention removes segments whose records are in enough
        buckets, of compacted topics, too. The total retention removes others, but only if nothing
        before them is left: the oldest records of a partition always go first.
Source: Kafka's retention.ms and retention.bytes; design section 4; KIP-405."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from strandline.model.ids import Offset
from strandline.storage.config import LogConfig
from strandline.storage.log.segment import Segment


class Tiered(NamedTuple):
    """What the buckets of a log with `remote_storage` have of its records."""

    covered_end: Offset
    """Enough buckets have the records from the log's start to here."""
    is_first: bool
    """Whether the partition begins with this log: no earlier record is in a bucket."""


def expired_segments(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    now_ms: int,
    limit_offset: Offset,
    deleted_before: Offset,
    tiered: Tiered | None = None,
) -> int:
    """How many segments from the first on may go; never the last, which is the active one."""
    count = 0
    if tiered is None or tiered.is_first:
        count = _expired(
            segments,
            config,
            now_ms=now_ms,
            limit_offset=limit_offset,
            deleted_before=deleted_before,
        )
    if tiered is None:
        return count
    local = replace(
        config,
        delete=True,
        retention_ms=config.local_retention_ms,
        retention_bytes=config.local_retention_bytes,
        retention_records=-1,
    )
    is_local = _expired(
        segments,
        local,
        now_ms=now_ms,
        limit_offset=limit_offset,
        deleted_before=deleted_before,
        covered_end=tiered.covered_end,
    )
    return max(count, is_local)


def _expired(
    segments: Sequence[Segment],
    config: LogConfig,
    *,
    now_ms: int,
    limit_offset: Offset,
    deleted_before: Offset,
    covered_end: Offset | None = None,
) -> int:
    """How many segments from the first on may go.

    A segment goes when it ends at or below the limit, and its newest record is older than the
    retention time, or what is from it to the limit, which no truncation takes, is as large as the
    retention size or has as many records as are to be kept, or all of its own are deleted. One
    without any record goes with the next one that has some."""
    is_by_size = config.delete and config.retention_bytes >= 0
    left = sum(one.bytes_before(limit_offset) for one in segments) if is_by_size else 0
    count = 0
    for at, segment in enumerate(segments[:-1], start=1):
        left -= segment.bytes_before(limit_offset) if is_by_size else 0
        if segment.end_offset > limit_offset or (
            covered_end is not None and segment.end_offset > covered_end
        ):
            break
        is_old = is_expired(segment, config, now_ms)
        is_much = is_by_size and config.retention_bytes <= left
        is_many = config.delete and (
            0 <= config.retention_records <= limit_offset - segment.end_offset
        )
        is_deleted = segment.end_offset <= deleted_before
        if is_old or is_much or is_many or is_deleted:
            count = at
        elif has_records(segment):
            break
    return count


def has_records(segment: Segment) -> bool:
    """Whether it takes any offset: markers alone have no age."""
    return segment.end_offset > segment.name.base_offset


def is_expired(segment: Segment, config: LogConfig, now_ms: int) -> bool:
    """Whether the segment's newest record is older than the retention time."""
    if not config.delete or config.retention_ms < 0 or not has_records(segment):
        return False
    oldest_ms = now_ms - config.retention_ms
    if 0 <= segment.max_timestamp <= now_ms + config.timestamp_after_max_ms:
        return segment.max_timestamp < oldest_ms
    try:
        return segment.modified_ms() < oldest_ms
    except OSError:  # The disk cannot say: the next check asks again.
        return False


def is_due(active: Segment, config: LogConfig, now_ms: int) -> bool:
    """Whether the active segment has to be closed so that it can go in time."""
    if is_expired(active, config, now_ms):
        return True
    records_count = active.end_offset - active.name.base_offset
    return config.delete and 0 <= config.retention_records <= records_count and records_count > 0
