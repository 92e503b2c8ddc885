"""Which closed segments a log may let go of.

Why:    a topic says how long and how much it keeps; nothing that readers may not yet have seen, and
        nothing uncommitted, ever goes.
Source: Kafka's retention.ms and retention.bytes; design section 4."""

from collections.abc import Sequence

from strandline.model.ids import Offset
from strandline.storage.config import LogConfig
from strandline.storage.segment import Segment


def expired_segments(
    segments: Sequence[Segment], config: LogConfig, *, now_ms: int, limit_offset: Offset
) -> int:
    """How many segments from the first on may go; never the last, which is the active one.

    A segment goes when it ends at or below the limit, and its newest record is older than the
    retention time, or what would be left is still as large as the retention size."""
    if not config.delete:
        return 0
    left = sum(segment.size for segment in segments)
    count = 0
    for segment in segments[:-1]:
        left -= segment.size
        is_old = config.retention_ms >= 0 and segment.max_timestamp < now_ms - config.retention_ms
        is_much = config.retention_bytes >= 0 and left >= config.retention_bytes
        if segment.end_offset > limit_offset or not (is_old or is_much):
            break
        count += 1
    return count
