"""Which range a bucket lacks next, by the committed state alone. Pure.

Why:    the state is the work list: uploads resume from it after any change of leader.
How:    [live][live] [intent] ...gap... [intent] ...gap to the log's end
        The first gap is next. If the local log no longer has its records, another bucket does, and
        the range ends where that bucket's object ends.
Source: decision 0059."""

from typing import NamedTuple

from strandline.model.ids import Offset
from strandline.tiered.state.commands import Intend
from strandline.tiered.state.tier import TierState


class Gap(NamedTuple):
    """Records that neither live segments nor intents have: from `base` on, and below `stop` if that
    is not None. `is_remote`: only other buckets have them, and one object of theirs has them up to
    `stop`."""

    base: Offset
    stop: Offset | None
    is_remote: bool


def next_gap(state: TierState, bucket: str, *, local_start: Offset) -> Gap | None:
    """The first gap of a bucket; None if its next records are in no bucket and not in the log."""
    base = _first_wanted(state, bucket, local_start)
    stop: Offset | None = None
    for intent in sorted(state.pending(bucket), key=lambda one: one.base_offset):
        if intent.base_offset > base:
            stop = intent.base_offset
            break
        base = max(base, intent.end_offset)
    if base >= local_start:
        return Gap(base, stop, is_remote=False)
    ends = [
        entry.end_offset
        for other in state.buckets
        if other != bucket and (entry := state.find(other, base)) is not None
    ]
    if not ends:
        return None
    return Gap(base, min(max(ends), local_start if stop is None else stop), is_remote=True)


def is_next(state: TierState, intent: Intend, *, local_start: Offset) -> bool:
    """Whether the object of this intent may go live now without leaving a gap before it."""
    bucket = intent.bucket
    if state.live(bucket):
        return intent.base_offset == state.live_end(bucket)
    is_first = all(intent.base_offset <= one.base_offset for one in state.pending(bucket))
    return is_first and intent.base_offset <= _first_wanted(state, bucket, local_start)


def _first_wanted(state: TierState, bucket: str, local_start: Offset) -> Offset:
    """Where the next live segment has to begin; if none is live, where the partition does."""
    end = state.next_offset(bucket)
    if state.live(bucket):
        return end
    stretches = state.stretches(local_start)
    return max(end, stretches[0].start if stretches else local_start)
