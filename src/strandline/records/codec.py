"""Bounded compression: gzip, snappy, lz4 and zstd, as Kafka's clients write and read them.

Why:    a few hundred bytes may decompress to gigabytes. The output never exceeds the caller's
        bound, whatever a frame's header claims.
How:    cramjam decompresses into a buffer of a fixed size and fails when that is full; the buffer
        starts small and grows fourfold up to the bound, so small batches cost little memory.
        A payload may have `PIECES_MAX` gzip members or snappy blocks: empty ones cost time and
        decompress to nothing.
        snappy is in xerial's framing:  magic 8 B, version i32, compatible i32, then per block its
        length i32 and its bytes. lz4 is a frame of independent blocks, the only kind that Kafka's
        Java reader accepts.
Source: Kafka's compression types; xerial snappy-java's SnappyOutputStream."""

import mmap
import zlib
from struct import Struct

import cramjam

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.protocol.errors import Error

Output = bytearray | memoryview
"""Memory to decompress into."""

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODEC_NAMES = ("none", "gzip", "snappy", "lz4", "zstd")

DECOMPRESSED_BYTES_MAX = 256 << 20
TOO_LARGE = -1
PIECES_MAX = 16_384
"""Gzip members, or blocks of snappy or lz4, in one payload: clients write one member, and blocks of
32 KiB or more."""
_MODULES = {GZIP: cramjam.gzip, LZ4: cramjam.lz4, ZSTD: cramjam.zstd}
_FIRST_BYTES = 16 << 10
_MAPPED_BYTES_MIN = 1 << 20
_GROWTH = 4
_BUFFER_IS_FULL = "failed to write whole buffer"

_GZIP_WINDOW = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b\x08"
_GZIP_INPUT_BYTES = 16 << 10
_SEARCHED_BYTES = 1 << 20
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 << 10
_I32 = Struct(">i")


