"""Fills arrays with the records of uncompressed batches: the twin of `records/_columns.c`.

How:    a loop finds where the records of a batch begin. Then each field of all of them is read at
        once. Bytes are copied by Arrow: a binary array whose values are alternately a field and
        what lies between two fields gives the fields by `take`. A batch that is not usual goes to
        `record_fill.py`.
Source: docs/decisions/0056-decoding-batches.md."""

from typing import Any

import numpy as np
import pyarrow as pa

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.records.contents import Fault
from strandline.records.varint import read_varint
from strandline.spark.decoding.record_fill import (
    TIMESTAMP_FAULT,
    FaultError,
    RecordFill,
    microseconds,
    put_bytes,
    read_field,
    skip_headers,
)
from strandline.spark.decoding.table import (
    HAS_NO_APPEND_TIME,
    I32,
    I64,
    TIMESTAMP_MS_MAX,
    U8,
    Arrays,
    BatchRow,
    BytesColumn,
    Filled,
    Table,
    batch_rows,
)

BULK_RECORDS_MIN = 32
"""Fewer records take less time one after the other."""


class _UnusualError(Exception):
    """The batch is malformed, or cannot be read in bulk."""


def fill(records: Buffer, table: Table, row: int, /, *arrays: Any) -> Filled:
    """Fill the rows of all batches from `row` on; see `_columns.c`."""
    view = memoryview(records)
    into = Arrays(*arrays)
    headers = record = 0
    batches = batch_rows(table)
    for index, batch in enumerate(batches):
        first = row
        fault, record, row, more = _fill_batch(
            bytes(view[batch.start : batch.end]), batch, into, row
        )
        headers += more
        if fault:
            return fault, index, record, row, headers
        if into.epochs is not None:
            into.epochs[first:row] = batch.epoch
        if into.timestamp_types is not None:
            into.timestamp_types[first:row] = batch.append_timestamp != HAS_NO_APPEND_TIME
    return Fault.NONE, len(batches), record, row, headers


def _fill_batch(
    data: bytes, batch: BatchRow, arrays: Arrays, row: int
) -> tuple[int, int, int, int]:
    """(fault, which record, the row behind the last, how many headers). `data`: the records of the
    batch."""
    if not batch.walks:
        return _fill_dense(batch, arrays, row)
    try:
        if batch.records_count < BULK_RECORDS_MIN:
            raise _UnusualError
        rows, headers = _fill_in_bulk(data, batch, arrays, row)
    except (_UnusualError, FaultError):
        by_record = RecordFill(data, batch, arrays, row)
        fault = by_record.run()
        return fault, by_record.record, by_record.row, by_record.headers
    return Fault.NONE, batch.records_count, row + rows, headers


def _fill_dense(batch: BatchRow, arrays: Arrays, row: int) -> tuple[int, int, int, int]:
    start, stop = max(batch.from_delta, 0), min(batch.to_delta, batch.records_count)
    rows = max(stop - start, 0)
    if rows and arrays.timestamps is not None:
        try:
            arrays.timestamps[row : row + rows] = microseconds(batch, 0)
        except FaultError:
            return TIMESTAMP_FAULT, 0, row, 0
    if rows and arrays.offsets is not None:
        first = batch.base_offset + start
        arrays.offsets[row : row + rows] = np.arange(first, first + rows)
    return Fault.NONE, 0, row + rows, 0


def _fill_in_bulk(data: bytes, batch: BatchRow, arrays: Arrays, row: int) -> tuple[int, int]:
    """(how many rows, how many headers). Raises for a batch that is malformed."""
    at, ends = _records_of(data, batch)
    buffer = np.frombuffer(data, np.uint8)
    times, at = _read_varints(buffer, at + 1, ends, bits=64)
    deltas, at = _read_varints(buffer, at, ends, bits=32)
    if len(deltas) and (deltas[0] < 0 or deltas[-1] > batch.last_delta):
        raise _UnusualError
    if (deltas[1:] <= deltas[:-1]).any():
        raise _UnusualError
    keys_at, keys_bytes = _read_lengths(buffer, at, ends)
    values_at, values_bytes = _read_lengths(buffer, keys_at + np.maximum(keys_bytes, 0), ends)
    counts, headers_at = _read_varints(
        buffer, values_at + np.maximum(values_bytes, 0), ends, bits=32
    )
    if (counts < 0).any() or (counts > ends - headers_at).any():
        raise _UnusualError
    if (headers_at[counts == 0] != ends[counts == 0]).any():
        raise _UnusualError
    for index in np.flatnonzero(counts).tolist():
        end = int(ends[index])
        if skip_headers(data, int(headers_at[index]), end, int(counts[index])) != end:
            raise _UnusualError
    kept = slice(*np.searchsorted(deltas, (batch.from_delta, batch.to_delta)).tolist())
    rows = len(deltas[kept])
    into = slice(row, row + rows)
    if arrays.timestamps is not None:
        arrays.timestamps[into] = _times(batch, times[kept])
    if arrays.offsets is not None:
        arrays.offsets[into] = batch.base_offset + deltas[kept]
    if arrays.keys is not None:
        _put_all(arrays.keys, row, data, keys_at[kept], keys_bytes[kept])
    if arrays.values is not None:
        _put_all(arrays.values, row, data, values_at[kept], values_bytes[kept])
    if arrays.headers_at is None or arrays.headers_counts is None:
        return rows, 0
    arrays.headers_at[into] = batch.start + headers_at[kept]
    arrays.headers_counts[into] = counts[kept]
    return rows, int(counts[kept].sum())


