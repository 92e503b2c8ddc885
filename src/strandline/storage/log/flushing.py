"""Tracks what of a log is durable: the segments to flush, and the callbacks that wait for it.

Why:    every acknowledgement depends on it. A flush covers all writes before its request, in every
        dirty segment; a failed flush ends the log.
How:    flush_soon(done) -> one request to the disk per dirty segment
          -> all answered -> the log notes it (`on_flushed`) -> done(index)
        A segment counts as durable once all before it are, because its summary says that for them
        too. A truncation lowers the target of the flushes under way: later writes may use the same
        indexes, and those bytes are not the ones being flushed.
Owns:   `flushed_index`, `failed`.
Source: design section 4; ATC'20, "Can Applications Recover from fsync Failures?"."""

import contextlib
from collections.abc import Callable, Iterator
from errno import EIO
from functools import partial

import msgspec

from strandline.base.clock import Clock
from strandline.base.disk import Disk, is_full
from strandline.model.ids import Index
from strandline.storage.log.segment import Segment
from strandline.storage.recovery.head_summary import TakenHead

_NO_LIMIT = Index(1 << 62)
FlushDone = Callable[[Index | OSError], None]


class _Request(msgspec.Struct, eq=False):
    """One call of `request`: `target` is the index it will have made durable."""

    target: Index
    done: FlushDone
    head: TakenHead | None
    remaining: int
    error: OSError | None = None


class Flushing:
    """The durability of one log. `on_flushed`: what the log itself does once a request is durable,
    before the caller of `request` hears of it."""

    __slots__ = (
        "_ahead",
        "_clock",
        "_dirty",
        "_disk",
        "_on_flushed",
        "_on_segment_durable",
        "_requests",
        "error",
        "flushed_index",
    )

    def __init__(
        self,
        disk: Disk,
        clock: Clock,
        *,
        flushed_index: Index,
        on_segment_durable: Callable[[Segment], None],
        on_flushed: Callable[[TakenHead | None, Index], None],
    ) -> None:
        self._disk = disk
        self._clock = clock
        self._on_segment_durable = on_segment_durable
        self._on_flushed = on_flushed
        self._dirty: list[Segment] = []
        self._ahead: list[Segment] = []
        """Durable segments behind a dirty one: the flushes of a request end in any order."""
        self._requests: list[_Request] = []
        self.flushed_index = flushed_index
        self.error: OSError | None = None
        """The failure that ended this log; no write is tried again."""

    def mark_dirty(self, segment: Segment) -> None:
        """Bytes of `segment` were written."""
        segment.write_count += 1
        if not segment.is_dirty:
            segment.is_dirty = True
            self._dirty.append(segment)

    def mark_clean(self, segment: Segment) -> None:
        """Everything in `segment` is durable, or the segment is gone."""
        if segment.is_dirty:
            segment.is_dirty = False
            self._dirty.remove(segment)

    @contextlib.contextmanager
    def failing(self, *, unless_full: bool = False) -> Iterator[None]:
        """An OSError in this block ends the log; with `unless_full`, a full disk does not."""
        try:
            yield
        except OSError as error:
            if not (unless_full and is_full(error)):
                self.fail(error)
            raise

    def fail(self, error: OSError) -> None:
        """A write or a flush failed: this log has failed."""
        if self.error is None:
            self.error = error

    def check(self) -> None:
        """Raise OSError when the log has failed."""
        if self.error is not None:
            raise OSError(EIO, f"the log has failed: {self.error}")

    def request(self, last_index: Index, done: FlushDone, head: TakenHead | None) -> None:
        """Make the log durable up to `last_index`, its end; then call `done`, never at once.
        `head`: goes to `on_flushed`."""
        is_ahead = last_index >= self.flushed_index or self.error is not None
        assert is_ahead, f"a log that ends at {last_index} is durable up to {self.flushed_index}"
        request = _Request(last_index, done, head, len(self._dirty))
        if self.error is not None:
            request.error = self.error
        if self.error is not None or not self._dirty:
            self._requests.append(request)
            self._clock.call_soon(lambda: self._finish(request))
            return
        self._requests.append(request)
        for segment in self._dirty:
            on_answer = partial(self._on_answer, request, segment, segment.write_count)
            self._disk.flush_soon(segment.opened or segment.file, on_answer)

    def flush_now(self) -> None:
        """Make everything durable now; blocks. Raises OSError, after which the log has failed."""
        self.check()
        try:
            for segment in list(self._dirty):
                self._disk.flush_now(segment.file)
                self.mark_durable(segment)
        except OSError as error:
            self.fail(error)
            raise

    def clamp(self, last_index: Index) -> None:
        """The log was cut to end with `last_index`: no flush under way may report more."""
        self.flushed_index = min(self.flushed_index, last_index)
        for request in self._requests:
            request.target = min(request.target, last_index)

    def begin_at(self, last_index: Index) -> None:
        """The log was reset and begins, empty, after `last_index`."""
        for request in self._requests:
            request.target = min(request.target, last_index)
        self.flushed_index = last_index

    def _on_answer(
        self, request: _Request, segment: Segment, write_count: int, error: OSError | None
    ) -> None:
        """The disk has flushed a segment as of `write_count` writes, or failed to."""
        if error is not None:
            self.fail(error)
        if self.error is not None:
            request.error = self.error
        elif segment.is_dirty and segment.write_count == write_count:
            self.mark_durable(segment)
        assert request.remaining > 0, "a flush answered twice"
        request.remaining -= 1
        if request.remaining == 0:
            self._finish(request)

    def mark_durable(self, segment: Segment) -> None:
        """Everything in `segment` is durable: reports it once all segments before it are too."""
        self.mark_clean(segment)
        if not self._dirty and not self._ahead:  # As nearly always.
            self._on_segment_durable(segment)
            return
        self._ahead.append(segment)
        first = min((one.name.base_index for one in self._dirty), default=_NO_LIMIT)
        durable = [one for one in self._ahead if one.name.base_index < first]
        self._ahead = [one for one in self._ahead if one not in durable and not one.is_dirty]
        for one in sorted(durable, key=lambda one: one.name.base_index):
            self._on_segment_durable(one)

    def _finish(self, request: _Request) -> None:
        self._requests.remove(request)
        if request.error is not None:
            request.done(request.error)
            return
        self.flushed_index = max(self.flushed_index, request.target)  # Never back.
        self._on_flushed(request.head, request.target)
        request.done(request.target)
