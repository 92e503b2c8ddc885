"""Records come out of a bucket as they were uploaded, or not at all.

Source: decisions 0057 and 0063."""

import asyncio
import hashlib
from collections.abc import Sequence

import pytest
from tests.client.restore.lost_cluster import entry
from tests.tiered.exports.stores import MemoryStore

from strandline.base.errors import OperatorError
from strandline.client.restore import source
from strandline.client.restore.source import read_batches
from strandline.model.ids import Epoch, Offset
from strandline.records.batch import iterate_headers, set_append_time
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch, build_encoded_batch, decode_records
from strandline.tiered.framing import crc_of
from strandline.tiered.segments.entry import SegmentEntry

CODECS = (0, 1, 3, 4)


def batch(base: int, count: int, *, codec: int = 0, size: int = 10) -> bytes:
    """Records base, base + 1, ..."""
    some = [
        Record(offset_delta=at, timestamp=base + at, key=b"k", value=b"%d" % (base + at) * size)
        for at in range(count)
    ]
    made = build_batch(some, codec=codec)
    next(iterate_headers(made)).stamp(made, base_offset=Offset(base), epoch=Epoch(1))
    return bytes(made)


def stored(store: MemoryStore, base: int, batches: Sequence[bytes], end: int) -> SegmentEntry:
    """An object of these batches."""
    data = b"".join(batches)
    pieces = [data[at : at + source.CHUNK_BYTES] for at in range(0, len(data), source.CHUNK_BYTES)]
    crcs = b"".join(crc_of(one).to_bytes(4) for one in pieces)
    made = entry(base, end)
    store.objects[made.name] = data + b"trailer", 0
    return SegmentEntry(
        name=made.name,
        base_offset=made.base_offset,
        end_offset=made.end_offset,
        data_bytes=len(data),
        size_bytes=len(data) + 7,
        trailer_crc=0,
        max_timestamp=0,
        max_timestamp_offset=made.base_offset,
        epochs=made.epochs,
        digest=hashlib.sha256(crcs).digest(),
    )


def read(store: MemoryStore, entries: Sequence[SegmentEntry], first: int) -> list[tuple[int, int]]:
    """(base offset, records) of each batch."""
    with asyncio.Runner() as runner:
        return [
            (one.header.base_offset, one.header.records_count)
            for one in read_batches(runner, store, entries, Offset(first))
        ]


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_all_batches_from_an_offset_on_across_ranges_and_objects(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "CHUNK_BYTES", 64)
    monkeypatch.setattr(source, "RANGE_BYTES", 128)
    first = stored(store, 0, [batch(0, 3), batch(3, 2, codec=3), batch(5, 1)], 6)
    second = stored(store, 6, [batch(6, 4)], 10)
    assert read(store, [first, second], 0) == [(0, 3), (3, 2), (5, 1), (6, 4)]
    assert read(store, [first, second], 3) == [(3, 2), (5, 1), (6, 4)]
    assert read(store, [first, second], 6) == [(6, 4)]
    assert read(store, [first, second], 10) == []


@pytest.mark.parametrize("codec", CODECS)
def test_records_are_as_they_were(store: MemoryStore, codec: int) -> None:
    original = batch(0, 5, codec=codec)
    made = stored(store, 0, [original], 5)
    with asyncio.Runner() as runner:
        (one,) = read_batches(runner, store, [made], Offset(0))
    plain = bytes(batch(0, 5))
    assert one.records == plain[len(plain) - len(one.records) :]
    assert len(list(decode_records(original))) == 5


def test_times_of_appends_stay(store: MemoryStore) -> None:
    original = bytearray(batch(0, 3, codec=3))
    set_append_time(original, next(iterate_headers(original)), 77)
    made = stored(store, 0, [bytes(original)], 3)
    with asyncio.Runner() as runner:
        (one,) = read_batches(runner, store, [made], Offset(0))
    copied = build_encoded_batch(
        one.records,
        records_count=3,
        timestamps=one.timestamps,
        codec=0,
        producer=(-1, -1, -1),
    )
    assert [record.timestamp for record in decode_records(copied)] == [77, 77, 77]
    assert [record.value for record in decode_records(copied)] == [
        record.value for record in decode_records(bytes(original))
    ]


def test_markers_are_no_records(store: MemoryStore) -> None:
    marker = bytes(build_epoch_marker(Offset(2), Epoch(1), 0))
    made = stored(store, 0, [batch(0, 2), marker, batch(2, 2)], 4)
    assert read(store, [made], 0) == [(0, 2), (2, 2)]


@pytest.mark.parametrize("position", [30, 70, 100])
def test_damage_is_found(store: MemoryStore, position: int) -> None:
    made = stored(store, 0, [batch(0, 4)], 4)
    data, at_ms = store.objects[made.name]
    damaged = bytearray(data)
    damaged[position] ^= 1
    store.objects[made.name] = bytes(damaged), at_ms
    with pytest.raises(OperatorError, match=r"checksum|digest|cannot be read"):
        read(store, [made], 0)


def test_another_object_of_the_same_size_is_found(store: MemoryStore) -> None:
    made = stored(store, 0, [batch(0, 4)], 4)
    store.objects[made.name] = batch(0, 4, size=9).ljust(made.data_bytes, b"\0") + b"trailer", 0
    with pytest.raises(OperatorError, match=r"not what was uploaded|cannot be read"):
        read(store, [made], 0)


@pytest.mark.parametrize(
    ("batches", "end"),
    [([batch(0, 2), batch(3, 1)], 4), ([batch(0, 2)], 4), ([batch(1, 3)], 4)],
    ids=["gap", "short", "late"],
)
def test_offsets_that_do_not_follow_are_refused(
    store: MemoryStore, batches: list[bytes], end: int
) -> None:
    made = stored(store, 0, batches, end)
    with pytest.raises(OperatorError, match="not at"):
        read(store, [made], 0)
