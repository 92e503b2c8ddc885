"""Rewrites the bytes of an earlier process that no summary or mark calls flushed.

Why:    the page cache counts the pages of a failed flush as clean. The next process reads them, its
        own flush has nothing to write and succeeds, and a power failure loses them. No process can
        rule out such a failure: the one that saw it may have died before it could record it.
How:    |--a summary or a mark covers it: flushed--|--written again, as it was read--| end
        The owner flushes afterwards. It writes the bytes that were verified, not those of a second
        read: the page cache may evict them in between.
Owns:   the run of batches to write next.
Source: ATC'20, "Can Applications Recover from fsync Failures?"."""

from strandline.base.disk import File

_NOTHING = b""


class Renewal:
    """The bytes of one file to write again."""

    __slots__ = ("_chunk", "_end", "_file", "_position", "_start")

    def __init__(self, file: File) -> None:
        self._file = file
        self._chunk = _NOTHING
        self._start = self._end = 0
        """The part of the chunk to write."""
        self._position = 0
        """The position of that part in the file."""

    def add(self, position: int, chunk: bytes, at: int, length: int) -> None:
        """Add the bytes at `position` of the file, which the chunk holds from `at` on. They follow
        the bytes added before. Raises OSError."""
        if chunk is not self._chunk:
            self.finish()
            self._chunk, self._start, self._position = chunk, at, position
            self._end = at
        assert at == self._end, f"a batch at byte {at} of the chunk, not {self._end}"
        self._end = at + length

    def finish(self) -> None:
        """Write the rest. Raises OSError."""
        if self._end > self._start:
            part = memoryview(self._chunk)[self._start : self._end]
            self._file.pwrite((part,), self._position)
        self._chunk = _NOTHING
        self._start = self._end = 0