def compress(codec: int, data: bytes, *, level: int | None = None) -> bytes:
    """`data` compressed, at a level of the codec's; None for its own. Raises ApiError
    UNSUPPORTED_COMPRESSION_TYPE for a codec that is none."""
    if codec == NONE:
        return data
    if codec == GZIP:
        return bytes(cramjam.gzip.compress(data, level=level))
    if codec == SNAPPY:
        return _compress_xerial(data)
    if codec == LZ4:
        compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
        compressor.compress(data)
        return bytes(compressor.finish())
    if codec == ZSTD:
        return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))
    raise ApiError(Error.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {codec}")


def decompress(codec: int, data: Buffer, *, bytes_max: int = DECOMPRESSED_BYTES_MAX) -> bytes:
    """`data` decompressed, at most `bytes_max` of it.

    Raises ApiError: CORRUPT_MESSAGE for damaged data or a larger output,
    UNSUPPORTED_COMPRESSION_TYPE for a codec that is none."""
    if codec == NONE:
        return bytes(data)
    output, count = decompress_growing(codec, data, bytes_max=bytes_max)
    return bytes(memoryview(output)[:count])


def decompress_growing(codec: int, data: Buffer, *, bytes_max: int) -> tuple[Output, int]:
    """(a buffer of at most `bytes_max`, how much of it `data` takes decompressed).

    Raises ApiError as `decompress` does."""
    size = min(bytes_max, max(_FIRST_BYTES, len(data) * _GROWTH))
    while True:
        output = _new_output(size)
        count = decompress_into(codec, data, output)
        if count >= 0:
            return output, count
        if size >= bytes_max:
            raise ApiError(
                Error.CORRUPT_MESSAGE, f"{CODEC_NAMES[codec]}: more than {bytes_max} bytes"
            )
        size = min(bytes_max, size * _GROWTH)


def _new_output(size: int) -> Output:
    """Zeroed memory. Large memory comes from the kernel page by page, without the interpreter's
    lock, and goes back to it at once."""
    return bytearray(size) if size < _MAPPED_BYTES_MIN else memoryview(mmap.mmap(-1, size))


def decompress_into(
    codec: int, data: Buffer, output: Output, *, pieces_max: int | None = None
) -> int:
    """Decompress `data` to the beginning of `output`; how much of it that takes, `TOO_LARGE` if
    more than there is. `pieces_max`: `TOO_LARGE` as well if there may be more gzip members or
    snappy blocks, each of which takes about 10 us.

    Raises ApiError: CORRUPT_MESSAGE for damaged data, UNSUPPORTED_COMPRESSION_TYPE for a codec that
    is none."""
    if codec == SNAPPY:
        return _decompress_snappy(memoryview(data), output, pieces_max)
    if codec not in _MODULES:
        raise ApiError(Error.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {codec}")
    if codec == GZIP and _may_have_more_members(memoryview(data), pieces_max or PIECES_MAX):
        return _decompress_gzip_members(memoryview(data), output, pieces_max)
    try:
        return int(_MODULES[codec].decompress_into(data, output))
    except cramjam.DecompressionError as error:
        if _BUFFER_IS_FULL in str(error):
            return TOO_LARGE
        if codec == GZIP:
            return _decompress_gzip_members(memoryview(data), output, pieces_max)
        raise ApiError(Error.CORRUPT_MESSAGE, f"{CODEC_NAMES[codec]}: {error}") from error


def _may_have_more_members(view: memoryview, count_max: int) -> bool:
    """Whether more members may begin; their magic may also lie within one."""
    count = 0
    for start in range(0, len(view), _SEARCHED_BYTES):
        count += bytes(view[start : start + _SEARCHED_BYTES + 2]).count(_GZIP_MAGIC)
    return count > count_max


def _is_beyond(pieces: int, pieces_max: int | None) -> bool:
    """Whether a payload of so many pieces is too large. Raises ApiError if it always is."""
    if pieces > PIECES_MAX:
        raise ApiError(Error.CORRUPT_MESSAGE, f"more than {PIECES_MAX} members or blocks")
    return pieces_max is not None and pieces > pieces_max


def _decompress_gzip_members(view: memoryview, output: Output, pieces_max: int | None) -> int:
    """As Java's reader does: bytes behind a member that begin no other member are ignored."""
    count = position = pieces = 0
    while True:
        pieces += 1
        if _is_beyond(pieces, pieces_max):
            return TOO_LARGE
        member = zlib.decompressobj(wbits=_GZIP_WINDOW)
        while not member.eof:
            # A little at a time, because the decompressor copies what is behind the member.
            data = view[position : position + _GZIP_INPUT_BYTES]
            if not data:
                raise ApiError(Error.CORRUPT_MESSAGE, "gzip: the data is cut")
            try:
                part = member.decompress(data, len(output) - count + 1)
            except zlib.error as error:
                raise ApiError(Error.CORRUPT_MESSAGE, f"gzip: {error}") from error
            if len(part) > len(output) - count:
                return TOO_LARGE
            output[count : count + len(part)] = part
            count += len(part)
            position += len(data) - len(member.unused_data)
        if view[position : position + len(_GZIP_MAGIC)] != _GZIP_MAGIC:
            return count


def _compress_xerial(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_I32.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(view: memoryview, output: Output, pieces_max: int | None) -> int:
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _decompress_block(view, output, 0)  # Old clients send one bare block.
    count = pieces = 0
    position = len(_XERIAL_HEADER)
    while position < len(view):
        pieces += 1
        if _is_beyond(pieces, pieces_max):
            return TOO_LARGE
        if view[position : position + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # Another stream follows.
            continue
        if position + _I32.size > len(view):
            raise ApiError(Error.CORRUPT_MESSAGE, "snappy: a block's length is cut")
        (length,) = _I32.unpack_from(view, position)
        position += _I32.size
        if length <= 0 or position + length > len(view):
            raise ApiError(Error.CORRUPT_MESSAGE, "snappy: a block is cut or empty")
        count = _decompress_block(view[position : position + length], output, count)
        if count == TOO_LARGE:
            return TOO_LARGE
        position += length
    return count


def _decompress_block(block: memoryview, output: Output, start: int) -> int:
    """Decompress a block to `output[start:]`; where it ends, `TOO_LARGE` if there is no room."""
    try:
        size = int(cramjam.snappy.decompress_raw_len(block))
        if size > len(output) - start:
            return TOO_LARGE
        target = memoryview(output)[start : start + size] if start else output
        return start + int(cramjam.snappy.decompress_raw_into(block, target))
    except cramjam.DecompressionError as error:
        raise ApiError(Error.CORRUPT_MESSAGE, f"snappy: {error}") from error
