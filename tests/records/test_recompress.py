"""A topic's codec replaces a producer's, and nothing else of a batch changes.

Source: Kafka's compression.type and compression.*.level (KIP-390)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import ApiError
from strandline.protocol.errors import Error
from strandline.records.batch import CODEC_MASK, BatchHeader, crc_matches, iterate_headers
from strandline.records.codec import GZIP, LZ4, NONE, ZSTD, compress, decompress
from strandline.records.recompress import Budget, Compression, has_codec, recompress
from strandline.records.record import Record, build_batch, decode_records

BIG = 1 << 20
CODECS = st.integers(NONE, ZSTD)
OWN = ("position", "batch_length", "crc", "attributes")


def rest_of(header: BatchHeader) -> dict[str, object]:
    """What must stay."""
    fields = {name: getattr(header, name) for name in header.__struct_fields__ if name not in OWN}
    return {**fields, "flags": header.attributes & ~CODEC_MASK}


@given(
    sent=st.lists(st.tuples(CODECS, st.integers(1, 5), st.binary(max_size=300)), min_size=1),
    codec=CODECS,
    producer=st.sampled_from([(-1, -1, -1), (7, 2, 40)]),
)
def test_only_the_codec_changes(
    sent: list[tuple[int, int, bytes]], codec: int, producer: tuple[int, int, int]
) -> None:
    batches = [
        build_batch(
            [Record(n, 1_000 + n, b"k", value, (("h", None),)) for n in range(count)],
            codec=each,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
        )
        for each, count, value in sent
    ]
    view = memoryview(bytearray(b"".join(batches)))
    before = list(iterate_headers(view))
    data, headers = recompress(
        view, before, Compression(codec), max_bytes=BIG, budget=Budget(BIG, BIG)
    )
    assert has_codec(headers, codec)
    assert headers == list(iterate_headers(data))
    for old, new in zip(before, headers, strict=True):
        assert crc_matches(data, new)
        assert rest_of(old) == rest_of(new)
        assert decode_records(view, old.position) == decode_records(data, new.position)


def test_a_batch_with_the_codec_already_keeps_its_bytes() -> None:
    batch = build_batch([Record(0, 5, b"k", b"v" * 1_000)], codec=GZIP)
    view = memoryview(batch)
    headers = list(iterate_headers(view))
    wanted = Compression(GZIP, 1)
    data, _ = recompress(view, headers, wanted, max_bytes=BIG, budget=Budget(BIG, BIG))
    assert bytes(data) == bytes(batch)


def test_what_is_too_large_afterwards_is_refused() -> None:
    view = memoryview(build_batch([Record(0, 5, b"k", b"v" * 10_000)], codec=ZSTD))
    headers = list(iterate_headers(view))
    for max_bytes, bound, stored, code in (
        (5_000, BIG, BIG, Error.MESSAGE_TOO_LARGE),
        (BIG, 5_000, BIG, Error.INVALID_RECORD),
        (BIG, BIG, 5_000, Error.MESSAGE_TOO_LARGE),
    ):
        with pytest.raises(ApiError) as refused:
            recompress(
                view,
                headers,
                Compression(NONE),
                max_bytes=max_bytes,
                budget=Budget(bound, stored),
            )
        assert refused.value.code == code


@pytest.mark.parametrize(("codec", "low", "high"), [(GZIP, 1, 9), (ZSTD, -100, 19), (LZ4, 1, 12)])
def test_a_higher_level_takes_less_space(codec: int, low: int, high: int) -> None:
    data = b"".join(b"%d:%d;" % (n, n * n % 1_013) for n in range(20_000))
    small, large = compress(codec, data, level=high), compress(codec, data, level=low)
    assert len(small) < len(large)
    for one in (small, large):
        assert decompress(codec, one) == data
