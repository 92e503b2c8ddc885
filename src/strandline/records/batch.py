"""The header of a record batch v2: the only part of a batch that the data path reads.

Why:    a batch stays opaque from the producer's socket to the consumer's; a log needs no more than
        these 61 bytes.
How:    (all integers big-endian; the CRC-32C covers everything from `attributes` to the end)

        at  field                   type
         0  baseOffset              i64   rewritten by the leader, not under the CRC
         8  batchLength             i32   bytes after this field
        12  partitionLeaderEpoch    i32   rewritten by the leader, not under the CRC
        16  magic                   i8    2
        17  crc                     u32
        21  attributes              i16   bits: 0-2 codec, 3 append time, 4 transactional,
                                          5 control, 6 delete horizon
        23  lastOffsetDelta         i32   -1 in a marker, which takes no offset
        27  baseTimestamp           i64
        35  maxTimestamp            i64
        43  producerId              i64   -1 when not idempotent
        51  producerEpoch           i16
        53  baseSequence            i32
        57  recordsCount            i32
        61  records

Source: Kafka's message format v2; design section 4 for markers."""

from collections.abc import Iterator
from struct import Struct

import msgspec
from fastcrc import crc32

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Epoch, Offset
from strandline.protocol.errors import Error

HEADER_BYTES = 61
LENGTH_END = 12
"""Bytes before `batchLength` begins to count."""
CRC_START = 21
"""Where the bytes under the CRC begin."""
BATCH_LENGTH_MIN = HEADER_BYTES - LENGTH_END
MAGIC = 2

CODEC_MASK = 0x07
APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

HEADER = Struct(">qiibIhiqqqhii")
OFFSET_FIELD = Struct(">q")
CRC_FIELD = Struct(">I")
_ATTRIBUTES_FIELD = Struct(">h")
_TIMESTAMP_FIELD = Struct(">q")
_unpack_header = HEADER.unpack_from
_stamp_fields = Struct(">qii").pack_into


class BatchHeader(msgspec.Struct, gc=False):
    """One header. `position` is where the batch begins in the buffer that it was read from.

    Mutable so that `stamp` can change `base_offset` and `partition_leader_epoch` with the bytes."""

    position: int
    base_offset: Offset
    batch_length: int
    partition_leader_epoch: Epoch
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size(self) -> int:
        """Bytes of the whole batch."""
        return LENGTH_END + self.batch_length

    @property
    def last_offset(self) -> int:
        """The offset of the last record; one below `base_offset` in a marker."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> Offset:
        """The offset after this batch; a marker's own base offset."""
        return Offset(self.base_offset + self.last_offset_delta + 1)

    @property
    def index_count(self) -> int:
        """How many Raft indexes the batch takes: a marker one, a data batch one per offset."""
        return self.last_offset_delta + 1 or 1

    @property
    def codec(self) -> int:
        """0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd; 5 to 7 mean nothing."""
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        """Whether the batch is for the log itself and not for applications."""
        return bool(self.attributes & CONTROL_BIT)

    @property
    def is_marker(self) -> bool:
        """Whether the batch is Raft's own: it takes an index and no offset."""
        return self.last_offset_delta == -1 and bool(self.attributes & CONTROL_BIT)

    @property
    def covers_epoch(self) -> bool:
        """Of a marker: whether its checksum covers its epoch, which `base_sequence` repeats."""
        return self.base_sequence >= 0

    @property
    def contradicts_epoch(self) -> bool:
        """Whether it is a marker whose epoch is another one than it repeats under its checksum."""
        return (
            self.is_marker
            and self.covers_epoch
            and self.base_sequence != self.partition_leader_epoch
        )

    @property
    def is_transactional(self) -> bool:
        """Whether the batch belongs to a transaction."""
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def has_append_time(self) -> bool:
        """Whether `max_timestamp` is the broker's time of append and holds for every record."""
        return bool(self.attributes & APPEND_TIME_BIT)

    def stamp(self, buffer: bytearray | memoryview, *, base_offset: Offset, epoch: Epoch) -> None:
        """Write the leader's offset and epoch into the batch and into this header: the CRC covers
        neither."""
        _stamp_fields(buffer, self.position, base_offset, self.batch_length, epoch)
        self.base_offset = base_offset
        self.partition_leader_epoch = epoch


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader | None:
    """The header at `position`; None when the buffer ends before the batch does.

    Raises ApiError: INVALID_RECORD for a magic other than 2, CORRUPT_MESSAGE for an impossible
    length."""
    available = len(buffer) - position
    if available < HEADER_BYTES:
        if available > 16 and buffer[position + 16] != MAGIC:
            raise ApiError(
                Error.INVALID_RECORD, f"record batch of magic {buffer[position + 16]}, not 2"
            )
        return None
    header = BatchHeader(position, *_unpack_header(buffer, position))
    if header.magic != MAGIC:
        raise ApiError(Error.INVALID_RECORD, f"record batch of magic {header.magic}, not 2")
    length = header.batch_length
    if length < BATCH_LENGTH_MIN or header.last_offset_delta < -1:
        raise ApiError(Error.CORRUPT_MESSAGE, f"record batch of impossible length {length}")
    return header if length + LENGTH_END <= available else None


