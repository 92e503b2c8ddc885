"""Writes again what an earlier process wrote and nothing says was flushed.

Why:    the pages of a failed flush count as clean: the next process reads them, its own flush has
        nothing to write and succeeds, and the power fails. Whether there was such a failure nobody
        can know: who saw it may have died of it, and could not write it down on that disk.
How:    |--a summary or a mark says that it was flushed--|--written again, as it was read--| end
        The owner flushes after that. What is written are the bytes that were checked, not what a
        second read finds: the page cache may let go of them in between.
Owns:   the run of batches that is to be written next.
Source: ATC'20, "Can Applications Recover from fsync Failures?"."""

from strandline.base.disk import File

_NOTHING = b""


class Renewal:
    """What of one file is written again."""

    __slots__ = ("_chunk", "_end", "_file", "_position", "_start")

    def __init__(self, file: File) -> None:
        self._file = file
        self._chunk = _NOTHING
        self._start = self._end = 0
        """Which part of the chunk."""
        self._position = 0
        """Where in the file that part begins."""

    def add(self, position: int, chunk: bytes, at: int, length: int) -> None:
        """The bytes at `position` of the file, which are those in the chunk from `at` on. They
        follow those that were added before. Raises OSError."""
        if chunk is not self._chunk:
            self.finish()
            self._chunk, self._start, self._position = chunk, at, position
        self._end = at + length

    def finish(self) -> None:
        """Write what is left. Raises OSError."""
        if self._end > self._start:
            part = memoryview(self._chunk)[self._start : self._end]
            self._file.pwrite((part,), self._position)
        self._chunk = _NOTHING
        self._start = self._end = 0
