"""Reads the record batches of one Fetch response into rows.

How:    each whole batch that has offsets in [first_offset, end_offset) is checked by its CRC,
        decompressed within bounds, and read. Batches before the range are passed by their header.
        Control batches and aborted transactions have no rows. An incomplete batch at the end is
        left to the next Fetch.
            plain batches (uncompressed, of data)   `scan` finds many, `fill` reads them together
            any other                               one at a time, by their header
Owns:   the position in the data, and the uncompressed batches that are not filled yet.
Source: Kafka's message format v2."""

from array import array
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from fastcrc import crc32

from strandline.base.disk import Buffer
from strandline.base.errors import ApiError
from strandline.records.batch import (
    CRC_START,
    HEADER_BYTES,
    BatchHeader,
    crc_matches,
    read_header,
)
from strandline.records.codec import DECOMPRESSED_BYTES_MAX, decompress_growing
from strandline.records.record import decode_records
from strandline.spark.decoding.aborted import AbortedTransactions
from strandline.spark.decoding.errors import DamagedBatchError
from strandline.spark.decoding.fill import reason_of, scan
from strandline.spark.decoding.record_fill import TIMESTAMP_FAULT
from strandline.spark.decoding.rows import Rows
from strandline.spark.decoding.table import HAS_NO_APPEND_TIME, BatchRow, Table

OUTPUT_BYTES_MAX = 256 << 20
"""Of records in one result, the last batch excepted: a few bytes may decompress to gigabytes."""
RECORD_BYTES_MIN = 7
"""A record without anything: its length, six fields."""
GATHERED_BYTES_MAX = 512 << 10
"""Of uncompressed batches that are filled together: what a core's cache holds."""
SCANNED_BATCHES_MAX = 1024
_RECORD_COLUMNS = {"key", "value", "headers"}
"""Columns for which each record must be read; `timestamp` is one if each record has its own."""
_OFFSET_LIMIT = 1 << 62
_MARGIN = 1.05
"""Of the room for all rows, estimated by the first batches."""
_WIDTH = len(BatchRow._fields)
_CRC_REASON = "the batch's CRC does not match its bytes"


@dataclass(frozen=True, slots=True)
class Place:
    """The partition that the data is of."""

    topic: str
    partition: int

    def damaged(self, offset: int, reason: str) -> DamagedBatchError:
        """The error for a fault at this offset."""
        return DamagedBatchError(self.topic, self.partition, offset, reason)


