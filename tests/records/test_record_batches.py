"""Batches are byte for byte what kafka-python and aiokafka build, and each reads the other's.

Source: Kafka's message format v2; the two clients are independent implementations of it."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch
from kafka.record.default_records import DefaultRecordBatchBuilder as KafkaPythonBuilder

from strandline.base.errors import ApiError
from strandline.model.ids import Epoch, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import (
    BatchHeader,
    crc_matches,
    iterate_headers,
    read_header,
    set_append_time,
)
from strandline.records.record import (
    Record,
    build_batch,
    decode_batches,
    decode_records,
    rebuild_batch,
)

NOW = 1_700_000_000_000
optional_bytes = st.none() | st.binary(max_size=40)
headers = st.lists(st.tuples(st.text(max_size=8), optional_bytes), max_size=3).map(tuple)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records as a producer would send them."""
    count = draw(st.integers(1, 8))
    return [
        Record(
            n,
            NOW + draw(st.integers(-5_000_000_000, 5_000_000_000)),
            draw(optional_bytes),
            draw(optional_bytes),
            draw(headers),
        )
        for n in range(count)
    ]


def build_with(builder_type: type, records: list[Record], codec: int = 0) -> bytes:
    """The same batch, built by a client's library."""
    builder = builder_type(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
        batch_size=1 << 20,
    )
    for record in records:
        added = builder.append(
            record.offset_delta, record.timestamp, record.key, record.value, list(record.headers)
        )
        assert added is not None
    return bytes(builder.build())


def build_ours(records: list[Record], codec: int = 0) -> bytes:
    return bytes(
        build_batch(records, codec=codec, producer_id=7, producer_epoch=1, base_sequence=5)
    )


def header_of(batch: bytes | bytearray, position: int = 0) -> BatchHeader:
    header = read_header(batch, position)
    assert header is not None
    return header


@settings(max_examples=200, deadline=None, derandomize=True)
@given(record_lists())
def test_uncompressed_batches_are_byte_for_byte_those_of_other_clients(
    records: list[Record],
) -> None:
    ours = build_ours(records)
    for builder in (KafkaPythonBuilder, AiokafkaBuilder):
        theirs = bytearray(build_with(builder, records))
        # They write other epochs.
        header_of(theirs).stamp(theirs, base_offset=Offset(0), epoch=Epoch(0))
        assert ours == bytes(theirs)


@pytest.mark.parametrize("codec", range(5))
@settings(max_examples=40, deadline=None, derandomize=True)
@given(record_lists())
def test_every_codec_is_read_by_us_and_by_aiokafka(codec: int, records: list[Record]) -> None:
    assert decode_records(build_with(AiokafkaBuilder, records, codec)) == records
    theirs = AiokafkaBatch(build_ours(records, codec))
    assert theirs.validate_crc()
    found = [
        Record(record.offset, record.timestamp, record.key, record.value, tuple(record.headers))
        for record in theirs
    ]
    assert found == records


@pytest.mark.parametrize("codec", (0, 1))
@settings(max_examples=40, deadline=None, derandomize=True)
@given(record_lists())
def test_kafka_python_reads_what_we_build(codec: int, records: list[Record]) -> None:
    assert decode_records(build_with(KafkaPythonBuilder, records, codec)) == records
    theirs = KafkaPythonBatch(build_ours(records, codec))
    assert theirs.validate_crc()
    assert [(r.offset, r.timestamp, r.key, r.value) for r in theirs] == [
        (r.offset_delta, r.timestamp, r.key, r.value) for r in records
    ]


def test_headers_say_what_the_builder_was_told() -> None:
    records = [Record(0, NOW + 5, b"k", b"v"), Record(2, NOW, None, b"w")]
    batch = build_batch(
        records,
        base_offset=100,
        epoch=9,
        codec=4,
        producer_id=3,
        producer_epoch=2,
        base_sequence=8,
    )
    header = header_of(batch)
    assert header.size == len(batch)
    assert (header.base_offset, header.last_offset, header.next_offset) == (100, 102, 103)
    assert (header.index_count, header.records_count) == (3, 2)
    assert (header.base_timestamp, header.max_timestamp) == (NOW + 5, NOW + 5)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (3, 2, 8)
    assert (header.partition_leader_epoch, header.codec) == (9, 4)
    assert not (header.is_control or header.is_marker or header.is_transactional)


