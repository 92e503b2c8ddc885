"""The records of a lost partition, read out of a bucket, batch by batch.

Why:    what comes back has to be what was acknowledged, byte for byte, or nothing.
How:    an object's data is read in ranges; each batch is checked by its CRC, its offset follows the
        one before, and the data's SHA-256 is compared at the object's end.
Owns:   nothing.
Source: decisions 0057 and 0063."""

import hashlib
from asyncio import Runner
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from strandline.base.errors import ApiError, OperatorError
from strandline.model.ids import Offset
from strandline.records.batch import HEADER_BYTES, BatchHeader, crc_matches, iterate_headers
from strandline.records.codec import decompress
from strandline.records.record import decode_records, encode_record
from strandline.tiered.framing import crc_of
from strandline.tiered.objects.store import ObjectStore
from strandline.tiered.segments.entry import SegmentEntry
from strandline.tiered.segments.trailer import CHUNK_BYTES

RANGE_BYTES = 8 * CHUNK_BYTES


class SourceBatch(NamedTuple):
    """A batch: its records as they are encoded, uncompressed, with the offset deltas 0, 1, 2...
    `timestamps`: the base that they count from, and the highest."""

    header: BatchHeader
    records: bytes
    timestamps: tuple[int, int]


def read_batches(
    runner: Runner, store: ObjectStore, entries: Sequence[SegmentEntry], first: Offset
) -> Iterator[SourceBatch]:
    """The batches of these objects, from the one at `first` on. Raises OperatorError where what the
    bucket has is not what was uploaded; StoreError."""
    expected = first
    for entry in entries:
        if entry.end_offset <= first:
            continue
        for batch in _batches_of(runner, store, entry):
            header = batch.header
            if header.next_offset <= expected:
                continue
            if header.base_offset != expected:
                raise OperatorError(
                    f"{entry.name}: a batch at offset {header.base_offset}, not at {expected}"
                )
            yield batch
            expected = header.next_offset
        if expected != entry.end_offset:
            raise OperatorError(f"{entry.name} ends at {expected}, not at {entry.end_offset}")


def _batches_of(runner: Runner, store: ObjectStore, entry: SegmentEntry) -> Iterator[SourceBatch]:
    digest = hashlib.sha256()
    rest = b""
    for start in range(0, entry.data_bytes, RANGE_BYTES):
        end = min(start + RANGE_BYTES, entry.data_bytes)
        data = bytes(runner.run(store.get_range(entry.name, start, end)))
        for chunk in range(0, len(data), CHUNK_BYTES):
            digest.update(crc_of(data[chunk : chunk + CHUNK_BYTES]).to_bytes(4))
        rest += data
        position = 0
        try:
            for header in iterate_headers(rest):
                position = header.position + header.size
                if header.is_marker:
                    continue
                if not crc_matches(rest, header):
                    raise OperatorError(f"{entry.name}: a wrong checksum at {header.base_offset}")
                yield _batch_of(header, memoryview(rest)[header.position : position])
        except ApiError as error:
            raise OperatorError(f"{entry.name} cannot be read: {error.message}") from error
        rest = rest[position:]
    if rest or digest.digest() != entry.digest:
        raise OperatorError(f"{entry.name} is not what was uploaded: its digest differs")


def _batch_of(header: BatchHeader, data: memoryview) -> SourceBatch:
    if header.has_append_time:  # Every record has the time of the append.
        records = b"".join(encode_record(one, 0) for one in decode_records(data))
        return SourceBatch(header, records, (header.max_timestamp, header.max_timestamp))
    records = decompress(header.codec, data[HEADER_BYTES:])
    return SourceBatch(header, records, (header.base_timestamp, header.max_timestamp))
