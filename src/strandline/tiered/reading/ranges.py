"""What can be read of one partition: live objects, by bucket.

Why:    a replica's committed state and another cluster's export are read in the same way.
Source: decision 0060."""

from bisect import bisect_right
from collections.abc import Hashable, Sequence
from typing import NamedTuple, Protocol

from strandline.model.ids import Offset
from strandline.tiered.segments.entry import SegmentEntry


class TieredRange(Protocol):
    """The live objects of one partition; asked anew for each read, so it may change."""

    def live(self, bucket: str) -> Sequence[SegmentEntry]:
        """Those of one bucket, ascending, without a gap or an overlap; empty for an unknown one."""


class RemotePartition(NamedTuple):
    """What to read from. `buckets`: in the order in which they are tried."""

    key: Hashable
    """Which partition; the same in each of its reads."""
    source: TieredRange
    buckets: Sequence[str]


def entry_at(entries: Sequence[SegmentEntry], offset: Offset) -> SegmentEntry | None:
    """The entry whose range has `offset`."""
    at = bisect_right(entries, offset, key=_base_offset) - 1
    if at < 0 or offset >= entries[at].end_offset:
        return None
    return entries[at]


def _base_offset(entry: SegmentEntry) -> Offset:
    return entry.base_offset
