"""When a leader appended its recent entries, roughly: the lag of a replica in time rests on it.

Why:    a replica was last caught up when the first entry that it lacks was appended. On an idle
        partition no acknowledgement tells when that was.
How:    the leader notes a sample (first index, time) now and then while it appends. Entries between
        two samples count as of the earlier one, so a lag is never reported too short, and too long
        by at most the distance of two samples. Samples that every member is past are dropped. When
        too many are left, so are those whose neighbours are near each other for their age: a lag is
        too long by an eighth at most, or, after days, by a quarter or a half.
Owns:   the samples of this epoch; one per leader.
Source: exponential histograms (Datar et al., 2002), of which this is the simplest kind."""

from bisect import bisect_right

from strandline.model.ids import Index

SAMPLE_MS = 10
"""Samples are so far apart at least."""
SAMPLES_MAX = 256
THINNED_MAX = 200
"""So many are left at most when there were too many."""
AGE_RATIO = 8
"""Two samples that follow each other may be apart by this part of their age."""


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
            self._thin_out(now_ms)
        assert not self._indexes or self._indexes[-1] < first_index, "indexes go up"
        self._indexes.append(first_index)
        self._times.append(now_ms)

    def of(self, index: Index) -> int | None:
        """When the entry at `index` was appended; None where that was before the first sample."""
        at = bisect_right(self._indexes, index) - 1
        return self._times[at] if at >= 0 else None

    def _thin_out(self, now_ms: int) -> None:
        ratio, kept = AGE_RATIO, self._spread(now_ms, AGE_RATIO)
        while len(kept) > THINNED_MAX and ratio > 1:
            ratio //= 2
            kept = self._spread(now_ms, ratio)
        self._indexes = [self._indexes[at] for at in kept]
        self._times = [self._times[at] for at in kept]

    def _spread(self, now_ms: int, ratio: int) -> list[int]:
        """The places of the samples that are left where each two are so far apart; the oldest and
        the newest always are."""
        times = self._times
        kept = [len(times) - 1]
        for at in range(len(times) - 2, 0, -1):
            newer_ms = times[kept[-1]]
            if newer_ms - times[at - 1] > (now_ms - newer_ms) // ratio:
                kept.append(at)
        kept.append(0)
        kept.reverse()
        return kept
