"""The records inside a batch: reading them, and building a batch of them.

Why:    brokers look inside only to compact, to find a time and to keep their own records;
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
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.records.batch import (
    APPEND_TIME_BIT,
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
Headers = tuple[tuple[str, bytes | None], ...]


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
    batch: Buffer, position: int = 0, *, bytes_max: int = DECOMPRESSED_BYTES_MAX
) -> list[Record]:
    """The records of the batch at `position`, decompressed to at most `bytes_max`.

    Raises ApiError CORRUPT_MESSAGE for anything malformed. The CRC is not looked at."""
    header = read_header(batch, position)
    if header is None:
        raise ApiError(Error.CORRUPT_MESSAGE, "the record batch is cut")
    start, end = position + HEADER_BYTES, position + header.size
    if not header.codec:
        return _decode(bytes(batch[start:end]), header)
    data = decompress(header.codec, memoryview(batch)[start:end], bytes_max=bytes_max)
    return _decode(data, header)


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
    body = b"".join([encode_record(record, base_timestamp) for record in records])
    if not records:
        codec = 0
    if codec:
        body = compress(codec, body)
    batch = bytearray(HEADER_BYTES + len(body))
    HEADER.pack_into(
        batch,
        0,
        base_offset,
        HEADER_BYTES - LENGTH_END + len(body),
        epoch,
        MAGIC,
        0,
        attributes | codec,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        len(records),
    )
    batch[HEADER_BYTES:] = body
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    return batch


def encode_record(record: Record, base_timestamp: int) -> bytes:
    """One record as it lies in an uncompressed batch."""
    has_time = record.timestamp != NO_TIMESTAMP
    parts = [
        b"\x00",
        encode_varint(record.timestamp - base_timestamp if has_time else 0),
        encode_varint(record.offset_delta),
        _encode_bytes(record.key),
        _encode_bytes(record.value),
        encode_varint(len(record.headers)),
    ]
    for name, value in record.headers:
        parts.append(_encode_bytes(name.encode()))
        parts.append(_encode_bytes(value))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def _encode_bytes(value: bytes | None) -> bytes:
    return b"\x01" if value is None else encode_varint(len(value)) + value


def _decode(data: bytes, header: BatchHeader) -> list[Record]:
    records: list[Record] = []
    position = 0
    end = len(data)
    if header.records_count < 0 or header.records_count > end:
        raise ApiError(Error.CORRUPT_MESSAGE, f"{header.records_count} records in {end} bytes")
    for _ in range(header.records_count):
        length, position = read_varint(data, position, end)
        record_end = position + length
        if length < 0 or record_end > end:
            raise ApiError(Error.CORRUPT_MESSAGE, "a record reaches beyond its batch")
        records.append(_decode_record(data, position, record_end, header=header))
        position = record_end
    if position != end:
        raise ApiError(Error.CORRUPT_MESSAGE, f"{end - position} bytes after the last record")
    return records


def _decode_record(data: bytes, position: int, end: int, *, header: BatchHeader) -> Record:
    timestamp_delta, position = read_varlong(data, position + 1, end)
    offset_delta, position = read_varint(data, position, end)
    key, position = _read_bytes(data, position, end)
    value, position = _read_bytes(data, position, end)
    count, position = read_varint(data, position, end)
    if count < 0 or count > end - position:
        raise ApiError(Error.CORRUPT_MESSAGE, f"a record with {count} headers")
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, position = _read_bytes(data, position, end)
        content, position = _read_bytes(data, position, end)
        if name is None:
            raise ApiError(Error.CORRUPT_MESSAGE, "a record header without a name")
        headers.append((name.decode(errors="replace"), content))
    if position != end:
        raise ApiError(Error.CORRUPT_MESSAGE, "a record is shorter than it says")
    if header.attributes & APPEND_TIME_BIT:
        timestamp = header.max_timestamp
    else:
        timestamp = header.base_timestamp + timestamp_delta
    return Record(offset_delta, timestamp, key, value, tuple(headers))


def _read_bytes(data: bytes, position: int, end: int) -> tuple[bytes | None, int]:
    length, position = read_varint(data, position, end)
    if length < 0:
        return None, position
    if position + length > end:
        raise ApiError(Error.CORRUPT_MESSAGE, "a field reaches beyond its record")
    return data[position : position + length], position + length
