"""Gives a producer's batches their topic's codec: small ones at once, others on the worker thread.

Why:    compressing a megabyte takes up to 0.1 s, in which the event loop must answer heartbeats.
How:    a request has bounds for what its batches decompress to, and for what they take afterwards
        (`batch_validation.Allowance`). A batch that was not read may decompress to much, so it is
        never for the loop.
Owns:   nothing.
Source: Kafka's compression.type; decision 0045."""

from collections.abc import Callable, Sequence

from strandline.base.errors import ApiError
from strandline.broker.server.batch_validation import Allowance, BatchValidation
from strandline.config.topic import TopicConfig
from strandline.records.batch import BatchHeader
from strandline.records.codec import GZIP, LZ4, NONE, SNAPPY, ZSTD
from strandline.records.recompress import Compression, recompress

INLINE_BYTES_MAX = 32 << 10
_GZIP_OWN, _LZ4_OWN = -1, 9
"""Kafka's levels for the codec's own: of lz4, its fast kind."""

Recompressed = tuple[memoryview, list[BatchHeader]]


def compression_of(config: TopicConfig) -> Compression | None:
    """The codec of the topic's batches; None if they stay as they come."""
    match config.compression_type:
        case "gzip":
            level = config.compression_gzip_level
            return Compression(GZIP, None if level == _GZIP_OWN else level)
        case "lz4":
            level = config.compression_lz4_level
            return Compression(LZ4, None if level == _LZ4_OWN else level)
        case "zstd":
            return Compression(ZSTD, config.compression_zstd_level)
        case "snappy":
            return Compression(SNAPPY)
        case "uncompressed":
            return Compression(NONE)
    return None


def recompress_now(
    view: memoryview,
    headers: Sequence[BatchHeader],
    wanted: Compression,
    allowance: Allowance,
    *,
    max_bytes: int,
) -> Recompressed:
    """The batches with the wanted codec, each at most `max_bytes`. Raises ApiError."""
    return recompress(view, headers, wanted, max_bytes=max_bytes, budget=allowance.anew)


def recompress_aside(
    validation: BatchValidation,
    view: memoryview,
    headers: Sequence[BatchHeader],
    wanted: Compression,
    allowance: Allowance,
    *,
    max_bytes: int,
    done: Callable[[Recompressed | ApiError], None],
) -> None:
    """As `recompress_now`, on the worker; `done` gets the batches or the refusal."""
    made: list[Recompressed] = []

    def work() -> None:
        made.append(recompress_now(view, headers, wanted, allowance, max_bytes=max_bytes))

    validation.run_aside(view, work, lambda refusal: done(made[0] if refusal is None else refusal))
