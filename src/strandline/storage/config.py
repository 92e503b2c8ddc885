"""The settings of one log, from its topic's configuration.

Source: Kafka's topic configuration, whose defaults these are."""

from dataclasses import dataclass

_DAY_MS = 24 * 60 * 60 * 1000
SEGMENT_BYTES_MAX = (1 << 31) - 1
"""Positions in a segment fit into the index's 4 bytes."""


@dataclass(frozen=True, slots=True)
class LogConfig:
    """How a log is cut, indexed and cleaned. -1 means "no limit" for the two retentions."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * _DAY_MS
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * _DAY_MS
    retention_bytes: int = -1
    retention_records: int = -1
    """Committed records after a segment that let it go; -1 for no such limit."""
    delete: bool = True
    """`cleanup.policy` contains delete: the retentions hold."""
    compacted: bool = False
    """`cleanup.policy` contains compact: closed segments keep the last value of each key."""
    was_compacted: bool = False
    """It contained compact at some time: keys may be gone already."""
    delete_retention_ms: int = _DAY_MS
    """How long a compacted log keeps a tombstone after it was first cleaned."""
    min_compaction_lag_ms: int = 0
    """A segment whose newest record is younger is not compacted."""
    min_cleanable_dirty_ratio: float = 0.5
    """Compaction begins once so much of what it may touch is new since the last pass."""
    compaction_map_bytes: int = 32 << 20
    """Memory for the keys of one pass; what does not fit waits for the next one."""
    producer_expiry_ms: int = 7 * _DAY_MS
    """A producer that was silent for as long is forgotten."""
    write_caching: bool = False
    """acks=all is answered before the flush."""
    flush_ms: int = 100
    """How long entries may be unflushed whose flush nobody waits for."""
    flush_messages: int = (1 << 63) - 1
    """How many of them may be."""
    mark_interval_ms: int = 5_000
    """How long at most it may be noted nowhere on the disk that something is durable."""
    trust_ms: int = 10_000
    """How long what was written, or looked at, is believed before a reader has it looked at."""
    preallocate: bool = True
    """Reserve space ahead of the end of the active segment, so that flushes change no metadata."""

    @property
    def has_been_compacted(self) -> bool:
        """Whether this log may lack what others have, and have what others lack."""
        return self.compacted or self.was_compacted
