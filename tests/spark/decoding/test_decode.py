"""Fetch data to Arrow columns: what is in, what is left out, what is refused.

Source: Kafka's message format v2; the columns of Spark's Kafka connector."""

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from strandline.model.ids import Epoch, Offset
from strandline.records.batch import HEADER_BYTES, read_header, seal, set_append_time
from strandline.records.codec import CODEC_NAMES
from strandline.records.marker import build_epoch_marker
from strandline.records.record import Record, build_batch
from strandline.spark.decoding import reader
from strandline.spark.decoding.columns import TYPES
from strandline.spark.decoding.decode import Decoded, decode
from strandline.spark.decoding.errors import DamagedBatchError

NOW = 1_700_000_000_123
ALL = tuple(TYPES)


def run(data: bytes, *columns: str, first: int = 0, end: int = 1 << 60, **more: Any) -> Decoded:
    return decode(
        data,
        columns=columns or ALL,
        topic="orders",
        partition=3,
        first_offset=first,
        end_offset=end,
        **more,
    )


def rows(data: bytes, *columns: str, **more: Any) -> list[dict[str, Any]]:
    return list(run(data, *columns, **more).batch.to_pylist())


def offsets(data: bytes, **more: Any) -> list[int]:
    return [row["offset"] for row in rows(data, "offset", **more)]


def numbered(count: int, *, base: int = 0, **more: Any) -> bytes:
    records = [Record(at, NOW + at, b"k%d" % at, b"v%d" % at) for at in range(count)]
    return bytes(build_batch(records, base_offset=base, **more))


def marker(*, base: int, kind: int, producer_id: int) -> bytes:
    """The end of a transaction: kind 0 aborts, 1 commits."""
    key = bytes((0, 0, 0, kind))
    return bytes(
        build_batch(
            [Record(0, NOW, key, b"\x00" * 6)],
            base_offset=base,
            attributes=0x30,
            producer_id=producer_id,
        )
    )


def time_of(ms: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=ms)


@pytest.mark.parametrize("codec", range(len(CODEC_NAMES)), ids=CODEC_NAMES)
def test_every_column_is_that_of_the_record(codec: int) -> None:
    records = [
        Record(0, NOW, b"k", b"v", (("a", b"1"), ("a", None), ("", b""))),
        Record(1, NOW - 5, None, b""),
        Record(2, NOW + 7, b"", None, (("b", b"2"),)),
    ]
    data = build_batch(records, base_offset=40, epoch=9, codec=codec)
    whole = run(bytes(data))
    assert whole.batch.schema == pa.schema(list(TYPES.items()))
    assert whole.next_offset == 43
    common = {"topic": "orders", "partition": 3, "timestampType": 0, "leaderEpoch": 9}
    assert whole.batch.to_pylist() == [
        {
            "key": b"k",
            "value": b"v",
            "offset": 40,
            "timestamp": time_of(NOW),
            "headers": [
                {"key": "a", "value": b"1"},
                {"key": "a", "value": None},
                {"key": "", "value": b""},
            ],
            **common,
        },
        {
            "key": None,
            "value": b"",
            "offset": 41,
            "timestamp": time_of(NOW - 5),
            "headers": None,
            **common,
        },
        {
            "key": b"",
            "value": None,
            "offset": 42,
            "timestamp": time_of(NOW + 7),
            "headers": [{"key": "b", "value": b"2"}],
            **common,
        },
    ]


def test_columns_come_in_the_order_asked_for() -> None:
    batch = run(numbered(2), "offset", "value", "key").batch
    assert batch.schema.names == ["offset", "value", "key"]
    assert batch.to_pylist()[1] == {"offset": 1, "value": b"v1", "key": b"k1"}


def test_no_column_at_all_still_counts_rows() -> None:
    whole = decode(
        numbered(5) + numbered(4, base=5),
        columns=(),
        topic="t",
        partition=0,
        first_offset=2,
        end_offset=8,
    )
    assert (whole.batch.num_rows, whole.batch.num_columns, whole.next_offset) == (6, 0, 8)


def test_batches_are_cut_at_both_ends_of_the_range() -> None:
    data = numbered(10, base=100) + numbered(10, base=110) + numbered(10, base=120)
    assert offsets(data, first=105, end=122) == list(range(105, 122))
    assert run(data, first=105, end=122).next_offset == 122
    assert rows(data, "value", first=109, end=111) == [{"value": b"v9"}, {"value": b"v0"}]
    assert offsets(data, first=130) == []
    assert run(data, first=130).next_offset == 130
    assert offsets(data, first=110, end=110) == []
    assert run(data, first=125, end=128).next_offset == 128


