"""The real disk of a process that only reads.

Why:    a command that inspects or verifies a log must not change it, whatever bug it has.
How:    files are opened for reading only, so the kernel refuses any write; every change of a name
        raises EROFS.
Source: docs/reference/cli.md, `strandline log`."""

import os
from collections.abc import Callable
from errno import EROFS
from typing import NoReturn

from strandline.base.disk import File
from strandline.storage.disk.file_system import FileSystem
from strandline.storage.disk.real_disk import RealFile


class ReadOnlyDisk(FileSystem):
    """The operating system's files, for reading. See `base.disk.Disk`."""

    def open(self, path: str, *, create: bool = False) -> File:
        """Open for reading; raises FileNotFoundError."""
        if create:
            _refuse(path)
        return RealFile(path, os.O_RDONLY | os.O_CLOEXEC)

    # ---- what is refused ----

    def make_directories(self, path: str) -> None:
        """Refused."""
        _refuse(path)

    def rename(self, source: str, target: str) -> None:
        """Refused."""
        _refuse(target)

    def remove(self, path: str) -> None:
        """Refused."""
        _refuse(path)

    def remove_tree(self, path: str) -> None:
        """Refused."""
        _refuse(path)

    def flush_directory(self, path: str) -> None:
        """Refused."""
        _refuse(path)

    def flush_file_system(self, path: str) -> None:
        """Refused."""
        _refuse(path)

    def flush_now(self, file: File) -> None:
        """Refused."""
        _refuse(file.path)

    def flush_soon(self, file: File, done: Callable[[OSError | None], None]) -> None:
        """Refused."""
        _refuse(file.path)


def _refuse(path: str) -> NoReturn:
    raise OSError(EROFS, os.strerror(EROFS), path)
