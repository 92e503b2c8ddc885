"""A small batch that holds much costs a broker little: memory, and time of the event loop.

Source: docs/decisions/0044-inside-a-batch.md; `records.record.ITEMS_MAX`."""

import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache

import pytest

from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.records.batch import BatchHeader, read_header
from strandline.records.batch_cleaner import BatchCleaner, CleanedBatches
from strandline.records.codec import CODEC_NAMES, compress
from strandline.records.latest_keys import UNREADABLE_EFFORT, LatestKeys
from strandline.records.record import ITEMS_MAX, Record, build_batch, build_encoded_batch
from strandline.records.record_times import first_record_since, newest_record
from strandline.records.validate_contents import ContentRules, validate_contents
from strandline.records.varint import encode_varint

NOW = 1_700_000_000_000
MIB = 1 << 20
CODECS = pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=CODEC_NAMES[1:])
EMPTY_HEADER = b"\0\1"
Bomb = tuple[bytearray, BatchHeader]


def framed(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


def bomb_of(records: bytes, count: int, codec: int) -> Bomb:
    batch = build_encoded_batch(
        records,
        records_count=count,
        timestamps=(NOW, NOW),
        codec=codec,
        producer=(-1, -1, -1),
    )
    header = read_header(batch)
    assert header is not None
    return batch, header


def one_value(codec: int, size: int) -> Bomb:
    """One record with a value of zeros."""
    value = encode_varint(size) + bytes(size)
    return bomb_of(framed(b"\0\0\0\2k" + value + b"\0"), 1, codec)


@cache
def _headers() -> bytes:
    count = 4_000_000
    return framed(b"\0\0\0\2k\1" + encode_varint(count) + EMPTY_HEADER * count)


@cache
def _records() -> bytes:
    bodies = (b"\0\0" + encode_varint(at) + b"\2k\1\0" for at in range(ITEMS_MAX + 1))
    return b"".join(map(framed, bodies))


def many_headers(codec: int) -> Bomb:
    """One record with millions of empty headers."""
    return bomb_of(_headers(), 1, codec)


def many_records(codec: int) -> Bomb:
    """More records than are decoded one by one."""
    return bomb_of(_records(), ITEMS_MAX + 1, codec)


@contextmanager
def little_memory() -> Iterator[None]:
    """Python's memory does not grow by more than the records take uncompressed, some times."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 64 * MIB
    finally:
        tracemalloc.stop()


class Kept(CleanedBatches):
    """The batches that stay."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[bytes] = []

    def _put(self, batch: object) -> None:
        self.batches.append(bytes(batch))  # type: ignore[call-overload]


def cleaner(keys: LatestKeys) -> BatchCleaner:
    return BatchCleaner(
        keys,
        now_ms=NOW,
        delete_retention_ms=0,
        outlived_offset=Offset(0),
        may_be_repeated=lambda _: False,
    )


@CODECS
def test_a_produced_batch_decompresses_to_no_more_than_its_bound(codec: int) -> None:
    """Within 16 MiB at any ratio; beyond it the batch is refused, whatever it claims."""
    within, header = one_value(codec, 16 * MIB - 100)
    assert validate_contents(within, header, ContentRules()) > 15 * MIB
    ratio = len(within) / (16 * MIB)
    beyond, header = one_value(codec, 17 * MIB)
    if ratio * 100 > 1:  # Snappy compresses too little for a bomb.
        assert CODEC_NAMES[codec] == "snappy"
        return
    with pytest.raises(ApiError, match="more than 16777216 bytes"):
        validate_contents(beyond, header, ContentRules())


@CODECS
@pytest.mark.parametrize("make", [many_headers, many_records])
def test_compaction_leaves_a_batch_with_too_many_items_as_it_is(
    make: Callable[[int], Bomb], codec: int
) -> None:
    batch, header = make(codec)
    keys, kept = LatestKeys(Offset(0), bytes_max=MIB), Kept()
    with little_memory():
        assert keys.add(header, batch) == UNREADABLE_EFFORT
        assert cleaner(keys).clean(kept, header, batch) == UNREADABLE_EFFORT
    assert kept.batches == [bytes(batch)]


@CODECS
@pytest.mark.parametrize("make", [many_headers, many_records])
def test_a_look_up_by_time_decodes_none_of_them(make: Callable[[int], Bomb], codec: int) -> None:
    batch, header = make(codec)
    with little_memory():
        assert first_record_since(batch, header, NOW) == (NOW, 0)
        assert newest_record(batch, header, start_offset=Offset(0)) == (NOW, 0)
        with pytest.raises(ApiError, match="records and headers"):
            first_record_since(batch, header, NOW, start_offset=Offset(1))


@CODECS
def test_a_look_up_by_time_decompresses_within_a_bound(codec: int) -> None:
    batch, header = one_value(codec, 2 * MIB)
    with pytest.raises(ApiError, match=f"more than {MIB} bytes"):
        first_record_since(batch, header, NOW, bytes_max=MIB)


@CODECS
def test_a_slice_of_compaction_counts_what_is_decompressed(codec: int) -> None:
    """Or a slice of 32 KiB would decompress a hundred batches of 16 MiB."""
    keys = LatestKeys(Offset(0), bytes_max=MIB)
    batch, header = one_value(codec, 8 * MIB)
    assert keys.add(header, batch) >= 8 * MIB // 32
    records = [Record(at, NOW, b"k") for at in range(10_000)]
    batch = build_batch(records, codec=codec)
    header = read_header(batch)  # type: ignore[assignment]
    assert cleaner(keys).clean(Kept(), header, batch) >= 10_000 * 100


def test_each_codec_makes_a_bomb_of_zeros() -> None:
    """The tests above are about bombs: snappy's are small ones."""
    sizes = {CODEC_NAMES[codec]: len(compress(codec, bytes(MIB))) for codec in range(1, 5)}
    assert max(sizes["gzip"], sizes["lz4"], sizes["zstd"]) < MIB // 200
    assert sizes["snappy"] < MIB // 15
