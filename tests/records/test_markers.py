"""Markers take an index and no offset, carry what Raft put into them, and are control batches.

Source: design section 4."""

import pytest
from aiokafka.record.default_records import DefaultRecordBatch
from hypothesis import given
from hypothesis import strategies as st

from strandline.base.errors import ApiError
from strandline.model.ids import Epoch, Offset
from strandline.protocol.errors import Error
from strandline.records.batch import crc_matches, read_header, seal
from strandline.records.marker import (
    Marker,
    MarkerKind,
    build_configuration_marker,
    build_deletion_marker,
    build_epoch_marker,
    parse_marker,
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
    for data in (batch, opened, deletion):
        header = read_header(data)
        assert header is not None
        assert crc_matches(data, header)
        assert header.is_marker
        assert header.is_control
        assert (header.index_count, header.base_offset, header.next_offset) == (1, offset, offset)


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
