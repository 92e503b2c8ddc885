"""Markers take an index and no offset, carry what Raft put into them, and are control batches.

Source: design section 4."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import ApiError
from strandline.model.ids import Epoch, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import (
    CONTROL_BIT,
    HEADER_BYTES,
    LENGTH_END,
    crc_matches,
    read_header,
    seal,
)
from strandline.records.marker import (
    Marker,
    MarkerKind,
    build_configuration_marker,
    build_deletion_marker,
    build_epoch_marker,
    build_tier_marker,
    parse_marker,
    read_markers,
)
from strandline.records.record import Record, build_batch, decode_records
from strandline.records.varint import encode_varint, read_varint, read_varlong


@given(st.integers(0, 2**62), st.integers(1, 2**31 - 1), st.binary(max_size=500))
def test_markers_come_back(offset: int, epoch: int, payload: bytes) -> None:
    batch = build_configuration_marker(Offset(offset), Epoch(epoch), payload, 123)
    assert parse_marker(batch) == Marker(MarkerKind.CONFIGURATION, Epoch(epoch), payload)
    assert parse_marker(b"xy" + batch, 2).payload == payload
    opened = build_epoch_marker(Offset(offset), Epoch(epoch), 123)
    assert parse_marker(opened) == Marker(MarkerKind.EPOCH, Epoch(epoch), b"")
    deletion = build_deletion_marker(Offset(offset), Epoch(epoch), Offset(offset // 2), 123)
    assert parse_marker(deletion).deleted_before == offset // 2
    assert (parse_marker(batch).deleted_before, parse_marker(deletion).configuration) == (None,) * 2
    tier = build_tier_marker(Offset(offset), Epoch(epoch), payload, 123)
    assert (parse_marker(tier).tier, parse_marker(batch).tier) == (payload, None)
    for data in (batch, opened, deletion, tier):
        header = read_header(data)
        assert header is not None
        assert crc_matches(data, header)
        assert header.is_marker
        assert header.is_control
        assert (header.index_count, header.base_offset, header.next_offset) == (1, offset, offset)


def test_a_markers_header_has_its_epoch_and_no_producer() -> None:
    marker = read_header(build_epoch_marker(Offset(5), Epoch(2), 123))
    assert marker is not None
    assert (marker.producer_id, marker.producer_epoch, marker.base_sequence) == (-1, -1, 2)
    assert (marker.partition_leader_epoch, marker.records_count) == (2, 1)
    assert (marker.base_timestamp, marker.max_timestamp) == (123, 123)
    assert (marker.attributes, marker.last_offset_delta) == (CONTROL_BIT, -1)


@pytest.mark.parametrize(
    ("epoch", "sequence", "covers_epoch", "contradicts_epoch"),
    [(2, 2, True, False), (2, 3, True, True), (0, 0, True, False), (2, -1, False, False)],
)
def test_a_marker_contradicts_itself_if_it_repeats_another_epoch(
    epoch: int, sequence: int, covers_epoch: bool, contradicts_epoch: bool
) -> None:
    header = read_header(build_epoch_marker(Offset(5), Epoch(1), 123))
    assert header is not None
    header.partition_leader_epoch = Epoch(epoch)
    header.base_sequence = sequence
    assert (header.covers_epoch, header.contradicts_epoch) == (covers_epoch, contradicts_epoch)
    header.last_offset_delta = 0
    assert not header.contradicts_epoch


def test_a_marker_takes_no_offset_and_is_a_control_batch() -> None:
    marker = read_header(build_epoch_marker(Offset(5), Epoch(1), 123))
    data = read_header(build_batch([Record(0, 5, b"k", b"v")], base_offset=5))
    assert marker is not None
    assert data is not None
    assert (marker.is_marker, marker.last_offset, marker.next_offset) == (True, 4, 5)
    assert (data.is_marker, data.last_offset, data.next_offset) == (False, 5, 6)
    data.last_offset_delta = -1
    assert not data.is_marker
    marker.last_offset_delta = 0
    assert not marker.is_marker


def with_body(body: bytes) -> bytearray:
    """A marker of these bytes, whose checksum is right."""
    marker = bytearray(build_epoch_marker(Offset(5), Epoch(2), 123)[:HEADER_BYTES]) + body
    marker[8:12] = (len(marker) - LENGTH_END).to_bytes(4, "big")
    header = read_header(marker)
    assert header is not None
    seal(marker, header)
    return marker


KEY = b"\x00\x00\x00\x0b"
MALFORMED: list[tuple[bytes, str]] = [
    (b"\x00\x00\x00\x00\x06" + KEY[1:] + b"\x00\x00", "key is not 4 bytes"),
    (b"\x00\x00\x00\x00\x0a\x00" + KEY + b"\x00\x00", "key is not 4 bytes"),
    (b"\x00\x00\x00\x00\x08" + KEY[:-1], "key is not 4 bytes"),
    (b"\x00\x00\x00\x00\x08" + KEY, "a varint at byte"),
    (b"\x00\x00\x00\x00\x08\x00\x01\x00\x0b\x00\x00", "unknown kind 11, version 1"),
    (b"\x00\x00\x00\x00\x08\x00\x00\x00\x09\x00\x00", "unknown kind 9, version 0"),
    (b"\x00\x00\x00\x00\x08" + KEY + b"\x01\x00", "a marker's value is cut"),
    (b"\x00\x00\x00\x00\x08" + KEY + b"\x06xy", "a marker's value is cut"),
    (b"\x00\x00\x00\x00\x08" + KEY[:-1] + b"\x0c\x0e" + b"\0" * 7, "without an offset"),
]


@pytest.mark.parametrize(("body", "reason"), MALFORMED)
def test_a_malformed_marker_is_refused_with_what_is_wrong(body: bytes, reason: str) -> None:
    with pytest.raises(ApiError, match=reason) as refusal:
        parse_marker(with_body(body))
    assert refusal.value.code == Error.CORRUPT_MESSAGE


def test_a_value_reaches_to_the_end_of_the_batch_at_most() -> None:
    marker = with_body(b"\x00\x00\x00\x00\x08" + KEY + b"\x04xy")
    assert parse_marker(marker).payload == b"xy"
    assert parse_marker(marker + b"more").payload == b"xy"


def test_markers_are_found_among_batches_of_several_buffers() -> None:
    data = bytes(build_batch([Record(0, 5, b"k", b"v")]))
    opened = build_epoch_marker(Offset(1), Epoch(2), 123)
    deletion = build_deletion_marker(Offset(1), Epoch(2), Offset(1), 123)
    found = read_markers([data + opened, data, deletion])
    assert {at: marker.kind for at, marker in found.items()} == {
        1: MarkerKind.EPOCH,
        3: MarkerKind.DELETION,
    }
    assert found[3].deleted_before == 1


def test_a_deletion_is_of_offsets_below_its_marker() -> None:
    for before in (0, 5):
        marker = build_deletion_marker(Offset(5), Epoch(2), Offset(before), 123)
        assert parse_marker(marker).deleted_before == before
    for before in (-1, 6):
        with pytest.raises(AssertionError):
            build_deletion_marker(Offset(5), Epoch(2), Offset(before), 123)


def test_a_client_that_got_one_would_skip_it() -> None:
    batch = build_epoch_marker(Offset(5), Epoch(2), 123)
    assert DefaultRecordBatch(batch).is_control_batch
    (record,) = decode_records(batch)
    assert record.key == b"\x00\x00\x00\x0a"


def test_what_is_no_marker_is_refused() -> None:
    ordinary = bytes(build_batch([Record(0, 5, b"k", b"v")]))
    marker = build_epoch_marker(Offset(5), Epoch(2), 123)
    for data in (ordinary, marker[:-1], b""):
        with pytest.raises(ApiError) as refusal:
            parse_marker(data)
        assert refusal.value.code == Error.CORRUPT_MESSAGE
    deletion = build_deletion_marker(Offset(5), Epoch(2), Offset(5), 123)
    cut = bytearray(deletion.replace(b"\x10" + b"\0" * 7 + b"\5", b"\x02" + b"\0" * 7 + b"\5"))
    with pytest.raises(ApiError, match="without an offset"):
        parse_marker(cut)
    for position in range(61, len(marker) - 1):
        broken = bytearray(marker)
        broken[position] = 0xFF
        header = read_header(broken)
        assert header is not None
        seal(broken, header)
        try:
            parse_marker(broken)
        except ApiError as error:
            assert error.code == Error.CORRUPT_MESSAGE


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_come_back(value: int) -> None:
    data = encode_varint(value)
    assert read_varint(data, 0, len(data)) == (value, len(data))


@given(st.integers(-(2**63), 2**63 - 1))
def test_varlongs_come_back(value: int) -> None:
    data = encode_varint(value)
    assert len(data) <= 10
    assert read_varlong(data, 0, len(data)) == (value, len(data))


def test_a_varint_that_runs_on_is_refused() -> None:
    for data, read in ((b"\xff" * 20, read_varint), (b"\xff" * 20, read_varlong)):
        with pytest.raises(ApiError):
            read(data, 0, len(data))
    with pytest.raises(ApiError):
        read_varint(b"\xff", 0, 1)
    with pytest.raises(ApiError):
        read_varint(b"\x01", 0, 0)
