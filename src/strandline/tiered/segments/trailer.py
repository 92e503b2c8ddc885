"""The trailer of a segment's object: its indexes, and the checksums of its data.

Why:    one object is one PUT, and two ranges read it: the trailer, then the records. A reader
        checks each chunk of the data by itself, before it has the rest.
How:    the object is the data, then the trailer (integers big-endian, offsets in the table from
        the trailer's start):

        at  field           type
         0  magic           8 bytes  "SLTIERSG"
         8  version         u16      1
        10  reserved        u16      0
        12  chunkBytes      u32      1 MiB
        16  baseOffset      i64
        24  endOffset       i64
        32  dataBytes       u64      where the trailer begins
        40  maxTimestamp    i64      -1 for none
        48  maxTimeOffset   i64      the first record with it; -1 for none
        56  entryCount      u32      of the index
        60  chunkCount      u32      of the data
        64  restBytes       u32
        68  offsets         u32[entryCount]   from baseOffset  } one data batch each
            positions       u32[entryCount]   in the object    } about every 16 KiB
            timestamps      i64[entryCount]   the highest of all batches before it
            chunkCrcs       u32[chunkCount]   CRC-32C of each chunk
            rest            msgpack: epochs, producers, aborted transactions
            footer          u32 bytes of the trailer, u32 CRC-32C of all before, 8 bytes "SLTIEREN"
Source: decision 0057; Kafka's KIP-405 for what a segment needs to be read alone."""

import hashlib
import sys
from array import array
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from struct import Struct
from typing import Self

import msgspec
from fastcrc import crc32

from strandline.base.disk import Buffer
from strandline.model.ids import Epoch, Offset

VERSION = 1
CHUNK_BYTES = 1 << 20
INDEX_INTERVAL_BYTES = 16 << 10
DATA_BYTES_MAX = (1 << 32) - 1
"""Positions of the index are u32."""
OFFSET_COUNT_MAX = (1 << 32) - 1
"""So are its offsets, which count from the base."""
FOOTER = Struct(">II8s")

_MAGIC = b"SLTIERSG"
_END_MAGIC = b"SLTIEREN"
_HEAD = Struct(">8sHHIqqQqqIII")
_LITTLE = sys.byteorder == "little"

assert array("I").itemsize == 4


class TrailerError(Exception):
    """These bytes are no trailer that can be trusted: damaged, or of an unknown version."""


