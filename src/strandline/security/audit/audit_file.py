"""A file of lines that is rotated once: `PATH` and `PATH.1`.

Why:    the file must not fill the disk, and a write that fails half-way must not leave half a line
        in front of the next one.
How:    above `bytes_max` the file takes the place of `PATH.1`. A failed write is cut off again. A
        file that another program has renamed or removed is created anew.
Owns:   the file's descriptor.
Source: decision 0069."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from strandline.base.errors import OperatorError

MODE = 0o600
"""Names of users and topics are for the operator only."""


class AuditFile:
    """See the module."""

    def __init__(self, path: Path, *, bytes_max: int) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._fd: int | None = None
        self._size_bytes = 0

    def check(self) -> None:
        """Create the file if it is absent. Raises OperatorError if the path cannot be one; a full
        or failing disk is none of this."""
        try:
            if self.path.exists() and not stat.S_ISREG(self.path.stat().st_mode):
                raise OperatorError(f"[access] audit_file: {self.path} must be a plain file")
            self._open()
        except (FileNotFoundError, NotADirectoryError, PermissionError) as error:
            raise OperatorError(
                f"[access] audit_file: cannot open {self.path}: {error.strerror}; create its "
                "directory, and let the broker's user write there"
            ) from error
        except OSError:
            pass

    def write(self, lines: bytes) -> None:
        """Append whole lines. Raises OSError; then none of them is in the file."""
        self._reopen_if_moved()
        if self._fd is None:
            self._open()
        if self._size_bytes and self._size_bytes + len(lines) > self._bytes_max:
            self._rotate()
        assert self._fd is not None
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._fd, self._size_bytes)
            self.close()  # The next write looks at the end of the file again.
            raise
        self._size_bytes += len(lines)

    def close(self) -> None:
        """Close it; `write` opens it again."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        fd = os.open(self.path, flags, MODE)
        try:
            size_bytes = os.fstat(fd).st_size
            if size_bytes and os.pread(fd, 1, size_bytes - 1) != b"\n":
                size_bytes += os.write(fd, b"\n")  # A crash has left half a line.
        except OSError:
            os.close(fd)
            raise
        self._fd, self._size_bytes = fd, size_bytes

    def _rotate(self) -> None:
        os.replace(self.path, f"{self.path}.1")
        self.close()
        self._open()

    def _reopen_if_moved(self) -> None:
        if self._fd is None:
            return
        try:
            found = os.stat(self.path)
        except FileNotFoundError:
            self.close()
            return
        own = os.fstat(self._fd)
        if (found.st_dev, found.st_ino) != (own.st_dev, own.st_ino):
            self.close()
        else:
            self._size_bytes = own.st_size  # Another program may have cut it.
