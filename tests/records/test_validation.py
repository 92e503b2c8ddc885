"""Which headers a producer may send, and the code with which everything else is refused.

Source: Kafka's ProduceRequest.validateRecords and LogValidator."""

import pytest

from strandline.base.errors import ApiError
from strandline.model.ids import Epoch, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import read_header, seal
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.records.validate import BATCH_COUNT_MAX, validate_produced

NOW = 1_700_000_000_000
RECORDS = [Record(0, NOW, b"k", b"v"), Record(1, NOW + 1, b"l", None)]


def validate(data: bytes | bytearray, version: int = 9) -> list[int]:
    headers = validate_produced(memoryview(data), max_bytes=10_000, produce_version=version)
    return [header.position for header in headers]


def refusal_of(data: bytes | bytearray, version: int = 9) -> Error:
    with pytest.raises(ApiError) as refusal:
        validate(data, version)
    return Error(refusal.value.code)


def changed(batch: bytearray, position: int, value: bytes) -> bytearray:
    """The batch with other bytes at `position`, and a right CRC."""
    batch = bytearray(batch)
    batch[position : position + len(value)] = value
    header = read_header(batch)
    assert header is not None
    seal(batch, header)
    return batch


@pytest.mark.parametrize("codec", range(5))
def test_sound_batches_pass(codec: int) -> None:
    batch = build_batch(RECORDS, codec=codec)
    assert validate(batch) == [0]
    assert validate(batch + batch) == [0, len(batch)]


def test_nothing_at_all_is_refused() -> None:
    assert refusal_of(b"") == Error.INVALID_RECORD
    assert refusal_of(b"\0" * 10) == Error.INVALID_RECORD


def test_cut_and_trailing_bytes_are_refused() -> None:
    batch = build_batch(RECORDS)
    assert refusal_of(batch[:-1]) == Error.INVALID_RECORD
    assert refusal_of(batch + b"\0") == Error.INVALID_RECORD
    assert refusal_of(batch + batch[:70]) == Error.INVALID_RECORD


def test_a_base_offset_is_refused() -> None:
    batch = build_batch(RECORDS)
    batch[7] = 5
    assert refusal_of(batch) == Error.INVALID_RECORD


def test_a_wrong_crc_is_refused_in_any_batch() -> None:
    batch = build_batch(RECORDS)
    broken = bytearray(batch)
    broken[-3] ^= 1
    assert refusal_of(broken) == Error.CORRUPT_MESSAGE
    assert refusal_of(batch + broken) == Error.CORRUPT_MESSAGE


def test_old_formats_are_refused() -> None:
    for magic in (0, 1):
        batch = build_batch(RECORDS)
        batch[16] = magic
        assert refusal_of(batch) == Error.INVALID_RECORD


def test_a_header_alone_is_no_batch_and_more_is_a_cut_one() -> None:
    batch = build_batch(RECORDS)
    assert refusal_of(batch[:61]) == Error.INVALID_RECORD
    assert refusal_of(batch[:62]) == Error.INVALID_RECORD


def test_a_batch_of_exactly_the_limit_passes() -> None:
    batch = build_batch(RECORDS)
    view = memoryview(batch)
    assert len(validate_produced(view, max_bytes=len(batch), produce_version=9)) == 1
    with pytest.raises(ApiError) as refusal:
        validate_produced(view, max_bytes=len(batch) - 1, produce_version=9)
    assert refusal.value.code == Error.MESSAGE_TOO_LARGE


def test_a_batch_above_the_limit_is_refused() -> None:
    assert refusal_of(build_batch([Record(0, NOW, b"k", b"v" * 10_000)])) == Error.MESSAGE_TOO_LARGE


COUNTS: list[tuple[int, int]] = [(0, -1), (-1, 0), (2, 0), (1, 1), (3, 1), (2, -1), (2, 2**31 - 1)]


