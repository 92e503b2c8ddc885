"""Cuts the offsets of a partition into ranges, and ranges into tasks.

Why:    a small range names a difference closely; a large one costs fewer bytes. A request should
        read no more than a broker reads for one.
How:    [start ......... cut ......... end)   cuts: where some replica's log begins
        |--range--|-range-|--range--|-range-|
        Ranges have about `range_bytes` each, by the mean size of a record. A task never goes on
        over a cut: markers at a cut are left out for every replica.
Source: decision 0052."""

from collections.abc import Collection, Sequence
from itertools import pairwise

from strandline.pipeline.audit.tasks import Bounds

TASK_BYTES = 64 << 20
RANGES_PER_TASK_MAX = 500
RANGES_MAX = 20_000
"""In one partition; beyond that they become larger."""


def plan_ranges(
    start: int, end: int, *, size_bytes: int, cuts: Collection[int], range_bytes: int
) -> list[Bounds]:
    """Ranges that cover [start, end), whose batches take about `size_bytes`."""
    count = min(max(-(-size_bytes // range_bytes), 1), RANGES_MAX)
    step = max(-(-(end - start) // count), 1)
    inner = {*range(start, end, step), *(cut for cut in cuts if start < cut < end)}
    bounds = [*sorted(inner), end]
    return list(pairwise(bounds))


def split(bounds: Bounds, count: int) -> list[Bounds]:
    """At most `count` ranges of nearly equal length that cover [start, end)."""
    start, end = bounds
    count = min(count, end - start)
    inner = [start + (end - start) * number // count for number in range(count + 1)]
    return list(pairwise(inner))


def plan_tasks(
    ranges: Sequence[Bounds], *, cuts: Collection[int], range_bytes: int
) -> list[tuple[Bounds, ...]]:
    """Neighbouring ranges, as one task each."""
    size = min(max(TASK_BYTES // range_bytes, 1), RANGES_PER_TASK_MAX)
    tasks: list[list[Bounds]] = []
    for one in ranges:
        if not tasks or len(tasks[-1]) >= size or one[0] in cuts or tasks[-1][-1][1] != one[0]:
            tasks.append([])
        tasks[-1].append(one)
    return [tuple(one) for one in tasks]
