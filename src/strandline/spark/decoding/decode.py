"""Decodes the record batches of one partition, as a Fetch response has them, to columns of Arrow.

How:    `reader.py` fills arrays with the rows in [first_offset, end_offset); here they become one
        `RecordBatch`.
Source: Kafka's message format v2; STYLE, "Ranges are half-open"."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from strandline.spark.decoding.aborted import AbortedTransactions
from strandline.spark.decoding.columns import TYPES
from strandline.spark.decoding.reader import OUTPUT_BYTES_MAX, BatchReader, Place
from strandline.spark.decoding.rows import Rows


@dataclass(frozen=True, slots=True)
class Decoded:
    """`batch`: one row a record, in the order of offsets. `next_offset`: the first offset that is
    not decoded; `first_offset` if the data holds no whole batch. `next_position`: where the next
    batch begins in the data."""

    batch: pa.RecordBatch
    next_offset: int
    next_position: int


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
    bytes_max: int = OUTPUT_BYTES_MAX,
) -> Decoded:
    """The records in `data` with offsets in [first_offset, end_offset), as the columns asked for.

    `data`: whole record batches, the last one may be cut. `aborted`: (producer id, first offset) of
    the aborted transactions that the Fetch response lists. `include_control`: rows for control
    records, Raft's own markers excepted. `bytes_max`: once so many bytes of records are decoded,
    `next_offset` comes before the end of the data. Raises DamagedBatchError."""
    place = Place(topic, partition)
    reader = BatchReader(data, columns, place, (first_offset, end_offset), bytes_max=bytes_max)
    reader.read(AbortedTransactions(aborted), include_control=include_control)
    return Decoded(_record_batch(columns, reader.rows, place), reader.next_offset, reader.position)


def _record_batch(columns: Sequence[str], rows: Rows, place: Place) -> pa.RecordBatch:
    if not columns:
        empty = pa.StructArray.from_buffers(pa.struct([]), rows.count, [None])
        return pa.RecordBatch.from_struct_array(empty)
    arrays = [rows.column(name, topic=place.topic, partition=place.partition) for name in columns]
    fields = [pa.field(name, TYPES[name]) for name in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))
