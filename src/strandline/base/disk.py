"""The files of a broker: positioned reads and writes, and an explicit, asynchronous flush.

Why:    this seam defines what a crash may lose: bytes that are written and not flushed, in any
        order. The simulator makes use of that.
How:    Reads and writes go through the page cache; what is written is not durable yet. `flush_now`,
        `flush_directory` and `flush_file_system` block until it is. `flush_soon` is asynchronous
        and is a group commit: requests made during a flush share the next one.
Source: design section 4; a failed flush is final for a file (ATC'20, "Can Applications Recover from
        fsync Failures?")."""

from collections.abc import Callable, Sequence
from errno import EDQUOT, EIO, ENOSPC
from typing import Protocol

Buffer = bytes | bytearray | memoryview


def is_full(error: BaseException) -> bool:
    """Whether an error says that there is no space: an operation that was undone may be tried
    again later."""
    return isinstance(error, OSError) and error.errno in (ENOSPC, EDQUOT)


def is_unreadable(error: OSError) -> bool:
    """Whether the disk cannot read these bytes: they are repaired like damaged ones."""
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

        If it raises OSError, the file is unchanged."""

    def written_end(self) -> int:
        """The offset from which on the file is reserved, zero, and never written; the file's size
        if the file system does not know. Bytes before it may be reserved only, too. Call it
        before reading there: bytes that were read may count as written."""

    def forget_cached(self, position: int, length: int) -> None:
        """Drop the durable part of these bytes from the page cache: the next read of it goes to the
        disk."""

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

    def modified_ms(self, path: str) -> int:
        """When the file was last written or resized, in ms since 1970; raises
        FileNotFoundError."""

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
        """Space taken on that file system. Together with `free_bytes` it may be less than
        `total_bytes`: the file system sets some aside for others."""
