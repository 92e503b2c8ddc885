"""One segment as one object: what goes in comes out, and what is damaged does not.

Source: decision 0057; Kafka's KIP-405 for what a segment needs to be read alone."""

import itertools
from dataclasses import replace

import pytest
from fastcrc import crc32

from strandline.model.ids import Epoch, Offset
from strandline.records.batch import iterate_headers
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.tiered.segments import trailer as trailers
from strandline.tiered.segments.names import SegmentName, parse_segment_name
from strandline.tiered.segments.trailer import (
    CHUNK_BYTES,
    FOOTER,
    AbortedTransaction,
    Trailer,
    TrailerError,
    trailer_bytes,
)
from strandline.tiered.segments.writer import SegmentObject, SegmentWriter, UnfitBatchError

NAME = "c/t/0/x.segment"


def _batch(
    offset: int, *, epoch: int = 1, time: int = 0, value: bytes = b"v", **more: int
) -> bytes:
    records = [Record(0, time, b"k", value), Record(1, time + 5, b"k", value)]
    return bytes(build_batch(records, base_offset=offset, epoch=epoch, **more))


def _object(batches: list[bytes], end: int, *, base: int = 0) -> SegmentObject:
    writer = SegmentWriter(Offset(base), Offset(end))
    for batch in batches:
        writer.add(batch)
    return writer.finish(NAME)


