"""Encodes the rows of one topic into a batch for each partition, and produces the full ones.

Owns:   the open batches: encoded records that are not handed to the producer yet."""

import numpy as np
import pyarrow as pa

from strandline.client.cluster import Client
from strandline.client.errors import ClientError
from strandline.client.producer import BATCH_RECORDS_MAX, Producer, ProducerSettings
from strandline.spark.writing.arrow_columns import columns_of, partition_column
from strandline.spark.writing.row_encode import (
    I32,
    NO_KEY,
    Columns,
    encode,
    partitions_of,
)

RECORD_BYTES_MAX = 1 << 30
_GROWTH = 2


class _OpenBatch:
    """Encoded records of one partition."""

    def __init__(self, size: int) -> None:
        self.content = bytearray(size)
        self.end = 0
        self.count = 0
        self.base_timestamp = self.max_timestamp = 0

    def append(self, rows: I32, columns: Columns) -> int:
        """Append the records of rows as long as they fit; how many did. A record alone in its
        batch always fits."""
        if not self.count:
            self.base_timestamp = self.max_timestamp = int(columns.timestamps[rows[0]])
        rows = rows[: BATCH_RECORDS_MAX - self.count]
        while len(rows):
            done, self.end = encode(
                self.content,
                self.end,
                rows,
                columns,
                delta=self.count,
                base_timestamp=self.base_timestamp,
            )
            if done or self.count:
                break
            if len(self.content) > RECORD_BYTES_MAX:
                raise ClientError(f"a record has more than {RECORD_BYTES_MAX} bytes")
            self.content = bytearray(len(self.content) * _GROWTH)
        else:
            return 0
        if done:
            highest = int(columns.timestamps[rows[:done]].max())
            self.max_timestamp = max(self.max_timestamp, highest)
            self.count += done
        return done


class TopicWriter:
    """See the module. Raises ClientError if the topic does not exist."""

    def __init__(self, client: Client, topic: str, settings: ProducerSettings) -> None:
        self._client = client
        self._topic = topic
        self._batch_bytes = settings.batch_bytes
        self._producer = Producer(client, topic, settings)
        self._open: dict[int, _OpenBatch] = {}
        self._sticky = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take in rows. Raises ClientError for a partition that the topic does not have, ApiError
        if the brokers refuse them."""
        columns = columns_of(batch, self._client.transport.wall_ms())
        partitions = self._partitions(batch, columns)
        order = np.argsort(partitions, kind="stable").astype(np.int32)
        found, starts = np.unique(partitions[order], return_index=True)
        for partition, rows in zip(found.tolist(), np.split(order, starts[1:]), strict=True):
            self._append(partition, rows, columns)

    def flush(self) -> dict[int, tuple[int, int, int]]:
        """Wait until all rows are acknowledged; {partition: (records, first, last offset)}."""
        for partition in list(self._open):
            self._hand_over(partition)
        self._producer.flush()
        return {
            partition: (one.records_count, one.first_offset, one.last_offset)
            for partition, one in sorted(self._producer.acknowledged.items())
        }

    def _partitions(self, batch: pa.RecordBatch, columns: Columns) -> I32:
        """The column's; else that of the key; else one partition for all rows of the batch."""
        count = self._producer.partition_count
        if columns.keys is None:
            partitions = np.full(batch.num_rows, NO_KEY, np.int32)
        else:
            partitions = partitions_of(columns.keys, count, batch.num_rows)
        keyless = partitions == NO_KEY
        if keyless.any():
            partitions[keyless] = self._sticky
            self._sticky = (self._sticky + 1) % count
        given = partition_column(batch)
        if given is None:
            return partitions
        numbers, is_null = given
        wrong = ~is_null & ((numbers < 0) | (numbers >= count))
        if wrong.any():
            raise ClientError(
                f"topic {self._topic} has no partition {numbers[wrong][0]}: its partitions are 0 "
                f"to {count - 1}"
            )
        return np.where(is_null, partitions, numbers).astype(np.int32)

    def _append(self, partition: int, rows: I32, columns: Columns) -> None:
        while len(rows):
            batch = self._open.get(partition)
            if batch is None:
                batch = self._open[partition] = _OpenBatch(self._batch_bytes)
            rows = rows[batch.append(rows, columns) :]
            if len(rows):
                self._hand_over(partition)

    def _hand_over(self, partition: int) -> None:
        batch = self._open.pop(partition)
        self._producer.send_encoded(
            partition,
            bytes(memoryview(batch.content)[: batch.end]),
            records_count=batch.count,
            timestamps=(batch.base_timestamp, batch.max_timestamp),
        )