@pytest.mark.parametrize(("count", "delta"), COUNTS)
def test_counts_and_offsets_must_agree(count: int, delta: int) -> None:
    batch = build_batch(RECORDS)
    batch = changed(batch, 57, count.to_bytes(4, "big", signed=True))
    batch = changed(batch, 23, delta.to_bytes(4, "big", signed=True))
    assert refusal_of(batch) == Error.INVALID_RECORD


def test_an_impossible_offset_delta_is_refused() -> None:
    batch = build_batch(RECORDS)
    batch[23:27] = (-5).to_bytes(4, "big", signed=True)
    assert refusal_of(batch) == Error.CORRUPT_MESSAGE


ATTRIBUTES: list[tuple[int, Error]] = [
    (0x05, Error.UNSUPPORTED_COMPRESSION_TYPE),
    (0x07, Error.UNSUPPORTED_COMPRESSION_TYPE),
    (0x08, Error.INVALID_TIMESTAMP),
    (0x20, Error.INVALID_RECORD),
    (0x40, Error.INVALID_RECORD),
    (0x80, Error.INVALID_RECORD),
    (0x10, Error.INVALID_RECORD),
    (0x8000, Error.INVALID_RECORD),
]


@pytest.mark.parametrize(("attributes", "error"), ATTRIBUTES)
def test_attributes_that_are_not_a_producers_are_refused(attributes: int, error: Error) -> None:
    assert refusal_of(changed(build_batch(RECORDS), 21, attributes.to_bytes(2, "big"))) == error


def test_markers_are_refused() -> None:
    assert refusal_of(build_epoch_marker(Offset(0), Epoch(1), NOW)) == Error.INVALID_RECORD


def test_zstd_needs_produce_version_7() -> None:
    batch = build_batch(RECORDS, codec=4)
    assert refusal_of(batch, version=6) == Error.UNSUPPORTED_COMPRESSION_TYPE
    assert validate(batch, version=7) == [0]


PRODUCERS: list[tuple[int, int, int, bool]] = [
    (5, 0, 0, True),
    (5, 0, -1, False),
    (5, -1, 0, False),
    (0, 0, 0, True),
    (0, 0, -1, False),
    (0, -1, 0, False),
    (-1, -1, -1, True),
]


@pytest.mark.parametrize(("producer", "epoch", "sequence", "is_sound"), PRODUCERS)
def test_a_producer_id_needs_epoch_and_sequence(
    producer: int, epoch: int, sequence: int, is_sound: bool
) -> None:
    batch = build_batch(RECORDS, producer_id=producer, producer_epoch=epoch, base_sequence=sequence)
    if is_sound:
        assert validate(batch) == [0]
    else:
        assert refusal_of(batch) == Error.INVALID_RECORD


def test_an_idempotent_producer_sends_one_batch_at_a_time() -> None:
    plain = build_batch(RECORDS)
    for producer_id in (0, 1):
        batch = build_batch(RECORDS, producer_id=producer_id, producer_epoch=0, base_sequence=0)
        assert validate(batch) == [0]
        for several in (batch + batch, batch + plain, plain + batch):
            assert refusal_of(several) == Error.INVALID_RECORD


@pytest.mark.parametrize("producer_id", (0, 1))
def test_a_transaction_needs_a_producer(producer_id: int) -> None:
    batch = build_batch(
        RECORDS, attributes=0x10, producer_id=producer_id, producer_epoch=0, base_sequence=0
    )
    assert validate(batch) == [0]
    header = read_header(batch)
    assert header is not None
    assert header.is_transactional


def test_a_producer_sends_a_thousand_batches_for_a_partition_at_most() -> None:
    batch = build_batch(RECORDS)
    assert len(validate(batch * BATCH_COUNT_MAX)) == BATCH_COUNT_MAX
    assert refusal_of(batch * (BATCH_COUNT_MAX + 1)) == Error.INVALID_RECORD
