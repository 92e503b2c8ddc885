"""The columns of an Arrow batch as the arrays of `row_encode.py`, without a copy of the bytes."""

from typing import Any

import numpy as np
import pyarrow as pa

from strandline.base.errors import OperatorError
from strandline.spark.writing.row_encode import I32, BytesColumn, Columns, Headers


def columns_of(batch: pa.RecordBatch, now_ms: int) -> Columns:
    """The columns of a batch that `check_columns` has accepted; rows without a timestamp have
    `now_ms`. Raises OperatorError for a header without a key."""
    names = batch.schema.names
    timestamps = np.full(batch.num_rows, now_ms, np.int64)
    if "timestamp" in names:
        given = batch.column("timestamp").cast(pa.int64())
        micros = given.fill_null(0).to_numpy(zero_copy_only=False)
        timestamps = np.where(_nulls(given), timestamps, micros // 1000)
    return Columns(
        timestamps=timestamps,
        keys=bytes_column(batch.column("key")) if "key" in names else None,
        values=bytes_column(batch.column("value")) if "value" in names else None,
        headers=_headers(batch.column("headers")) if "headers" in names else None,
    )


def partition_column(batch: pa.RecordBatch) -> tuple[I32, "np.ndarray[Any, Any]"] | None:
    """(the partition of each row, whether it is null); None without such a column."""
    if "partition" not in batch.schema.names:
        return None
    column = batch.column("partition")
    return column.fill_null(0).to_numpy(zero_copy_only=False), _nulls(column) != 0


def bytes_column(array: pa.Array) -> BytesColumn:
    """A column of strings or bytes."""
    if not len(array):
        return BytesColumn(np.zeros(1, np.int32), b"", np.zeros(0, np.uint8))
    array = array.cast(pa.binary())
    _, ends, content = array.buffers()
    first = array.offset
    return BytesColumn(
        np.frombuffer(ends, np.int32)[first : first + len(array) + 1],
        b"" if content is None else memoryview(content),
        _nulls(array),
    )


def _nulls(array: pa.Array) -> "np.ndarray[Any, np.dtype[np.uint8]]":
    if not array.null_count:
        return np.zeros(len(array), np.uint8)
    nulls = array.is_null().to_numpy(zero_copy_only=False)
    return np.asarray(nulls, np.uint8)


def _headers(array: pa.Array) -> Headers:
    entries = array.values
    ends = array.offsets.to_numpy(zero_copy_only=False)
    if array.null_count and (np.diff(ends)[_nulls(array) != 0] != 0).any():
        return _headers(pa.array(array.to_pylist(), array.type))  # A null row has entries.
    keys, values = entries.flatten()
    used = slice(int(ends[0]), int(ends[-1]))
    if keys[used].null_count:
        raise OperatorError("a header without a key: filter such headers out before writing")
    return Headers(ends, bytes_column(keys), bytes_column(values))
