"""The records inside a batch: what is read of them, and each way in which they can be malformed.

Source: Kafka's message format v2."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import ApiError
from strandline.model.ids import Offset
from strandline.protocol.errors import Error
from strandline.records.batch import (
    APPEND_TIME_BIT,
    CONTROL_BIT,
    BatchHeader,
    read_header,
    seal,
    set_append_time,
)
from strandline.records.record import (
    Record,
    build_batch,
    decode_batches,
    decode_records,
    rebuild_batch,
)
from strandline.records.record_times import first_record_since, newest_record
from strandline.records.varint import encode_varint

NOW = 1_700_000_000_000
TIME_LIMIT = 1 << 62
PLAIN = b"\x00\x00\x00\x02k\x02v"
"""A record's attributes, deltas, key "k" and value "v"; the count of its headers follows."""


def header_of(batch: bytes | bytearray) -> BatchHeader:
    header = read_header(batch)
    assert header is not None
    return header


def batch_of(body: bytes, count: int = 1) -> bytearray:
    """An uncompressed batch of these bytes, which claims `count` records."""
    batch = build_batch([], last_offset_delta=5) + body
    batch[8:12] = (len(batch) - 12).to_bytes(4, "big")
    batch[57:61] = count.to_bytes(4, "big", signed=True)
    seal(batch, header_of(batch))
    return batch


def framed(record: bytes, more_bytes: int = 0) -> bytes:
    """A record behind its length, which claims `more_bytes` more than there are."""
    return encode_varint(len(record) + more_bytes) + record


MALFORMED: list[tuple[bytes, int, str]] = [
    (framed(PLAIN + b"\x00"), -1, "-1 records in 9 bytes"),
    (framed(PLAIN + b"\x00"), 10, "10 records in 9 bytes"),
    (framed(PLAIN + b"\x00"), 0, "9 bytes after the last record"),
    (framed(PLAIN + b"\x00"), 2, "a varint at byte 9 is cut"),
    (framed(PLAIN + b"\x00") + b"\x00", 1, "1 bytes after the last record"),
    (b"\x01" + PLAIN + b"\x00", 1, "a record reaches beyond its batch"),
    (framed(PLAIN + b"\x00", 1), 1, "a record reaches beyond its batch"),
    (framed(PLAIN + b"\x00\x00"), 1, "a record is shorter than it says"),
    (framed(PLAIN + b"\x01"), 1, "a record with -1 headers"),
    (framed(PLAIN + b"\x06\x02h"), 1, "a record with 3 headers"),
    (framed(PLAIN + b"\x02\x01\x01"), 1, "a record header without a name"),
    (framed(PLAIN + b"\x02\x02h\x04v") + b"v", 1, "a field reaches beyond its record"),
    (framed(b"\x00\x00\x00\x06ke"), 1, "a field reaches beyond its record"),
    (framed(b"\x00\x00\x00\x04ke\x04v"), 1, "a field reaches beyond its record"),
]


@pytest.mark.parametrize(("body", "count", "reason"), MALFORMED)
def test_a_malformed_record_is_refused_with_what_is_wrong(
    body: bytes, count: int, reason: str
) -> None:
    with pytest.raises(ApiError, match=reason) as refusal:
        decode_records(batch_of(body, count))
    assert refusal.value.code == Error.CORRUPT_MESSAGE


def test_a_record_ends_where_its_last_field_does() -> None:
    (plain,) = decode_records(batch_of(framed(PLAIN + b"\x00")))
    assert (plain.key, plain.value, plain.headers) == (b"k", b"v", ())
    (record,) = decode_records(batch_of(framed(PLAIN + b"\x04\x02h\x02v\x00\x01")))
    assert record.headers == (("h", b"v"), ("", None))
    (empty,) = decode_records(batch_of(framed(b"\x00\x00\x00\x00\x01\x00")))
    assert (empty.key, empty.value) == (b"", None)


def test_a_batch_that_is_cut_or_empty() -> None:
    batch = build_batch([Record(0, NOW, b"k", b"v")])
    with pytest.raises(ApiError, match="cut"):
        decode_records(batch[:-1])
    assert decode_records(build_batch([])) == []


@pytest.mark.parametrize("timestamp", (TIME_LIMIT - 1, -TIME_LIMIT, 0))
def test_times_up_to_the_limit_are_read(timestamp: int) -> None:
    records = [Record(0, timestamp, b"k")]
    assert decode_records(build_batch(records)) == records


def test_only_a_control_batch_has_offset_deltas_outside() -> None:
    records = [Record(4, NOW, b"k")]
    assert decode_records(build_batch(records, last_offset_delta=4)) == records
    with pytest.raises(ApiError, match="offset delta 4"):
        decode_records(build_batch(records, last_offset_delta=3))
    control = build_batch(records, last_offset_delta=3, attributes=CONTROL_BIT)
    assert decode_records(control) == records


