"""An open file descriptor that several users share.

Why:    a log drops a file while a reader still sends from it, or a flush is under way. The reader
        must be able to read a removed segment to its end, and the kernel must not reuse the number
        before.
Owns:   the descriptor, until the last user drops it."""

import os


class Descriptor:
    """An open file descriptor; closed when the last user drops it."""

    __slots__ = ("_close", "device", "number")

    def __init__(self, path: str, flags: int) -> None:
        self._close = os.close  # Still there while the interpreter shuts down.
        self.number = -1
        self.number = os.open(path, flags, 0o644)
        self.device = os.fstat(self.number).st_dev

    def __del__(self) -> None:
        if self.number >= 0:
            self._close(self.number)
