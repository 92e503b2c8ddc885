"""Decodes the record batches of one partition, as a Fetch response has them, to columns of Arrow.

How:    each whole batch that has offsets in [first_offset, end_offset) is checked by its CRC,
        decompressed within bounds, and read. Batches before the range are passed by their header.
        Control batches and aborted transactions have no rows. An incomplete batch at the end is
        left to the next Fetch.
Source: Kafka's message format v2; STYLE, "Ranges are half-open"."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from strandline.base.errors import ApiError
from strandline.records.batch import BatchHeader, crc_matches, iterate_headers
from strandline.records.record import Record, decode_records
from strandline.spark.decoding.aborted import AbortedTransactions
from strandline.spark.decoding.columns import TIMESTAMP_MS_MAX, TYPES
from strandline.spark.decoding.errors import DamagedBatchError

Row = tuple[BatchHeader, Record]


@dataclass(frozen=True, slots=True)
class Decoded:
    """`batch`: one row a record, in the order of offsets. `next_offset`: the first offset that is
    not decoded; `first_offset` if the data holds no whole batch."""

    batch: pa.RecordBatch
    next_offset: int


def decode(
    data: bytes | memoryview,
    *,
    columns: Sequence[str],
    topic: str,
    partition: int,
    first_offset: int,
    end_offset: int,
    aborted: Sequence[tuple[int, int]] = (),
    include_control: bool = False,
) -> Decoded:
    """The records in `data` with offsets in [first_offset, end_offset), as the columns asked for.

    `data`: whole record batches, the last one may be cut. `aborted`: (producer id, first offset) of
    the aborted transactions that the Fetch response lists. `include_control`: rows for control
    records, Raft's own markers excepted. Raises DamagedBatchError."""
    batches = _Batches(data, topic, partition, aborted, include_control=include_control)
    rows = list(batches.rows(first_offset, end_offset))
    arrays = [_column(name, rows, batches) for name in columns]
    return Decoded(_record_batch(columns, arrays, len(rows)), batches.next_offset)


class _Batches:
    """The batches of one response, read in order."""

    def __init__(
        self,
        data: bytes | memoryview,
        topic: str,
        partition: int,
        aborted: Sequence[tuple[int, int]],
        *,
        include_control: bool,
    ) -> None:
        self._data = data
        self.topic = topic
        self.partition = partition
        self._aborted = AbortedTransactions(aborted)
        self._include_control = include_control
        self.next_offset = 0

    def rows(self, first_offset: int, end_offset: int) -> Iterator[Row]:
        """The records in [first_offset, end_offset). Raises DamagedBatchError."""
        self.next_offset = first_offset
        expected = 0
        try:
            for header in iterate_headers(self._data):
                if header.base_offset < expected:
                    raise self.damaged(header.base_offset, f"expected an offset from {expected} on")
                expected = header.next_offset
                if header.base_offset >= end_offset:
                    self.next_offset = end_offset
                    return
                yield from self._rows_of(header, first_offset, end_offset)
                self.next_offset = max(first_offset, min(header.next_offset, end_offset))
        except ApiError as error:
            raise self.damaged(self.next_offset, error.message) from error

    def damaged(self, offset: int, reason: str) -> DamagedBatchError:
        """The error for a fault at this offset."""
        return DamagedBatchError(self.topic, self.partition, offset, reason)

    def _rows_of(self, header: BatchHeader, first_offset: int, end_offset: int) -> Iterator[Row]:
        is_before = header.next_offset <= first_offset
        if header.is_marker or (is_before and self._aborted.is_empty()):
            return
        if not crc_matches(self._data, header):
            raise self.damaged(header.base_offset, "the batch's CRC does not match its bytes")
        is_aborted = self._aborted.has(header)
        if is_aborted or (is_before and not header.is_control):
            return
        delta = -1
        for record in decode_records(self._data, header.position):
            offset = header.base_offset + record.offset_delta
            if not delta < record.offset_delta <= header.last_offset_delta:
                raise self.damaged(offset, "the record's offset is not within its batch")
            delta = record.offset_delta
            if header.is_control:
                self._aborted.end(header, record)
            is_wanted = self._include_control or not header.is_control
            if is_wanted and first_offset <= offset < end_offset:
                yield header, record


def _record_batch(columns: Sequence[str], arrays: list[pa.Array], rows: int) -> pa.RecordBatch:
    if not columns:
        return pa.RecordBatch.from_struct_array(
            pa.StructArray.from_buffers(pa.struct([]), rows, [None])
        )
    fields = [pa.field(name, TYPES[name]) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _column(name: str, rows: list[Row], batches: _Batches) -> pa.Array:
    values: list[object]
    if name == "topic":
        values = [batches.topic] * len(rows)
    elif name == "partition":
        values = [batches.partition] * len(rows)
    elif name == "timestampType":
        values = [int(header.has_append_time) for header, _ in rows]
    elif name == "leaderEpoch":
        values = [header.partition_leader_epoch for header, _ in rows]
    elif name == "offset":
        values = [header.base_offset + record.offset_delta for header, record in rows]
    elif name == "timestamp":
        values = [_microseconds(header, record, batches) for header, record in rows]
    elif name == "headers":
        values = [_headers(record) for _, record in rows]
    else:
        values = [getattr(record, name) for _, record in rows]
    return pa.array(values, TYPES[name])


def _microseconds(header: BatchHeader, record: Record, batches: _Batches) -> int:
    if abs(record.timestamp) > TIMESTAMP_MS_MAX:
        offset = header.base_offset + record.offset_delta
        raise batches.damaged(
            offset, f"the time {record.timestamp} ms does not fit the column timestamp"
        )
    return record.timestamp * 1000


def _headers(record: Record) -> list[dict[str, object]] | None:
    return [
        {"key": name.encode(errors="surrogateescape").decode(errors="replace"), "value": value}
        for name, value in record.headers
    ] or None
