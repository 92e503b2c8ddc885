"""The table of batches whose records are filled into arrays, and these arrays.

Why:    the compiled fill and its NumPy twin read and write the same memory.
Source: `records/_columns.c`, whose struct `batch` a row of the table is."""

from array import array
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

Table: TypeAlias = "array[int]"
"""Rows of `BatchRow`, one number after the other, of type `q`."""
Filled = tuple[int, int, int, int, int]
"""(fault, which batch, which record of it, the row behind the last, how many headers)."""

HAS_NO_APPEND_TIME = -(1 << 63)
TIMESTAMP_MS_MAX = ((1 << 63) - 1) // 1000
"""The latest time that microseconds in 64 bits hold, and, negated, the earliest."""


class BatchRow(NamedTuple):
    """Where the uncompressed records of a batch are, and which of them are wanted."""

    start: int
    end: int
    """[start, end) in the buffer of records."""
    records_count: int
    last_delta: int
    """The highest offset delta that a record may have."""
    from_delta: int
    to_delta: int
    """Only records with offset deltas in [from_delta, to_delta) get a row."""
    base_offset: int
    base_timestamp: int
    append_timestamp: int
    """The time of all records, `HAS_NO_APPEND_TIME` if each has its own."""
    epoch: int
    walks: int
    """0 if all rows follow from this table: offsets are dense, and nothing else is asked for."""
    crc: int


class BytesColumn(NamedTuple):
    """Row i has the bytes from ends[i] to ends[i + 1]; nulls[i] is 1 for a null."""

    ends: I32
    bytes: U8
    nulls: U8


class Arrays(NamedTuple):
    """What is filled; None for what is not asked for. `headers_at`: where the first header of a
    record is in the buffer of records."""

    offsets: I64 | None = None
    timestamps: I64 | None = None
    """In us since 1970."""
    epochs: I32 | None = None
    timestamp_types: I32 | None = None
    headers_at: I32 | None = None
    headers_counts: I32 | None = None
    keys: BytesColumn | None = None
    values: BytesColumn | None = None


def batch_rows(table: Table) -> list[BatchRow]:
    """The rows of a table."""
    width = len(BatchRow._fields)
    numbers: list[Any] = table.tolist()
    return [BatchRow(*numbers[at : at + width]) for at in range(0, len(numbers), width)]