def _records_of(data: bytes, batch: BatchRow) -> tuple[I64, I64]:
    """Where each record begins and ends, its length left out."""
    starts: list[int] = []
    ends: list[int] = []
    position, end = 0, len(data)
    try:
        for _ in range(batch.records_count):
            if position >= end:
                raise _UnusualError
            length = data[position]
            if length < 0x80:
                length = -1 if length & 1 else length >> 1
                position += 1
            else:
                length, position = read_varint(data, position, end)
            if length <= 0:
                raise _UnusualError
            starts.append(position)
            position += length
            ends.append(position)
    except ApiError:
        raise _UnusualError from None
    if position != end:
        raise _UnusualError
    return np.array(starts, np.int64), np.array(ends, np.int64)


def _read_varints(buffer: U8, at: I64, ends: I64, *, bits: int) -> tuple[I64, I64]:
    """(a zigzag varint at each position, the positions behind them)."""
    if (at >= ends).any():
        raise _UnusualError
    byte = buffer[at].astype(np.uint64)
    raw = byte & np.uint64(0x7F)
    at = at + 1
    more = np.flatnonzero(byte >= 0x80)
    shift = 7
    while len(more):
        if shift >= bits or (at[more] >= ends[more]).any():
            raise _UnusualError
        byte = buffer[at[more]].astype(np.uint64)
        if (byte >> np.uint64(min(bits - shift, 8))).any():  # More bits than there are.
            raise _UnusualError
        raw[more] |= (byte & np.uint64(0x7F)) << np.uint64(shift)
        at[more] += 1
        more = more[byte >= 0x80]
        shift += 7
    value = (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64)
    return value, at


def _read_lengths(buffer: U8, at: I64, ends: I64) -> tuple[I64, I64]:
    """(where each field begins, its length, -1 for null)."""
    lengths, at = _read_varints(buffer, at, ends, bits=32)
    if (lengths < -1).any() or (lengths > ends - at).any():
        raise _UnusualError
    return at, lengths


def _times(batch: BatchRow, deltas: I64) -> I64:
    """In us."""
    if batch.append_timestamp != HAS_NO_APPEND_TIME:
        return np.full(len(deltas), microseconds(batch, 0) if len(deltas) else 0, np.int64)
    limit = TIMESTAMP_MS_MAX
    if not len(deltas):
        return deltas
    lowest, highest = int(deltas.min()), int(deltas.max())
    if batch.base_timestamp + highest > limit or batch.base_timestamp + lowest < -limit:
        raise _UnusualError
    return (deltas + batch.base_timestamp) * 1000


def _put_all(column: BytesColumn, row: int, data: bytes, at: I64, lengths: I64) -> None:
    """Fill rows from `row` on with the fields at these positions of `data`."""
    rows = len(at)
    if not rows:
        return
    sizes = np.maximum(lengths, 0)
    edges = np.empty(2 * rows + 1, np.int32)
    edges[0:-1:2] = at
    edges[1::2] = at + sizes
    edges[-1] = edges[-2]
    whole = pa.BinaryArray.from_buffers(
        pa.binary(), 2 * rows, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    taken = whole.take(pa.array(np.arange(0, 2 * rows, 2, dtype=np.int64)))
    start = int(column.ends[row])
    ends = start + np.cumsum(sizes)
    content = taken.buffers()[2]
    if ends[-1] > start:
        column.bytes[start : ends[-1]] = np.frombuffer(content, np.uint8)[: ends[-1] - start]
    column.ends[row + 1 : row + 1 + rows] = ends
    column.nulls[row : row + rows] = lengths < 0


def fill_headers(
    records: Buffer,
    at: I32,
    counts: I32,
    entry: int,
    entries: int,
    names: BytesColumn,
    values: BytesColumn,
    /,
) -> int:
    """Fill the headers of rows from `entry` on; see `_columns.c`."""
    view = memoryview(records)
    for row in np.flatnonzero(counts).tolist():
        position = int(at[row])
        for _ in range(int(counts[row])):
            assert entry < entries, "more headers than were counted"
            name, position = read_field(view, position, len(view))
            value, position = read_field(view, position, len(view))
            put_bytes(names, entry, name)
            put_bytes(values, entry, value)
            entry += 1
    return entry
