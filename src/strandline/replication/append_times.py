"""When a leader appended what it has, roughly: how long a replica lacks something is told by it.

Why:    a replica was last caught up when the first entry that it lacks was appended. No
        acknowledgement tells when that was: of an idle partition there are none.
How:    a sample (first index, time) now and then while entries are appended; what was appended
        between two samples counts as of the earlier one, so that a lag is never told too short, and
        at most by the distance of two samples too long. Samples that every member is past go. When
        too many are left, every second one of the older half goes: the distance of two samples
        grows with their age.
Owns:   the samples; one per leading replica, of its reign.
Source: exponential histograms (Datar et al., 2002), of which this is the simplest kind."""

from bisect import bisect_right

from strandline.model.ids import Index

SAMPLE_MS = 10
"""Samples are so far apart at least."""
SAMPLES_MAX = 128


class AppendTimes:
    """See the module. Times are of a monotonic clock, in ms."""

    __slots__ = ("_indexes", "_times")

    def __init__(self) -> None:
        # Both ascending, and equally long: the entries from _indexes[i] on are of _times[i].
        self._indexes: list[Index] = []
        self._times: list[int] = []

    def is_due(self, now_ms: int) -> bool:
        """Whether the next append should be noted."""
        return not self._times or now_ms - self._times[-1] >= SAMPLE_MS

    def note(self, first_index: Index, now_ms: int, held: Index) -> None:
        """Entries from `first_index` on are appended now; every member has them up to `held`."""
        # The sample that the first entry after `held` counts by stays.
        past = max(bisect_right(self._indexes, held + 1) - 1, 0)
        del self._indexes[:past], self._times[:past]
        if len(self._times) >= SAMPLES_MAX:
            half = len(self._times) // 2
            del self._indexes[1:half:2], self._times[1:half:2]
        self._indexes.append(first_index)
        self._times.append(now_ms)

    def of(self, index: Index) -> int | None:
        """When the entry at `index` was appended; None where that was before the first sample."""
        at = bisect_right(self._indexes, index) - 1
        return self._times[at] if at >= 0 else None
