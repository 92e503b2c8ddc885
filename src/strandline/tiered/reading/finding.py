"""Finds whole batches in the chunks of an object that are here.

Why:    chunks are cut anywhere, and a client gets whole batches, the first one however large it is
        (KIP-74).
How:    the trailer's index leads to at most 16 KiB before the batch with an offset, and before the
        end; from there it walks over headers. The walk may need a chunk that is not here yet.
        If it reads the cache's files, it runs on a worker.
Source: decision 0060."""

from bisect import bisect_left
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from strandline.base.disk import File
from strandline.model.ids import Offset
from strandline.records.batch import HEADER_BYTES, LENGTH_END
from strandline.tiered.reading.chunk_cache import Chunk
from strandline.tiered.reading.memory_file import MemoryFile
from strandline.tiered.segments.trailer import Trailer

_PLACE = Struct(">qi11xi")
"""baseOffset, batchLength, lastOffsetDelta."""
_WALK_BYTES = 16 << 10


class RemoteSlice(NamedTuple):
    """`size_bytes` of `file` from `position`; an evicted chunk's file stays readable."""

    file: File
    position: int
    size_bytes: int


class FoundBatches(NamedTuple):
    """Whole batches in order; empty if the object has none at or after the offset."""

    slices: list[RemoteSlice]
    size_bytes: int
    start: int
    """Where the first one begins in the object."""
    end: int
    next_offset: Offset
    """Where to read on."""


class NeedsMore(NamedTuple):
    """Nothing can be said without the chunks up to here, exclusive, in the object."""

    end: int


class _Batch(NamedTuple):
    size_bytes: int
    next_offset: Offset


class ObjectBytes:
    """Neighbouring chunks of one object, in order: its bytes from `start` to `end`."""

    def __init__(self, chunks: Sequence[Chunk], chunk_bytes: int) -> None:
        self._chunks = chunks
        self._chunk_bytes = chunk_bytes
        self.start = chunks[0].number * chunk_bytes
        self.end = chunks[-1].number * chunk_bytes + chunks[-1].size_bytes
        self._buffer = b""
        self._buffer_at = 0

    @property
    def is_in_memory(self) -> bool:
        """Whether reading needs no disk."""
        return all(isinstance(one.file, MemoryFile) for one in self._chunks)

    def slices(self, start: int, end: int) -> list[RemoteSlice]:
        """[start, end), in files."""
        assert self.start <= start <= end <= self.end, f"[{start}, {end}) is not here"
        found = []
        while start < end:
            chunk = self._chunks[start // self._chunk_bytes - self._chunks[0].number]
            position = start % self._chunk_bytes
            length = min(end - start, chunk.size_bytes - position)
            found.append(RemoteSlice(chunk.file, position, length))
            start += length
        return found

    def read(self, start: int, end: int) -> bytes:
        """Their bytes. Raises OSError if a file was cut."""
        parts = self.slices(start, end)
        data = b"".join([one.file.pread(one.size_bytes, one.position) for one in parts])
        if len(data) != end - start:
            raise OSError(f"{parts[0].file.path} has been cut")
        return data

    def batch_at(self, position: int) -> _Batch | None:
        """The batch that begins there; None if its header is not here."""
        if position + HEADER_BYTES > self.end:
            return None
        at = position - self._buffer_at
        if at < 0 or at + HEADER_BYTES > len(self._buffer):
            self._buffer = self.read(position, min(position + _WALK_BYTES, self.end))
            self._buffer_at, at = position, 0
        base_offset, length, delta = _PLACE.unpack_from(self._buffer, at)
        return _Batch(LENGTH_END + length, Offset(base_offset + delta + 1))


def find_batches(
    data: ObjectBytes, trailer: Trailer, offset: Offset, max_bytes: int
) -> FoundBatches | NeedsMore:
    """Batches from the one that has `offset` on, of at most `max_bytes` unless one is larger;
    `data` has the byte at `trailer.position_of(offset)`. Raises OSError."""
    start = trailer.position_of(offset)
    while True:
        if start >= trailer.data_bytes:
            return FoundBatches([], 0, start, start, trailer.end_offset)
        batch = data.batch_at(start)
        if batch is None:
            return NeedsMore(min(start + HEADER_BYTES, trailer.data_bytes))
        if batch.next_offset > offset:
            break
        start += batch.size_bytes
    end, next_offset = start + batch.size_bytes, batch.next_offset
    if end > data.end:
        return NeedsMore(end)
    limit = min(start + max_bytes, data.end)
    known = trailer.floor_boundary(start, limit)
    if known > end:
        end, next_offset = known, _offset_at(trailer, known)
    while end < limit:
        following = data.batch_at(end)
        if following is None or end + following.size_bytes > limit:
            break
        end += following.size_bytes
        next_offset = following.next_offset
    return FoundBatches(data.slices(start, end), end - start, start, end, next_offset)


def _offset_at(trailer: Trailer, boundary: int) -> Offset:
    """The offset of the batch at a boundary of the index."""
    if boundary >= trailer.data_bytes:
        return trailer.end_offset
    entry = bisect_left(trailer.positions, boundary)
    return Offset(trailer.base_offset + trailer.offsets[entry])
