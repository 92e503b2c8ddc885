"""Writes to the disk now and then up to which index a log is durable.

Why:    after a crash or a power failure, the next opening tells a torn tail from damage of durable
        batches, and rewrites little of the log (`renewal`).
How:    some time after the first flush above the mark, the newest flushed index is written and
        flushed by itself. The delay keeps a failover of thousands of logs, each with one small
        entry, from flushing as many more files. A log that grows fast is marked at once.

            flushed ----5 s, or 256 KB----> written beside the active segment --> flushed: marked

        A closed segment keeps its mark until the next one, beside the segment that follows, is
        durable: at every moment some mark covers the entries before.
Owns:   when the mark is due, and the one under way.
Source: design section 4; `sealing` for the file."""

from strandline.base.clock import Clock, Timer
from strandline.base.disk import Disk, is_full
from strandline.model.ids import Index
from strandline.storage.log.flushing import Flushing
from strandline.storage.log.row import SegmentRow

MARK_BYTES = 256 << 10
"""After this many bytes the mark is written at once: a start after a crash rewrites all bytes that
no mark covers (`renewal`)."""
_NO_INDEX = Index(-1)


class FlushedMark:
    """The mark of one log. It is due `interval_ms` after the first flush that no mark covers. If
    its flush fails, the log fails."""

    __slots__ = (
        "_clock",
        "_counted_bytes",
        "_counted_segment",
        "_cut_count",
        "_disk",
        "_flushed_index",
        "_flushing",
        "_found_index",
        "_interval_ms",
        "_is_closed",
        "_is_due",
        "_row",
        "_timer",
        "_written_index",
    )

    def __init__(
        self, disk: Disk, clock: Clock, row: SegmentRow, flushing: Flushing, *, interval_ms: int
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._row = row
        self._flushing = flushing
        self._interval_ms = interval_ms
        self._timer: Timer | None = None
        self._flushed_index = self._found_index = _NO_INDEX
        self._written_index = _NO_INDEX
        """The index in the mark that is being flushed; -1 for none."""
        self._is_due = False
        """Whether another mark follows that one at once."""
        self._counted_segment = row.active
        self._counted_bytes = row.active.size_bytes
        """How many bytes of that segment the newest mark covers, or were there at the opening; less
        than 0 if bytes of earlier segments are not covered."""
        self._cut_count = 0
        self._is_closed = False

    def advance(self, flushed_index: Index) -> None:
        """The log is durable up to `flushed_index`."""
        self._flushed_index = flushed_index
        active = self._row.active
        if (
            self._timer is not None
            and active is self._counted_segment
            and 0 <= active.size_bytes - self._counted_bytes < MARK_BYTES
        ):
            return  # A mark will be written, and need not be earlier.
        if self._is_over or not self._is_behind:
            return
        if self._count_bytes() >= MARK_BYTES:
            self._counted_bytes = self._counted_segment.size_bytes
            self._write_next()
        elif self._timer is None:
            self._timer = self._clock.call_later(self._interval_ms, self._on_due)

    def found(self, last_index: Index, noted_index: Index) -> None:
        """All entries found at the opening are durable; a mark that was found covers them up to
        `noted_index`."""
        if noted_index >= last_index:
            self._found_index = last_index
        self.advance(last_index)

    def mark_before_close(self, last_index: Index) -> None:
        """The log, which is durable, is about to be closed: write its mark. Skipped if the log has
        not grown and its old mark covers it, because thousands of idle logs may close at once.
        Blocks to flush. Raises OSError."""
        if last_index != self._found_index:
            self._row.ensure_marked(last_index, last_index)

    def cut(self, kept_index: Index) -> None:
        """The log is about to be cut: a mark under way may say too much and does not count."""
        self._flushed_index = min(self._flushed_index, kept_index)
        self._found_index = _NO_INDEX
        self._cut_count += 1

    def close(self) -> None:
        """Write no more marks: flushes under way end later, maybe beside another `Log`."""
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()

    @property
    def _is_over(self) -> bool:
        """Whether no mark may be written any more, not even the last one if a cut has failed."""
        return self._is_closed or self._flushing.error is not None

    @property
    def _is_behind(self) -> bool:
        return self._flushed_index > max(self._row.marked_index, self._written_index)

    def _count_bytes(self) -> int:
        """How many bytes the newest mark does not cover."""
        active = self._row.active
        if active is not self._counted_segment:
            self._counted_bytes = min(0, self._counted_bytes - self._counted_segment.size_bytes)
            self._counted_segment = active
        self._counted_bytes = min(self._counted_bytes, active.size_bytes)  # It may have been cut.
        return active.size_bytes - self._counted_bytes

    def _on_due(self) -> None:
        self._timer = None
        if not self._is_over and self._is_behind:
            self._write_next()

    def _write_next(self) -> None:
        """Write the mark now, or once the one under way is durable."""
        if self._written_index != _NO_INDEX:
            self._is_due = True
        else:
            self._write()

    def _write(self) -> None:
        index, cut_count, name = self._flushed_index, self._cut_count, self._row.active.name
        assert index > self._row.marked_index, f"a mark back from {self._row.marked_index}"
        assert self._written_index == _NO_INDEX, "two marks under way"
        self._is_due = False
        try:
            file, old = self._row.write_mark(index)
        except OSError as error:
            if not is_full(error):
                self._flushing.fail(error)
            elif self._timer is None:
                self._timer = self._clock.call_later(self._interval_ms, self._on_due)
            return

        def on_flushed(error: OSError | None) -> None:
            self._written_index = _NO_INDEX
            if self._is_over:
                return
            if error is not None:
                self._flushing.fail(error)
                return
            if cut_count == self._cut_count:
                self._row.on_mark_flushed(name, index, old)
            if self._is_due and self._is_behind:
                self._write()
            else:
                self.advance(self._flushed_index)

        self._written_index = index
        self._disk.flush_soon(file, on_flushed)
        file.close()
