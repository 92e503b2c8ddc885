"""The records inside a batch: reading them, and building a batch of them.

Why:    brokers look inside a batch only to compact, to find a time and to keep their own records;
        clients and tests build and read batches.
How:    record = length varint, attributes i8, timestamp delta varlong, offset delta varint,
        key length varint (-1 null) key, value length varint value, header count varint,
        headers (key length varint, key, value length varint, value).
        A compressed batch holds all records together, compressed as one.
Source: Kafka's message format v2."""

from collections.abc import Iterator, Sequence

import msgspec

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.model.ids import Epoch, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    MAGIC,
    BatchHeader,
    iterate_headers,
    read_header,
    seal,
)
from strandline.records.codec import DECOMPRESSED_BYTES_MAX, compress, decompress
from strandline.records.varint import encode_varint, read_varint, read_varlong

NO_TIMESTAMP = -1
_TIMESTAMP_LIMIT = 1 << 62
"""So that no sum or difference of two leaves 64 bits."""
ITEMS_MAX = 250_000
"""Records and headers of a client's batch that a broker decodes one by one, for 2.5 us each: a
batch of a kilobyte may have millions. Batches with more are served, and never compacted."""
ALL_ITEMS = 1 << 62
Headers = tuple[tuple[str, bytes | None], ...]
"""(name, value) of each. A name may be no UTF-8: Python's surrogateescape keeps each byte."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """One record. `offset_delta` counts from the batch's base offset.

    `timestamp` is in ms since 1970; -1 for none, which in building means the batch's base
    timestamp."""

    offset_delta: int = 0
    timestamp: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


def decode_records(
    batch: Buffer,
    position: int = 0,
    *,
    bytes_max: int = DECOMPRESSED_BYTES_MAX,
    items_max: int = ALL_ITEMS,
) -> list[Record]:
    """The records of the batch at `position`, decompressed to at most `bytes_max`. `items_max`: of
    records and headers, for a client's batch.

    Raises ApiError CORRUPT_MESSAGE for anything malformed or beyond the bounds. The CRC is not
    looked at."""
    return decode_counted(batch, position, bytes_max=bytes_max, items_max=items_max)[0]


def decode_counted(
    batch: Buffer, position: int = 0, *, bytes_max: int = DECOMPRESSED_BYTES_MAX, items_max: int
) -> tuple[list[Record], int]:
    """The same, and how many bytes they take uncompressed."""
    header = read_header(batch, position)
    if header is None:
        raise ApiError(Error.CORRUPT_MESSAGE, "the record batch is cut")
    if header.records_count > items_max:
        raise _too_many(items_max)
    start, end = position + HEADER_BYTES, position + header.size
    if header.codec:
        data = decompress(header.codec, memoryview(batch)[start:end], bytes_max=bytes_max)
    else:
        data = bytes(batch[start:end])
    return decode_uncompressed(data, header, items_max=items_max), len(data)


def decode_batches(data: Buffer) -> Iterator[tuple[Offset, Record]]:
    """(offset, record) of every record in the whole batches in `data`, markers left out."""
    for header in iterate_headers(data):
        if not header.is_control:
            for record in decode_records(data, header.position):
                yield Offset(header.base_offset + record.offset_delta), record


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    epoch: int = 0,
    codec: int = 0,
    attributes: int = 0,
    base_timestamp: int | None = None,
    max_timestamp: int | None = None,
    last_offset_delta: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
) -> bytearray:
    """A batch of `records`, whose offset deltas ascend; what is None follows from them.

    `attributes` are those besides the codec. Without records the batch is empty and not
    compressed."""
    if base_timestamp is None:
        base_timestamp = records[0].timestamp if records else NO_TIMESTAMP
    if max_timestamp is None:
        times = (
            base_timestamp if record.timestamp == NO_TIMESTAMP else record.timestamp
            for record in records
        )
        max_timestamp = max(times, default=NO_TIMESTAMP)
    if last_offset_delta is None:
        last_offset_delta = records[-1].offset_delta if records else 0
    body = [
        encode_record(
            record,
            0 if record.timestamp == NO_TIMESTAMP else record.timestamp - base_timestamp,
        )
        for record in records
    ]
    header = BatchHeader(
        position=0,
        base_offset=Offset(base_offset),
        batch_length=0,
        partition_leader_epoch=Epoch(epoch),
        magic=MAGIC,
        crc=0,
        attributes=attributes | codec,
        last_offset_delta=last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )
    return _assemble(header, body)


def build_encoded_batch(
    records: bytes,
    *,
    records_count: int,
    timestamps: tuple[int, int],
    codec: int,
    producer: tuple[int, int, int],
) -> bytearray:
    """A batch of records that are encoded already, with the offset deltas 0, 1, 2...

    `timestamps`: the base that they count from, and the highest of them, in ms. `producer`: its id
    and epoch, and the batch's base sequence."""
    base_timestamp, max_timestamp = timestamps
    producer_id, producer_epoch, base_sequence = producer
    header = BatchHeader(
        position=0,
        base_offset=Offset(0),
        batch_length=0,
        partition_leader_epoch=Epoch(0),
        magic=MAGIC,
        crc=0,
        attributes=codec,
        last_offset_delta=records_count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=records_count,
    )
    return _assemble(header, [records])


