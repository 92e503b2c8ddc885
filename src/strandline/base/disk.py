"""The files of a broker: positioned reads and writes, and an explicit, asynchronous flush.

Why:    this seam defines what a crash may lose: bytes that are written and not flushed, in any
        order. The simulator makes use of that.
How:    everything but `flush_soon` is synchronous and touches the page cache only. `flush_soon` is
        group commit: the requests made during a flush are flushed together by the next one.
Source: design section 4; a failed flush is final for a file (ATC'20, "Can Applications Recover from
        fsync Failures?")."""

from collections.abc import Callable, Sequence
from errno import EDQUOT, EIO, ENOSPC
from typing import Protocol

Buffer = bytes | bytearray | memoryview


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no space: what can be undone may be tried again later."""
    return isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT)


def is_unreadable(error: OSError) -> bool:
    """Whether the disk does not give out what it has: as bad as wrong bytes, and mended so."""
    return error.errno == EIO


class File(Protocol):
    """An open file. Positions and sizes are in bytes."""

    path: str

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all the buffers one after the other from `position`; raises OSError (ENOSPC, EIO).

        The buffers may be reused as soon as this returns."""

    def pread(self, length: int, position: int) -> bytes:
        """Up to `length` bytes from `position`; shorter only at the end of the file."""

    def size(self) -> int:
        """The file's length, preallocated space included."""

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes, or extend it with zeros."""

    def allocate(self, size: int) -> None:
        """Reserve zeroed space up to `size` bytes, so that later writes change no metadata.

        Raises OSError: then the file is as it was."""

    def written_end(self) -> int:
        """From here on all was reserved, is zero, and was never written; the size where the file
        system does not know. What lies before it may have been reserved, too. To be asked before
        anything there is read: what was read may count as written."""

    def forget_cached(self, position: int, length: int) -> None:
        """Let what is durable of these bytes leave the page cache: the next read asks the disk."""

    def fileno(self) -> int:
        """The descriptor for sendfile, or -1 where there is none (the simulator)."""

    def close(self) -> None:
        """Release the file; writes that were not flushed stay at risk."""


class Disk(Protocol):
    """One file system. Paths are absolute."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing; raises FileNotFoundError unless `create`."""

    def exists(self, path: str) -> bool:
        """Whether a file or directory is there."""

    def list_directory(self, path: str) -> list[str]:
        """Names in the directory, sorted; raises FileNotFoundError."""

    def make_directories(self, path: str) -> None:
        """Create the directory and its parents; harmless when it is there."""

    def rename(self, source: str, target: str) -> None:
        """Replace `target` by `source`, atomically."""

    def remove(self, path: str) -> None:
        """Remove one file; harmless when it is gone."""

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all in it; harmless when it is gone."""

    def flush_directory(self, path: str) -> None:
        """Make creations, renames and removals in this directory durable; blocks."""

    def flush_now(self, file: File) -> None:
        """Make everything written to `file` durable; blocks. For start-up and rare metadata. Raises
        OSError."""

    def flush_file_system(self, path: str) -> None:
        """Make everything that was written so far, and every name, on the file system that holds
        `path` durable; blocks. For many files at once. Raises OSError."""

    def flush_soon(self, file: File, done: Callable[[OSError | None], None]) -> None:
        """Make what is written to `file` by now durable, then call `done` on the broker's thread.

        Concurrent requests share one flush. An error is final: the caller stops using the file."""

    def free_bytes(self, path: str) -> int:
        """Space left on the file system that holds `path`."""

    def total_bytes(self, path: str) -> int:
        """The size of the file system that holds `path`."""

    def used_bytes(self, path: str) -> int:
        """What is taken on it. With what is left that may be less than its size: some is set aside
        for others."""
