"""A chunk in memory, as a file: for a cache that cannot write.

Why:    a scan's chunks need no disk, and a full or broken disk must not keep consumers from their
        records.
Owns:   the bytes; they may be a part of a larger buffer."""

from collections.abc import Sequence
from typing import NoReturn

from strandline.base.disk import Buffer


class MemoryFile:
    """A `base.disk.File` that can only be read."""

    __slots__ = ("_data", "path")

    def __init__(self, path: str, data: Buffer) -> None:
        self.path = path
        self._data = memoryview(data)

    def pread(self, length: int, position: int) -> bytes:
        """See `base.disk.File`."""
        return bytes(self._data[position : position + length])

    def view(self, length: int, position: int) -> memoryview:
        """The same bytes, without a copy."""
        return self._data[position : position + length]

    def size(self) -> int:
        """See `base.disk.File`."""
        return len(self._data)

    def written_end(self) -> int:
        """See `base.disk.File`."""
        return len(self._data)

    def fileno(self) -> int:
        """None: the bytes are copied into the socket."""
        return -1

    def close(self) -> None:
        """Nothing to release."""

    def forget_cached(self, position: int, length: int) -> None:
        """Nothing is on a disk."""

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        """Refused."""
        self._refuse()

    def truncate(self, size: int) -> None:
        """Refused."""
        self._refuse()

    def allocate(self, size: int) -> None:
        """Refused."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise OSError(f"{self.path} is in memory, and read only")
