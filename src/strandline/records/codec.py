"""Bounded compression: gzip, snappy, lz4 and zstd, as Kafka's clients write and read them.

Why:    a few hundred bytes may decompress to gigabytes. The output never exceeds the caller's
        bound, whatever a frame's header claims.
How:    cramjam decompresses into a buffer of a fixed size and fails when that is full; the buffer
        starts small and grows fourfold up to the bound, so small batches cost little memory.
        snappy is in xerial's framing:  magic 8 B, version i32, compatible i32, then per block its
        length i32 and its bytes. lz4 is a frame of independent blocks, the only kind that Kafka's
        Java reader accepts.
Source: Kafka's compression types; xerial snappy-java's SnappyOutputStream."""

from struct import Struct

import cramjam

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.protocol.errors import Error

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

DECOMPRESSED_BYTES_MAX = 256 << 20
_FIRST_BYTES = 16 << 10
_GROWTH = 4
_BUFFER_IS_FULL = "failed to write whole buffer"

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 << 10
_I32 = Struct(">i")


def compress(codec: int, data: bytes) -> bytes:
    """`data` compressed; raises ApiError UNSUPPORTED_COMPRESSION_TYPE for a codec that is none."""
    if codec == NONE:
        return data
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data))
    if codec == SNAPPY:
        return _compress_xerial(data)
    if codec == LZ4:
        compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
        compressor.compress(data)
        return bytes(compressor.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3))
    raise ApiError(Error.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {codec}")


def decompress(codec: int, data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """`data` decompressed, at most `bytes_max` of it.

    Raises ApiError: CORRUPT_MESSAGE for damaged data or a larger output,
    UNSUPPORTED_COMPRESSION_TYPE for a codec that is none."""
    if codec == NONE:
        return bytes(data)
    if codec == SNAPPY:
        return _decompress_snappy(data, bytes_max)
    if codec not in (GZIP, LZ4, ZSTD):
        raise ApiError(Error.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {codec}")
    module = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}[codec]
    size = min(bytes_max, max(_FIRST_BYTES, len(data) * _GROWTH))
    while True:
        output = bytearray(size)
        try:
            count = module.decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if _BUFFER_IS_FULL in str(error) and size < bytes_max:
                size = min(bytes_max, size * _GROWTH)
                continue
            raise ApiError(
                Error.CORRUPT_MESSAGE, f"{CODEC_NAMES[codec]}, at most {bytes_max} bytes: {error}"
            ) from error
        return bytes(memoryview(output)[:count])


def _compress_xerial(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_I32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, bytes_max: int) -> bytes:
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_block(view, bytes_max)  # Old clients send one bare block.
    parts = []
    left = bytes_max
    position = len(_XERIAL_HEADER)
    while position < len(view):
        if position + _I32.size > len(view):
            raise ApiError(Error.CORRUPT_MESSAGE, "snappy: a block's length is cut")
        (length,) = _I32.unpack_from(view, position)
        position += _I32.size
        if length < 0 or position + length > len(view):
            raise ApiError(Error.CORRUPT_MESSAGE, "snappy: a block is cut")
        parts.append(_decompress_block(view[position : position + length], left))
        left -= len(parts[-1])
        position += length
    return b"".join(parts)


def _decompress_block(block: memoryview, bytes_max: int) -> bytes:
    try:
        size = cramjam.snappy.decompress_raw_len(block)
        if size > bytes_max:
            raise ApiError(
                Error.CORRUPT_MESSAGE, f"snappy: a block of {size} bytes, bound {bytes_max}"
            )
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ApiError(Error.CORRUPT_MESSAGE, f"snappy: {error}") from error