def test_data_before_the_range_leaves_next_offset_where_it_was() -> None:
    assert run(numbered(10), first=500).next_offset == 500


def test_holes_of_compaction_stay_holes() -> None:
    records = [Record(2, NOW, b"a", b"1"), Record(7, NOW, b"b", b"2")]
    data = bytes(build_batch(records, base_offset=10, last_offset_delta=9))
    assert offsets(data) == [12, 17]
    assert run(data).next_offset == 20
    assert offsets(data, first=13, end=17) == []
    assert run(data, first=13, end=17).next_offset == 17
    assert offsets(data, first=18) == []
    assert run(data, first=18).next_offset == 20


def test_an_empty_batch_moves_next_offset_on() -> None:
    data = bytes(build_batch([], base_offset=10, last_offset_delta=4))
    assert (offsets(data, first=10), run(data, first=10).next_offset) == ([], 15)


def test_a_log_append_time_is_the_time_of_each_record() -> None:
    data = bytearray(numbered(2))
    header = read_header(data)
    assert header is not None
    set_append_time(data, header, NOW + 999)
    assert (
        rows(bytes(data), "timestamp", "timestampType")
        == [{"timestamp": time_of(NOW + 999), "timestampType": 1}] * 2
    )


def test_an_incomplete_batch_is_left_to_the_next_fetch() -> None:
    data = numbered(5) + numbered(5, base=5)
    for size in (len(data) - 1, len(data) // 2 + 1, len(data) // 2 + HEADER_BYTES):
        whole = run(data[:size])
        assert (whole.batch.num_rows, whole.next_offset) == (5, 5)


def test_a_batch_larger_than_the_data_gives_nothing() -> None:
    data = numbered(5, base=70)
    for size in (0, 1, 17, HEADER_BYTES, len(data) - 1):
        whole = run(data[:size], first=72)
        assert (whole.batch.num_rows, whole.next_offset) == (0, 72)


def test_control_batches_have_no_rows_unless_asked_for() -> None:
    data = numbered(2, producer_id=7, attributes=0x10)
    data += marker(base=2, kind=1, producer_id=7) + numbered(1, base=3)
    assert offsets(data) == [0, 1, 3]
    assert offsets(data, include_control=True) == [0, 1, 2, 3]
    assert run(data[: -len(numbered(1))]).next_offset == 3


def test_markers_of_raft_take_no_offset_and_have_no_row() -> None:
    data = numbered(2) + build_epoch_marker(Offset(2), Epoch(5), NOW) + numbered(1, base=2)
    assert offsets(data) == [0, 1, 2]
    assert offsets(data, include_control=True) == [0, 1, 2]


def test_aborted_transactions_have_no_rows() -> None:
    kinds = {"attributes": 0x10}
    data = numbered(2, producer_id=7, **kinds)  # 0, 1: aborted at 5
    data += numbered(1, base=2, producer_id=8, **kinds)  # committed
    data += numbered(1, base=3, producer_id=7, **kinds)  # aborted
    data += numbered(1, base=4, producer_id=7)  # not transactional
    data += marker(base=5, kind=0, producer_id=7)
    data += numbered(1, base=6, producer_id=7, **kinds)  # the next transaction
    data += marker(base=7, kind=1, producer_id=7)
    data += numbered(1, base=8, producer_id=7, **kinds)  # aborted
    data += marker(base=9, kind=0, producer_id=7)
    aborted = [(7, 8), (7, 0)]
    assert offsets(data, aborted=aborted) == [2, 4, 6]
    assert offsets(data) == [0, 1, 2, 3, 4, 6, 8]
    assert offsets(data, aborted=aborted, include_control=True) == [2, 4, 5, 6, 7, 9]
    assert offsets(data, aborted=aborted, first=6) == [6]
    assert run(data, aborted=aborted).next_offset == 10


@pytest.mark.parametrize("codec", range(len(CODEC_NAMES)), ids=CODEC_NAMES)
def test_any_damaged_byte_under_the_crc_is_refused_by_name(codec: int) -> None:
    sound = numbered(3, base=50, codec=codec)
    for at in range(21, len(sound)):
        data = bytearray(numbered(50) + sound)
        data[at - len(sound)] ^= 0x10
        with pytest.raises(DamagedBatchError, match=r"orders-3 at offset \d+: ") as refusal:
            run(bytes(data))
        assert refusal.value.offset >= 50


def test_damage_beyond_the_range_does_not_matter() -> None:
    data = bytearray(numbered(5) + numbered(5, base=5))
    data[-1] ^= 1
    assert offsets(bytes(data), end=5) == [0, 1, 2, 3, 4]


def test_batches_that_overlap_are_refused() -> None:
    with pytest.raises(DamagedBatchError, match="orders-3 at offset 3"):
        run(numbered(5) + numbered(5, base=3))


def test_a_time_that_microseconds_do_not_hold_is_refused_where_it_is_asked_for() -> None:
    records = [Record(0, NOW, b"k", b"v"), Record(1, 1 << 60, b"k", b"v")]
    data = bytes(build_batch(records, base_offset=4))
    assert offsets(data) == [4, 5]
    with pytest.raises(
        DamagedBatchError, match="orders-3 at offset 5: the time 1152921504606846976"
    ):
        run(data, "timestamp")


def test_a_header_name_that_is_no_utf_8_is_read_as_java_reads_it() -> None:
    data = bytes(build_batch([Record(0, NOW, None, None, (("a\udcff", b"x"),))]))
    assert rows(data, "headers") == [{"headers": [{"key": "a\ufffd", "value": b"x"}]}]


def test_a_time_that_no_reader_takes_is_refused_by_its_place_in_the_batch() -> None:
    records = [Record(0, NOW, b"k", b"v"), Record(1, 1 << 62, b"k", b"v")]
    data = bytes(build_batch(records, base_offset=4))
    with pytest.raises(DamagedBatchError, match="orders-3 at offset 4: the time of record 1"):
        run(data, "timestamp")


def test_arrays_grow_over_many_fills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "GATHERED_BYTES_MAX", 100)
    data, base = b"", 0
    for count in (1, 1, 2, 30, 1, 100, 3):
        headers = (("h", b"x" * count), ("g", None))
        records = [Record(at, NOW, b"k" * at, b"v" * count, headers) for at in range(count)]
        data += build_batch(records, base_offset=base, codec=4 if count == 30 else 0)
        base += count
    found = rows(data)
    assert [row["offset"] for row in found] == list(range(138))
    assert found[-1]["key"] == b"kk"
    assert found[133]["headers"] == [{"key": "h", "value": b"x" * 100}, {"key": "g", "value": None}]


