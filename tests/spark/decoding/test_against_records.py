"""Decoding against the reader of single records: on any data equal, on damage refused or equal.

Source: decision 0056; `records.record`, which reads one record after the other."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from strandline.base.errors import ApiError
from strandline.records.batch import HEADER_BYTES, iterate_headers, read_header, seal
from strandline.records.record import Record, build_batch, decode_records
from strandline.spark.decoding import numpy_fill, reader, rows
from strandline.spark.decoding.columns import TYPES
from strandline.spark.decoding.decode import decode
from strandline.spark.decoding.errors import DamagedBatchError

NOW = 1_700_000_000_000
TRANSACTIONAL, CONTROL, APPEND_TIME = 0x10, 0x20, 0x08


def some_bytes(rng: random.Random) -> bytes | None:
    kind = rng.randrange(6)
    if kind == 0:
        return None
    return b"v" * rng.randrange(1, 700) if kind == 1 else rng.randbytes(rng.randrange(20))


def some_records(rng: random.Random) -> list[Record]:
    records: list[Record] = []
    delta = -1
    for _ in range(rng.choice((0, 1, 3, 12))):
        delta += rng.choice((1, 1, 1, 2, 3))
        names = (rng.choice(("", "h", "é", "trace-id")) for _ in range(rng.choice((0, 0, 1, 3))))
        headers = tuple((name, some_bytes(rng)) for name in names)
        time = NOW + rng.choice((0, rng.randrange(-5_000, 5_000), 1 << 40))
        records.append(Record(delta, time, some_bytes(rng), some_bytes(rng), headers))
    return records


def fetched(rng: random.Random) -> bytes:
    """Batches of every kind, one behind the other, from some offset on."""
    base = rng.randrange(1_000)
    data = b""
    for _ in range(rng.randrange(7)):
        records = some_records(rng)
        last_delta = records[-1].offset_delta if records else 0
        last_delta += rng.choice((0, 0, 2))
        batch = build_batch(
            records,
            base_offset=base,
            epoch=rng.randrange(9),
            codec=rng.randrange(5),
            attributes=rng.choice((0, 0, 0, APPEND_TIME, TRANSACTIONAL, CONTROL)),
            last_offset_delta=last_delta,
        )
        data += batch
        base += last_delta + 1 + rng.choice((0, 0, 0, 5))
    return data


@dataclass(frozen=True)
class Expected:
    """What the reader of single records finds."""

    rows: list[dict[str, Any]]
    next_offset: int


def expected(data: bytes, first_offset: int, end_offset: int) -> Expected:
    found: list[dict[str, Any]] = []
    next_offset = first_offset
    for header in iterate_headers(data):
        if header.base_offset >= end_offset:
            next_offset = end_offset
            break
        next_offset = max(next_offset, min(header.next_offset, end_offset))
        for record in decode_records(data, header.position):
            offset = header.base_offset + record.offset_delta
            if header.is_control or not first_offset <= offset < end_offset:
                continue
            headers = [
                {
                    "key": name.encode(errors="surrogateescape").decode(errors="replace"),
                    "value": value,
                }
                for name, value in record.headers
            ]
            found.append(
                {
                    "key": record.key,
                    "value": record.value,
                    "topic": "orders",
                    "partition": 3,
                    "offset": offset,
                    "timestamp": record.timestamp,
                    "timestampType": int(header.has_append_time),
                    "headers": headers or None,
                    "leaderEpoch": header.partition_leader_epoch,
                }
            )
    return Expected(found, next_offset)


def decoded(data: bytes, first_offset: int, end_offset: int, columns: list[str]) -> Expected:
    result = decode(
        data,
        columns=columns,
        topic="orders",
        partition=3,
        first_offset=first_offset,
        end_offset=end_offset,
    )
    result.batch.validate(full=True)
    found = result.batch.to_pydict()
    if "timestamp" in columns:
        microseconds = result.batch.column("timestamp").cast("int64").to_pylist()
        found["timestamp"] = [one // 1000 for one in microseconds]
    return Expected(
        [{name: found[name][at] for name in columns} for at in range(result.batch.num_rows)],
        result.next_offset,
    )


@pytest.fixture(params=["compiled", "numpy"], scope="module")
def both_ways(request: pytest.FixtureRequest) -> Iterator[None]:
    """The compiled code, where it is built, and its twin."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            patch.setattr(reader, "scan", None)
            patch.setattr(rows, "fill", _fill_by_numpy)
            patch.setattr(numpy_fill, "BULK_RECORDS_MIN", 2)
            patch.setattr(rows, "fill_headers", _fill_headers_by_numpy)
        yield


def _fill_by_numpy(records: Any, table: Any, row: int, arrays: Any) -> Any:
    return numpy_fill.fill(records, table, row, *arrays)


def _fill_headers_by_numpy(records: Any, row: Any, entries: Any, into: Any) -> int:
    return numpy_fill.fill_headers(records, *row, *entries, *into)


SEEDS = pytest.mark.parametrize("seed", range(3))


@SEEDS
@pytest.mark.usefixtures("both_ways")
def test_any_data_is_decoded_as_by_single_records(seed: int) -> None:
    rng = random.Random(seed)
    rows_count = 0
    for _ in range(150):
        data = fetched(rng)
        data = data[: len(data) - rng.choice((0, 0, 1, 60))]
        first = rng.choice((0, 0, rng.randrange(1_100)))
        end = rng.choice((1 << 40, first + rng.randrange(40), rng.randrange(first, 1_200)))
        columns = rng.sample(list(TYPES), rng.randrange(1, len(TYPES) + 1))
        whole = expected(data, first, end)
        rows_count += len(whole.rows)
        cut = [{name: row[name] for name in columns} for row in whole.rows]
        assert decoded(data, first, end, columns) == Expected(cut, whole.next_offset)
    assert rows_count > 200


@SEEDS
@pytest.mark.usefixtures("both_ways")
def test_a_damaged_bit_under_the_crc_is_refused(seed: int) -> None:
    """Control batches are checked, too."""
    rng = random.Random(seed)
    for _ in range(100):
        data = bytearray(fetched(rng))
        headers = list(iterate_headers(data))
        if not headers:
            continue
        header = rng.choice(headers)
        data[header.position + rng.randrange(17, header.size)] ^= 1 << rng.randrange(8)
        with pytest.raises(DamagedBatchError, match="orders-3 at offset"):
            decoded(bytes(data), 0, 1 << 40, ["key", "offset"])


@SEEDS
@pytest.mark.usefixtures("both_ways")
def test_malformed_records_with_a_right_crc_are_never_read_wrongly(seed: int) -> None:
    """As a faulty producer would send them to a broker that does not look."""
    rng = random.Random(seed)
    outcomes = {"refused": 0, "equal": 0}
    for _ in range(250):
        data = bytearray(fetched(rng))
        headers = [one for one in iterate_headers(data) if one.size > HEADER_BYTES]
        if not headers:
            continue
        header = rng.choice(headers)
        place = rng.choice((21, 61))
        data[header.position + rng.randrange(place, header.size)] = rng.randrange(256)
        try:
            damaged = read_header(data, header.position)
        except ApiError:
            continue
        assert damaged is not None, "its length is as it was"
        seal(data, damaged)
        try:
            found = decoded(bytes(data), 0, 1 << 40, list(TYPES))
        except DamagedBatchError:
            outcomes["refused"] += 1
            continue
        # Single records that are refused here fail the test as well.
        assert found == expected(bytes(data), 0, 1 << 40)
        outcomes["equal"] += 1
    assert min(outcomes.values()) > 20, outcomes