class ProducerBatch(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One batch of a producer in the log."""

    first_sequence: int
    last_sequence: int
    base_offset: Offset
    last_offset: int


class ProducerState(msgspec.Struct, frozen=True, array_like=True):
    """One idempotent producer at the segment's end. `window`: its last batches, oldest first."""

    producer_id: int
    epoch: int
    last_timestamp: int
    """The highest timestamp of its last batch."""
    window: tuple[ProducerBatch, ...]


class AbortedTransaction(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Records of `producer_id` in [first_offset, last_offset] do not count."""

    producer_id: int
    first_offset: Offset
    last_offset: Offset
    last_stable_offset: Offset


class _Rest(msgspec.Struct, frozen=True, array_like=True):
    epochs: tuple[tuple[Epoch, Offset], ...]
    producers: tuple[ProducerState, ...]
    misses_producers: bool
    aborted: tuple[AbortedTransaction, ...]


_rest_encoder = msgspec.msgpack.Encoder()
_rest_decoder = msgspec.msgpack.Decoder(_Rest)


@dataclass(frozen=True, slots=True)
class Trailer:
    """What an object says of its own data. Positions are bytes of the object, from its start."""

    base_offset: Offset
    end_offset: Offset
    data_bytes: int
    max_timestamp: int
    max_timestamp_offset: Offset
    offsets: "array[int]"
    """Relative to `base_offset`, ascending; one item a data batch of the index."""
    positions: "array[int]"
    timestamps: "array[int]"
    chunk_crcs: "array[int]"
    epochs: tuple[tuple[Epoch, Offset], ...]
    """(epoch, its first offset in here), ascending; never empty if there are records."""
    producers: tuple[ProducerState, ...] = ()
    misses_producers: bool = False
    """Whether a producer that is missing in `producers` may have written before the end."""
    aborted: tuple[AbortedTransaction, ...] = ()
    chunk_bytes: int = CHUNK_BYTES

    # ---- as bytes ----

    def encode(self) -> bytes:
        """The trailer's bytes, as they stand behind the data."""
        assert len(self.offsets) == len(self.positions) == len(self.timestamps), "a torn index"
        rest = _rest_encoder.encode(
            _Rest(self.epochs, self.producers, self.misses_producers, self.aborted)
        )
        head = _HEAD.pack(
            _MAGIC,
            VERSION,
            0,
            self.chunk_bytes,
            self.base_offset,
            self.end_offset,
            self.data_bytes,
            self.max_timestamp,
            self.max_timestamp_offset,
            len(self.offsets),
            len(self.chunk_crcs),
            len(rest),
        )
        arrays = (self.offsets, self.positions, self.timestamps, self.chunk_crcs)
        body = b"".join((head, *(_big_endian(each) for each in arrays), rest))
        size = len(body) + FOOTER.size
        return body + FOOTER.pack(size, crc32.iscsi(body), _END_MAGIC)

    @classmethod
    def parse(cls, data: Buffer, *, crc: int | None = None) -> Self:
        """The trailer that `data` is, from its first byte to its last. `crc`: the CRC-32C of all
        of it, as an entry says. Raises TrailerError."""
        if crc is not None and crc32.iscsi(data) != crc:
            raise TrailerError("the trailer has another checksum than the log says")
        if len(data) < _HEAD.size + FOOTER.size:
            raise TrailerError(f"a trailer of {len(data)} bytes is cut")
        view = memoryview(data)
        size, own_crc, end_magic = FOOTER.unpack_from(view, len(view) - FOOTER.size)
        if end_magic != _END_MAGIC or size != len(view):
            raise TrailerError(f"{len(view)} bytes do not end as a trailer of that length does")
        if crc32.iscsi(view[: -FOOTER.size]) != own_crc:
            raise TrailerError("the trailer is damaged: its checksum does not match")
        (magic, version, _, chunk_bytes, base_offset, end_offset, data_bytes, *counts) = (
            _HEAD.unpack_from(view)
        )
        if magic != _MAGIC or version != VERSION:
            raise TrailerError(f"a trailer of version {version}; this release reads {VERSION}")
        max_timestamp, max_timestamp_offset, entry_count, chunk_count, rest_bytes = counts
        ends = [_HEAD.size]
        for length in (entry_count * 4, entry_count * 4, entry_count * 8, chunk_count * 4):
            ends.append(ends[-1] + length)
        rest_end = ends[-1] + rest_bytes
        if rest_end + FOOTER.size != size or chunk_count != -(-data_bytes // (chunk_bytes or 1)):
            raise TrailerError("the trailer's counts contradict its length")
        try:
            rest = _rest_decoder.decode(view[ends[-1] : rest_end])
        except msgspec.MsgspecError as error:
            raise TrailerError(f"the trailer's epochs and producers: {error}") from error
        return cls(
            base_offset=Offset(base_offset),
            end_offset=Offset(end_offset),
            data_bytes=data_bytes,
            max_timestamp=max_timestamp,
            max_timestamp_offset=Offset(max_timestamp_offset),
            offsets=_from_big_endian("I", view[ends[0] : ends[1]]),
            positions=_from_big_endian("I", view[ends[1] : ends[2]]),
            timestamps=_from_big_endian("q", view[ends[2] : ends[3]]),
            chunk_crcs=_from_big_endian("I", view[ends[3] : ends[4]]),
            epochs=rest.epochs,
            producers=rest.producers,
            misses_producers=rest.misses_producers,
            aborted=rest.aborted,
            chunk_bytes=chunk_bytes,
        )

    # ---- where to read ----

    def position_of(self, offset: Offset) -> int:
        """A batch's position at or before the batch that has `offset`, at most about 16 KiB and
        one batch before it. Walk over the headers from there."""
        entry = bisect_right(self.offsets, offset - self.base_offset) - 1
        return self.positions[entry] if entry >= 0 else 0

    def end_position_of(self, offset: Offset) -> int:
        """The lowest known batch boundary behind all records below `offset`."""
        entry = bisect_left(self.offsets, offset - self.base_offset)
        return self.positions[entry] if entry < len(self.positions) else self.data_bytes

    def position_of_time(self, timestamp_ms: int) -> int:
        """A batch's position before which no record reaches `timestamp_ms`; `data_bytes` if none
        in here does."""
        if timestamp_ms > self.max_timestamp:
            return self.data_bytes
        entry = bisect_left(self.timestamps, timestamp_ms) - 1
        return self.positions[entry] if entry >= 0 else 0

    def floor_boundary(self, position: int, limit: int) -> int:
        """The highest known batch boundary in [position, limit], where `position` is one."""
        if limit >= self.data_bytes:
            return self.data_bytes
        entry = bisect_right(self.positions, limit) - 1
        return max(position, self.positions[entry]) if entry >= 0 else position

    def boundary_after(self, position: int) -> int:
        """The lowest known batch boundary above `position`; `data_bytes` at the end."""
        entry = bisect_right(self.positions, position)
        return self.positions[entry] if entry < len(self.positions) else self.data_bytes

    # ---- chunks ----

    @property
    def chunk_count(self) -> int:
        """How many chunks the data has; the last one may be shorter than the others."""
        return len(self.chunk_crcs)

    def chunk_range(self, chunk: int) -> tuple[int, int]:
        """[start, end) of a chunk in the object."""
        start = chunk * self.chunk_bytes
        return start, min(start + self.chunk_bytes, self.data_bytes)

    def chunk_matches(self, chunk: int, data: Buffer) -> bool:
        """Whether `data` is that chunk, undamaged and whole."""
        start, end = self.chunk_range(chunk)
        return len(data) == end - start and crc32.iscsi(data) == self.chunk_crcs[chunk]

    def digest(self) -> bytes:
        """SHA-256 of the chunks' checksums: `SegmentEntry.digest`."""
        return hashlib.sha256(_big_endian(self.chunk_crcs)).digest()


def trailer_bytes(footer: Buffer) -> int:
    """How long the trailer is, by an object's last `FOOTER.size` bytes: for objects without an
    entry. Raises TrailerError if these bytes do not end a trailer."""
    if len(footer) < FOOTER.size:
        raise TrailerError("the object is too short for a trailer")
    size, _, magic = FOOTER.unpack_from(footer, len(footer) - FOOTER.size)
    if magic != _END_MAGIC or size < _HEAD.size + FOOTER.size:
        raise TrailerError("the object does not end with a trailer")
    return int(size)


def _big_endian(values: "array[int]") -> bytes:
    if not _LITTLE:
        return values.tobytes()
    copy = array(values.typecode, values)
    copy.byteswap()
    return copy.tobytes()


def _from_big_endian(typecode: str, data: memoryview) -> "array[int]":
    values: array[int] = array(typecode)
    values.frombytes(data)
    if _LITTLE:
        values.byteswap()
    return values
