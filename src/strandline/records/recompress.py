"""Compresses a producer's batches with the codec of their topic.

Why:    `compression.type` says how a topic's batches are stored, whatever its producers send.
How:    the records of a batch are compressed as one block behind its header. So only the block,
        the batch's length, the codec in its attributes and the checksum change; no record is read.
        A batch that has the codec already stays as it is.
Source: Kafka's compression.type and compression.*.level (KIP-390)."""

from collections.abc import Sequence
from typing import NamedTuple

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.batch import (
    CODEC_MASK,
    HEADER,
    HEADER_BYTES,
    LENGTH_END,
    BatchHeader,
    seal,
)
from strandline.records.codec import DECOMPRESSED_BYTES_MAX, compress, decompress


class Compression(NamedTuple):
    """A codec, and its level; None for the codec's own."""

    codec: int
    level: int | None = None


class Budget:
    """What is left for the batches of one request: the bytes that they may decompress to, and those
    that they may take afterwards."""

    __slots__ = ("decompressed_bytes", "stored_bytes")

    def __init__(self, decompressed_bytes: int, stored_bytes: int) -> None:
        self.decompressed_bytes = decompressed_bytes
        self.stored_bytes = stored_bytes


def has_codec(headers: Sequence[BatchHeader], codec: int) -> bool:
    """Whether all batches have this codec."""
    return all(header.codec == codec for header in headers)


def recompress(
    view: memoryview,
    headers: Sequence[BatchHeader],
    wanted: Compression,
    *,
    max_bytes: int,
    budget: Budget,
) -> tuple[memoryview, list[BatchHeader]]:
    """The valid batches of `headers` in `view` with this codec, in a buffer of their own.

    `max_bytes` bounds each batch afterwards, `budget` all of them. Raises ApiError."""
    output = bytearray()
    result = []
    for header in headers:
        start = header.position
        if header.codec == wanted.codec:
            batch = view[start : start + header.size]
        else:
            batch = memoryview(_converted(view, header, wanted, budget))
        if len(batch) > max_bytes:
            raise ApiError(
                Error.MESSAGE_TOO_LARGE,
                f"a batch of {len(batch)} bytes with the topic's compression.type; "
                f"max.message.bytes is {max_bytes}",
            )
        budget.stored_bytes -= len(batch)
        if budget.stored_bytes < 0:
            raise ApiError(
                Error.MESSAGE_TOO_LARGE,
                "the batches of the request take too much with the topic's compression.type",
            )
        result.append(BatchHeader(len(output), *HEADER.unpack_from(batch)))
        output += batch
    return memoryview(output), result


def _decompressed(view: memoryview, header: BatchHeader, budget: Budget) -> bytes:
    block = view[header.position + HEADER_BYTES : header.position + header.size]
    bytes_max = max(0, min(budget.decompressed_bytes, DECOMPRESSED_BYTES_MAX))
    try:
        records = decompress(header.codec, block, bytes_max=bytes_max)
    except ApiError as error:
        if error.code != Error.CORRUPT_MESSAGE:
            raise
        raise ApiError(Error.INVALID_RECORD, error.message) from error  # Or it is sent again.
    budget.decompressed_bytes -= len(records)
    return records


def _converted(
    view: memoryview, header: BatchHeader, wanted: Compression, budget: Budget
) -> bytearray:
    records = compress(wanted.codec, _decompressed(view, header, budget), level=wanted.level)
    batch = bytearray(HEADER_BYTES + len(records))
    HEADER.pack_into(
        batch,
        0,
        header.base_offset,
        len(batch) - LENGTH_END,
        header.partition_leader_epoch,
        header.magic,
        0,
        header.attributes & ~CODEC_MASK | wanted.codec,
        header.last_offset_delta,
        header.base_timestamp,
        header.max_timestamp,
        header.producer_id,
        header.producer_epoch,
        header.base_sequence,
        header.records_count,
    )
    batch[HEADER_BYTES:] = records
    seal(batch, BatchHeader(0, *HEADER.unpack_from(batch)))
    return batch
