"""An open file descriptor that several users share.

Why:    a log lets go of a file while a reader still sends from it, or a flush is under way: so a
        removed segment can be read to its end, and no number is reused under somebody's feet.
Owns:   the descriptor, until the last user lets go of this."""

import os


class Descriptor:
    """An open file descriptor; closed when the last user lets go of this."""

    __slots__ = ("_close", "device", "number")

    def __init__(self, path: str, flags: int) -> None:
        self._close = os.close  # Still there while the interpreter shuts down.
        self.number = -1
        self.number = os.open(path, flags, 0o644)
        self.device = os.fstat(self.number).st_dev

    def __del__(self) -> None:
        if self.number >= 0:
            self._close(self.number)