def _large() -> tuple[SegmentObject, bytes]:
    """About 3.5 MB in batches of 10 kB, timestamps ascending by 100 ms."""
    batches = [
        _batch(2 * at, time=1000 + 100 * at, value=bytes([at % 256]) * 5000, epoch=1 + at // 100)
        for at in range(350)
    ]
    return _object(batches, 700), b"".join(batches)


def test_an_object_is_the_data_then_a_trailer_that_the_entry_finds() -> None:
    made, data = _large()
    stored = b"".join(made.parts)
    entry = made.entry
    assert stored[: entry.data_bytes] == data
    assert len(stored) == entry.size_bytes
    assert trailer_bytes(stored[-FOOTER.size :]) == entry.size_bytes - entry.data_bytes
    read = Trailer.parse(stored[entry.data_bytes :], crc=entry.trailer_crc)
    assert read == made.trailer
    assert read.epochs == entry.epochs == ((1, 0), (2, 200), (3, 400), (4, 600))
    assert (entry.max_timestamp, entry.max_timestamp_offset) == (1000 + 34_900 + 5, 699)
    assert read.digest() == entry.digest


def test_markers_are_left_out_wherever_they_stand() -> None:
    first, second = _batch(0), _batch(2, epoch=2)
    marker = build_epoch_marker(Offset(2), Epoch(2), 0)
    plain = _object([first, second], 4)
    mixed = _object(
        [build_epoch_marker(Offset(0), Epoch(1), 0) + first + marker, second + marker], 4
    )
    assert b"".join(mixed.parts) == b"".join(plain.parts)
    assert mixed.entry == plain.entry


def test_the_same_data_in_other_pieces_is_the_same_object() -> None:
    made, data = _large()
    headers = list(iterate_headers(data))
    cuts = [0, headers[1].position, headers[200].position, len(data)]
    writer = SegmentWriter(Offset(0), Offset(700))
    for start, end in itertools.pairwise(cuts):
        writer.add(memoryview(data)[start:end])
    assert b"".join(writer.finish(NAME).parts) == b"".join(made.parts)


def test_each_offset_is_found_by_a_short_walk() -> None:
    made, data = _large()
    for header in iterate_headers(data):
        start = made.trailer.position_of(Offset(header.base_offset + 1))
        assert header.position - 2 * trailers.INDEX_INTERVAL_BYTES < start <= header.position
        assert made.trailer.boundary_after(start) > start
        begins = {each.position for each in iterate_headers(data, start)}
        assert header.position in begins


def test_no_record_before_the_position_of_a_time_reaches_it() -> None:
    made, data = _large()
    for timestamp in range(0, 40_000, 77):
        position = made.trailer.position_of_time(timestamp)
        before = list(iterate_headers(data, 0, position))
        assert all(each.max_timestamp < timestamp for each in before)
    assert made.trailer.position_of_time(36_000) == len(data)
    assert made.trailer.position_of_time(35_905) < len(data)


def test_boundaries_are_those_of_batches_and_within_the_limit() -> None:
    made, data = _large()
    begins = {each.position for each in iterate_headers(data)} | {len(data)}
    for limit in range(0, len(data) + 50_000, 99_991):
        boundary = made.trailer.floor_boundary(0, limit)
        assert boundary in begins
        assert boundary <= limit
    assert made.trailer.floor_boundary(0, len(data)) == len(data)
    last = max(begins - {len(data)})
    assert made.trailer.floor_boundary(last, last + 1) == last


def test_each_chunk_is_checked_alone() -> None:
    made, data = _large()
    trailer = made.trailer
    assert trailer.chunk_count == -(-len(data) // CHUNK_BYTES) == 4
    for chunk in range(4):
        start, end = trailer.chunk_range(chunk)
        part = bytearray(data[start:end])
        assert trailer.chunk_matches(chunk, part)
        assert not trailer.chunk_matches(chunk, part[:-1])
        part[100] ^= 1
        assert not trailer.chunk_matches(chunk, part)
    assert trailer.chunk_range(3)[1] == len(data)


def test_producers_at_the_end_of_a_segment() -> None:
    batches = [
        _batch(2 * at, producer_id=7, base_sequence=2 * at, producer_epoch=1) for at in range(9)
    ]
    state = _object(batches, 18).trailer.producers[0]
    assert (state.producer_id, state.epoch) == (7, 1)
    assert [one.base_offset for one in state.window] == [8, 10, 12, 14, 16]
    assert state.window[-1].last_sequence == 17
    later = SegmentWriter(Offset(18), Offset(20), producers=[state], misses_producers=False)
    later.add(_batch(18))
    trailer = later.finish(NAME).trailer
    assert trailer.producers == (state,)
    assert not trailer.misses_producers


def test_a_compressed_batch_tells_its_latest_record() -> None:
    made = _object([_batch(0, time=50, codec=4), _batch(2, time=10)], 4)
    assert (made.entry.max_timestamp, made.entry.max_timestamp_offset) == (55, 1)


def test_the_latest_record_is_looked_for_where_the_batches_are_added(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That is a thread; an object is finished on the event loop."""
    writer = SegmentWriter(Offset(0), Offset(4))
    writer.add(_batch(0, time=50))
    writer.add(_batch(2, time=10))
    monkeypatch.setattr(SegmentWriter, "_max_timestamp_offset", None)
    assert writer.finish(NAME).entry.max_timestamp_offset == 1


@pytest.mark.parametrize(
    ("batches", "end", "says"),
    [
        ([_batch(0), _batch(4)], 6, "2 comes next"),
        ([_batch(2)], 4, "0 comes next"),
        ([_batch(0)], 4, "ends at 2"),
        ([_batch(0), _batch(2)], 3, "3 ends the object"),
        ([_batch(0)[:-1]], 2, "cut"),
        ([_batch(0)[:-1] + b"\xff"], 2, "damaged"),
        ([_batch(0, epoch=2), _batch(2, epoch=1)], 4, "epoch goes back"),
        ([b"\x00" * 80], 2, "magic"),
    ],
)
def test_no_object_is_made_of_what_is_damaged_or_does_not_follow(
    batches: list[bytes], end: int, says: str
) -> None:
    with pytest.raises(UnfitBatchError, match=says):
        _object(batches, end)


def test_a_damaged_trailer_is_refused_wherever_it_is_damaged() -> None:
    encoded = _object([_batch(0)], 2).trailer.encode()
    Trailer.parse(encoded, crc=crc32.iscsi(encoded))
    for at in range(len(encoded)):
        damaged = bytearray(encoded)
        damaged[at] ^= 0x10
        with pytest.raises(TrailerError):
            Trailer.parse(damaged)
        with pytest.raises(TrailerError):
            Trailer.parse(damaged, crc=crc32.iscsi(encoded))
        with pytest.raises(TrailerError):
            Trailer.parse(encoded[:at])


def test_a_trailer_of_a_later_release_is_refused_by_its_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trailer = _object([_batch(0)], 2).trailer
    monkeypatch.setattr(trailers, "VERSION", 2)
    encoded = trailer.encode()
    monkeypatch.undo()
    with pytest.raises(TrailerError, match="version 2; this release reads 1"):
        Trailer.parse(encoded)


def test_a_trailer_has_room_for_aborted_transactions() -> None:
    trailer = _object([_batch(0)], 2).trailer
    aborted = (AbortedTransaction(7, Offset(0), Offset(1), Offset(2)),)
    changed = replace(trailer, aborted=aborted)
    assert Trailer.parse(changed.encode()).aborted == aborted


def test_names_are_read_as_they_were_written() -> None:
    name = SegmentName("cluster", "topic", 3, Offset(12), Epoch(4), "0123456789abcdef")
    assert str(name) == "cluster/topic/3/00000000000000000012-4-0123456789abcdef.segment"
    assert parse_segment_name(str(name)) == name
    assert parse_segment_name("cluster/topic/3/manifest/4-9") is None