def test_a_record_without_a_time_has_that_of_its_batch() -> None:
    batch = build_batch([Record(0, value=b"a"), Record(1, value=b"b")], base_timestamp=NOW)
    assert [record.timestamp for record in decode_records(batch)] == [NOW, NOW]
    assert header_of(batch).max_timestamp == NOW


def test_stamping_leaves_the_crc_right() -> None:
    data = bytearray(build_ours([Record(0, NOW, b"k", b"v")]) * 2)
    for offset, header in enumerate(iterate_headers(data)):
        header.stamp(data, base_offset=Offset(1000 + offset), epoch=Epoch(77))
    found = list(iterate_headers(data))
    assert [header.base_offset for header in found] == [1000, 1001]
    assert [header.partition_leader_epoch for header in found] == [77, 77]
    assert all(crc_matches(data, header) for header in found)


def test_a_single_flipped_bit_is_seen() -> None:
    batch = bytearray(build_ours([Record(0, NOW, b"key", b"value")]))
    for position in range(21, len(batch)):
        batch[position] ^= 4
        header = BatchHeader(0, *header_fields(batch))
        assert not crc_matches(batch, header)
        batch[position] ^= 4
    assert crc_matches(batch, header_of(batch))


def header_fields(batch: bytearray) -> tuple[int, ...]:
    from strandline.records.batch import HEADER

    return HEADER.unpack_from(batch)


def test_the_time_of_append_holds_for_every_record() -> None:
    prefix = b"xxx"
    batch = bytearray(prefix + build_ours([Record(0, NOW, b"k", b"v"), Record(1, NOW + 9)], 1))
    header = header_of(batch, len(prefix))
    set_append_time(batch, header, NOW + 100)
    again = header_of(batch, len(prefix))
    assert crc_matches(batch, again)
    assert again.has_append_time
    assert {record.timestamp for record in decode_records(batch, 3)} == {NOW + 100}
    assert AiokafkaBatch(bytes(batch[3:])).timestamp_type == 1


def test_a_cut_batch_is_left_out_and_an_impossible_one_refused() -> None:
    batch = build_ours([Record(0, NOW, b"k", b"v")])
    for length in range(len(batch)):
        assert read_header(batch[:length]) is None
        assert list(iterate_headers(batch + batch[:length])) == [header_of(batch)]
    assert list(iterate_headers(batch * 3, len(batch), 2 * len(batch))) != []
    for length in (-1, 0, 48, -(2**31)):
        broken = bytearray(batch)
        broken[8:12] = length.to_bytes(4, "big", signed=True)
        with pytest.raises(ApiError) as refusal:
            list(iterate_headers(broken))
        assert refusal.value.code == Error.CORRUPT_MESSAGE
    for magic in (0, 1, 3):
        broken = bytearray(batch)
        broken[16] = magic
        for data in (broken, broken[:40]):
            with pytest.raises(ApiError) as refusal:
                read_header(data)
            assert refusal.value.code == Error.INVALID_RECORD


def test_an_old_format_is_refused_as_soon_as_its_magic_is_there() -> None:
    old = bytearray(build_ours([Record(0, NOW, b"k", b"v")]))
    old[16] = 1
    for length in range(17):
        assert read_header(b"\2" * 5 + old[:length], 5) is None
    for length in range(17, len(old) + 1):
        with pytest.raises(ApiError) as refusal:
            read_header(b"\2" * 5 + old[:length], 5)
        assert refusal.value.code == Error.INVALID_RECORD


def test_the_smallest_batch_is_a_header_without_records() -> None:
    empty = build_batch([])
    assert (len(empty), header_of(empty).size) == (61, 61)
    assert [header.position for header in iterate_headers(empty + empty)] == [0, 61]


def test_an_offset_delta_is_at_least_that_of_a_marker() -> None:
    batch = bytearray(build_ours([Record(0, NOW, b"k", b"v")]))
    batch[23:27] = (-1).to_bytes(4, "big", signed=True)
    assert header_of(batch).index_count == 1
    assert [header.last_offset_delta for header in iterate_headers(batch)] == [-1]
    batch[23:27] = (-2).to_bytes(4, "big", signed=True)
    for read in (read_header, lambda data: list(iterate_headers(data))):
        with pytest.raises(ApiError) as refusal:
            read(batch)
        assert refusal.value.code == Error.CORRUPT_MESSAGE