def test_decoding_batches_leaves_out_control_batches_of_any_kind() -> None:
    records = [Record(0, NOW, b"k"), Record(1, NOW, b"l")]
    control = build_batch(records, attributes=CONTROL_BIT)
    data = build_batch(records, base_offset=7)
    assert [offset for offset, _ in decode_batches(bytes(control + data))] == [7, 8]


def test_what_the_builder_is_not_given_follows_from_the_records() -> None:
    empty = header_of(build_batch([]))
    assert (empty.base_timestamp, empty.max_timestamp, empty.last_offset_delta) == (-1, -1, 0)
    records = [Record(0, NOW, b"k"), Record(3, NOW + 5, b"l"), Record(4, NOW - 5, b"m")]
    found = header_of(build_batch(records))
    assert (found.base_timestamp, found.max_timestamp) == (NOW, NOW + 5)
    assert (found.last_offset_delta, found.records_count) == (4, 3)
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (-1, -1, -1)
    told = header_of(build_batch(records, max_timestamp=NOW + 9, last_offset_delta=7))
    assert (told.max_timestamp, told.last_offset_delta) == (NOW + 9, 7)


def test_an_empty_batch_is_not_compressed() -> None:
    batch = build_batch([], codec=4)
    assert (len(batch), header_of(batch).codec) == (61, 0)


def test_a_rebuilt_batch_keeps_the_time_of_append() -> None:
    batch = build_batch([Record(0, NOW, b"k"), Record(1, NOW + 1, b"l")])
    header = header_of(batch)
    set_append_time(batch, header, NOW + 100)
    rebuilt = rebuild_batch(header, decode_records(batch)[:1])
    assert header_of(rebuilt).max_timestamp == NOW + 100
    assert header_of(rebuilt).attributes == APPEND_TIME_BIT
    assert [record.timestamp for record in decode_records(rebuilt)] == [NOW + 100]


def test_a_rebuilt_batch_has_the_attributes_and_the_base_time_that_it_is_given() -> None:
    records = [Record(0, NOW, b"k"), Record(1, NOW + 1, b"l")]
    header = header_of(build_batch(records))
    rebuilt = rebuild_batch(header, records, attributes=0x40, base_timestamp=NOW + 50)
    found = header_of(rebuilt)
    assert (found.attributes, found.base_timestamp, found.max_timestamp) == (
        0x40,
        NOW + 50,
        NOW + 1,
    )
    assert decode_records(rebuilt) == records
    assert header_of(rebuild_batch(header, records, base_timestamp=0)).base_timestamp == 0
    assert header_of(rebuild_batch(found, records, attributes=0)).attributes == 0
    assert header_of(rebuild_batch(header, [])).max_timestamp == -1


@given(
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 9)), min_size=1, max_size=30),
    st.sampled_from(range(5)),
    st.booleans(),
)
def test_the_first_record_since_a_time_is_the_first_that_is_decoded(
    rows: list[tuple[int, int]], codec: int, has_holes: bool
) -> None:
    records, delta = [], -1
    for gap, time in rows:
        delta += gap if has_holes else 1
        records.append(Record(delta, NOW + time, b"k", b"v" * 20))
    batch = b"x" + build_batch(records, base_offset=100, codec=codec)
    header = read_header(batch, 1)
    assert header is not None
    for time in range(-1, 11):
        later = [
            (one.timestamp, 100 + one.offset_delta)
            for one in records
            if one.timestamp >= NOW + time
        ]
        found = first_record_since(batch, header, NOW + time)
        assert found == (later[0] if later else None)
        for start in (103, 100 + delta, 101 + delta):
            late = [one for one in later if one[1] >= start]
            found = first_record_since(batch, header, NOW + time, start_offset=Offset(start))
            assert found == (late[0] if late else None)
    for start in (0, 100, 103, 100 + delta, 101 + delta):
        left = [(one.timestamp, -100 - one.offset_delta) for one in records]
        newest = max((one for one in left if -one[1] >= start), default=None)
        found = newest_record(batch, header, start_offset=Offset(start))
        assert found == (None if newest is None else (newest[0], -newest[1]))


def test_the_broker_s_time_is_that_of_all_records_of_a_batch() -> None:
    batch = build_batch([Record(0, NOW, None, b"a"), Record(1, NOW + 9, None, b"b")], base_offset=7)
    set_append_time(batch, header_of(batch), NOW + 50)
    header = header_of(batch)
    assert first_record_since(batch, header, NOW + 50) == (NOW + 50, 7)
    assert first_record_since(batch, header, NOW + 51) is None
    assert newest_record(batch, header, start_offset=Offset(8)) == (NOW + 50, 8)


def test_damaged_records_have_no_first_one() -> None:
    batch = batch_of(framed(PLAIN + b"\x00", 9))
    with pytest.raises(ApiError) as refusal:
        first_record_since(batch, header_of(batch), 0)
    assert refusal.value.code == Error.CORRUPT_MESSAGE
