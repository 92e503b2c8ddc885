"""File names of a log, and the small checksummed files beside each segment.

Why:    the names alone say where a log begins, even after retention has removed the segments
        before; the files beside a closed segment save a restart from reading it again.
How:    {base offset, 20 digits}-{markers before}-{previous epoch}.SUFFIX
            .log        record batches, wire bytes
            .index      per entry: u32 offset relative to the base, u32 position
            .timeindex  per entry: i64 highest timestamp before it, u32 relative offset
            .summary    the result of a scan of the closed segment, or of the head of the open one,
                        and the CRCs of the indexes
            .producers  the producers as they were at the segment's base
            .flushed    the mark: an index up to which the log is durable
            .cleaned    a compacted segment while it is written
            .start      empty: the segments before this one are being removed
            .reset      the first segment of a log that is being reset
        A checksummed file is: u32 CRC-32C of the rest, then MessagePack. It is written after the
        segment is durable, and ignored if its CRC or the segment's size does not match; so it needs
        no flush of its own. The mark is flushed, because it must survive a power failure. It is
        created with the segment, has one size and lies in one sector, so a crash leaves the old
        mark or the new one.
Source: design section 4."""

import re
from struct import Struct
from typing import NamedTuple, TypeVar

import msgspec
from fastcrc import crc32

from strandline.base.disk import Disk, is_unreadable
from strandline.base.errors import StorageError
from strandline.model.ids import Epoch, Index, Offset
from strandline.storage.producers.producers import ProducerSnapshot

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
SUMMARY = ".summary"
PRODUCERS = ".producers"
FLUSHED = ".flushed"
CLEANED = ".cleaned"
START = ".start"
RESET = ".reset"
CLAIMS = (SUMMARY, FLUSHED)
"""Files that claim that data is durable: they are removed, durably, before that data is."""

_NAME = re.compile(r"(\d{20})-(\d+)-(\d+)(\.[a-z]+)\Z")
_CRC = Struct(">I")
T = TypeVar("T")


class SegmentName(NamedTuple):
    """The parts of a segment's name."""

    base_offset: Offset
    markers_before: int
    """Markers in the whole log before this segment: base index = base offset + these."""
    previous_epoch: Epoch
    """Epoch of the entry just before the segment; 0 for none."""

    @property
    def base_index(self) -> Index:
        """The Raft index of the segment's first entry."""
        return Index(self.base_offset + self.markers_before)

    @property
    def stem(self) -> str:
        """The name without its suffix."""
        return f"{self.base_offset:020d}-{self.markers_before}-{self.previous_epoch}"


FIRST_SEGMENT = SegmentName(Offset(0), 0, Epoch(0))


class SegmentSummary(msgspec.Struct, frozen=True, array_like=True):
    """The summary of a closed segment, or of the head of an open one. A scan can rebuild it."""

    size_bytes: int
    end_offset: Offset
    end_index: Index
    last_epoch: Epoch
    max_timestamp: int
    max_timestamp_offset: Offset
    markers: list[tuple[Index, int, int]]
    """(index, position, size) of each marker."""
    epochs: list[tuple[Epoch, Index]]
    """(epoch, first index in this segment)."""
    configurations: list[tuple[Index, bytes]]
    index_crc: int
    time_index_crc: int
    deletions: list[tuple[Index, Offset]] = []
    """(index, records below this offset are deleted) of the deletion markers."""
    producers: ProducerSnapshot | None = None
    """The producers at the end of a head; None for a closed segment, which has its own file."""
    tier_markers: list[tuple[Index, bytes]] = []
    """(index, payload) of the TIER markers; those before a committed checkpoint may be missing."""
    tier_forgotten: Index = Index(0)
    """See `History.tier_forgotten`."""


def parse_name(name: str) -> tuple[SegmentName, str] | None:
    """(parts of the name, suffix) of a file of a log; None for a foreign file."""
    match = _NAME.match(name)
    if match is None:
        return None
    offset, markers, epoch, suffix = match.groups()
    return SegmentName(Offset(int(offset)), int(markers), Epoch(int(epoch))), suffix


def checksum(data: bytes | bytearray | memoryview) -> int:
    """CRC-32C."""
    return int(crc32.iscsi(data))


def make_durable_directory(disk: Disk, path: str) -> None:
    """Create a directory with its parents, and flush them."""
    missing = []
    while path and not disk.exists(path):
        missing.append(path)
        path = path.rsplit("/", 1)[0]
    if missing:
        disk.make_directories(missing[0])
        for created in reversed(missing):
            disk.flush_directory(created.rsplit("/", 1)[0] or "/")


def write_checked(disk: Disk, path: str, value: object) -> None:
    """Write a checksummed file; not flushed. Raises OSError."""
    payload = msgspec.msgpack.encode(value)
    write_whole(disk, path, _CRC.pack(checksum(payload)) + payload)


def write_whole(disk: Disk, path: str, data: bytes) -> None:
    """Write a whole file; not flushed. Raises OSError."""
    file = disk.open(path, create=True)
    try:
        file.pwrite((data,), 0)
        file.truncate(len(data))
    finally:
        file.close()


def read_checked(disk: Disk, path: str, kind: type[T]) -> T | None:
    """The contents of a checksummed file; None if it is absent or damaged."""
    data = read_beside(disk, path)
    return None if data is None else decode_checked(data, kind)


def decode_checked(data: bytes, kind: type[T]) -> T | None:
    """The contents in the bytes of a checksummed file; None if they are damaged."""
    if len(data) < _CRC.size:
        return None
    payload = memoryview(data)[_CRC.size :]
    if checksum(payload) != _CRC.unpack_from(data)[0]:
        return None
    try:
        return msgspec.msgpack.decode(payload, type=kind)
    except msgspec.MsgspecError:
        return None


def read_whole(disk: Disk, path: str) -> bytes | None:
    """A whole small file; None when it is absent."""
    try:
        file = disk.open(path)
    except FileNotFoundError:
        return None
    try:
        return file.pread(file.size(), 0)
    finally:
        file.close()


def read_beside(disk: Disk, path: str) -> bytes | None:
    """The bytes of a file beside a segment; None if it is absent or unreadable."""
    try:
        return read_whole(disk, path)
    except OSError as error:
        if not is_unreadable(error):
            raise
        return None


def read_alone(disk: Disk, path: str, *, expected: str) -> bytes | None:
    """A file that says what nothing else does, `expected`. Raises StorageError where the disk does
    not give it out."""
    try:
        return read_whole(disk, path)
    except OSError as error:
        if not is_unreadable(error):
            raise
        raise StorageError(path, 0, expected=expected, found=str(error)) from error
