"""Chunks in memory: what read-ahead brought, and what the cache's disk does not take.

Why:    a scan reads each chunk once. To write it to a disk first takes more CPU than to fetch it,
        fills the page cache, and holds up the log's own writes.
How:    absent --add--> UNREAD --a reader has read it to its end--> READ
        If there are too many bytes, READ chunks go first, the least recently used one before the
        others; then UNREAD ones go, which the owner may write to its disk.
            Chunks that came together share a buffer. Its bytes count until all of them are gone.
Owns:   the buffers."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from strandline.base.disk import Buffer
from strandline.tiered.reading.chunk_files import ChunkKey
from strandline.tiered.reading.memory_file import MemoryFile


class ChunkInMemory(NamedTuple):
    """A chunk that has to go. `is_read`: a reader has read it to its end."""

    key: ChunkKey
    file: MemoryFile
    is_read: bool


class _Shared:
    """A buffer, and how many of its chunks are here."""

    __slots__ = ("chunk_count", "size_bytes")

    def __init__(self, chunk_count: int, size_bytes: int) -> None:
        self.chunk_count = chunk_count
        self.size_bytes = size_bytes


_Row = tuple[MemoryFile, _Shared]


class ChunkMemory:
    """See the module. `bytes_max`: of all buffers."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.size_bytes = 0
        self._unread: OrderedDict[ChunkKey, _Row] = OrderedDict()
        """The least recently used chunk first."""
        self._read: OrderedDict[ChunkKey, _Row] = OrderedDict()
        """The same."""

    def __contains__(self, key: ChunkKey) -> bool:
        return key in self._unread or key in self._read

    def __len__(self) -> int:
        return len(self._unread) + len(self._read)

    def get(self, key: ChunkKey) -> MemoryFile | None:
        """The bytes of a chunk, which is used now; None if it is not here."""
        for rows in (self._unread, self._read):
            row = rows.get(key)
            if row is not None:
                rows.move_to_end(key)
                return row[0]
        return None

    def add(
        self, chunks: Sequence[tuple[ChunkKey, Buffer]], *, buffer_bytes: int
    ) -> list[MemoryFile]:
        """Keep chunks that are parts of one buffer; they in the same order. Call `overflow`
        then."""
        shared = _Shared(len(chunks), buffer_bytes)
        self.size_bytes += buffer_bytes if chunks else 0
        files = []
        for key, data in chunks:
            self._drop(key)
            file = MemoryFile(f"{key.object_id}-{key.number}", data)
            self._unread[key] = file, shared
            files.append(file)
        return files

    def note_read(self, key: ChunkKey) -> None:
        """A reader has read a chunk to its end; harmless if it is not here."""
        row = self._unread.pop(key, None)
        if row is not None:
            self._read[key] = row

    def overflow(self) -> list[ChunkInMemory]:
        """Let go of what is too much; what went."""
        return self._shrink(self.bytes_max)

    def clear(self) -> list[ChunkInMemory]:
        """Let go of all; what went."""
        return self._shrink(0)

    def _shrink(self, bytes_max: int) -> list[ChunkInMemory]:
        gone = []
        while self.size_bytes > bytes_max and len(self):
            rows = self._read or self._unread
            key, (file, shared) = rows.popitem(last=False)
            self._release(shared)
            gone.append(ChunkInMemory(key, file, rows is self._read))
        return gone

    def _drop(self, key: ChunkKey) -> None:
        row = self._unread.pop(key, None) or self._read.pop(key, None)
        if row is not None:
            self._release(row[1])

    def _release(self, shared: _Shared) -> None:
        shared.chunk_count -= 1
        if not shared.chunk_count:
            self.size_bytes -= shared.size_bytes
