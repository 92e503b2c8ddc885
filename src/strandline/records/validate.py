"""Validates the headers of a producer's batches before the broker stores any byte of them.

Why:    every follower and consumer gets a batch that is in the log. Each refusal has the error code
        to which Kafka's clients react correctly.
How:    reads headers and CRCs only; `validate_contents.py` reads the records.
Source: Kafka's ProduceRequest.validateRecords and LogValidator."""

from collections.abc import Sequence
from itertools import islice

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.batch import (
    APPEND_TIME_BIT,
    CODEC_MASK,
    CONTROL_BIT,
    HEADER_BYTES,
    LENGTH_END,
    TRANSACTIONAL_BIT,
    BatchHeader,
    crc_of,
    iterate_headers,
    read_header,
)
from strandline.records.codec import LZ4, ZSTD

ZSTD_SINCE_PRODUCE_VERSION = 7
BATCH_COUNT_MAX = 1_000
"""Batches for one partition in one request. Kafka takes one; a million would hold up everything."""
_KNOWN_BITS = CODEC_MASK | APPEND_TIME_BIT | TRANSACTIONAL_BIT | CONTROL_BIT


class MalformedProduceError(ApiError):
    """A request is refused before its batches are held against a log. If it has no whole batches
    the code is INVALID_RECORD: clients would send the same bytes again for CORRUPT_MESSAGE."""


def validate_produced(view: Buffer, *, max_bytes: int, produce_version: int) -> list[BatchHeader]:
    """The headers of the batches in `view`, which a producer sent for one partition; at least one.

    `max_bytes` bounds each batch (max.message.bytes). Raises ApiError."""
    try:
        only = read_header(view)
    except ApiError as refusal:
        raise MalformedProduceError(refusal.code, refusal.message) from refusal
    if only is not None and only.batch_length + LENGTH_END == len(view):
        _check_batch(view, only, max_bytes, produce_version)  # As nearly always.
        return [only]
    headers = _split(view)
    for header in headers:
        _check_batch(view, header, max_bytes, produce_version)
    _check_several(headers)
    return headers


def _split(view: Buffer) -> list[BatchHeader]:
    """The headers of any number of batches; at least one."""
    headers = list(islice(iterate_headers(view), BATCH_COUNT_MAX + 1))
    if len(headers) > BATCH_COUNT_MAX:
        raise ApiError(Error.INVALID_RECORD, f"more than {BATCH_COUNT_MAX} batches at one time")
    if not headers:
        if len(view) > HEADER_BYTES:
            raise MalformedProduceError(Error.INVALID_RECORD, "the record batch is cut")
        raise MalformedProduceError(Error.INVALID_RECORD, "no record batch")
    last = headers[-1]
    if last.position + last.size != len(view):
        raise MalformedProduceError(
            Error.INVALID_RECORD, "bytes behind the last whole record batch"
        )
    return headers


def _check_batch(view: Buffer, header: BatchHeader, max_bytes: int, produce_version: int) -> None:
    size = header.batch_length + LENGTH_END
    if size > max_bytes:
        raise ApiError(
            Error.MESSAGE_TOO_LARGE,
            f"a batch of {size} bytes; max.message.bytes is {max_bytes}",
        )
    if header.base_offset:
        raise ApiError(Error.INVALID_RECORD, f"base offset {header.base_offset}, not 0")
    count = header.records_count
    if count <= 0 or header.last_offset_delta != count - 1:
        raise ApiError(
            Error.INVALID_RECORD,
            f"{count} records with a last offset delta of {header.last_offset_delta}",
        )
    if header.attributes > LZ4 or header.attributes < 0 or header.producer_id >= 0:
        _check_attributes(header, produce_version)
    if crc_of(view, header.position, size) != header.crc:
        raise ApiError(Error.CORRUPT_MESSAGE, "the record batch's CRC does not match")


def _check_attributes(header: BatchHeader, produce_version: int) -> None:
    attributes = header.attributes
    if attributes & CODEC_MASK > ZSTD:
        raise ApiError(Error.UNSUPPORTED_COMPRESSION_TYPE, f"codec {attributes & CODEC_MASK}")
    if attributes & CODEC_MASK == ZSTD and produce_version < ZSTD_SINCE_PRODUCE_VERSION:
        raise MalformedProduceError(
            Error.UNSUPPORTED_COMPRESSION_TYPE,
            f"zstd needs Produce version {ZSTD_SINCE_PRODUCE_VERSION}, not {produce_version}",
        )
    if attributes & APPEND_TIME_BIT:
        raise ApiError(Error.INVALID_TIMESTAMP, "only a broker sets the time of append")
    if attributes & CONTROL_BIT:
        raise ApiError(Error.INVALID_RECORD, "only a broker writes control batches")
    if attributes & ~_KNOWN_BITS:
        raise ApiError(Error.INVALID_RECORD, f"attributes {attributes:#x}")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise ApiError(Error.INVALID_RECORD, "a producer id without an epoch and a sequence")
    if attributes & TRANSACTIONAL_BIT and header.producer_id < 0:
        raise MalformedProduceError(
            Error.INVALID_RECORD, "a transactional batch without a producer id"
        )


def _check_several(headers: Sequence[BatchHeader]) -> None:
    if len(headers) > 1 and any(header.producer_id >= 0 for header in headers):
        raise ApiError(Error.INVALID_RECORD, "an idempotent producer sends one batch at a time")
