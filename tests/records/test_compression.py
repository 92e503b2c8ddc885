"""Compression is the formats' own, and its output is bounded whatever a frame claims.

Source: Kafka's compression types; pyarrow has its own builds of the four libraries."""

import gzip
import random
import tracemalloc

import cramjam
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.codec import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress, decompress

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
ARROW_NAMES = {GZIP: "gzip", LZ4: "lz4", ZSTD: "zstd"}
MIB = 1 << 20


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.binary(max_size=5000), repeat=st.integers(0, 60))
def test_what_is_compressed_comes_back(codec: int, data: bytes, repeat: int) -> None:
    data *= repeat
    assert decompress(codec, compress(codec, data)) == data
    assert decompress(codec, memoryview(bytearray(compress(codec, data)))) == data


@pytest.mark.parametrize("codec", sorted(ARROW_NAMES))
def test_another_library_reads_what_we_write_and_the_other_way_round(codec: int) -> None:
    data = b"strandline " * 20_000
    arrow = pyarrow.Codec(ARROW_NAMES[codec])
    ours = compress(codec, data)
    assert arrow.decompress(ours, len(data)).to_pybytes() == data
    assert decompress(codec, arrow.compress(data).to_pybytes()) == data


def test_snappy_blocks_are_read_with_and_without_framing() -> None:
    data = random.Random(1).randbytes(100_000)
    arrow = pyarrow.Codec("snappy")
    assert decompress(SNAPPY, arrow.compress(data).to_pybytes()) == data
    framed = compress(SNAPPY, data)
    assert framed.startswith(b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01")
    length = int.from_bytes(framed[16:20], "big")
    assert arrow.decompress(framed[20 : 20 + length], 32 << 10).to_pybytes() == data[: 32 << 10]


def test_lz4_blocks_are_independent_as_kafkas_java_reader_demands() -> None:
    frame = compress(LZ4, b"x" * 300_000)
    assert frame[:4] == bytes.fromhex("04224d18")
    flags = frame[4]
    assert flags >> 6 == 1, "the version"
    assert flags & 0x20, "independent blocks"
    assert not flags & 0x04, "no checksum of the content: the batch has its own"


def test_gzip_of_several_members_is_read_to_its_end() -> None:
    assert decompress(GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def bomb(codec: int, size: int) -> bytes:
    zeros = bytes(size)
    if codec == SNAPPY:
        return bytes(cramjam.snappy.compress_raw(zeros))
    return compress(codec, zeros)


@pytest.mark.parametrize("codec", (GZIP, SNAPPY, LZ4, ZSTD))
def test_a_bomb_is_refused_at_the_bound_and_costs_no_more_memory(codec: int) -> None:
    data = bomb(codec, 64 * MIB)
    assert len(data) < 4 * MIB
    tracemalloc.start()
    with pytest.raises(ApiError) as refusal:
        decompress(codec, data, bytes_max=MIB)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert refusal.value.code == Error.CORRUPT_MESSAGE
    assert peak < 4 * MIB


def test_a_bomb_in_xerial_blocks_is_refused_at_the_sum() -> None:
    data = compress(SNAPPY, bytes(2 * MIB))
    assert len(decompress(SNAPPY, data, bytes_max=2 * MIB)) == 2 * MIB
    with pytest.raises(ApiError):
        decompress(SNAPPY, data, bytes_max=2 * MIB - 1)


@pytest.mark.parametrize("codec", (GZIP, SNAPPY, LZ4, ZSTD))
def test_exactly_the_bound_is_allowed(codec: int) -> None:
    data = random.Random(2).randbytes(50_000) * 2
    assert decompress(codec, compress(codec, data), bytes_max=len(data)) == data
    with pytest.raises(ApiError):
        decompress(codec, compress(codec, data), bytes_max=len(data) - 1)


@pytest.mark.parametrize("codec", (GZIP, SNAPPY, LZ4, ZSTD))
def test_damaged_data_is_refused(codec: int) -> None:
    rng = random.Random(3)
    data = compress(codec, rng.randbytes(3000) + b"abc" * 1000)
    for cut in (1, 5, 10, len(data) // 2, len(data) - 1):
        try:
            found = decompress(codec, data[:cut], bytes_max=MIB)
        except ApiError as refusal:
            assert refusal.code == Error.CORRUPT_MESSAGE
        else:
            assert len(found) < 6000
    for _ in range(200):
        mangled = bytearray(data)
        mangled[rng.randrange(len(mangled))] ^= 1 << rng.randrange(8)
        try:
            decompress(codec, mangled, bytes_max=MIB)
        except ApiError as refusal:
            assert refusal.code == Error.CORRUPT_MESSAGE


CUT_BLOCKS: list[tuple[bytes, str]] = [
    (b"\x00\x00\x00", "length is cut"),
    (b"\xff\xff\xff\xff" + b"\x00" * 8, "a block is cut"),
    (b"\x00\x00\x00\x05\x04\x0cabc", "snappy: "),
    (b"\x00\x00\x00\x06\x04\x0cabc", "a block is cut"),
    (b"\x00\x00\x00\x00", "a block is cut or empty"),
]


@pytest.mark.parametrize(("blocks", "reason"), CUT_BLOCKS)
def test_a_xerial_block_that_is_cut_is_refused(blocks: bytes, reason: str) -> None:
    framed = compress(SNAPPY, b"first") + blocks
    with pytest.raises(ApiError, match=reason) as refusal:
        decompress(SNAPPY, framed)
    assert refusal.value.code == Error.CORRUPT_MESSAGE


def test_xerial_blocks_follow_each_other() -> None:
    header_bytes = 16
    framed = compress(SNAPPY, b"first") + compress(SNAPPY, b"second")[header_bytes:]
    assert decompress(SNAPPY, framed) == b"firstsecond"
    assert decompress(SNAPPY, compress(SNAPPY, b"")) == b""


@pytest.mark.parametrize("codec", (5, 6, 7, -1))
def test_unknown_codecs_are_refused(codec: int) -> None:
    for action in (compress, decompress):
        with pytest.raises(ApiError) as refusal:
            action(codec, b"data")
        assert refusal.value.code == Error.UNSUPPORTED_COMPRESSION_TYPE
