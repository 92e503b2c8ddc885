"""What compaction does to one batch: which records stay, and what the batch says afterwards.

Source: Kafka's log cleaner; KIP-534 for the delete horizon."""

from collections.abc import Collection

import pytest

from strandline.base.disk import Buffer
from strandline.model.ids import Epoch, Offset
from strandline.records.batch import DELETE_HORIZON_BIT, BatchHeader, crc_matches, read_header
from strandline.records.cleaning import clean_batch, empty_batch, filler, is_filler
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch, decode_records
from strandline.records.varint import encode_varint

NOW = 1_700_000_000_000
RETENTION_MS = 1_000
VALUE = Record(0, NOW, b"a", b"value")
TOMBSTONE = Record(1, NOW, b"b", None)
KEYLESS = Record(2, NOW, None, b"value")


def header_of(batch: Buffer) -> BatchHeader:
    header = read_header(batch)
    assert header is not None
    return header


def clean(
    batch: bytearray,
    *,
    newest: Collection[tuple[bytes, int]],
    now_ms: int = NOW,
    is_outlived: bool = True,
) -> Buffer | None:
    """Clean a batch; `newest`: (key, offset) of the records that no later one replaces."""
    return clean_batch(
        batch,
        header_of(batch),
        is_newest=lambda key, offset: (key, offset) in newest,
        now_ms=now_ms,
        delete_retention_ms=RETENTION_MS,
        is_outlived=is_outlived,
    )


def cleaned_once(records: list[Record]) -> bytearray:
    """A batch of these records with tombstones, cleaned at NOW."""
    batch = build_batch(records, base_offset=10)
    newest = {(record.key or b"", 10 + record.offset_delta) for record in records}
    cleaned = clean(batch, newest=newest)
    assert cleaned is not None
    return bytearray(cleaned)


def test_records_stay_that_have_a_key_and_are_the_newest_of_it() -> None:
    records = [VALUE, Record(1, NOW, b"b", b"old"), KEYLESS, Record(3, NOW, b"d", b"new")]
    batch = build_batch(records, base_offset=10, epoch=4)
    cleaned = clean(batch, newest={(b"a", 10), (b"d", 13), (b"b", 99)})
    assert cleaned is not None
    header = header_of(cleaned)
    assert decode_records(cleaned) == [records[0], records[3]]
    assert (header.base_offset, header.next_offset, header.partition_leader_epoch) == (10, 14, 4)
    assert (header.records_count, header.attributes) == (2, 0)
    assert crc_matches(cleaned, header)


def test_a_batch_whose_records_all_stay_is_the_very_same() -> None:
    batch = build_batch([VALUE], base_offset=10)
    assert clean(batch, newest={(b"a", 10)}) is batch


def test_a_batch_none_of_whose_records_stays_is_none() -> None:
    assert clean(build_batch([VALUE, KEYLESS], base_offset=10), newest=()) is None


def test_the_first_cleaning_gives_a_tombstone_its_delete_horizon() -> None:
    batch = build_batch([VALUE, TOMBSTONE], base_offset=10)
    cleaned = clean(batch, newest={(b"a", 10), (b"b", 11)})
    assert cleaned is not None
    header = header_of(cleaned)
    assert decode_records(cleaned) == [VALUE, TOMBSTONE]
    assert header.attributes == DELETE_HORIZON_BIT
    assert header.base_timestamp == NOW + RETENTION_MS
    assert crc_matches(cleaned, header)


def test_a_batch_without_tombstones_gets_no_delete_horizon() -> None:
    records = [VALUE, Record(1, NOW, b"b", b"old")]
    cleaned = clean(build_batch(records, base_offset=10), newest={(b"a", 10)})
    assert cleaned is not None
    assert (header_of(cleaned).attributes, header_of(cleaned).base_timestamp) == (0, NOW)


