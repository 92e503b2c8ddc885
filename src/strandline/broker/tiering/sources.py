"""Where the records of an upload come from: this broker's log, or another bucket.

Why:    a bucket that was away for long lacks records that no log has any more; its neighbours have
        them.
How:    the log's files are read on a thread, some MiB at a time; each batch is checked there. Of an
        object, first the trailer, then chunks, each checked by the trailer.
Owns:   nothing.
Source: decision 0059."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from typing import Protocol

from strandline.base.errors import ApiError
from strandline.records.batch import iterate_headers
from strandline.storage.log.reads import FileRange
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import Trailer
from strandline.tiered.segments.writer import SegmentWriter, UnfitBatchError

PIECE_BYTES = 256 << 10
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
    """The records lie in these ranges of this broker's log."""

    def __init__(self, parts: Sequence[FileRange], threads: Executor | None) -> None:
        self._parts = parts
        self._threads = threads
        self.size_bytes = sum(part.length for part in parts)

    async def read_into(self, writer: SegmentWriter, moved: Moved) -> None:
        """See `Source`."""
        loop = asyncio.get_running_loop()
        for group in _groups(self._parts):
            await loop.run_in_executor(self._threads, _read_group, group, writer)
            moved(sum(part.length for part in group))


class BucketSource:
    """The records are in an object of another bucket."""

    def __init__(self, store: ObjectStore, entry: SegmentEntry) -> None:
        self._store = store
        self._entry = entry
        self.size_bytes = entry.size_bytes

    async def read_into(self, writer: SegmentWriter, moved: Moved) -> None:
        """See `Source`."""
        entry = self._entry
        encoded = await self._store.get_range(entry.name, entry.data_bytes, entry.size_bytes)
        trailer = Trailer.parse(encoded, crc=entry.trailer_crc)
        start = trailer.position_of(writer.next_offset)
        rest = b""
        for chunk in range(start // trailer.chunk_bytes, trailer.chunk_count):
            first, end = trailer.chunk_range(chunk)
            data = await self._store.get_range(entry.name, first, end)
            if not trailer.chunk_matches(chunk, data):
                raise UnfitBatchError(f"chunk {chunk} of {entry.name} is damaged")
            moved(len(data))
            rest = _add_wanted(rest + data[max(0, start - first) :], writer)
            if writer.next_offset >= writer.end_offset:
                return


def _groups(parts: Sequence[FileRange]) -> Iterator[list[FileRange]]:
    group: list[FileRange] = []
    size = 0
    for part in parts:
        if group and size + part.length > GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(part)
        size += part.length
    if group:
        yield group


def _read_group(parts: Sequence[FileRange], writer: SegmentWriter) -> None:
    """On a thread. Raises OSError, UnfitBatchError."""
    for part in parts:
        data = part.read()
        if len(data) < part.length:
            raise UnfitBatchError("the log was cut while it was read")
        writer.add(data)


def _add_wanted(data: bytes, writer: SegmentWriter) -> bytes:
    """Give the writer those whole batches that it lacks; the rest, a batch that is cut."""
    low, high, end = -1, 0, 0
    try:
        for header in iterate_headers(data):
            end = header.position + header.size
            if header.base_offset >= writer.end_offset:
                break
            if header.base_offset >= writer.next_offset or low >= 0:
                low = header.position if low < 0 else low
                high = end
    except ApiError as error:
        raise UnfitBatchError(str(error)) from error
    if low >= 0:
        writer.add(data[low:high])
    return data[end:]
