"""Reads the batches of a file in order and verifies each one.

Why:    after a crash the end of a file may hold anything: zeros, half a batch, a whole batch whose
        predecessor is missing.
How:    a batch counts if its header is valid, its offset continues the batch before, its epoch is
        not lower, it lies wholly in the file, and its CRC is right. The CRC does not cover the
        epoch of a batch. But each epoch begins with a marker, which repeats its epoch under its
        CRC, and the batches that follow must have that epoch.
Source: design section 4, "Recovery cuts a torn tail"."""

from collections.abc import Iterator

from strandline.base.disk import File, is_unreadable
from strandline.model.ids import Epoch, Offset
from strandline.records.batch import (
    BATCH_LENGTH_MIN,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    crc_of,
)

_CHUNK_BYTES = 1 << 20
_unpack_header = HEADER.unpack_from


def verified_batches(
    file: File,
    position: int,
    *,
    end: int,
    until: int,
    offset: Offset,
    epoch: Epoch | None,
    is_epoch_covered: bool = False,
) -> Iterator[tuple[BatchHeader, bytes, int]]:
    """(header, chunk, the batch's start in that chunk) of each batch that counts, in order.

    Starts at `position`, where a batch at `offset` must begin, of `epoch` or a later one. Ends at
    the first batch that begins at or above `until`, or that does not count; no batch reaches beyond
    `end`. The header's `position` is the file's. `epoch`: None for a first batch of any epoch;
    `is_epoch_covered`: the CRC of a marker covers `epoch`, so records have no other epoch."""
    chunk = b""
    chunk_start = 0
    read = _Reader(file).read
    while position < until and end - position >= HEADER_BYTES:
        at = position - chunk_start
        ahead = min(max(until - position, HEADER_BYTES), _CHUNK_BYTES)
        if at + HEADER_BYTES > len(chunk):
            chunk, chunk_start, at = read(position, HEADER_BYTES, ahead), position, 0
            if len(chunk) < HEADER_BYTES:
                return
        header = BatchHeader(position, *_unpack_header(chunk, at))
        length = header.batch_length + LENGTH_END
        if (
            header.magic != MAGIC
            or header.batch_length < BATCH_LENGTH_MIN
            or header.base_offset != offset
            or position + length > end
            or not (header.last_offset_delta >= 0 or header.is_marker)
        ):
            return
        if at + length > len(chunk):
            chunk, chunk_start, at = read(position, length, ahead), position, 0
        if header.last_offset_delta < 0 or header.partition_leader_epoch != epoch:
            if epoch is not None and not _is_of_epoch(
                header, epoch, is_epoch_covered=is_epoch_covered
            ):
                return
            is_epoch_covered = header.is_marker and header.covers_epoch
        if crc_of(chunk, at, length) != header.crc:
            return
        yield header, chunk, at
        offset = header.next_offset
        epoch = header.partition_leader_epoch
        position += length


class _Reader:
    """Reads ahead until the disk fails to read a chunk. From then on it reads only what is needed,
    because each unreadable sector may take the disk seconds."""

    __slots__ = ("_file", "_has_failed")

    def __init__(self, file: File) -> None:
        self._file = file
        self._has_failed = False

    def read(self, position: int, needed: int, ahead: int) -> bytes:
        """`ahead` bytes, or the `needed` ones after a failed read."""
        if ahead > needed and not self._has_failed:
            try:
                return self._file.pread(ahead, position)
            except OSError as error:
                if not is_unreadable(error):
                    raise
                self._has_failed = True
        return self._file.pread(needed, position)


def is_zero(file: File, start: int, end: int) -> bool:
    """Whether all bytes in [start, end) are zero. Raises OSError."""
    chunks = range(start, end, _CHUNK_BYTES)
    return not any(any(file.pread(min(_CHUNK_BYTES, end - at), at)) for at in chunks)


def _is_of_epoch(header: BatchHeader, epoch: Epoch, *, is_epoch_covered: bool) -> bool:
    """Whether a batch may follow one of `epoch`, which a marker's CRC covers or not."""
    if header.contradicts_epoch:
        return False
    found = header.partition_leader_epoch
    return found == epoch or (found > epoch and (header.is_marker or not is_epoch_covered))


def why_refused(
    file: File, position: int, *, end: int, offset: Offset, epoch: Epoch, is_epoch_covered: bool
) -> str:
    """Why `verified_batches` ended before the batch at `position`, for a report."""
    head = file.pread(min(HEADER_BYTES, end - position), position)
    if len(head) < HEADER_BYTES:
        return f"{len(head)} bytes, less than a header"
    header = BatchHeader(position, *_unpack_header(head, 0))
    length = header.batch_length + LENGTH_END
    if header.magic != MAGIC or header.batch_length < BATCH_LENGTH_MIN:
        return f"no header of a batch, {head[:16].hex()}"
    if header.base_offset != offset:
        return f"a batch at offset {header.base_offset}, not {offset}"
    if not _is_of_epoch(header, epoch, is_epoch_covered=is_epoch_covered):
        return f"a batch of epoch {header.partition_leader_epoch} after one of {epoch}"
    if position + length > end:
        return f"a batch of {length} bytes, {end - position} of which are there"
    if not (header.last_offset_delta >= 0 or header.is_marker):
        return f"a batch whose last offset delta is {header.last_offset_delta}"
    found = crc_of(file.pread(length, position), 0, length)
    return f"a batch with the checksum {found:08x}, not {header.crc:08x}"
