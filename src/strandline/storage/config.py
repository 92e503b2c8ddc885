"""The settings of one log, from its topic's configuration.

Source: Kafka's topic configuration, whose defaults these are."""

from dataclasses import dataclass

_DAY_MS = 24 * 60 * 60 * 1000
_NEVER_MS = (1 << 63) - 1
SEGMENT_BYTES_MAX = (1 << 31) - 1
"""Positions in a segment fit into the index's 4 bytes."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """How a log is cut, indexed and cleaned. -1 means "no limit" for the retentions."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    segment_jitter_ms: int = 0
    """The most by which a segment is closed before `segment_ms`."""
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * _DAY_MS
    timestamp_after_max_ms: int = 60 * 60 * 1000
    """How far ahead of the clock a record's timestamp may be: one farther ahead is no time."""
    retention_bytes: int = -1
    retention_records: int = -1
    """A segment is removed once this many committed records follow it; -1 for no limit."""
    remote_storage: bool = False
    """`remote.storage.enable`: closed segments go to object stores."""
    local_retention_ms: int = -1
    """Of a log with `remote_storage`: how long segments stay on the disk."""
    local_retention_bytes: int = -1
    """As above, how many bytes."""
    remote_buckets: tuple[str, ...] = ()
    """The buckets that the log's segments go to."""
    remote_copies_min: int = 0
    """The local retention removes a segment once so many of them have it; 0 for all."""
    delete: bool = True
    """`cleanup.policy` contains delete: the retentions hold."""
    compacted: bool = False
    """`cleanup.policy` contains compact: closed segments keep the last value of each key."""
    was_compacted: bool = False
    """`cleanup.policy` contained compact at some time: keys may be gone already."""
    delete_retention_ms: int = _DAY_MS
    """How long a compacted log keeps a tombstone after it was first cleaned."""
    min_compaction_lag_ms: int = 0
    """A segment whose newest record is younger is not compacted."""
    max_compaction_lag_ms: int = _NEVER_MS
    """A segment whose first record is older is closed and compacted, however little is new."""
    min_cleanable_dirty_ratio: float = 0.5
    """Compaction begins once this share of the bytes it may compact is new since the last pass."""
    compaction_map_bytes: int = 32 << 20
    """Memory for the keys of one pass; keys that do not fit wait for the next one."""
    producer_expiry_ms: int = 7 * _DAY_MS
    """A producer that was silent for this long is removed."""
    write_caching: bool = False
    """acks=all is answered before the flush."""
    flush_ms: int = 100
    """How long entries may stay unflushed that no acknowledgement waits for."""
    flush_messages: int = (1 << 63) - 1
    """The most entries of that kind that may stay unflushed."""
    mark_interval_ms: int = 5_000
    """The longest time from a flush until a mark on the disk covers it."""
    trust_ms: int = 10_000
    """How long bytes are trusted after they were written or verified."""
    preallocate: bool = True
    """Reserve space ahead of the end of the active segment, so that flushes change no metadata."""
    preallocate_segment: bool = False
    """Reserve the space of a whole segment when it gets its first batch."""

    @property
    def has_compaction_lag_max(self) -> bool:
        """Whether some age makes a log be compacted."""
        return self.max_compaction_lag_ms < _NEVER_MS

    @property
    def has_been_compacted(self) -> bool:
        """Whether this log may lack records that other replicas have, and the reverse."""
        return self.compacted or self.was_compacted
