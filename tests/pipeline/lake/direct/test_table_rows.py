"""A worker's records find the table's columns: keys, bytes and reasons.

How:    a test in tests/spark compares with Spark's own way."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812

from strandline.pipeline.lake.direct.plan import row_type
from strandline.pipeline.lake.direct.table_rows import table_rows
from strandline.pipeline.lake.options import (
    LakeOptions,
    PartitionColumn,
    ValueSchema,
    parse_partition_by,
)
from strandline.pipeline.lake.rows import table_type, worker_columns
from strandline.pipeline.values.arrow_types import to_arrow
from strandline.pipeline.values.ddl import parse_ddl
from strandline.pipeline.values.evolution import relaxed
from strandline.spark.decoding.columns import TYPES

PLAIN = LakeOptions(bootstrap="localhost:9092", topics=("t",), table="/table")
DECODED = replace(PLAIN, schema=ValueSchema(Path("n.ddl"), parse_ddl("n INT NOT NULL")))
RECORDS: list[tuple[bytes | None, bytes | None]] = [
    (b"a", b'{"n": 1}'),
    (b"\xff", b'{"n": "x"}'),
    (b"\xfe", b'{"n": 2}'),
    (None, None),
    (b"b", b"{"),
]


def converted(options: LakeOptions) -> list[dict[str, Any]]:
    source = {name: TYPES[name] for name in ("topic", "partition", "offset", "timestamp")}
    source |= {name: TYPES[name] for name in ("headers", "key", "value")}
    rows = [
        {"topic": "t", "partition": 0, "offset": n, "timestamp": n, "key": key, "value": value}
        for n, (key, value) in enumerate(RECORDS)
    ]
    batch = pa.RecordBatch.from_pylist(rows, schema=pa.schema(source))
    schema = pa.schema(list(to_arrow(relaxed(table_type(options)))))
    found = table_rows(options, schema)(worker_columns(options)(batch))
    found.validate(full=True)
    kept: list[dict[str, Any]] = found.to_pylist()
    for row in kept:
        for name in ("topic", "partition", "offset", "timestamp", "headers"):
            del row[name]
    return kept


def test_bytes_stay_bytes() -> None:
    assert converted(PLAIN) == [{"key": key, "value": value} for key, value in RECORDS]


def test_what_does_not_fit_keeps_its_bytes_and_reasons() -> None:
    options = replace(DECODED, key="text", keep_raw=True)
    wrong = "field n: expected int, got text"
    expected = [
        ("a", None, None, None, {"n": 1}),
        (None, b"\xff", b'{"n": "x"}', f"{wrong}; key: not UTF-8", None),
        (None, b"\xfe", None, "key: not UTF-8", {"n": 2}),
        (None, None, None, None, None),
        ("b", None, b"{", "not JSON", None),
    ]
    names = ("key", "malformed_key", "malformed", "problem", "value")
    assert [tuple(row[name] for name in names) for row in converted(options)] == expected
    assert [row["raw"] for row in converted(options)] == [value for _, value in RECORDS]


def test_keys_as_text_need_no_schema() -> None:
    found = converted(replace(PLAIN, key="text"))
    assert [(row["key"], row["problem"]) for row in found] == [
        ("a", None),
        (None, "key: not UTF-8"),
        (None, "key: not UTF-8"),
        (None, None),
        ("b", None),
    ]


def test_the_type_of_rows_ends_with_the_partition_columns() -> None:
    found = row_type(
        replace(DECODED, partition_by=parse_partition_by(("n",), schema=DECODED.schema))
    )
    assert found is not None
    assert (found["n"].dataType, found.names[-2:]) == (T.IntegerType(), ["value", "n"])


def test_only_spark_knows_the_type_of_other_expressions() -> None:
    columns = (PartitionColumn("bucket", "pmod(offset, 2)"),)
    assert row_type(replace(PLAIN, partition_by=columns)) is None
