"""Columns of Arrow as records.

Why:    Spark hands over some thousand rows at once, as Arrow holds them. Each column becomes one
        list, and the lists are walked together."""

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from strandline.base.errors import OperatorError

Headers = tuple[tuple[str, bytes | None], ...]


class Row(NamedTuple):
    """One record to write. `topic` may be empty, `partition` and `timestamp_ms` None."""

    key: bytes | None
    value: bytes | None
    topic: str | None
    partition: int | None
    headers: Headers
    timestamp_ms: int | None


def rows_of(batch: pa.RecordBatch) -> Iterator[Row]:
    """The rows of a batch, whose columns `check_columns` has accepted."""
    count = batch.num_rows
    nothing = [None] * count
    names = batch.schema.names

    def column(name: str, kind: pa.DataType | None = None) -> list[object]:
        if name not in names:
            return list(nothing)
        values = batch.column(name)
        return list((values if kind is None else values.cast(kind)).to_pylist())

    timestamps: list[object] = list(nothing)
    if "timestamp" in names:
        microseconds = batch.column("timestamp").cast(pa.int64()).to_pylist()
        timestamps = [None if one is None else one // 1000 for one in microseconds]
    columns = (
        column("key", pa.binary()),
        column("value", pa.binary()),
        column("topic"),
        column("partition"),
        [_headers(one) for one in column("headers")],
        timestamps,
    )
    return (Row(*values) for values in zip(*columns, strict=True))


def _headers(entries: object) -> Headers:
    if entries is None:
        return ()
    assert isinstance(entries, list), "an array of Arrow is a list"
    for entry in entries:
        if entry is None or entry["key"] is None:
            raise OperatorError("a header without a key: filter such headers out before writing")
    return tuple((entry["key"], entry["value"]) for entry in entries)
