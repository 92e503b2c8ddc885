"""When a level that rises reaches a mark, at its rate of the last quarter of an hour, or since it
was lowest in that time.

Why:    "the disk is full in about 5 h" helps an operator more than a number of bytes.
Owns:   a few samples."""

from collections import deque

SAMPLE_MS = 60_000
"""The shortest time between two samples, and the shortest time that a rate is taken from."""
SAMPLES_MAX = 16


class RisingLevel:
    """See the module. Times are of the monotonic clock."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: deque[tuple[int, int]] = deque(maxlen=SAMPLES_MAX)
        """(when, level), the oldest first. One that falls takes the place of the last one."""

    def is_due(self, now_ms: int) -> bool:
        """Whether `note` would take a sample now."""
        return not self._samples or now_ms - self._samples[-1][0] >= SAMPLE_MS

    def note(self, now_ms: int, level: int) -> None:
        """The level is so high now."""
        if self.is_due(now_ms):
            self._samples.append((now_ms, level))
        elif level < self._samples[-1][1]:
            self._samples[-1] = now_ms, level

    def reaches_in_ms(self, now_ms: int, mark: int) -> int | None:
        """How long until the level is at `mark`: 0 if it is; None if it does not rise, or while it
        has not been watched for `SAMPLE_MS`."""
        if not self._samples:
            return None
        last_ms, last = self._samples[-1]
        if last >= mark:
            return 0
        # A level that was flat before it began to rise says nothing about the rate.
        first = min(level for _, level in self._samples)
        since_ms = max(at_ms for at_ms, level in self._samples if level == first)
        elapsed_ms = last_ms - since_ms
        if elapsed_ms < SAMPLE_MS or last <= first:
            return None
        left_ms = (mark - last) * elapsed_ms // (last - first)
        return max(0, left_ms - (now_ms - last_ms))
