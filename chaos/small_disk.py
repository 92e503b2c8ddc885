"""A small disk of its own for one broker, that can be filled up and freed: ext4 in a file.

Why:    a full disk also refuses writes into space that a file already has, because the file system
        needs room for its bookkeeping. So this is a real file system, not a limit.
Owns:   the image, the mount, and the filler in it."""

import os
import shutil
import time
from pathlib import Path
from types import TracebackType

from chaos.hosts import ChaosError
from chaos.processes import run_tool

DISK_BYTES = 384 << 20
CHUNK_BYTES = 1 << 20
FILLER = "filler"
UNMOUNT_ATTEMPTS = 50
UNMOUNT_PAUSE_S = 0.2


class SmallDisk:
    """See the module."""

    def __init__(self, directory: Path, *, image: Path) -> None:
        self._directory = directory
        self._image = image
        self._is_mounted = False

    def __enter__(self) -> "SmallDisk":
        self._directory.mkdir(parents=True)
        with self._image.open("wb") as file:
            file.truncate(DISK_BYTES)
        run_tool("mkfs.ext4", "-q", "-m", "0", "-F", str(self._image))
        run_tool("mount", "-o", "loop", str(self._image), str(self._directory))
        self._is_mounted = True
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """The broker has to be gone; of what was killed the kernel closes the files in a while."""
        if not self._is_mounted:
            return
        for left in reversed(range(UNMOUNT_ATTEMPTS)):
            try:
                run_tool("umount", str(self._directory))
                break
            except ChaosError:
                if not left:
                    raise
                time.sleep(UNMOUNT_PAUSE_S)
        self._is_mounted = False

    def keep(self, copy: Path) -> None:
        """What is on it, for those who come after the run."""
        shutil.copytree(self._directory, copy, ignore=shutil.ignore_patterns("lost+found", FILLER))

    def fill(self) -> None:
        """Leave no byte."""
        descriptor = os.open(self._directory / FILLER, os.O_WRONLY | os.O_CREAT)
        try:
            size = 0
            for step in (CHUNK_BYTES, 4_096):
                try:
                    while True:
                        os.posix_fallocate(descriptor, size, step)
                        size += step
                except OSError:
                    pass  # No room for such a step any more.
        finally:
            os.close(descriptor)

    def free(self) -> None:
        """Give everything back."""
        (self._directory / FILLER).unlink(missing_ok=True)
