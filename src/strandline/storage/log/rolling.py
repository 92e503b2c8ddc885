"""Decides when the active segment of a log is closed although it has room.

Why:    retention and compaction only work on closed segments.
How:    due when one of these holds: its first append is `segment_ms` ago, less the segment's part
        of `segment_jitter_ms`; with compaction, its first append is `max_compaction_lag_ms` ago;
        retention is about to remove it.
            The time of the first append is known in memory only. In a segment that was found when
        the log was opened, the timestamp of the first record stands for it, for compaction alone:
        a producer may write old timestamps, and each opening rolls at most once for them.
Owns:   nothing.
Source: Kafka's segment.ms, segment.jitter.ms and max.compaction.lag.ms."""

from zlib import crc32

from strandline.base.clock import Clock
from strandline.base.errors import StorageError
from strandline.storage.config import LogConfig
from strandline.storage.log import retention
from strandline.storage.log.segment import Segment


def is_due(active: Segment, config: LogConfig, clock: Clock) -> bool:
    """Whether to close the active segment, which has batches, now."""
    age_ms = clock.monotonic_ms() - active.first_append_ms
    wall_ms = clock.wall_ms()
    if age_ms >= age_ms_max(active, config) or retention.is_due(active, config, wall_ms):
        return True
    if not active.was_found:
        return False
    try:
        return is_overdue(active, config, wall_ms)
    except StorageError:  # Its damage is found, and mended, where it is read.
        return False


def age_ms_max(active: Segment, config: LogConfig) -> int:
    """How long after its first append the active segment is closed."""
    age_ms = config.segment_ms
    if config.segment_jitter_ms:
        # Made of the segment's place, so that it stays the same from one check to the next.
        jitter_ms = min(config.segment_jitter_ms, config.segment_ms)
        age_ms -= crc32(active.path("").encode()) % (jitter_ms + 1)
    return min(age_ms, config.max_compaction_lag_ms) if config.compacted else age_ms


def is_overdue(segment: Segment, config: LogConfig, wall_ms: int) -> bool:
    """Whether the first record of a segment has waited for compaction too long, by its timestamp.
    Raises StorageError if its first batch cannot be read."""
    if not config.compacted or not config.has_compaction_lag_max:
        return False
    return 0 <= segment.first_timestamp() < wall_ms - config.max_compaction_lag_ms
