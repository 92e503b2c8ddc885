"""Validates what is inside a producer's batches, and takes their times from their records.

Why:    a header with a right CRC says nothing of the records. Consumers read the records; look-ups
        and retention by time rely on `maxTimestamp`, which some clients leave at -1.
How:    decompress (bounded) -> walk over the records -> judge keys and times -> write the highest
        timestamp into the header, and the CRC, where the producer's is another one.
        A batch may not decompress to more than `decompressed_bytes_max`: 100 times its bytes, but
        16 MiB are always allowed and 256 MiB never exceeded. Readers in the broker have that last
        bound too, so they can read every batch that was stored.
Source: Kafka's LogValidator; KIP-467 (each refused record is named)."""

import msgspec

from strandline.base.errors import ApiError, RefusedRecordsError
from strandline.protocol.errors import Error
from strandline.records.batch import (
    CODEC_MASK,
    HEADER_BYTES,
    LENGTH_END,
    BatchHeader,
    set_max_timestamp,
)
from strandline.records.codec import (
    CODEC_NAMES,
    DECOMPRESSED_BYTES_MAX,
    LZ4,
    TOO_LARGE,
    Output,
    decompress_growing,
    decompress_into,
)
from strandline.records.contents import (
    NO_RECORD,
    NO_TIMESTAMP,
    refused_records,
    walk,
)
from strandline.records.lz4_frame import check_lz4_frame

INLINE_PIECES_MAX = 64
"""Gzip members or blocks of a payload that is decompressed to the scratch buffer."""
DECOMPRESSED_RATIO_MAX = 100
DECOMPRESSED_BYTES_ALLOWED = 16 << 20
"""So much is allowed at any ratio: one record of zeros has a high one."""
RECORD_ERRORS_MAX = 1_000
"""So many refused records are named at most."""
TIMESTAMP_LIMIT = 1 << 62
"""So that no sum or difference of two timestamps leaves 64 bits."""
_ALL_TIMESTAMPS = (-(1 << 63), (1 << 63) - 1)


class ContentRules(msgspec.Struct, frozen=True, gc=False):
    """What a topic asks of records. Timestamps in ms since 1970."""

    needs_keys: bool = False
    """The topic is compacted."""
    has_append_time: bool = False
    """The broker sets the timestamps: the producer's mean nothing."""
    timestamp_min: int = -TIMESTAMP_LIMIT
    timestamp_max: int = TIMESTAMP_LIMIT - 1
    reads_compressed: bool = True
    """Whether compressed batches are decompressed even if nothing in their header asks for it."""


def decompressed_bytes_max(header: BatchHeader) -> int:
    """How much a compressed batch may decompress to."""
    by_ratio = max(DECOMPRESSED_BYTES_ALLOWED, header.size * DECOMPRESSED_RATIO_MAX)
    return min(by_ratio, DECOMPRESSED_BYTES_MAX)


def validate_contents(
    view: memoryview | bytearray,
    header: BatchHeader,
    rules: ContentRules,
    *,
    scratch: bytearray | None = None,
) -> int:
    """Validate the records of the batch that `header` was read from; changes `maxTimestamp` and the
    CRC if the producer's `maxTimestamp` is wrong.

    Returns how many bytes the records take uncompressed. With `scratch` it does not decompress to
    more than that holds, nor many members or blocks; then it returns -1, and the batch is not
    validated. Raises ApiError:
    INVALID_RECORD for records that cannot be read, RefusedRecordsError for those that break a rule.
    """
    start = header.position
    records = memoryview(view)[start + HEADER_BYTES : start + LENGTH_END + header.batch_length]
    if header.attributes & CODEC_MASK:
        if not rules.reads_compressed and not _has_to_be_read(header, rules):
            return len(records)
        output, count = _decompress(records, header, scratch)
        if count < 0:
            return count
        records = memoryview(output)[:count]
    highest, lowest, keyless = walk(records, header.records_count, header.base_timestamp)
    if rules.needs_keys and keyless != NO_RECORD:
        raise _refusal(records, header, rules)
    if not rules.has_append_time:
        is_early = lowest < rules.timestamp_min
        if is_early or (highest > rules.timestamp_max and highest != NO_TIMESTAMP):
            raise _refusal(records, header, rules)
        if highest != header.max_timestamp:
            set_max_timestamp(view, header, highest)
    return len(records)


def _has_to_be_read(header: BatchHeader, rules: ContentRules) -> bool:
    """Whether the header of a compressed batch is not enough to store it."""
    if rules.needs_keys or rules.has_append_time:
        return rules.needs_keys
    low, high = max(0, rules.timestamp_min), rules.timestamp_max
    return not low <= header.base_timestamp <= header.max_timestamp <= high


def _decompress(
    records: memoryview, header: BatchHeader, scratch: bytearray | None
) -> tuple[Output, int]:
    try:
        pieces = check_lz4_frame(records) if header.codec == LZ4 else 0
        if scratch is not None:
            if pieces > INLINE_PIECES_MAX:
                return scratch, TOO_LARGE
            count = decompress_into(header.codec, records, scratch, pieces_max=INLINE_PIECES_MAX)
            return scratch, count
        bytes_max = decompressed_bytes_max(header)
        return decompress_growing(header.codec, records, bytes_max=bytes_max)
    except ApiError as error:
        if error.code != Error.CORRUPT_MESSAGE:
            raise
        # The CRC is right: the client sends what it meant to send. CORRUPT_MESSAGE would have it
        # send the same again.
        name = CODEC_NAMES[header.codec]
        message = f"the records are not {name}, as the batch says: {error.message}"
        raise ApiError(Error.INVALID_RECORD, message) from error


def _refusal(records: memoryview, header: BatchHeader, rules: ContentRules) -> ApiError:
    """The error that names the records that break a rule."""
    low, high = rules.timestamp_min, rules.timestamp_max
    refused = refused_records(
        records,
        count=header.records_count,
        base_timestamp=header.base_timestamp,
        needs_keys=rules.needs_keys,
        timestamps=_ALL_TIMESTAMPS if rules.has_append_time else (low, high),
        limit=RECORD_ERRORS_MAX,
    )
    assert refused, "a record breaks a rule"
    code, errors = Error.INVALID_RECORD, []
    for index, has_key, timestamp in refused:
        if rules.needs_keys and not has_key:
            reason = "the topic is compacted, and the record has no key"
        else:
            code = Error.INVALID_TIMESTAMP
            reason = f"timestamp {timestamp} is not within {low}..{high}"
        errors.append((index, reason))
    message = f"records of the batch are refused; record {errors[0][0]}: {errors[0][1]}"
    return RefusedRecordsError(code, message, errors)
