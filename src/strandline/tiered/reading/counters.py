"""What reading from buckets has done so far on this broker; the metrics page shows it.

Source: KIP-405's metrics of remote reads; decision 0060."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class ReadCounters:
    """Totals since the start of the process; those in a `Counter` by bucket."""

    requests: Counter[str] = field(default_factory=Counter)
    """Ranges asked for."""
    fetched_bytes: Counter[str] = field(default_factory=Counter)
    """Bytes that came, checked or not."""
    fetch_ms: Counter[str] = field(default_factory=Counter)
    """Time that those that came took, together."""
    unanswered: Counter[str] = field(default_factory=Counter)
    """Ranges that the bucket did not give."""
    absent: Counter[str] = field(default_factory=Counter)
    """Objects that count and that the bucket says it does not have."""
    wrong_bytes: Counter[str] = field(default_factory=Counter)
    """Answers with another checksum than the log or the trailer says."""
    fallbacks: int = 0
    """Reads that went on to another bucket."""
    failed_reads: int = 0
    """Reads that no bucket could serve."""
    served_bytes: int = 0
    """Bytes of batches found for clients."""
    cache_hits: int = 0
    """Chunks that a read found in the cache."""
    cache_misses: int = 0
    """Chunks that a read had to wait for."""
    cache_damaged: int = 0
    """Files of the cache whose checksum was wrong."""
    cache_errors: int = 0
    """Operations of the cache's disk that failed."""
