"""What a topic's retention takes out of a bucket: a question to the state, for its leader.

Why:    retention holds for the partition as a whole: what is in the bucket, then what is only in
        the local log. A bucket's oldest objects go first.
Source: Kafka's KIP-405, "Remote log retention"; `storage.log.retention` for local segments."""

from typing import NamedTuple

from strandline.model.ids import Offset
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.state.tier import TierState


class Limits(NamedTuple):
    """A topic's total retention; -1 for no limit."""

    retention_ms: int
    retention_bytes: int
    retention_records: int
    timestamp_after_max_ms: int
    """A timestamp farther ahead of the clock is no time."""


def retire_before(
    state: TierState,
    bucket: str,
    limits: Limits,
    *,
    local_start: Offset,
    local_bytes: int,
    committed_end: Offset,
    now_ms: int,
) -> Offset | None:
    """The `before` of the `Retire` that is due for a bucket; None for none.

    `local_start`: where the leader's own log begins; `local_bytes`: what it has above the live end
    of the bucket; `committed_end`: the end of the partition. An object is due when it is too old,
    or enough bytes or records follow it, or all its records are deleted. If the live objects end
    before the records that can be reached from the local log, all of them are due: no other object
    can follow them."""
    live = state.live(bucket)
    if not live:
        return None
    stretches = state.stretches(local_start)
    reach = stretches[0].start if stretches else local_start
    if live[-1].end_offset < reach:
        return live[-1].end_offset
    before = None
    left_bytes = state.size_bytes(bucket) + local_bytes
    for entry in live:
        left_bytes -= entry.size_bytes
        newest_ms = _newest_ms(entry, limits, now_ms)
        is_old = newest_ms >= 0 and 0 <= limits.retention_ms < now_ms - newest_ms
        is_much = 0 <= limits.retention_bytes <= left_bytes
        is_many = 0 <= limits.retention_records <= committed_end - entry.end_offset
        if not (is_old or is_much or is_many or entry.end_offset <= state.deleted_before):
            break
        before = entry.end_offset
    return before


def _newest_ms(entry: SegmentEntry, limits: Limits, now_ms: int) -> int:
    """How new an object's newest record is: without a time that a producer may send, as new as the
    object; -1 if that is not known either."""
    if 0 <= entry.max_timestamp <= now_ms + limits.timestamp_after_max_ms:
        return entry.max_timestamp
    return entry.live_ms