def iterate_headers(
    buffer: Buffer, start: int = 0, end: int | None = None
) -> Iterator[BatchHeader]:
    """The headers of all whole batches in `buffer[start:end]`, in order, no cut one.

    Raises what `read_header` raises."""
    stop = len(buffer) if end is None else end
    position = start
    while stop - position >= HEADER_BYTES:
        header = BatchHeader(position, *_unpack_header(buffer, position))
        if header.magic != MAGIC:
            raise ApiError(Error.INVALID_RECORD, f"record batch of magic {header.magic}, not 2")
        length = header.batch_length
        if length < BATCH_LENGTH_MIN or header.last_offset_delta < -1:
            raise ApiError(Error.CORRUPT_MESSAGE, f"record batch of impossible length {length}")
        position += length + LENGTH_END
        if position > stop:
            return
        yield header


def crc_of(buffer: Buffer, position: int, size: int) -> int:
    """The CRC-32C that the batch of `size` bytes at `position` must carry."""
    view = buffer if type(buffer) is memoryview else memoryview(buffer)
    return int(crc32.iscsi(view[position + CRC_START : position + size]))


def crc_matches(buffer: Buffer, header: BatchHeader) -> bool:
    """Whether the batch that `header` was read from is undamaged."""
    return crc_of(buffer, header.position, LENGTH_END + header.batch_length) == header.crc


def set_append_time(buffer: bytearray | memoryview, header: BatchHeader, timestamp_ms: int) -> None:
    """Make `timestamp_ms` the time of every record in the batch, and recompute the CRC."""
    position = header.position
    header.attributes |= APPEND_TIME_BIT
    header.max_timestamp = timestamp_ms
    _ATTRIBUTES_FIELD.pack_into(buffer, position + 21, header.attributes)
    _TIMESTAMP_FIELD.pack_into(buffer, position + 35, timestamp_ms)
    seal(buffer, header)


def set_max_timestamp(
    buffer: bytearray | memoryview, header: BatchHeader, timestamp_ms: int
) -> None:
    """Write the highest timestamp of the batch's records, and recompute the CRC."""
    header.max_timestamp = timestamp_ms
    _TIMESTAMP_FIELD.pack_into(buffer, header.position + 35, timestamp_ms)
    seal(buffer, header)


def seal(buffer: bytearray | memoryview, header: BatchHeader) -> None:
    """Recompute the CRC of a batch after a change of its bytes."""
    header.crc = crc_of(buffer, header.position, header.size)
    CRC_FIELD.pack_into(buffer, header.position + 17, header.crc)
