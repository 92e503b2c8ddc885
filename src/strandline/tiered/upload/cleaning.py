"""When a bucket of a compacted topic is cleaned, and in which steps. Pure.

Why:    the rules are those of the log's own compaction, over objects instead of segments.
How:    [clean objects ... | dirty objects that are old enough | young ones, which wait]
                        start                              end
        A pass maps the keys of [start, end), and then rewrites all objects below `end`, neighbours
        that fit into one object together.
Source: decision 0066; `storage.compaction` for logs."""

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from strandline.model.ids import Offset
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.upload.merging import RunLimits


class CleaningRules(NamedTuple):
    """A topic's keys for compaction, as `LogConfig` has them."""

    min_dirty_ratio: float
    min_lag_ms: int
    max_lag_ms: int | None
    """None if no age makes objects be compacted."""


class DirtyRange(NamedTuple):
    """What one pass maps."""

    start: Offset
    end: Offset


def due_range(
    live: Sequence[SegmentEntry],
    clean_before: Offset,
    rules: CleaningRules,
    *,
    size_bytes: int,
    now_ms: int,
) -> DirtyRange | None:
    """What the next pass over these objects, of `size_bytes` together, maps; None if none is
    due."""
    if not live or clean_before >= live[-1].end_offset:
        return None
    first = max(0, bisect_right(live, clean_before, key=_base_of) - 1)
    if live[first].end_offset <= clean_before:
        first += 1
    start = end = Offset(max(clean_before, live[first].base_offset))
    dirty_bytes = young_bytes = 0
    for entry in live[first:]:
        if young_bytes or _is_young(entry, rules, now_ms):
            young_bytes += entry.size_bytes
        else:
            dirty_bytes += entry.size_bytes
            end = entry.end_offset
    if end <= start:
        return None
    is_enough = dirty_bytes >= (size_bytes - young_bytes) * rules.min_dirty_ratio
    if is_enough or _is_overdue(live, first, rules, now_ms):
        return DirtyRange(start, end)
    return None


def next_run(
    live: Sequence[SegmentEntry], start: Offset, end: Offset, limits: RunLimits
) -> Sequence[SegmentEntry]:
    """The objects that a pass over those below `end` rewrites next, from the one that holds `start`
    on; none if the pass is over."""
    first = max(0, bisect_right(live, start, key=_base_of) - 1)
    run: list[SegmentEntry] = []
    size_bytes = 0
    for entry in live[first:]:
        if entry.end_offset <= start:
            continue
        if entry.base_offset >= end or (run and not limits.allow(run, size_bytes, entry)):
            break
        run.append(entry)
        size_bytes += entry.data_bytes
    return run


def _is_young(entry: SegmentEntry, rules: CleaningRules, now_ms: int) -> bool:
    return rules.min_lag_ms > 0 and entry.max_timestamp > now_ms - rules.min_lag_ms


def _is_overdue(
    live: Sequence[SegmentEntry], first: int, rules: CleaningRules, now_ms: int
) -> bool:
    """Whether the first dirty object may have a record that is too old: its oldest one is about as
    old as the newest one before it."""
    if rules.max_lag_ms is None:
        return False
    times = [one.max_timestamp for one in live[max(0, first - 1) : first + 1]]
    known = [one for one in times if one >= 0]
    return bool(known) and min(known) < now_ms - rules.max_lag_ms


def _base_of(entry: SegmentEntry) -> Offset:
    return entry.base_offset
