"""What reading from buckets has done so far on this broker; the metrics page shows it.

Source: KIP-405's metrics of remote reads; decision 0060."""

from dataclasses import dataclass


@dataclass(slots=True)
class ReadCounters:
    """Totals since the start of the process."""

    fetch_requests: int = 0
    """Ranges asked of buckets."""
    fetch_bytes: int = 0
    """Bytes that came, checked or not."""
    fetch_errors: int = 0
    """Ranges that a bucket did not give."""
    fetch_ms: int = 0
    """Time that those that came took, together."""
    absent_objects: int = 0
    """Objects that count and that a bucket says it does not have."""
    wrong_bytes: int = 0
    """Answers of buckets with another checksum than the log or the trailer says."""
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
