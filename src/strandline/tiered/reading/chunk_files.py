"""Chunks of objects as files: written, opened, verified, found again after a restart.

Why:    a chunk in a file goes to a client's socket without entering Python's memory, and outlives
        the process.
How:    <directory>/<2 digits>/<object id, 32 digits>-<chunk number>-<bytes>.chunk
        A file is written as `.new` and renamed when it is whole. It is never flushed: a crash may
        leave anything under its name, so the first use after a start verifies its checksum.
        Everything here may block, and runs on a `DiskWorker`.
Owns:   the files whose names match; it leaves all others alone.
Source: decision 0060."""

import contextlib
import os
import re
from collections.abc import Iterable, Sequence
from errno import ENOSPC
from hashlib import blake2b
from typing import NamedTuple

from fastcrc import crc32

from strandline.base.disk import Buffer, Disk, File

FREE_RATIO_MIN = 0.05
"""The share of the file system that the cache leaves free: the logs may be on it, too."""

_SUFFIX = ".chunk"
_NEW_SUFFIX = ".new"
_NAME = re.compile(r"(?P<object>[0-9a-f]{32})-(?P<number>\d+)-(?P<bytes>\d+)\.chunk")
_SHARD_DIGITS = 2


class ChunkKey(NamedTuple):
    """One chunk of one object."""

    object_id: str
    """See `object_id_of`."""
    number: int


class FoundChunk(NamedTuple):
    """A chunk's file after a restart; what is in it is not known."""

    key: ChunkKey
    size_bytes: int


def object_id_of(bucket: str, name: str) -> str:
    """32 hexadecimal digits for an object: no two objects of all buckets share them."""
    return blake2b(f"{bucket}\0{name}".encode(), digest_size=16).hexdigest()


class ChunkFiles:
    """See the module."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory

    def shards(self) -> list[str]:
        """The directories that may hold chunks. Raises OSError."""
        self._disk.make_directories(self._directory)
        names = self._disk.list_directory(self._directory)
        return [name for name in names if len(name) == _SHARD_DIGITS]

    def scan(self, shard: str) -> list[FoundChunk]:
        """The chunks of one shard; removes what a crash left half written. Raises OSError."""
        directory = os.path.join(self._directory, shard)
        found = []
        for name in self._disk.list_directory(directory):
            match = _NAME.fullmatch(name.removesuffix(_NEW_SUFFIX))
            if match is None:
                continue
            if name.endswith(_NEW_SUFFIX):
                self._disk.remove(os.path.join(directory, name))
                continue
            key = ChunkKey(match["object"], int(match["number"]))
            found.append(FoundChunk(key, int(match["bytes"])))
        return found

    def write(self, key: ChunkKey, data: Buffer) -> File:
        """Keep `data`; the open file. Raises OSError: then nothing is kept."""
        disk = self._disk
        path = self._path(key, len(data))
        new_path = path + _NEW_SUFFIX
        disk.make_directories(os.path.dirname(path))
        free_bytes = disk.free_bytes(self._directory)
        if free_bytes - len(data) < disk.total_bytes(self._directory) * FREE_RATIO_MIN:
            raise OSError(ENOSPC, os.strerror(ENOSPC), path)
        try:
            file = disk.open(new_path, create=True)
            if file.size():  # Otherwise the last close would start to write the file out.
                file.truncate(0)
            file.pwrite((data,), 0)
            disk.rename(new_path, path)
        except OSError:
            with contextlib.suppress(OSError):
                disk.remove(new_path)
            raise
        file.path = path
        return file

    def open(self, key: ChunkKey, size_bytes: int) -> File:
        """Open a chunk whose bytes are trusted. Raises OSError."""
        return self._disk.open(self._path(key, size_bytes))

    def open_verified(self, key: ChunkKey, size_bytes: int, crc: int) -> File | None:
        """Open a chunk and verify its CRC-32C, which also brings it into the page cache; None if
        it is damaged. Raises OSError."""
        file = self.open(key, size_bytes)
        data = file.pread(size_bytes, 0)
        return file if len(data) == size_bytes and crc32.iscsi(data) == crc else None

    def remove(self, chunks: Iterable[FoundChunk]) -> Sequence[OSError]:
        """Remove these files; the errors."""
        errors = []
        for key, size_bytes in chunks:
            try:
                self._disk.remove(self._path(key, size_bytes))
            except OSError as error:
                errors.append(error)
        return errors

    def _path(self, key: ChunkKey, size_bytes: int) -> str:
        shard = key.object_id[:_SHARD_DIGITS]
        name = f"{key.object_id}-{key.number}-{size_bytes}{_SUFFIX}"
        return os.path.join(self._directory, shard, name)
