"""Notes on the disk now and then up to where a log is known to be durable.

Why:    so that the next opening tells a torn tail from the damage of what had been durable, and
        writes little of it again (`renewal`).
How:    a while after the first flush that is not noted, the newest one is: what fails over with
        thousands of logs, each with one small entry, does not write as many files besides. A log
        that grows fast is not waited for.
Owns:   when the mark is due.
Source: design section 4; `sealing` for the file."""

from strandline.base.clock import Clock, Timer
from strandline.model.ids import Index
from strandline.storage.row import SegmentRow

MARK_INTERVAL_MS = 5_000
"""After this time at the latest it is noted on the disk what of a log is durable."""
MARK_BYTES = 256 << 10
"""After so many bytes it is noted at once: what no note covers is written again at a start that
follows no orderly stop (`renewal`)."""
_NO_INDEX = Index(-1)


class FlushedMark:
    """The mark of one log."""

    __slots__ = (
        "_clock",
        "_flushed_index",
        "_is_closed",
        "_marked_bytes",
        "_marked_index",
        "_row",
        "_timer",
    )

    def __init__(self, clock: Clock, row: SegmentRow) -> None:
        self._clock = clock
        self._row = row
        self._timer: Timer | None = None
        self._flushed_index = _NO_INDEX
        self._marked_index = _NO_INDEX
        self._marked_bytes = row.active.size
        """The size of the active segment when it was last marked for its bytes, or opened."""
        self._is_closed = False

    def advance(self, flushed_index: Index) -> None:
        """The log is durable up to there."""
        self._flushed_index = flushed_index
        size = self._row.active.size
        if size < self._marked_bytes:
            self._marked_bytes = 0  # Another segment; the mark of the one before has gone with it.
        if size - self._marked_bytes >= MARK_BYTES and not self._is_closed:
            self._marked_bytes = size
            self._write_if_new()
        elif self._timer is None and flushed_index > self._marked_index and not self._is_closed:
            self._timer = self._clock.call_later(MARK_INTERVAL_MS, self._write)

    def forget(self) -> None:
        """The log was cut, and the mark with it."""
        self._flushed_index = self._marked_index = _NO_INDEX

    def close(self) -> None:
        """Mark nothing more: flushes under way end later, maybe beside another `Log`."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _write(self) -> None:
        self._timer = None
        self._write_if_new()

    def _write_if_new(self) -> None:
        if self._flushed_index > self._marked_index:
            self._marked_index = self._flushed_index
            self._row.mark_flushed(self._flushed_index)