def test_headers_are_those_of_whole_batches_in_the_range() -> None:
    batch = build_ours([Record(0, NOW, b"k", b"v")])
    size = len(batch)
    data = batch * 3
    for start, end, positions in (
        (0, None, [0, size, 2 * size]),
        (size, None, [size, 2 * size]),
        (0, 2 * size, [0, size]),
        (0, 2 * size - 1, [0]),
        (0, 2 * size + 1, [0, size]),
        (size, 2 * size, [size]),
        (size, size, []),
    ):
        assert [header.position for header in iterate_headers(data, start, end)] == positions
    with pytest.raises(ApiError):
        list(iterate_headers(data, 1))


@pytest.mark.parametrize(("count", "indexes"), ((1, 1), (2, 2), (7, 7)))
def test_a_data_batch_takes_an_index_for_each_offset(count: int, indexes: int) -> None:
    batch = build_batch([Record(n, NOW, b"k") for n in range(count)], base_offset=100)
    header = header_of(batch)
    assert (header.index_count, header.last_offset) == (indexes, 100 + count - 1)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(records=record_lists(), seed=st.randoms(use_true_random=False))
def test_mangled_records_are_refused_and_never_crash(records: list[Record], seed: object) -> None:
    import random

    assert isinstance(seed, random.Random)
    batch = bytearray(build_ours(records))
    for _ in range(seed.randint(1, 4)):
        batch[seed.randrange(57, len(batch))] = seed.randrange(256)
    try:
        decode_records(batch)
    except ApiError as error:
        assert error.code == Error.CORRUPT_MESSAGE


@pytest.mark.parametrize("timestamp", (2**62, -(2**62) - 1))
def test_times_beyond_reason_are_refused(timestamp: int) -> None:
    batch = build_batch([Record(0, timestamp, b"k")])
    with pytest.raises(ApiError) as refusal:
        decode_records(batch)
    assert refusal.value.code == Error.CORRUPT_MESSAGE


@pytest.mark.parametrize("delta", (-1, 1))
def test_offset_deltas_outside_the_batch_are_refused(delta: int) -> None:
    batch = build_batch([Record(delta, NOW, b"k")], last_offset_delta=0)
    with pytest.raises(ApiError) as refusal:
        decode_records(batch)
    assert refusal.value.code == Error.CORRUPT_MESSAGE


def test_decoding_batches_leaves_markers_out() -> None:
    from strandline.records.marker import build_epoch_marker

    first = build_batch([Record(0, NOW, b"a"), Record(1, NOW, b"b")], base_offset=5)
    marker = build_epoch_marker(Offset(7), Epoch(2), NOW)
    second = build_batch([Record(0, NOW, b"c")], base_offset=7)
    found = list(decode_batches(bytes(first) + marker + bytes(second)))
    assert [(offset, record.key) for offset, record in found] == [(5, b"a"), (6, b"b"), (7, b"c")]


@pytest.mark.parametrize("codec", range(5))
def test_rebuilding_with_fewer_records_keeps_offsets_and_producer(codec: int) -> None:
    records = [Record(n, NOW + n, b"%d" % n, b"v" * n) for n in range(5)]
    batch = bytearray(build_ours(records, codec))
    header = header_of(batch)
    header.stamp(batch, base_offset=Offset(50), epoch=Epoch(3))
    rebuilt = rebuild_batch(header, records[1:3])
    found = header_of(rebuilt)
    assert crc_matches(rebuilt, found)
    assert decode_records(rebuilt) == records[1:3]
    assert (found.base_offset, found.last_offset) == (50, 54)
    assert (found.producer_id, found.base_sequence, found.codec) == (7, 5, codec)
    assert (found.max_timestamp, found.records_count) == (NOW + 2, 2)
    assert header_of(batch) == header
    empty = rebuild_batch(header, [])
    assert (header_of(empty).codec, header_of(empty).records_count) == (0, 0)
    assert header_of(empty).next_offset == 55
    assert list(AiokafkaBatch(bytes(empty))) == []