def rebuild_batch(
    header: BatchHeader,
    records: Sequence[Record],
    *,
    attributes: int | None = None,
    base_timestamp: int | None = None,
) -> bytearray:
    """The batch that `header` was read from, with these records instead of its own.

    Offsets, epoch and producer stay. `attributes` and `base_timestamp` replace the old ones."""
    base = header.base_timestamp if base_timestamp is None else base_timestamp
    changed = msgspec.structs.replace(
        header,
        position=0,
        attributes=header.attributes if attributes is None else attributes,
        base_timestamp=base,
        records_count=len(records),
    )
    if not header.has_append_time:
        changed.max_timestamp = max((r.timestamp for r in records), default=NO_TIMESTAMP)
    return _assemble(changed, [encode_record(r, r.timestamp - base) for r in records])


def _assemble(header: BatchHeader, body: Sequence[bytes]) -> bytearray:
    """The bytes of a batch; length, codec of an empty one, and CRC are set in the header too."""
    data = b"".join(body)
    if not body:
        header.attributes &= ~CODEC_MASK
    if header.codec:
        data = compress(header.codec, data)
    header.batch_length = HEADER_BYTES - LENGTH_END + len(data)
    batch = bytearray(HEADER_BYTES + len(data))
    HEADER.pack_into(batch, 0, *msgspec.structs.astuple(header)[1:])
    batch[HEADER_BYTES:] = data
    seal(batch, header)
    return batch


def encode_record(record: Record, timestamp_delta: int) -> bytes:
    """One record as it lies in an uncompressed batch."""
    parts = [
        b"\x00",
        encode_varint(timestamp_delta),
        encode_varint(record.offset_delta),
        _encode_bytes(record.key),
        _encode_bytes(record.value),
        encode_varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts.append(_encode_bytes(name.encode(errors="surrogateescape")))
        parts.append(_encode_bytes(value))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _encode_bytes(value: bytes | None) -> bytes:
    return b"\x01" if value is None else encode_varint(len(value)) + value


def decoding_effort(header: BatchHeader, records: Sequence[Record], uncompressed_bytes: int) -> int:
    """What it took to decode a batch, in bytes of an ordinary log that take as long. A slice of
    work on the event loop counts it: a small compressed batch may be as much work as a large
    one."""
    if not header.codec:
        return header.size
    items = len(records) + sum([len(record.headers) for record in records])
    return max(header.size, uncompressed_bytes >> 5, items * 100)


def decode_uncompressed(data: bytes, header: BatchHeader, *, items_max: int) -> list[Record]:
    """The records in `data`, which is uncompressed. Raises ApiError as `decode_records` does."""
    records: list[Record] = []
    position = 0
    end = len(data)
    if header.records_count < 0 or header.records_count > end:
        raise ApiError(Error.CORRUPT_MESSAGE, f"{header.records_count} records in {end} bytes")
    if header.records_count > items_max:
        raise _too_many(items_max)
    headers_max = items_max - header.records_count
    for _ in range(header.records_count):
        length, position = read_varint(data, position, end)
        record_end = position + length
        if length < 0 or record_end > end:
            raise ApiError(Error.CORRUPT_MESSAGE, "a record reaches beyond its batch")
        record = _decode_record(data, position, record_end, header=header, headers_max=headers_max)
        records.append(record)
        headers_max -= len(record.headers)
        position = record_end
    if position != end:
        raise ApiError(Error.CORRUPT_MESSAGE, f"{end - position} bytes after the last record")
    return records


def _too_many(items_max: int) -> ApiError:
    return ApiError(Error.CORRUPT_MESSAGE, f"more than {items_max} records and headers")


def _decode_record(
    data: bytes, position: int, end: int, *, header: BatchHeader, headers_max: int
) -> Record:
    timestamp_delta, position = read_varlong(data, position + 1, end)
    offset_delta, position = read_varint(data, position, end)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    count, position = read_varint(data, position, end)
    if count < 0 or count > end - position:
        raise ApiError(Error.CORRUPT_MESSAGE, f"a record with {count} headers")
    if count > headers_max:
        raise ApiError(Error.CORRUPT_MESSAGE, "more records and headers than are read one by one")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        content, position = _read_bytes(data, position, end)
        if name is None:
            raise ApiError(Error.CORRUPT_MESSAGE, "a record header without a name")
        headers.append((name.decode(errors="surrogateescape"), content))
    if position != end:
        raise ApiError(Error.CORRUPT_MESSAGE, "a record is shorter than it says")
    if header.attributes & APPEND_TIME_BIT:
        timestamp = header.max_timestamp
    else:
        timestamp = header.base_timestamp + timestamp_delta
    if not -_TIMESTAMP_LIMIT <= timestamp < _TIMESTAMP_LIMIT:
        raise ApiError(Error.CORRUPT_MESSAGE, f"a record of the time {timestamp}")
    if not 0 <= offset_delta <= header.last_offset_delta and not header.is_control:
        raise ApiError(Error.CORRUPT_MESSAGE, f"a record with offset delta {offset_delta}")
    return Record(offset_delta, timestamp, key, value, tuple(headers))


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position, end)
    if length < 0:
        return None, position
    if position + length > end:
        raise ApiError(Error.CORRUPT_MESSAGE, "a field reaches beyond its record")
    return data[position : position + length], position + length