class BatchReader:
    """Reads the batches of one response in order, into `rows`. `next_offset`: the first offset in
    the range that is not read yet. `position`: where the next batch begins."""

    def __init__(
        self,
        data: Buffer,
        columns: Sequence[str],
        place: Place,
        offsets: tuple[int, int],
        *,
        bytes_max: int = OUTPUT_BYTES_MAX,
    ) -> None:
        self.rows = Rows(columns)
        self._data = data
        self._view = memoryview(data)
        self._place = place
        self._first_offset, self._end_offset = offsets
        self.next_offset = self._first_offset
        self._bytes_max = bytes_max
        self.position = 0
        self._expected = 0
        """The lowest offset that the next batch may begin with."""
        self._reads_records = bool(_RECORD_COLUMNS.intersection(columns))
        self._reads_times = "timestamp" in columns
        self._gathered: Table = array("q")
        self._gathered_rows = 0
        self._gathered_bytes = 0
        self._output_bytes = 0

    def read(self, aborted: AbortedTransactions, *, include_control: bool) -> None:
        """Read all batches. Raises DamagedBatchError."""
        scanned = np.empty(SCANNED_BATCHES_MAX * _WIDTH, np.int64) if scan else None
        try:
            while self._output_bytes < self._bytes_max and self.next_offset < self._end_offset:
                if scanned is not None and aborted.is_empty() and self._read_plain(scanned):
                    continue
                header = read_header(self._data, self.position)
                if header is None:
                    break
                self._pass(header)
                if header.base_offset < self._end_offset:
                    self._read_batch(header, aborted, include_control=include_control)
                self._advance()
        except ApiError as error:
            raise self._place.damaged(self.next_offset, error.message) from error
        self._fill_gathered()

    def _pass(self, header: BatchHeader) -> None:
        """Check where a batch begins, and move the position behind it."""
        if not self._expected <= header.base_offset < _OFFSET_LIMIT:
            reason = f"expected an offset from {self._expected} on"
            raise self._place.damaged(header.base_offset, reason)
        if header.last_offset_delta < 0 and not header.is_marker:
            reason = f"a batch whose last offset delta is {header.last_offset_delta}"
            raise self._place.damaged(header.base_offset, reason)
        self.position += header.size
        self._expected = header.next_offset

    def _advance(self) -> None:
        """All before the expected offset is read."""
        self.next_offset = max(self.next_offset, min(self._expected, self._end_offset))

    # ---- many plain batches ----------------------------------------------------------------------

    def _read_plain(self, table: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> bool:
        """Read batches that need no closer look; whether there was one."""
        assert scan is not None, "only the compiled code has it"
        before = self.position
        count, self.position, self._expected, rows, size = scan(
            self._data,
            before,
            self._expected,
            self._first_offset,
            self._end_offset,
            self._reads_records,
            self._reads_times,
            self._gathered_bytes_max(),
            table,
        )
        if count:
            self._fill_gathered()
            numbers = table[: count * _WIDTH]
            self._check_crcs(numbers.reshape(count, _WIDTH))
            self._fill(self._data, numbers, (rows, size))
        self._advance()
        return self.position > before

    def _check_crcs(self, table: "np.ndarray[tuple[int, int], np.dtype[np.int64]]") -> None:
        view, crc_of = self._view, crc32.iscsi
        before = HEADER_BYTES - CRC_START
        starts, ends, crcs = (table[:, at].tolist() for at in (0, 1, -1))
        for start, end, crc in zip(starts, ends, crcs, strict=True):
            if crc_of(view[start - before : end]) != crc:
                raise self._place.damaged(self._header_at(start).base_offset, _CRC_REASON)

    # ---- one batch -------------------------------------------------------------------------------

    def _read_batch(
        self, header: BatchHeader, aborted: AbortedTransactions, *, include_control: bool
    ) -> None:
        is_before = header.next_offset <= self._first_offset
        if header.is_marker or (is_before and aborted.is_empty()):
            return
        if not crc_matches(self._view, header):
            raise self._place.damaged(header.base_offset, _CRC_REASON)
        if aborted.has(header):
            return
        if header.is_control:
            for record in decode_records(self._data, header.position):
                aborted.end(header, record)
            if not include_control:
                return
        if is_before or (not header.records_count and header.size == HEADER_BYTES):
            return
        if header.codec and self._must_walk(header):
            self._add_compressed(header)
        else:
            self._gather(header)

    def _must_walk(self, header: BatchHeader) -> bool:
        """Whether the rows of a batch do not follow from its header."""
        return (
            self._reads_records
            or (self._reads_times and not header.has_append_time)
            or header.records_count != header.last_offset_delta + 1
        )

    def _gather(self, header: BatchHeader) -> None:
        start = header.position + HEADER_BYTES
        end = header.position + header.size
        size = end - start
        self._check_count(header, DECOMPRESSED_BYTES_MAX if header.codec else size)
        self._gathered.extend(self._table_row(header, start, end))
        self._gathered_rows += header.records_count
        self._gathered_bytes += size
        if self._gathered_bytes >= self._gathered_bytes_max():
            self._fill_gathered()

    def _gathered_bytes_max(self) -> int:
        return min(GATHERED_BYTES_MAX, self._bytes_max - self._output_bytes)

    def _fill_gathered(self) -> None:
        if not self._gathered:
            return
        table, size = self._gathered, (self._gathered_rows, self._gathered_bytes)
        self._gathered = array("q")
        self._gathered_rows = self._gathered_bytes = 0
        self._fill(self._data, table, size)

    def _add_compressed(self, header: BatchHeader) -> None:
        self._fill_gathered()
        payload = self._view[header.position + HEADER_BYTES : header.position + header.size]
        output, count = decompress_growing(header.codec, payload, bytes_max=DECOMPRESSED_BYTES_MAX)
        self._check_count(header, count)
        table = array("q", self._table_row(header, 0, count))
        self._fill(memoryview(output)[:count], table, (header.records_count, count), header)

    def _table_row(self, header: BatchHeader, start: int, end: int) -> BatchRow:
        base_offset = header.base_offset
        return BatchRow(
            start=start,
            end=end,
            records_count=header.records_count,
            last_delta=header.last_offset_delta,
            from_delta=self._first_offset - base_offset,
            to_delta=self._end_offset - base_offset,
            base_offset=base_offset,
            base_timestamp=header.base_timestamp,
            append_timestamp=(
                header.max_timestamp if header.has_append_time else HAS_NO_APPEND_TIME
            ),
            epoch=header.partition_leader_epoch,
            walks=int(self._must_walk(header)),
            crc=header.crc,
        )

    def _check_count(self, header: BatchHeader, size: int) -> None:
        if not 0 <= header.records_count <= size // RECORD_BYTES_MIN:
            reason = f"{header.records_count} records in {size} bytes"
            raise self._place.damaged(header.base_offset, reason)

    # ---- rows ------------------------------------------------------------------------------------

    def _fill(
        self,
        records: Buffer,
        table: "Table | np.ndarray[tuple[int], np.dtype[np.int64]]",
        size: tuple[int, int],
        header: BatchHeader | None = None,
    ) -> None:
        """Fill rows. `size`: of at most so many rows and bytes. `header`: of the one batch, if its
        records are not in the data itself."""
        if not self.rows.count:
            share = _MARGIN * len(self._data) / max(self.position, 1)
            self.rows.reserve(
                *(min(int(part * share), self._bytes_max + GATHERED_BYTES_MAX) for part in size)
            )
        fault, batch, record, _, _ = self.rows.add(records, table, size)
        if fault:
            header = header or self._header_at(int(table[batch * _WIDTH]))
            raise self._fault(fault, header, record)
        self._output_bytes += max(size[1], size[0] * RECORD_BYTES_MIN)

    def _header_at(self, records_start: int) -> BatchHeader:
        header = read_header(self._data, records_start - HEADER_BYTES)
        assert header is not None, "the batch is whole"
        return header

    def _fault(self, fault: int, header: BatchHeader, index: int) -> DamagedBatchError:
        try:
            records = decode_records(self._data, header.position)
        except ApiError:
            records = []
        if fault != TIMESTAMP_FAULT or not records:
            return self._place.damaged(header.base_offset, reason_of(fault, index))
        record = records[index]
        offset = header.base_offset + record.offset_delta
        reason = f"the time {record.timestamp} ms does not fit the column timestamp"
        return self._place.damaged(offset, reason)
