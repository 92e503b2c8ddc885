"""Cuts the offsets of one partition's objects into ranges. Pure.

How:    ranges end where any object of any bucket begins or ends, and where the replica's log that
        they are compared with begins, so that every holder has a range whole or not at all:

            east      [ object ....... | object .......... )
            west      [ object | object ....... | object . )
            replica                [ ..................... )
            ranges    |--------|---|---|--------|----------|
Source: decision 0052."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from strandline.pipeline.audit.planning import plan_ranges
from strandline.pipeline.audit.tasks import Bounds
from strandline.tiered.segments.entry import SegmentEntry


def object_ranges(
    live: Mapping[str, Iterable[SegmentEntry]], *, replica_start: int | None, range_bytes: int
) -> list[Bounds]:
    """All ranges, ascending, of about `range_bytes`. `replica_start`: None without a replica."""
    entries = sorted(
        (one for each in live.values() for one in each), key=lambda one: one.base_offset
    )
    cuts: set[int] = {one.base_offset for one in entries}
    cuts |= {one.end_offset for one in entries}
    if replica_start is not None:
        cuts.add(replica_start)
    found: list[Bounds] = []
    at = 0
    for start, end in pairwise(sorted(cuts)):
        while at < len(entries) and entries[at].end_offset <= start:
            at += 1
        holder = _holder_of(start, entries, at)
        if holder is None:
            continue
        share = holder.data_bytes * (end - start) // (holder.end_offset - holder.base_offset)
        found += plan_ranges(start, end, size_bytes=share, cuts=(), range_bytes=range_bytes)
    return found


def _holder_of(offset: int, entries: Sequence[SegmentEntry], first: int) -> SegmentEntry | None:
    """An object that has the offset, of these from `first` on."""
    for at in range(first, len(entries)):
        one = entries[at]
        if one.base_offset > offset:
            return None
        if offset < one.end_offset:
            return one
    return None


def ranges_within(ranges: list[Bounds], start: int, end: int) -> tuple[Bounds, ...]:
    """Those that lie in [start, end), of ascending ranges that none of its ends cuts."""
    first = bisect_left(ranges, (start, start))
    last = bisect_left(ranges, (end, end))
    return tuple(ranges[first:last])
