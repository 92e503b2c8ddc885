"""Finds small objects of a bucket that lie side by side, to be merged into one. Pure.

Why:    a slow topic closes small segments by time. Each object costs an entry in every replica's
        memory, and a request for each reader.
How:    a run is worth it if it has many objects, and the result is much larger than its largest
        part: so a byte is written again a few times only, however many small objects come after it.
        A search looks at the objects that are new, and at some before these.
Owns:   how far one bucket has been searched.
Source: decision 0066."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from strandline.model.ids import Offset
from strandline.tiered.segments.entry import SegmentEntry

RUN_COUNT_MIN = 8
"""Fewer objects are not worth a replacement."""
RUN_COUNT_MAX = 200
"""Names in one marker of the log."""
SMALL_SHARE = 8
"""An object is small if so many fit into the target."""
GROWTH_MIN = 4
"""The result is at least so many times as large as its largest part."""
RETENTION_SHARE = 8
"""A merged object has at most this part of what the retention keeps: objects go as a whole."""
LOOKBACK_COUNT = 64
SEARCHED_COUNT_MAX = 1_000
"""Objects of one search: a broker has many partitions."""
NO_LIMIT = -1


class RunLimits(NamedTuple):
    """How large the object that replaces a run may be; -1 for no limit."""

    bytes_max: int
    span_ms_max: int = NO_LIMIT
    """Between the newest records of its first and of its last part."""
    records_max: int = NO_LIMIT

    def allow(self, run: Sequence[SegmentEntry], size_bytes: int, following: SegmentEntry) -> bool:
        """Whether the run, of so many bytes of data, may have `following`, too."""
        first = run[0]
        if len(run) >= RUN_COUNT_MAX or size_bytes + following.data_bytes > self.bytes_max:
            return False
        if 0 <= self.records_max < following.end_offset - first.base_offset:
            return False
        if self.span_ms_max < 0:
            return True
        times = [_newest_ms(one) for one in (*run, following)]
        return max(times) - min(times) <= self.span_ms_max


def limits_for(
    *, bytes_max: int, retention_ms: int, retention_bytes: int, retention_records: int
) -> RunLimits:
    """The limits next to a topic's total retention; -1 for none."""
    if retention_bytes >= 0:
        bytes_max = min(bytes_max, retention_bytes // RETENTION_SHARE)
    return RunLimits(
        bytes_max,
        retention_ms // RETENTION_SHARE if retention_ms >= 0 else NO_LIMIT,
        retention_records // RETENTION_SHARE if retention_records >= 0 else NO_LIMIT,
    )


class MergeSearch:
    """See the module; one for a bucket of a partition."""

    def __init__(self) -> None:
        self._searched_end = Offset(0)
        self._limits: RunLimits | None = None

    def is_over(self, end: Offset, limits: RunLimits) -> bool:
        """Whether there is nothing new before `end`, where the live objects end."""
        return self._searched_end >= end and limits == self._limits

    def next_run(
        self, live: Sequence[SegmentEntry], limits: RunLimits
    ) -> Sequence[SegmentEntry] | None:
        """The first run that is worth it among the next objects; None for none among these."""
        if limits != self._limits:
            self._limits, self._searched_end = limits, Offset(0)
        first = bisect_left(live, self._searched_end, key=_end_of)
        first = max(0, first - LOOKBACK_COUNT)
        window = live[first : first + LOOKBACK_COUNT + SEARCHED_COUNT_MAX]
        run = find_run(window, limits)
        if run is not None:
            self._searched_end = run[0].base_offset
        elif window:
            self._searched_end = window[-1].end_offset
        return run


def find_run(entries: Sequence[SegmentEntry], limits: RunLimits) -> Sequence[SegmentEntry] | None:
    """The first run among these neighbours that is worth merging; None for none."""
    run: list[SegmentEntry] = []
    size_bytes = 0
    for entry in entries:
        is_small = entry.data_bytes * SMALL_SHARE <= limits.bytes_max
        if run and is_small and limits.allow(run, size_bytes, entry):
            run.append(entry)
            size_bytes += entry.data_bytes
            continue
        found = _worth(run)
        if found is not None:
            return found
        run = [entry] if is_small else []
        size_bytes = sum(one.data_bytes for one in run)
    return _worth(run)


def _worth(run: Sequence[SegmentEntry]) -> Sequence[SegmentEntry] | None:
    """The run without objects at its front that are too large for the others; None if too few
    are left."""
    while len(run) >= RUN_COUNT_MIN:
        sizes = [one.data_bytes for one in run]
        largest = max(sizes)
        if sum(sizes) >= GROWTH_MIN * largest:
            return run
        run = run[sizes.index(largest) + 1 :]
    return None


def _newest_ms(entry: SegmentEntry) -> int:
    """The age that retention goes by: of the records, or of the object if these have no time."""
    return entry.max_timestamp if entry.max_timestamp >= 0 else entry.live_ms


def _end_of(entry: SegmentEntry) -> Offset:
    return entry.end_offset