@pytest.mark.parametrize("codec", [0, 3])
def test_more_records_than_a_result_may_have_are_left_to_the_next_call(
    codec: int,
) -> None:
    data = b"".join(numbered(20, base=base, codec=codec) for base in range(0, 100, 20))
    whole = data
    seen: list[int] = []
    while len(seen) < 100:
        part = run(data, "offset", "value", first=len(seen), bytes_max=400)
        again = run(whole, "offset", "value", first=len(seen), bytes_max=400)
        assert (again.batch, again.next_offset) == (part.batch, part.next_offset)
        assert 20 <= part.batch.num_rows <= 40
        seen += part.batch.column("offset").to_pylist()
        assert part.next_offset == len(seen)
        data = data[part.next_position :]
    assert seen == list(range(100))


def test_a_batch_that_claims_no_offset_is_refused() -> None:
    data = bytearray(numbered(1))
    data[23:27] = b"\xff" * 4
    header = read_header(data)
    assert header is not None
    seal(data, header)
    with pytest.raises(DamagedBatchError, match="orders-3 at offset 0: a batch whose last offset"):
        run(bytes(data), "key")


def test_a_count_of_records_that_cannot_be_is_refused() -> None:
    data = bytearray(numbered(2))
    data[57:61] = (1 << 24).to_bytes(4, "big")
    data[23:27] = ((1 << 24) - 1).to_bytes(4, "big")
    header = read_header(data)
    assert header is not None
    seal(data, header)
    with pytest.raises(DamagedBatchError, match="16777216 records in"):
        run(bytes(data), "offset")


def test_an_error_survives_the_way_from_an_executor() -> None:
    error = DamagedBatchError("orders", 3, 50, "why")
    copy = pickle.loads(pickle.dumps(error))
    assert (str(copy), copy.offset) == ("orders-3 at offset 50: why", 50)
