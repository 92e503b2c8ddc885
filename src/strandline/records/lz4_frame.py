"""Checks that an lz4 frame is one of those that Kafka's consumers read.

Why:    Kafka's Java reader knows a part of the frame format. A frame of linked blocks, which
        other readers take, would stop every Java consumer of its partition.
How:    (all integers little-endian)
            magic 4 B  flags 1 B  block size 1 B  [content size 8 B]  header checksum 1 B
            per block: length u32 (highest bit: stored, not compressed)  bytes  [checksum 4 B]
            a length of 0 ends the frame  [content checksum 4 B]
        flags, from the highest bit: version 01 (2), independent blocks, block checksums, content
        size, content checksum, 0, dictionary.
Source: Kafka's Lz4BlockInputStream; the lz4 frame format 1.6."""

from struct import Struct

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.codec import PIECES_MAX

MAGIC = 0x184D2204
_HEAD = Struct("<IBB")
_U32 = Struct("<I")
_STORED_BIT = 1 << 31
_VERSION, _INDEPENDENT, _BLOCK_CHECKSUM, _CONTENT_SIZE, _CONTENT_CHECKSUM = 0x40, 0x20, 0x10, 8, 4
_MUST_BE_ZERO = 0x83
"""The second bit of the version, a reserved bit, and the dictionary."""
_BLOCK_BYTES_MAX = {4: 64 << 10, 5: 256 << 10, 6: 1 << 20, 7: 4 << 20}


def check_lz4_frame(data: Buffer) -> int:
    """Check the structure of a frame, which is all of `data`; how many blocks it has, at most
    `PIECES_MAX`. The decompressor checks the rest: the blocks and the checksums. Raises ApiError
    CORRUPT_MESSAGE."""
    if len(data) < _HEAD.size + 1:
        raise _refused("the frame is cut")
    magic, flags, descriptor = _HEAD.unpack_from(data)
    if magic != MAGIC:
        raise _refused("not an lz4 frame")
    if not flags & _VERSION or flags & _MUST_BE_ZERO:
        raise _refused(f"flags {flags:#04x}")
    if not flags & _INDEPENDENT:
        raise _refused("linked blocks, which Kafka's consumers cannot read")
    block_bytes_max = _BLOCK_BYTES_MAX.get(descriptor >> 4)
    if block_bytes_max is None or descriptor & 0x0F:
        raise _refused(f"block descriptor {descriptor:#04x}")
    position = _HEAD.size + (8 if flags & _CONTENT_SIZE else 0) + 1
    checksum_bytes = 4 if flags & _BLOCK_CHECKSUM else 0
    block_count = 0
    while True:
        if position + 4 > len(data):
            raise _refused("the frame is cut")
        (length,) = _U32.unpack_from(data, position)
        position += 4
        length &= ~_STORED_BIT
        if length == 0:
            break
        block_count += 1
        if block_count > PIECES_MAX:
            raise _refused(f"more than {PIECES_MAX} blocks")
        if length > block_bytes_max:
            raise _refused(f"a block of {length} bytes, at most {block_bytes_max}")
        position += length + checksum_bytes
    position += 4 if flags & _CONTENT_CHECKSUM else 0
    if position != len(data):
        raise _refused("the frame does not end where the batch does")
    return block_count


def _refused(reason: str) -> ApiError:
    return ApiError(Error.CORRUPT_MESSAGE, f"lz4: {reason}")
