"""An open file descriptor that several users share.

Why:    a log drops a file while a reader still sends from it, or a flush is under way. The reader
        must be able to read a removed segment to its end, and the kernel must not reuse the number
        before.
How:    in use --last user drops it--> closed;  a removed file is closed on a thread
        The last close of a removed file frees its space: the kernel waits for its writeback and
        for discards, which may take a second.
Owns:   the descriptor, until the last user drops it; the thread, which begins with the first
        removed file."""

import os
import sys
import threading
from collections.abc import Callable
from queue import SimpleQueue


class Closer:
    """Closes descriptors: those of removed files on a thread, the others at once."""

    def __init__(self, close: Callable[[int], None] = os.close) -> None:
        self._close, self._fstat = close, os.fstat
        self._is_exiting = sys.is_finalizing  # Still there while the interpreter shuts down.
        self._numbers: SimpleQueue[int] = SimpleQueue()
        self._thread: threading.Thread | None = None

    def close(self, number: int) -> None:
        """Close a descriptor, at once or soon."""
        if self._fstat(number).st_nlink or not self._has_thread():
            self._close(number)
        else:
            self._numbers.put(number)

    def forget_thread(self) -> None:
        """This process is a copy of one that had the thread."""
        self._thread = None

    def _has_thread(self) -> bool:
        # While the interpreter shuts down, no thread runs: to start one may wait for ever.
        if self._is_exiting():
            return False
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="closer", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # The interpreter shuts down.
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        while True:
            self._close(self._numbers.get())


_closer = Closer()
os.register_at_fork(after_in_child=_closer.forget_thread)

DIRECTORY_MODE, FILE_MODE = 0o700, 0o600
"""Of what brokers make: records and keys are for the broker's user alone."""


class Descriptor:
    """An open file descriptor; closed when the last user drops it."""

    __slots__ = ("_close", "device", "number")

    def __init__(self, path: str, flags: int) -> None:
        self._close = _closer.close  # Still there while the interpreter shuts down.
        self.number = -1
        self.number = os.open(path, flags, FILE_MODE)
        self.device = os.fstat(self.number).st_dev

    def __del__(self) -> None:
        if self.number >= 0:
            self._close(self.number)
