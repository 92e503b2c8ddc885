"""The compiled fill and its NumPy twin: both fill the same, of sound and of damaged batches.

Source: decision 0056."""

import random
import subprocess
import sys
from array import array
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.records.test_contents import BASE, FAULTS, damaged_batches

from strandline.records.contents import Fault
from strandline.spark.decoding import numpy_fill
from strandline.spark.decoding.table import HAS_NO_APPEND_TIME, Arrays, BatchRow, BytesColumn

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(params=[0, 1_000], autouse=True)
def bulk(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch in bulk, and every record by itself."""
    monkeypatch.setattr(numpy_fill, "BULK_RECORDS_MIN", request.param)


def new_arrays(rows: int, size: int, names: frozenset[str] = frozenset(Arrays._fields)) -> Arrays:
    kinds = {"offsets": np.int64, "timestamps": np.int64}

    def bytes_column() -> BytesColumn:
        return BytesColumn(
            np.zeros(rows + 1, np.int32), np.zeros(size, np.uint8), np.zeros(rows, np.uint8)
        )

    made = {
        name: bytes_column()
        if name in ("keys", "values")
        else np.zeros(rows, kinds.get(name, np.int32))
        for name in names
    }
    return Arrays(**made)


def batch_row(records: bytes, count: int, **more: Any) -> BatchRow:
    row = BatchRow(
        start=0,
        end=len(records),
        records_count=count,
        last_delta=count - 1,
        from_delta=-5,
        to_delta=1 << 40,
        base_offset=1_000,
        base_timestamp=BASE,
        append_timestamp=HAS_NO_APPEND_TIME,
        epoch=7,
        walks=1,
        crc=0,
    )
    return row._replace(**more)


def content(arrays: Arrays, rows: int) -> list[Any]:
    """What the arrays hold in their first rows."""
    found: list[Any] = []
    for one in arrays:
        if isinstance(one, BytesColumn):
            found.append(one.ends[: rows + 1].tolist())
            found.append(one.bytes[: one.ends[rows]].tobytes())
            found.append(one.nulls[:rows].tolist())
        else:
            found.append(None if one is None else one[:rows].tolist())
    return found


def both(
    compiled: ModuleType,
    records: bytes,
    batches: list[BatchRow],
    names: frozenset[str] = frozenset(Arrays._fields),
) -> tuple[int, int, int, int, int]:
    """What both twins return, which is the same, as all that they fill."""
    table = array("q", [number for row in batches for number in row])
    room = sum(row.records_count for row in batches) + 3
    size = sum(row.end - row.start for row in batches)
    results = []
    for fill in (compiled.fill, numpy_fill.fill):
        arrays = new_arrays(room, size, names)
        filled = fill(records, table, 2, *arrays)
        results.append((filled, content(arrays, filled[3])))
        if not filled[0] and filled[4]:
            results[-1] += (
                headers(compiled if fill is compiled.fill else numpy_fill, records, arrays, filled),
            )
    assert results[0] == results[1]
    return results[0][0]


def headers(module: ModuleType, records: bytes, arrays: Arrays, filled: Any) -> list[Any]:
    fill = module.fill_headers
    into = new_arrays(filled[4] + 1, len(records), frozenset({"keys", "values"}))
    at, counts = arrays.headers_at, arrays.headers_counts
    assert at is not None and counts is not None
    rows = slice(2, filled[3])
    assert fill(records, at[rows], counts[rows], 1, filled[4] + 1, into.keys, into.values) == (
        filled[4] + 1
    )
    return content(into, filled[4] + 1)


@pytest.mark.parametrize("seed", range(6))
def test_the_compiled_fill_and_its_twin_agree(compiled: ModuleType, seed: int) -> None:
    rng = random.Random(seed)
    faults = set()
    sound = 0
    for records, count, base in damaged_batches(seed, rounds=700):
        count = max(count, 0)
        row = batch_row(
            records,
            count,
            base_timestamp=base,
            last_delta=count - 1 + rng.choice((0, 0, 4)),
            from_delta=rng.choice((-9, 0, 1, 2)),
            to_delta=rng.choice((1 << 40, 3, 1)),
            append_timestamp=rng.choice((HAS_NO_APPEND_TIME, BASE, 1 << 60)),
        )
        names = frozenset(name for name in Arrays._fields if rng.random() < 0.6)
        if "headers_at" in names or "headers_counts" in names:
            names |= {"headers_at", "headers_counts"}
        fault, *_ = both(compiled, records, [row], names)
        faults.add(fault)
        sound += not fault
    assert sound > 100
    assert len(faults) > 8, "most kinds of damage are met"


@settings(
    max_examples=200,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    data=st.binary(max_size=200), count=st.integers(0, 40), base=st.integers(-(2**63), 2**63 - 1)
)
def test_any_bytes_are_filled_alike(
    compiled: ModuleType, data: bytes, count: int, base: int
) -> None:
    both(compiled, data, [batch_row(data, count, base_timestamp=base)])


def test_several_batches_are_filled_one_behind_the_other(compiled: ModuleType) -> None:
    parts = list(damaged_batches(3, rounds=60))
    rows, data = [], b""
    for records, count, _ in parts:
        whole = batch_row(records, max(count, 0), base_offset=len(rows) * 100, epoch=len(rows))
        if both(compiled, records, [whole])[0]:
            continue
        rows.append(whole._replace(start=len(data), end=len(data) + len(records)))
        data += records
    dense = batch_row(b"", 4, walks=0, from_delta=1, append_timestamp=BASE)
    rows.append(dense._replace(start=len(data), end=len(data), epoch=99))
    assert len(rows) > 10
    fault, batch, _, filled, _ = both(compiled, data, rows)
    assert (fault, batch) == (Fault.NONE, len(rows))
    assert filled == 2 + sum(row.records_count for row in rows) - 1


ASCENDING = [case for case in FAULTS if case[0] != Fault.OFFSET_DELTA]


@pytest.mark.parametrize(("fault", "count", "records"), ASCENDING)
def test_malformed_records_are_refused(
    compiled: ModuleType, fault: Fault, count: int, records: bytes
) -> None:
    found, batch, *_ = both(compiled, records, [batch_row(records, count)])
    assert (found, batch) == (fault, 0)


def test_offsets_only_ascend_within_their_batch(compiled: ModuleType) -> None:
    case = next(case for case in FAULTS if case[0] == Fault.OFFSET_DELTA and case[1] == 2)
    records = case[2]
    found, _, record, *_ = both(compiled, records, [batch_row(records, 2, last_delta=9)])
    assert (found, record) == (Fault.OFFSET_DELTA, 1)


def test_no_byte_is_read_or_written_outside_of_the_memory(columns_file: Path) -> None:
    """Inputs end where memory ends: one byte more would be a segmentation fault."""
    command = [sys.executable, "-m", "tests.spark.decoding.guarded_fill", "1", "1500"]
    command.append(str(columns_file))
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_columns_that_are_too_small_are_refused(compiled: ModuleType) -> None:
    records, count, _ = next(damaged_batches(0, rounds=1))
    table = array("q", batch_row(records, count))
    roomy = new_arrays(count + 2, len(records))
    for name in Arrays._fields:
        small = new_arrays(count + 1, len(records) - 1)
        arrays = roomy._replace(**{name: getattr(small, name)})
        with pytest.raises(ValueError, match="a column of"):
            compiled.fill(records, table, 2, *arrays)
    with pytest.raises(ValueError, match="impossible"):
        compiled.fill(records[:-1], table, 0, *roomy)
    with pytest.raises(BufferError):
        compiled.fill(records, table, 0, b"", *roomy[1:])
