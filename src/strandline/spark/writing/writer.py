"""The writers that Spark calls: each task produces its rows with an idempotent producer.

How:    a task returns only once each of its rows is acknowledged by acks=all. Spark runs a task
        that failed again, and a micro-batch whose commit it does not know: their rows are written
        again. So every row is written at least once.
Owns:   a task's client and producers, which end with it.
Source: PySpark's DataSourceArrowWriter; docs/decisions/0054-spark-sink.md."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from strandline.base.errors import ApiError, OperatorError
from strandline.client.cluster import Client
from strandline.client.rights import naming_right, require_topics
from strandline.model.access import Kind, Operation
from strandline.protocol.errors import Error
from strandline.spark.writing.columns import check_columns
from strandline.spark.writing.options import WriteOptions
from strandline.spark.writing.topic_writer import TopicWriter

if TYPE_CHECKING:
    from pyarrow import RecordBatch


@dataclass(frozen=True, slots=True)
class Written(WriterCommitMessage):
    """What a task has written: {topic: {partition: (records, first offset, last offset)}}."""

    topics: dict[str, dict[int, tuple[int, int, int]]]


class BatchWriter(DataSourceArrowWriter):
    """Writes the rows of a batch. There is nothing to commit: a row is written once it is
    acknowledged. An abort leaves the rows that other tasks have written: a log has no undo."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        prepare(options, schema)
        self._options = options

    def write(self, iterator: Iterator["RecordBatch"]) -> Written:
        """Write the rows of one task."""
        return write_rows(iterator, self._options)


class StreamWriter(DataSourceStreamArrowWriter):
    """The same for each micro-batch of a stream."""

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        prepare(options, schema)
        self._options = options

    def write(self, iterator: Iterator["RecordBatch"]) -> Written:
        """Write the rows of one task."""
        return write_rows(iterator, self._options)


def _naming(client: Client, topic: str) -> AbstractContextManager[None]:
    """A refusal names the right that is missing."""
    return naming_right(client, Operation.WRITE, Kind.TOPIC, topic)


def prepare(options: WriteOptions, schema: StructType) -> None:
    """Check the columns, and that the topic exists. Raises OperatorError or ClientError."""
    check_columns(schema, options.topic)
    if options.topic:
        with options.connect() as client:
            with _naming(client, options.topic):
                client.topic(options.topic)
            if options.access is not None:
                require_topics(client, [options.topic], Operation.WRITE)


def write_rows(batches: Iterator["RecordBatch"], options: WriteOptions) -> Written:
    """Produce all rows; returns once they are acknowledged. Raises OperatorError, ClientError or
    ApiError, one line each."""
    with options.connect() as client:
        topics = Topics(client, options)
        try:
            for batch in batches:
                topics.write(batch)
            return topics.flush()
        except ApiError as error:
            if error.code != Error.MESSAGE_TOO_LARGE:
                raise
            raise OperatorError(
                f"{error}: a batch of up to {options.batch_bytes} bytes is larger than the topic's "
                "max.message.bytes: lower kafka.batch.size, or raise max.message.bytes"
            ) from error


class Topics:
    """A writer for each topic that rows name."""

    def __init__(self, client: Client, options: WriteOptions) -> None:
        self._client = client
        self._options = options
        self._writers: dict[str, TopicWriter] = {}

    def write(self, batch: "RecordBatch") -> None:
        """Take rows in. Raises OperatorError for a row without a topic."""
        if not batch.num_rows:
            return
        if self._options.topic:
            self._write(self._options.topic, batch)
            return
        topics = batch.column("topic")
        names = topics.unique().to_pylist()
        if not all(names):
            raise OperatorError(
                "a row has no topic: its column topic is null or empty; give the option topic, or "
                "filter such rows out"
            )
        for name in names:
            self._write(name, batch.filter(pc.equal(topics, name)))

    def flush(self) -> Written:
        """Wait until all rows are acknowledged."""
        found = {}
        for topic, writer in sorted(self._writers.items()):
            with _naming(self._client, topic):
                found[topic] = writer.flush()
        return Written(found)

    def _write(self, topic: str, batch: "RecordBatch") -> None:
        with _naming(self._client, topic):
            self._writer(topic).write(batch)

    def _writer(self, topic: str) -> TopicWriter:
        writer = self._writers.get(topic)
        if writer is None:
            settings = self._options.producer_settings()
            writer = self._writers[topic] = TopicWriter(self._client, topic, settings)
        return writer
