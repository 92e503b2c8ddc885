"""Fills arrays with the records of one batch, one record after the other: exact, and slow.

Why:    `numpy_fill.py` fills usual batches in bulk. For any other this says which fault is found
        first, as the compiled fill does."""

import numpy as np

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.records.contents import Fault
from strandline.records.varint import read_varint, read_varlong
from strandline.spark.decoding.table import (
    HAS_NO_APPEND_TIME,
    TIMESTAMP_MS_MAX,
    Arrays,
    BatchRow,
    BytesColumn,
)

TIMESTAMP_FAULT = len(Fault)
"""Behind the faults of records: a time that does not fit the column."""


class FaultError(Exception):
    """A record is malformed."""

    def __init__(self, fault: int) -> None:
        super().__init__(fault)
        self.fault = fault


class RecordFill:
    """Fills the rows of one batch, whose records are `data`. `record`, `row` and `headers` are
    where it stopped."""

    def __init__(self, data: bytes, batch: BatchRow, arrays: Arrays, row: int) -> None:
        self._data = data
        self._batch = batch
        self._arrays = arrays
        self._delta = -1
        self.record = 0
        self.row = row
        self.headers = 0

    def run(self) -> int:
        """Fill all rows; which fault there is, 0 for none."""
        batch = self._batch
        position, batch_end = 0, len(self._data)
        try:
            while self.record < batch.records_count:
                length, position = _varint(self._data, position, batch_end, Fault.RECORD_CUT)
                if length < 0 or length > batch_end - position:
                    return Fault.RECORD_BEYOND_BATCH
                self._fill(position, position + length)
                position += length
                self.record += 1
        except FaultError as error:
            return error.fault
        return Fault.NONE if position == batch_end else Fault.TRAILING_BYTES

    def _fill(self, position: int, end: int) -> None:
        data, batch = self._data, self._batch
        if position >= end:
            raise FaultError(Fault.FIELD_CUT)
        try:
            time_delta, position = read_varlong(data, position + 1, end)
        except ApiError:
            raise FaultError(Fault.FIELD_CUT) from None
        delta, position = _varint(data, position, end)
        if not self._delta < delta <= batch.last_delta:
            raise FaultError(Fault.OFFSET_DELTA)
        self._delta = delta
        key, position = read_field(data, position, end)
        value, position = read_field(data, position, end)
        count, headers_at = _varint(data, position, end)
        if not 0 <= count <= end - headers_at:
            raise FaultError(Fault.HEADER_COUNT)
        if skip_headers(data, headers_at, end, count) != end:
            raise FaultError(Fault.RECORD_TOO_LONG)
        if batch.from_delta <= delta < batch.to_delta:
            self._put(time_delta, delta, (key, value), (headers_at, count))

    def _put(
        self,
        time_delta: int,
        delta: int,
        fields: tuple[Buffer | None, Buffer | None],
        headers: tuple[int, int],
    ) -> None:
        arrays, row = self._arrays, self.row
        if arrays.timestamps is not None:
            arrays.timestamps[row] = microseconds(self._batch, time_delta)
        for column, value in zip((arrays.keys, arrays.values), fields, strict=True):
            if column is not None:
                put_bytes(column, row, value)
        if arrays.offsets is not None:
            arrays.offsets[row] = self._batch.base_offset + delta
        if arrays.headers_at is not None and arrays.headers_counts is not None:
            arrays.headers_at[row] = self._batch.start + headers[0]
            arrays.headers_counts[row] = headers[1]
            self.headers += headers[1]
        self.row += 1


def microseconds(batch: BatchRow, time_delta: int) -> int:
    """The time of a record in us. Raises FaultError if it does not fit the column."""
    time = batch.append_timestamp
    if time == HAS_NO_APPEND_TIME:
        time = batch.base_timestamp + time_delta
    if abs(time) > TIMESTAMP_MS_MAX:
        raise FaultError(TIMESTAMP_FAULT)
    return time * 1000


def put_bytes(column: BytesColumn, row: int, value: Buffer | None) -> None:
    """Fill one row."""
    start = int(column.ends[row])
    end = start + len(value or b"")
    column.nulls[row] = value is None
    if value:
        column.bytes[start:end] = np.frombuffer(value, np.uint8)
    column.ends[row + 1] = end


def read_field(data: Buffer, position: int, end: int) -> tuple[Buffer | None, int]:
    """(a field, the position after it). Raises FaultError."""
    length, position = _varint(data, position, end)
    if length < -1:
        raise FaultError(Fault.FIELD_LENGTH)
    if length > end - position:
        raise FaultError(Fault.FIELD_BEYOND_RECORD)
    if length < 0:
        return None, position
    return data[position : position + length], position + length


def skip_headers(data: Buffer, position: int, end: int, count: int) -> int:
    """The position after `count` headers. Raises FaultError."""
    for _ in range(count):
        name, position = read_field(data, position, end)
        if name is None:
            raise FaultError(Fault.HEADER_WITHOUT_NAME)
        _, position = read_field(data, position, end)
    return position


def _varint(
    data: Buffer, position: int, end: int, fault: Fault = Fault.FIELD_CUT
) -> tuple[int, int]:
    try:
        return read_varint(data, position, end)
    except ApiError:
        raise FaultError(fault) from None
