"""A bound never excludes a row of its file, and counts are exact.

Source: Delta's PROTOCOL.md, "Per-file Statistics"."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from strandline.pipeline.lake.direct.statistics import COLUMNS_MAX, TEXT_CHARS_MAX, Statistics


def told(*batches: list[dict[str, Any]], schema: pa.Schema) -> dict[str, Any]:
    statistics = Statistics(schema)
    for rows in batches:
        statistics.add(pa.RecordBatch.from_pylist(rows, schema=schema))
    found: dict[str, Any] = json.loads(statistics.json(), parse_float=Decimal)
    return found


def test_leaves_of_structs_have_bounds_and_nulls_over_all_batches() -> None:
    value = pa.struct([("n", pa.int64()), ("on", pa.bool_())])
    schema = pa.schema([("value", value), ("bytes", pa.binary()), ("many", pa.list_(pa.int32()))])
    found = told(
        [{"value": {"n": 3, "on": True}, "bytes": b"x", "many": [1]}, {"value": None}],
        [{"value": {"n": -1, "on": None}, "bytes": None, "many": None}],
        schema=schema,
    )
    assert found == {
        "numRecords": 3,
        "minValues": {"value": {"n": -1}},
        "maxValues": {"value": {"n": 3}},
        "nullCount": {"value": {"n": 1, "on": 2}, "bytes": 2, "many": 2},
    }


@pytest.mark.parametrize(
    ("kind", "values", "least", "greatest"),
    [
        (pa.string(), ["b" * 40, "a" * 40], "a" * TEXT_CHARS_MAX, "b" * 32 + "\U0010ffff"),
        (pa.string(), ["z" * 32 + "\U0010ffff" * 3], "z" * 32, "z" * 32 + "\U0010ffff" * 4),
        (
            pa.timestamp("us", "UTC"),
            [datetime(2026, 1, 1, 0, 0, 0, 1_001, UTC)],
            "2026-01-01T00:00:00.001Z",
            "2026-01-01T00:00:00.002Z",
        ),
        (pa.date32(), [date(1, 1, 1), date(9999, 12, 31)], "0001-01-01", "9999-12-31"),
        (
            pa.decimal128(38, 10),
            [Decimal("1234567890123456789.0123456789")],
            Decimal("1234567890123456789.0123456789"),
            Decimal("1234567890123456789.0123456789"),
        ),
        (pa.float64(), [0.25, -1e300], Decimal("-1e300"), Decimal("0.25")),
    ],
)
def test_bounds_hold_the_values_as_delta_writes_them(
    kind: pa.DataType, values: list[Any], least: Any, greatest: Any
) -> None:
    schema = pa.schema([("x", kind)])
    found = told([{"x": value} for value in values], schema=schema)
    assert (found["minValues"]["x"], found["maxValues"]["x"]) == (least, greatest)


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_a_column_with_a_number_that_json_does_not_have_has_no_bounds(odd: float) -> None:
    found = told([{"x": 1.0}, {"x": odd}], [{"x": 2.0}], schema=pa.schema([("x", pa.float64())]))
    assert found["minValues"] == found["maxValues"] == {}
    assert found["nullCount"] == {"x": 0}


def test_times_of_years_that_python_does_not_know_have_no_bounds() -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    statistics = Statistics(schema)
    for us in (0, 1 << 62):
        times = pa.array([us], pa.int64()).cast(schema.field("at").type)
        statistics.add(pa.RecordBatch.from_arrays([times], schema=schema))
    found = json.loads(statistics.json())
    assert (found["numRecords"], found["maxValues"]) == (2, {})


def test_only_the_first_columns_have_statistics() -> None:
    schema = pa.schema([(f"c{n}", pa.int32()) for n in range(COLUMNS_MAX + 3)])
    found = told([dict.fromkeys(schema.names, 1)], schema=schema)
    assert list(found["nullCount"]) == [f"c{n}" for n in range(COLUMNS_MAX)]
