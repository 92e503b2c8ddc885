"""Notes on the disk now and then up to where a log is known to be durable.

Why:    so that the next opening tells a torn tail from the damage of what had been durable.
Owns:   when the mark is due.
Source: design section 4; `sealing` for the file."""

from strandline.base.clock import Clock
from strandline.model.ids import Index
from strandline.storage.row import SegmentRow

MARK_INTERVAL_MS = 5_000
"""How often at most a log that is written to notes on the disk what of it is durable."""
_NEVER_MS = 1 << 62
_NO_INDEX = Index(-1)


class FlushedMark:
    """The mark of one log."""

    __slots__ = ("_clock", "_due_ms", "_index", "_row")

    def __init__(self, clock: Clock, row: SegmentRow) -> None:
        self._clock = clock
        self._row = row
        self._due_ms = clock.monotonic_ms() + MARK_INTERVAL_MS
        self._index = _NO_INDEX

    def advance(self, flushed_index: Index) -> None:
        """The log is durable up to there."""
        now_ms = self._clock.monotonic_ms()
        if now_ms >= self._due_ms and flushed_index > self._index:
            self._due_ms = now_ms + MARK_INTERVAL_MS
            self._index = flushed_index
            self._row.mark_flushed(flushed_index)

    def forget(self) -> None:
        """The log was cut, and the mark with it."""
        self._index = _NO_INDEX

    def close(self) -> None:
        """Mark nothing more: flushes under way end later, maybe beside another `Log`."""
        self._due_ms = _NEVER_MS
