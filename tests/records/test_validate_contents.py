"""What a producer's batch may contain, and which times the broker gives it.

Source: Kafka's LogValidator; KIP-467; decision 0044."""

import gzip
import random
import struct
import tracemalloc
from collections.abc import Callable

import cramjam
import msgspec
import pytest

from strandline.base.errors import ApiError, RefusedRecordsError
from strandline.protocol.errors import Error
from strandline.records.batch import HEADER_BYTES, BatchHeader, crc_matches, read_header, seal
from strandline.records.codec import GZIP, LZ4, NONE, SNAPPY, ZSTD, compress
from strandline.records.record import Record, build_batch, decode_records
from strandline.records.validate_contents import (
    DECOMPRESSED_BYTES_ALLOWED,
    RECORD_ERRORS_MAX,
    ContentRules,
    decompressed_bytes_max,
    validate_contents,
)

NOW = 1_700_000_000_000
HOUR_MS = 3_600_000
CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)
COMPRESSED = (GZIP, SNAPPY, LZ4, ZSTD)
ANY = ContentRules()
MIB = 1 << 20
RECORDS = [Record(at, NOW + at, b"k%d" % at, b"v" * 30_000) for at in range(10)]


def header_of(batch: bytearray) -> BatchHeader:
    header = read_header(batch)
    assert header is not None
    return header


def with_payload(payload: bytes, *, codec: int, count: int = 10, **times: int) -> bytearray:
    """A batch with a right CRC whose header promises `count` records in `payload`."""
    batch = build_batch(
        [], last_offset_delta=count - 1, base_timestamp=NOW, max_timestamp=NOW + count - 1
    )
    struct.pack_into(">i", batch, 8, HEADER_BYTES - 12 + len(payload))
    struct.pack_into(">h", batch, 21, codec)
    struct.pack_into(">i", batch, 57, count)
    batch += payload
    seal(batch, header_of(batch))
    return batch


def plain_records(count: int = 10) -> bytes:
    return bytes(build_batch(RECORDS[:count])[HEADER_BYTES:])


def refusal_of(batch: bytearray, rules: ContentRules = ANY) -> ApiError:
    with pytest.raises(ApiError) as refusal:
        validate_contents(batch, header_of(batch), rules)
    return refusal.value


# ---- the records ----


@pytest.mark.parametrize("codec", CODECS)
def test_sound_records_pass_as_they_are(codec: int) -> None:
    batch = build_batch(RECORDS, codec=codec)
    before = bytes(batch)
    assert validate_contents(batch, header_of(batch), ANY) == len(plain_records())
    assert batch == before


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("count", (9, 11))
def test_the_header_counts_the_records(codec: int, count: int) -> None:
    batch = with_payload(compress(codec, plain_records()), codec=codec, count=count)
    assert refusal_of(batch).code == Error.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
def test_garbage_is_refused_whatever_codec_it_claims(codec: int) -> None:
    rng = random.Random(1)
    for size in (1, 7, 61, 500, 5_000):
        assert refusal_of(with_payload(rng.randbytes(size), codec=codec)).code == (
            Error.INVALID_RECORD
        )