@pytest.mark.parametrize(
    ("age_ms", "is_outlived", "stays"),
    [
        (RETENTION_MS - 1, True, True),
        (RETENTION_MS, True, False),
        (RETENTION_MS, False, True),
        (10 * RETENTION_MS, False, True),
    ],
)
def test_a_tombstone_goes_at_its_horizon_once_every_replica_has_it(
    age_ms: int, is_outlived: bool, stays: bool
) -> None:
    batch = cleaned_once([VALUE, TOMBSTONE])
    cleaned = clean(
        batch,
        newest={(b"a", 10), (b"b", 11)},
        now_ms=NOW + age_ms,
        is_outlived=is_outlived,
    )
    if stays:
        assert cleaned is batch
    else:
        assert cleaned is not None
        assert decode_records(cleaned) == [VALUE]


def test_a_second_cleaning_leaves_the_delete_horizon_where_it_is() -> None:
    batch = cleaned_once([VALUE, TOMBSTONE, Record(2, NOW, b"c", b"value")])
    cleaned = clean(batch, newest={(b"a", 10), (b"b", 11)}, now_ms=NOW + RETENTION_MS - 1)
    assert cleaned is not None
    header = header_of(cleaned)
    assert decode_records(cleaned) == [VALUE, TOMBSTONE]
    assert header.attributes == DELETE_HORIZON_BIT
    assert header.base_timestamp == NOW + RETENTION_MS


def test_a_tombstone_that_a_later_record_replaces_goes_at_once() -> None:
    batch = build_batch([VALUE, TOMBSTONE], base_offset=10)
    cleaned = clean(batch, newest={(b"a", 10)}, is_outlived=False)
    assert cleaned is not None
    assert decode_records(cleaned) == [VALUE]


def test_an_emptied_batch_keeps_offsets_and_producer_and_loses_its_horizon() -> None:
    batch = build_batch(
        [TOMBSTONE],
        base_offset=10,
        epoch=4,
        codec=3,
        attributes=DELETE_HORIZON_BIT,
        producer_id=7,
        producer_epoch=2,
        base_sequence=5,
    )
    empty = empty_batch(header_of(batch))
    header = header_of(empty)
    assert (header.base_offset, header.next_offset, header.partition_leader_epoch) == (10, 12, 4)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 2, 5)
    assert (header.records_count, header.attributes, header.base_timestamp) == (0, 0, -1)
    assert header.max_timestamp == -1
    assert crc_matches(empty, header)
    assert decode_records(empty) == []


def test_a_filler_covers_its_offsets_and_says_nothing() -> None:
    batch = filler(Offset(10), Offset(15), Epoch(4))
    header = header_of(batch)
    assert (header.base_offset, header.next_offset, header.partition_leader_epoch) == (10, 15, 4)
    assert (header.records_count, header.producer_id, header.base_timestamp) == (0, -1, -1)
    assert is_filler(header)
    assert crc_matches(batch, header)
    assert decode_records(batch) == []
    assert header_of(filler(Offset(10), Offset(11), Epoch(4))).next_offset == 11


@pytest.mark.parametrize("producer_id", (0, 1))
def test_an_empty_batch_of_a_producer_is_no_filler(producer_id: int) -> None:
    assert not is_filler(header_of(build_batch([], producer_id=producer_id)))


def test_records_and_markers_are_no_filler() -> None:
    assert not is_filler(header_of(build_batch([VALUE])))
    marker = header_of(build_epoch_marker(Offset(0), Epoch(1), NOW))
    marker.records_count = 0
    assert not is_filler(marker)


@pytest.mark.parametrize(
    "name", [b"\xff\xfe", b"caf\xe9", "\N{SNOWMAN}".encode(), b"\xed\xa0\x80", b""]
)
def test_header_names_keep_their_bytes(name: bytes) -> None:
    """Also if they are no UTF-8: another client wrote them, and compares them."""
    decoded = name.decode(errors="surrogateescape")
    batch = build_batch([VALUE, Record(1, NOW, b"c", b"v", ((decoded, b"x"), (decoded, None)))])
    assert batch.count(encode_varint(len(name)) + name + b"\x02x") == 1
    cleaned = clean(batch, newest=[(b"c", 1)])
    assert cleaned is not None
    assert cleaned is not batch
    assert bytes(cleaned).count(encode_varint(len(name)) + name + b"\x02x") == 1
    assert decode_records(cleaned)[0].headers == ((decoded, b"x"), (decoded, None))
