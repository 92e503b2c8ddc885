"""Bounds how many lines of a log others can cause.

Why:    a client that may not come in must not fill the disk with lines that say so.
How:    a bucket of `burst_count` lines, refilled at `lines_per_s`. A line that finds none is left
        out; the next one that is written says how many were.
Owns:   the count of lines that are left."""

import logging
from collections.abc import Callable

BURST_COUNT = 200
LINES_PER_S = 2.0


class LogBudget:
    """See the module. `now_ms`: monotonic time."""

    def __init__(
        self,
        log: logging.Logger,
        now_ms: Callable[[], float],
        *,
        burst_count: int = BURST_COUNT,
        lines_per_s: float = LINES_PER_S,
    ) -> None:
        self._log = log
        self._now_ms = now_ms
        self._burst_count = burst_count
        self._lines_per_s = lines_per_s
        self._left: float = burst_count
        self._seen_ms: float | None = None
        self._omitted_count = 0

    def write(self, level: int, text: str, *args: object) -> None:
        """Write a line, or count it."""
        now_ms = self._now_ms()
        if self._seen_ms is not None:
            gained = (now_ms - self._seen_ms) / 1000 * self._lines_per_s
            self._left = min(self._burst_count, self._left + gained)
        self._seen_ms = now_ms
        if self._left < 1:
            self._omitted_count += 1
            return
        self._left -= 1
        if self._omitted_count:
            text += " (%d such lines before were left out)"
            args = (*args, self._omitted_count)
            self._omitted_count = 0
        self._log.log(level, text, *args)