@pytest.mark.parametrize("codec", COMPRESSED)
def test_what_is_not_of_its_codec_is_refused(codec: int) -> None:
    for other in CODECS:
        if other != codec:
            batch = with_payload(compress(other, plain_records()), codec=codec)
            assert refusal_of(batch).code == Error.INVALID_RECORD


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_cut_payload_is_refused(codec: int) -> None:
    payload = compress(codec, plain_records())
    for cut in (0, 1, len(payload) // 2, len(payload) - 1):
        batch = with_payload(payload[:cut], codec=codec)
        assert refusal_of(batch).code == Error.INVALID_RECORD, cut


@pytest.mark.parametrize("codec", (LZ4, ZSTD, SNAPPY))
def test_bytes_behind_the_compressed_records_are_refused(codec: int) -> None:
    batch = with_payload(compress(codec, plain_records()) + b"\x07more", codec=codec)
    assert refusal_of(batch).code == Error.INVALID_RECORD


def lz4_frame(*, linked: bool = False, content_checksum: bool = False) -> bytes:
    compressor = cramjam.lz4.Compressor(content_checksum=content_checksum, block_linked=linked)
    compressor.compress(plain_records())
    return bytes(compressor.finish())


def test_lz4_blocks_must_be_independent() -> None:
    batch = with_payload(lz4_frame(), codec=LZ4)
    assert validate_contents(batch, header_of(batch), ANY)
    assert "linked" in refusal_of(with_payload(lz4_frame(linked=True), codec=LZ4)).message


@pytest.mark.parametrize("at", (0, 3, 4, 5, 6))
def test_an_lz4_frame_with_a_wrong_header_is_refused(at: int) -> None:
    frame = bytearray(lz4_frame())
    frame[at] ^= 0xFF
    assert refusal_of(with_payload(bytes(frame), codec=LZ4)).code == Error.INVALID_RECORD


def test_snappy_in_googles_framing_is_refused_and_a_bare_block_taken() -> None:
    framed = bytes(cramjam.snappy.compress(plain_records()))
    assert refusal_of(with_payload(framed, codec=SNAPPY)).code == Error.INVALID_RECORD
    bare = with_payload(bytes(cramjam.snappy.compress_raw(plain_records())), codec=SNAPPY)
    assert validate_contents(bare, header_of(bare), ANY)
    assert decode_records(bare) == RECORDS


def xxhash32(data: bytes) -> int:
    """Of fewer than 16 bytes."""
    primes = (2654435761, 2246822519, 3266489917, 668265263, 374761393)
    mask = 2**32 - 1
    value = (primes[4] + len(data)) & mask
    for at in range(0, len(data) // 4 * 4, 4):
        value = (value + int.from_bytes(data[at : at + 4], "little") * primes[2]) & mask
        value = ((value << 17 | value >> 15) * primes[3]) & mask
    for byte in data[len(data) // 4 * 4 :]:
        value = (value + byte * primes[4]) & mask
        value = (((value << 11 | value >> 21) & mask) * primes[0]) & mask
    value = ((value ^ value >> 15) * primes[1]) & mask
    value = ((value ^ value >> 13) * primes[2]) & mask
    return value ^ value >> 16


def lz4_with_content_size() -> bytes:
    frame = lz4_frame()
    descriptor = bytes((frame[4] | 8, frame[5])) + len(plain_records()).to_bytes(8, "little")
    return frame[:4] + descriptor + bytes((xxhash32(descriptor) >> 8 & 0xFF,)) + frame[7:]


def halves(codec: int, data: bytes) -> bytes:
    """Compressed in two parts, one behind the other."""
    return compress(codec, data[:9]) + compress(codec, data[9:])


SKIPPABLE = bytes.fromhex("502a4d18 02000000 abcd")
ODD_BUT_SOUND: list[tuple[str, int, Callable[[bytes], bytes]]] = [
    ("gzip with bytes behind it", GZIP, lambda data: compress(GZIP, data) + bytes(30)),
    ("an empty gzip member", GZIP, lambda data: compress(GZIP, b"") + compress(GZIP, data)),
    ("two members and a byte", GZIP, lambda data: halves(GZIP, data) + b"x"),
    ("two xerial streams", SNAPPY, lambda data: halves(SNAPPY, data)),
    ("a skippable frame", ZSTD, lambda data: SKIPPABLE + compress(ZSTD, data)),
    ("lz4 with a content size", LZ4, lambda data: lz4_with_content_size()),
    ("lz4 with a checksum", LZ4, lambda data: lz4_frame(content_checksum=True)),
]


@pytest.mark.parametrize(
    ("codec", "encode"), [row[1:] for row in ODD_BUT_SOUND], ids=[row[0] for row in ODD_BUT_SOUND]
)
def test_odd_payloads_that_kafka_takes_are_taken_and_read(
    codec: int, encode: Callable[[bytes], bytes]
) -> None:
    batch = with_payload(encode(plain_records()), codec=codec)
    header = header_of(batch)
    assert validate_contents(batch, header, ANY) == len(plain_records())
    assert validate_contents(batch, header, ANY, scratch=bytearray(1 << 20)) > 0
    assert decode_records(batch) == RECORDS


def test_several_members_and_frames_are_taken_and_read() -> None:
    records = plain_records()
    half = len(records) // 2
    members = with_payload(
        gzip.compress(records[:half]) + gzip.compress(records[half:]), codec=GZIP
    )
    frames = with_payload(
        compress(ZSTD, records[:half]) + compress(ZSTD, records[half:]), codec=ZSTD
    )
    for batch in (members, frames):
        assert validate_contents(batch, header_of(batch), ANY) == len(records)
        assert decode_records(batch) == RECORDS


# ---- bombs ----


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_bomb_is_refused_and_costs_bounded_memory(codec: int) -> None:
    zeros = bytes(64 * MIB)
    payload = (
        bytes(cramjam.snappy.compress_raw(zeros)) if codec == SNAPPY else compress(codec, zeros)
    )
    batch = with_payload(payload, codec=codec, count=1)
    bound = decompressed_bytes_max(header_of(batch))
    if bound >= len(zeros):  # snappy compresses 20-fold at most: its bound is the ratio's.
        assert codec == SNAPPY
        return
    tracemalloc.start()
    assert refusal_of(batch).code == Error.INVALID_RECORD
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * bound + MIB


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_large_record_of_zeros_is_no_bomb(codec: int) -> None:
    record = Record(0, NOW, b"k", bytes(DECOMPRESSED_BYTES_ALLOWED - 100))
    batch = build_batch([record], codec=codec)
    assert validate_contents(batch, header_of(batch), ANY) > DECOMPRESSED_BYTES_ALLOWED - 100
    assert decode_records(batch) == [record]


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_scratch_buffer_bounds_what_is_decompressed(codec: int) -> None:
    batch = build_batch(RECORDS, codec=codec)
    size = len(plain_records())
    header = header_of(batch)
    assert validate_contents(batch, header, ANY, scratch=bytearray(size)) == size
    assert validate_contents(batch, header, ANY, scratch=bytearray(size - 1)) == -1


# ---- times and keys ----


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("claimed", (-1, 0, NOW - 1, NOW + 10 * HOUR_MS))
def test_the_times_are_those_of_the_records(codec: int, claimed: int) -> None:
    records = [Record(0, NOW + 5, b"k"), Record(1, NOW + 900, b"k"), Record(2, NOW - 3, b"k")]
    batch = build_batch(records, codec=codec, max_timestamp=claimed)
    header = header_of(batch)
    validate_contents(batch, header, ANY)
    assert header.max_timestamp == NOW + 900
    assert header_of(batch) == header
    assert crc_matches(batch, header)
    assert decode_records(batch) == records


@pytest.mark.parametrize("codec", CODECS)
def test_records_without_timestamps_pass_any_bounds(codec: int) -> None:
    batch = build_batch([Record(0, -1, b"k"), Record(1, -1, b"k")], codec=codec, base_timestamp=-1)
    header = header_of(batch)
    validate_contents(batch, header, ContentRules(timestamp_min=NOW, timestamp_max=NOW))
    assert header.max_timestamp == -1


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("late", (NOW - HOUR_MS - 1, NOW + HOUR_MS + 1))
def test_each_record_is_judged_by_its_own_time(codec: int, late: int) -> None:
    rules = ContentRules(timestamp_min=NOW - HOUR_MS, timestamp_max=NOW + HOUR_MS)
    edges = [Record(0, NOW - HOUR_MS, b"k"), Record(1, NOW + HOUR_MS, b"k"), Record(2, NOW, b"k")]
    sound = build_batch(edges, codec=codec)
    assert validate_contents(sound, header_of(sound), rules)
    batch = build_batch([*edges, Record(3, late, b"k")], codec=codec, max_timestamp=NOW)
    refusal = refusal_of(batch, rules)
    assert isinstance(refusal, RefusedRecordsError)
    assert refusal.code == Error.INVALID_TIMESTAMP
    assert [index for index, _ in refusal.record_errors] == [3]
    assert str(late) in refusal.record_errors[0][1]


@pytest.mark.parametrize("codec", CODECS)
def test_the_times_mean_nothing_where_the_broker_sets_them(codec: int) -> None:
    batch = build_batch([Record(0, 5, b"k")], codec=codec, max_timestamp=77)
    header = header_of(batch)
    rules = ContentRules(has_append_time=True, timestamp_min=NOW, timestamp_max=NOW)
    assert validate_contents(batch, header, rules)
    assert header.max_timestamp == 77


@pytest.mark.parametrize("codec", CODECS)
def test_a_compacted_topic_needs_a_key_in_each_record(codec: int) -> None:
    keyless = build_batch([Record(0, NOW, b"k"), Record(1, NOW), Record(2, NOW)], codec=codec)
    assert validate_contents(keyless, header_of(keyless), ANY)
    for rules in (ContentRules(needs_keys=True), ContentRules(True, has_append_time=True)):
        refusal = refusal_of(keyless, rules)
        assert isinstance(refusal, RefusedRecordsError)
        assert refusal.code == Error.INVALID_RECORD
        assert [index for index, _ in refusal.record_errors] == [1, 2]
    keyed = build_batch(RECORDS, codec=codec)
    assert validate_contents(keyed, header_of(keyed), ContentRules(needs_keys=True))


def test_times_that_leave_their_range_are_refused() -> None:
    for base in (2**62, -(2**62) - 1, 2**63 - 1, -(2**63)):
        batch = with_payload(plain_records(1), codec=NONE, count=1)
        struct.pack_into(">q", batch, 27, base)
        seal(batch, header_of(batch))
        assert refusal_of(batch).code == Error.INVALID_TIMESTAMP
    # With the broker's time they mean nothing.
    assert validate_contents(batch, header_of(batch), ContentRules(has_append_time=True))


def test_so_many_refused_records_are_named_and_no_more() -> None:
    batch = build_batch([Record(at, NOW) for at in range(RECORD_ERRORS_MAX + 5)])
    refusal = refusal_of(batch, ContentRules(needs_keys=True))
    assert isinstance(refusal, RefusedRecordsError)
    assert len(refusal.record_errors) == RECORD_ERRORS_MAX


# ---- topics whose compressed batches are not validated ----

UNREAD = ContentRules(
    timestamp_min=NOW - HOUR_MS, timestamp_max=NOW + HOUR_MS, reads_compressed=False
)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_topic_may_take_compressed_batches_unread(codec: int) -> None:
    garbage = with_payload(b"garbage", codec=codec)
    assert validate_contents(garbage, header_of(garbage), UNREAD) == len(b"garbage")
    refused = refusal_of(garbage, msgspec.structs.replace(UNREAD, needs_keys=True))
    assert refused.code == Error.INVALID_RECORD, "keys can only be seen in the records"
    assert refusal_of(with_payload(b"garbage", codec=NONE), UNREAD).code == Error.INVALID_RECORD


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("claimed", (-1, NOW - 1, NOW + HOUR_MS + 1))
def test_a_batch_whose_header_has_no_sound_time_is_read_all_the_same(
    codec: int, claimed: int
) -> None:
    batch = build_batch([Record(0, NOW), Record(1, NOW + 7)], codec=codec, max_timestamp=claimed)
    header = header_of(batch)
    validate_contents(batch, header, UNREAD)
    assert header.max_timestamp == NOW + 7
