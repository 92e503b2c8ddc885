"""Whether the objects of each bucket are in line, and whether every record is somewhere. Pure.

How:    within a bucket each object begins where the one before ends. Below the local logs, the
        buckets together have every offset from the partition's start on:

            partition  [ ................................. )
            east       [ ......... )
            west               [ .............. )
            local log                        [ ........... )
Source: decision 0057, "State"; the leader refuses what does not line up, and this checks it."""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from strandline.pipeline.audit.buckets.tiers import TierView
from strandline.pipeline.audit.results import FindingKind
from strandline.pipeline.audit.tasks import Bounds


class LineFault(NamedTuple):
    """Offsets that are nowhere, or twice. `object_name`: the object behind the place."""

    kind: FindingKind
    bounds: Bounds
    buckets: tuple[str, ...]
    reason: str
    object_name: str = ""


def line_faults(view: TierView, local_start: int) -> Iterator[LineFault]:
    """All of them. `local_start`: where the first of the replicas' logs begins."""
    for bucket, live in view.live.items():
        for before, after in pairwise(live):
            end, start = int(before.end_offset), int(after.base_offset)
            if end < start:
                reason = f"no object of the bucket has offsets {end} to {start}"
                yield LineFault(
                    FindingKind.MISSING, (end, start), (bucket,), reason, object_name=after.name
                )
            elif start < end:
                reason = f"two objects have offsets {start} to {end}"
                yield LineFault(
                    FindingKind.DAMAGED, (start, end), (bucket,), reason, object_name=after.name
                )
    buckets = tuple(sorted(view.live))
    for start, end in _uncovered(view, (view.log_start, local_start)):
        reason = f"no bucket and no replica has offsets {start} to {end}"
        yield LineFault(FindingKind.MISSING, (start, end), buckets, reason)


def _uncovered(view: TierView, bounds: Bounds) -> Iterator[Bounds]:
    """What no live object has of these offsets, and is no gap within one bucket."""
    at, end = bounds
    spans: list[Bounds] = [
        (live[0].base_offset, live[-1].end_offset) for live in view.live.values()
    ]
    for start, stop in sorted(spans):
        if at < min(start, end):
            yield at, min(start, end)
        at = max(at, stop)
    if at < end:
        yield at, end
