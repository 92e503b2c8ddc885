"""Notes on the disk now and then up to where a log is known to be durable.

Why:    so that the next opening tells a torn tail from the damage of what had been durable, after a
        failure of power too; and writes little of it again (`renewal`).
How:    a while after the first flush that is not noted, the newest one is, and that note is flushed
        by itself: what fails over with thousands of logs, each with one small entry, does not flush
        as many files besides. A log that grows fast is not waited for.

            flushed ----5 s, or 256 KB----> written beside the active segment --> flushed: noted

        What closes a segment leaves its mark there until the next one, beside the segment that
        follows, is durable: at no time is there none that speaks of what came before.
Owns:   when the mark is due, and the one under way.
Source: design section 4; `sealing` for the file."""

from strandline.base.clock import Clock, Timer
from strandline.base.disk import Disk
from strandline.model.ids import Index
from strandline.storage.flushing import Flushing
from strandline.storage.row import SegmentRow

MARK_BYTES = 256 << 10
"""After so many bytes it is written at once: what no note covers is written again at a start that
follows no orderly stop (`renewal`)."""
_NO_INDEX = Index(-1)


class FlushedMark:
    """The mark of one log. `marked_index`: what was noted when it was opened. It is due so long
    after the first flush that is not noted. If it cannot be flushed, the log is over."""

    __slots__ = (
        "_clock",
        "_cut_count",
        "_disk",
        "_flushed_index",
        "_flushing",
        "_interval_ms",
        "_is_closed",
        "_is_under_way",
        "_marked_bytes",
        "_marked_index",
        "_row",
        "_timer",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        row: SegmentRow,
        flushing: Flushing,
        *,
        marked_index: Index,
        interval_ms: int,
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._row = row
        self._flushing = flushing
        self._interval_ms = interval_ms
        self._timer: Timer | None = None
        self._flushed_index = self._marked_index = marked_index
        self._marked_bytes = row.active.size
        """The size of the active segment when it was last marked for its bytes, or opened."""
        self._is_under_way = False
        self._cut_count = 0
        self._is_closed = False

    def advance(self, flushed_index: Index) -> None:
        """The log is durable up to there."""
        self._flushed_index = flushed_index
        size = self._row.active.size
        if size < self._marked_bytes:
            self._marked_bytes = 0  # Another segment.
        if self._is_under_way or self._is_closed or flushed_index <= self._marked_index:
            return
        if size - self._marked_bytes >= MARK_BYTES:
            self._marked_bytes = size
            self._write()
        elif self._timer is None:
            self._timer = self._clock.call_later(self._interval_ms, self._on_due)

    def forget(self) -> None:
        """The log was cut, and the mark with it."""
        self._flushed_index = self._marked_index = _NO_INDEX
        self._cut_count += 1

    def close(self) -> None:
        """Mark nothing more: flushes under way end later, maybe beside another `Log`."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _on_due(self) -> None:
        self._timer = None
        if not self._is_under_way and self._flushed_index > self._marked_index:
            self._write()

    def _write(self) -> None:
        index, cut_count = self._flushed_index, self._cut_count
        try:
            file, old = self._row.write_mark(index)
        except OSError:
            return  # With the next flush it is tried again.

        def on_flushed(error: OSError | None) -> None:
            self._is_under_way = False
            if self._is_closed:
                return
            if error is not None:
                self._flushing.fail(error)
                return
            if cut_count == self._cut_count:
                self._marked_index = index
                self._row.remove_marks(old)
            self.advance(self._flushed_index)

        self._is_under_way = True
        self._disk.flush_soon(file, on_flushed)
        file.close()
