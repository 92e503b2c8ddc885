"""Where the records of an upload come from: this broker's log, or another bucket.

Why:    a bucket that was away for long lacks records that no log has any more; its neighbours have
        them.
How:    the log's files are read on a thread, some MiB at a time; each batch is checked there. Of an
        object, first the trailer, then chunks, each checked by the trailer.
Owns:   nothing.
Source: decision 0059."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Protocol

from strandline.base.disk import File
from strandline.base.errors import ApiError
from strandline.records.batch import iterate_headers
from strandline.storage.log.reads import FileRange
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer
from strandline.tiered.segments.writer import SegmentWriter, UnfitBatchError

PIECE_BYTES = 512 << 10
"""Read and checked in one go: the interpreter's lock is free between two pieces."""
GROUP_BYTES = 4 << 20
"""Of one call to the thread."""
Moved = Callable[[int], None]


class Source(Protocol):
    """The records of one upload."""

    size_bytes: int
    """How much memory they take, at most."""

    async def read_into(self, writer: SegmentWriter, moved: Moved) -> None:
        """Give all of them to the writer; `moved` gets the bytes of each step. Raises OSError,
        UnfitBatchError, StoreError, TrailerError."""


class LocalSource:
    """The records lie in these ranges of this broker's log, each of whole batches."""

    def __init__(self, parts: Sequence[FileRange], threads: Executor | None) -> None:
        self._parts = parts
        self._threads = threads
        # What is read behind the last whole batch of a piece stays in memory with it.
        self.size_bytes = sum(part.length for part in parts) * 5 // 4

    async def read_into(self, writer: SegmentWriter, moved: Moved) -> None:
        """See `Source`."""
        loop = asyncio.get_running_loop()
        for part in self._parts:
            position, end = part.position, part.position + part.length
            while position < end:
                reading = partial(_read_some, part.file, position, end, writer)
                taken = await loop.run_in_executor(self._threads, reading)
                position += taken
                moved(taken)


class BucketSource:
    """The records are in an object of another bucket."""

    def __init__(self, store: ObjectStore, entry: SegmentEntry) -> None:
        self._store = store
        self._entry = entry
        self.size_bytes = entry.size_bytes

    async def read_into(self, writer: SegmentWriter, moved: Moved) -> None:
        """See `Source`."""
        trailer = await read_trailer(self._store, self._entry)
        start = trailer.position_of(writer.next_offset)
        batches = ObjectBatches(self._store, self._entry, trailer, start=start)
        while writer.next_offset < writer.end_offset and (data := await batches.next()):
            moved(len(data))
            _add_wanted(data, writer)


async def read_trailer(store: ObjectStore, entry: SegmentEntry) -> Trailer:
    """The trailer of an object, checked. Raises StoreError, TrailerError."""
    encoded = await store.get_range(entry.name, entry.data_bytes, entry.size_bytes)
    return Trailer.parse(encoded, crc=entry.trailer_crc)


class ObjectBatches:
    """Whole batches of an object from the position of one on, about a chunk at a time; each chunk
    is checked."""

    def __init__(
        self, store: ObjectStore, entry: SegmentEntry, trailer: Trailer, *, start: int = 0
    ) -> None:
        self._store = store
        self._entry = entry
        self._trailer = trailer
        self._start = start
        self._chunk = start // trailer.chunk_bytes
        self._rest = b""

    async def next(self) -> bytes:
        """The next ones; nothing at the end. Raises StoreError, UnfitBatchError."""
        trailer, name = self._trailer, self._entry.name
        while self._chunk < trailer.chunk_count:
            first, end = trailer.chunk_range(self._chunk)
            data = await self._store.get_range(name, first, end)
            if not trailer.chunk_matches(self._chunk, data):
                raise UnfitBatchError(f"chunk {self._chunk} of {name} is damaged")
            self._chunk += 1
            data = self._rest + data[max(0, self._start - first) :]
            whole = _whole_bytes(data)
            self._rest = data[whole:]
            if whole:
                return data[:whole]
        if self._rest:
            raise UnfitBatchError(f"the last batch of {name} is cut")
        return b""


def _whole_bytes(data: bytes) -> int:
    """How many bytes the whole batches at the beginning have. Raises UnfitBatchError."""
    end = 0
    try:
        for header in iterate_headers(data):
            end = header.position + header.size
    except ApiError as error:
        raise UnfitBatchError(str(error)) from error
    return end


def _read_some(file: File, start: int, end: int, writer: SegmentWriter) -> int:
    """On a thread: give the writer whole batches of [start, end), about `GROUP_BYTES`; how many
    bytes. Raises OSError, UnfitBatchError."""
    position = start
    size = PIECE_BYTES
    while position < end and position - start < GROUP_BYTES:
        wanted = min(size, end - position)
        data = file.pread(wanted, position)
        taken = writer.add_whole(data)
        if not taken:  # A batch larger than a piece, or one that is not there.
            if len(data) < wanted or wanted == end - position:
                raise UnfitBatchError(f"the batch at offset {writer.next_offset} is cut")
            size *= 2
        position += taken
    return position - start


def _add_wanted(data: bytes, writer: SegmentWriter) -> None:
    """Give the writer those of these whole batches that it lacks, and no more. Raises
    UnfitBatchError."""
    low, high = -1, 0
    for header in iterate_headers(data):
        if header.base_offset >= writer.end_offset:
            break
        high = header.position + header.size
        if low < 0 and header.next_offset > writer.next_offset:
            low = header.position
    if low >= 0:
        writer.add(data[low:high])
