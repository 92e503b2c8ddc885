"""The real disk: files of the operating system.

Why:    the seam between the log and the operating system; the simulator has another disk.
How:    flush_soon --> the kernel (`kernel_flusher`), where it flushes asynchronously
                   --> a thread (`flusher`), where it does not, or has too many files already
        Both answer on the broker's thread.
Owns:   both flushers.
Source: design section 4, "Flushing"; docs/decisions/0005."""

import contextlib
import os
import shutil
from collections.abc import Sequence
from errno import ENXIO
from mmap import PAGESIZE

from strandline.base.disk import Buffer, File
from strandline.storage.disk.descriptor import DIRECTORY_MODE, Descriptor
from strandline.storage.disk.file_system import FileSystem
from strandline.storage.disk.flusher import FlushDone, Flusher, Post
from strandline.storage.disk.kernel_flusher import AtPassEnd, KernelFlusher, ReaderLoop

_IOV_MAX = 1024
"""Larger blocks, and file systems that do not tell holes from data, look written to."""


class RealFile:
    """A file. See `base.disk.File`."""

    __slots__ = ("_number", "descriptor", "path")

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self.descriptor: Descriptor | None = Descriptor(path, flags)
        """For the flushers, which keep it alive; None once the file is closed."""
        self._number = self.descriptor.number

    def pwrite(self, buffers: Sequence[Buffer], position: int) -> None:
        """Write all buffers from `position`; a short write goes on where it ended."""
        if len(buffers) > _IOV_MAX:
            for start in range(0, len(buffers), _IOV_MAX):
                part = buffers[start : start + _IOV_MAX]
                self.pwrite(part, position)
                position += sum(map(len, part))
            return
        written = os.pwritev(self._number, buffers, position)
        size = sum(map(len, buffers))
        if written != size:
            self._write_rest(buffers, position, done=written)

    def _write_rest(self, buffers: Sequence[Buffer], position: int, *, done: int) -> None:
        rest = memoryview(b"".join(buffers))[done:]
        position += done
        while rest:
            written = os.pwrite(self._number, rest, position)
            rest = rest[written:]
            position += written

    def pread(self, length: int, position: int) -> bytes:
        """Up to `length` bytes; shorter only at the end of the file."""
        data = os.pread(self._number, length, position)
        if len(data) == length or not data:
            return data
        parts = [data]
        length -= len(data)
        position += len(data)
        while length and data:
            data = os.pread(self._number, length, position)
            parts.append(data)
            length -= len(data)
            position += len(data)
        return b"".join(parts)

    def size(self) -> int:
        """The file's length."""
        return os.fstat(self._number).st_size

    def truncate(self, size: int) -> None:
        """Cut or extend the file."""
        os.ftruncate(self._number, size)

    def allocate(self, size: int) -> None:
        """Reserve zeroed space up to `size` bytes."""
        present = self.size()
        if size <= present:
            return
        try:
            os.posix_fallocate(self._number, present, size - present)
        except OSError:
            # Of what is not enough ext4 takes all, and would keep it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._number, present)
            raise

    def written_end(self) -> int:
        """The end of the last page that is not a hole, or reserved; but pages that were read may
        count, too."""
        size = self.size()
        end = 0
        try:
            while end < size:
                data = os.lseek(self._number, end, os.SEEK_DATA)
                end = os.lseek(self._number, data, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != ENXIO:
                return size
        return min(end, size)

    def forget_cached(self, position: int, length: int) -> None:
        """Evict these bytes, and the rest of their pages, from the page cache if they are durable.

        The kernel keeps a page, or a group of pages, if only a part of it is to be evicted. Only
        the whole file is evicted for certain."""
        start = position - position % PAGESIZE
        end = position + length + -(position + length) % PAGESIZE
        os.posix_fadvise(self._number, start, end - start, os.POSIX_FADV_DONTNEED)

    def fileno(self) -> int:
        """The descriptor. It lives as long as this object, or until `close`."""
        return self._number

    def close(self) -> None:
        """Drop the descriptor; a flush under way keeps it open until it is done."""
        self.descriptor = None
        self._number = -1


class RealDisk(FileSystem):
    """The operating system's files. See `base.disk.Disk`.

    `post` runs a callback on the broker's thread, from any thread (`loop.call_soon_threadsafe`).
    With `loop`, files are flushed by the kernel where that can be done; `at_pass_end`: see
    `base.clock.Clock`."""

    def __init__(
        self, post: Post, loop: ReaderLoop | None = None, at_pass_end: AtPassEnd | None = None
    ) -> None:
        self._flusher = Flusher(post)
        self._kernel = None if loop is None else KernelFlusher.create(loop, at_pass_end)

    def close(self) -> None:
        """Finish the flushes that were asked for. Blocks."""
        if self._kernel is not None:
            self._kernel.close()
        self._flusher.close()

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading and writing."""
        flags = os.O_RDWR | os.O_CLOEXEC
        file = RealFile(path, flags | os.O_CREAT if create else flags)
        assert file.descriptor is not None
        self._flusher.watch(file.descriptor, path)
        return file

    def make_directories(self, path: str) -> None:
        """Create the directory and its parents."""
        os.makedirs(path, DIRECTORY_MODE, exist_ok=True)

    def rename(self, source: str, target: str) -> None:
        """Replace `target` by `source`."""
        os.replace(source, target)

    def remove(self, path: str) -> None:
        """Remove one file."""
        try:
            os.remove(path)
        except FileNotFoundError:
            pass

    def remove_tree(self, path: str) -> None:
        """Remove a directory with all in it."""
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass

    def flush_directory(self, path: str) -> None:
        """Make the names in this directory durable."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def flush_now(self, file: File) -> None:
        """Make a file durable; blocks."""
        os.fdatasync(file.fileno())

    def flush_file_system(self, path: str) -> None:
        """Make everything on the file system of `path` durable; blocks."""
        self._flusher.flush_device(Descriptor(path, os.O_RDONLY | os.O_CLOEXEC))

    def flush_soon(self, file: File, done: FlushDone) -> None:
        """Make what was written to a file so far durable; `done` is never called at once."""
        assert isinstance(file, RealFile)
        descriptor = file.descriptor
        assert descriptor is not None, f"{file.path} is closed"
        if self._kernel is None or not self._kernel.add(descriptor, done):
            self._flusher.add(descriptor, done)
