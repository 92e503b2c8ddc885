"""Payloads of very many gzip members, snappy blocks or lz4 blocks: an empty one takes time, too.

Source: decision 0044."""

import gzip
import struct

import cramjam
import pytest
from tests.records.test_validate_contents import NOW, plain_records, refusal_of, with_payload

from strandline.protocol.errors import Error
from strandline.records.batch import HEADER_BYTES, read_header
from strandline.records.codec import GZIP, LZ4, PIECES_MAX, SNAPPY, compress
from strandline.records.record import Record, build_batch
from strandline.records.validate_contents import ContentRules, validate_contents

SCRATCH = bytearray(512 << 10)
PARTS = 100


def gzip_of(parts: list[bytes]) -> bytes:
    return b"".join(gzip.compress(part, mtime=0) for part in parts)


def snappy_of(parts: list[bytes]) -> bytes:
    blocks = [bytes(cramjam.snappy.compress_raw(part)) for part in parts]
    head = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    return head + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


def lz4_of(parts: list[bytes]) -> bytes:
    """Blocks that are stored, not compressed."""
    head = bytes(cramjam.lz4.compress(b""))[:4] + b"\x60\x40\x82"
    blocks = [struct.pack("<I", len(part) | 1 << 31) + part for part in parts if part]
    return head + b"".join(blocks) + bytes(4)


MAKERS = {GZIP: gzip_of, SNAPPY: snappy_of, LZ4: lz4_of}


def size_of(batch: bytearray, *, scratch: bytearray | None = None) -> int:
    header = read_header(batch)
    assert header is not None
    return validate_contents(batch, header, ContentRules(), scratch=scratch)


@pytest.mark.parametrize("behind", [b"", b"not a member"], ids=["clean", "with bytes behind"])
@pytest.mark.parametrize("codec", MAKERS)
def test_too_many_pieces_are_refused(codec: int, behind: bytes) -> None:
    piece = b"x" if codec == LZ4 else b""
    payload = MAKERS[codec]([piece] * (PIECES_MAX + 1)) + (behind if codec == GZIP else b"")
    refusal = refusal_of(with_payload(payload, codec=codec))
    assert refusal.code == Error.INVALID_RECORD
    assert f"more than {PIECES_MAX}" in refusal.message


@pytest.mark.parametrize("codec", MAKERS)
def test_many_pieces_are_not_for_the_loop(codec: int) -> None:
    records = plain_records()
    step = len(records) // PARTS + 1
    parts = [records[at : at + step] for at in range(0, len(records), step)]
    batch = with_payload(MAKERS[codec](parts), codec=codec)
    assert size_of(batch, scratch=SCRATCH) == -1
    assert size_of(batch) == len(records)
    few = with_payload(compress(codec, records), codec=codec)
    assert size_of(few, scratch=SCRATCH) == len(records)


def test_gzip_may_hold_values_that_look_like_gzip() -> None:
    value = b"\x1f\x8b\x08" * (PIECES_MAX + 1)
    records = bytes(build_batch([Record(0, NOW, b"k", value)])[HEADER_BYTES:])
    batch = with_payload(gzip.compress(records, 0), codec=GZIP, count=1)
    assert size_of(batch) == len(records)
