"""Loads a topic into a partitioned lake table: one row for each (topic, partition, offset).

Why:    queries run on tables; a table with a duplicate or missing record gives wrong answers.
How:    the checkpoint's write-ahead log fixes a batch's offset ranges before the batch is read;
        the batch's files and its number (`txn`: job id, batch) enter the table in one atomic
        commit; then the checkpoint marks it done.

            plan offsets [n] ---> write files ---> commit table {files, txn n} ---> mark [n] done
              killed: planned      killed: files     killed: [n] is replayed, and
              anew, same range     nobody sees       skipped, for txn n is in the table

Owns:   the table's commits and the checkpoint directory; one job at a time for one checkpoint.
Source: decisions/0003; https://docs.delta.io/latest/delta-streaming.html"""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)
from pyspark.sql.streaming.query import StreamingQuery

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.options import LakeOptions, reader_options

_CORRUPT = "_malformed"
_POLL_S = 1


@dataclass(frozen=True, slots=True)
class Batch:
    """One committed micro-batch."""

    number: int
    records: int


@dataclass(frozen=True, slots=True)
class LakeResult:
    """What one run read; a batch replayed after a crash counts again here, never in the table."""

    batches: int
    records: int


def run_lake(
    spark: SparkSession, options: LakeOptions, *, on_batch: Callable[[Batch], None]
) -> LakeResult:
    """Brings the table up to the topic's end of now; `interval_ms` follows it until stopped."""
    _refuse_lost_checkpoint(spark, options)
    batches = records = 0
    with _stop_signals() as stop:
        query = _start(_rows(_read(spark, options), options), options)
        for batch in _follow(query, stop):
            batches += 1
            records += batch.records
            on_batch(batch)
    if stop.is_set() and options.interval_ms is None:
        raise KeyboardInterrupt
    return LakeResult(batches, records)


@contextmanager
def _stop_signals() -> Iterator[Event]:
    """An event that SIGINT and SIGTERM set; a handler must not talk to Java, which may be busy."""
    stop = Event()
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop.set()) for number in numbers}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _read(spark: SparkSession, options: LakeOptions) -> DataFrame:
    return spark.readStream.format("kafka").options(**reader_options(options)).load()


def _rows(records: DataFrame, options: LakeOptions) -> DataFrame:
    """The table's rows: a record's own columns, then the partition columns derived from them."""
    key = F.col("key").cast("string") if options.key == "text" else F.col("key")
    place = [F.col(name) for name in ("topic", "partition", "offset", "timestamp")]
    head = [*place, key.alias("key"), F.col("headers")]
    if options.schema is None:
        rows = records.select(*head, "value")
    else:
        rows = _decoded(records.select(*head, "value", _parsed(options.schema).alias("parsed")))
    for column in options.partition_by:
        rows = rows.withColumn(column.name, F.expr(column.expression))
    # Without this every task would write a file into every one of the table's partitions.
    names: list[Any] = [column.name for column in options.partition_by]
    if options.files > 1:
        names.append(F.pmod(F.col("partition"), F.lit(options.files)))
    return rows.repartition(*names)


def _parsed(schema: str) -> Column:
    return F.from_json(
        F.col("value").cast("string"),
        f"{schema}, `{_CORRUPT}` STRING",
        {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT},
    )


def _decoded(rows: DataFrame) -> DataFrame:
    """`value` as a struct; bytes that do not fit the schema stay whole in `malformed`."""
    fits = F.col("parsed").isNotNull() & F.col("parsed")[_CORRUPT].isNull()
    bad = F.col("value").isNotNull() & ~fits
    return rows.select(
        *(name for name in rows.columns if name not in ("value", "parsed")),
        F.when(fits, F.col("parsed").dropFields(_CORRUPT)).alias("value"),
        F.when(bad, F.col("value")).alias("malformed"),
    )


def _start(rows: DataFrame, options: LakeOptions) -> StreamingQuery:
    writer = (
        rows.writeStream.format("delta")
        .outputMode("append")
        .queryName(f"lake-{options.topic}")
        .option("checkpointLocation", options.checkpoint_location)
        .option("mergeSchema", "true")  # a field added to the schema becomes a field of the table
        .partitionBy(*(column.name for column in options.partition_by))
    )
    if options.interval_ms is None:
        writer = writer.trigger(availableNow=True)
    else:
        writer = writer.trigger(processingTime=f"{options.interval_ms} milliseconds")
    return writer.start(options.table)


def _follow(query: StreamingQuery, stop: Event) -> Iterator[Batch]:
    """Each finished batch that had records, until the query ends; raises what it failed with."""
    last = -1
    ended = False
    while not ended:
        if stop.is_set():
            query.stop()
        ended = bool(query.awaitTermination(_POLL_S))
        for progress in query.recentProgress:
            if progress["batchId"] > last and progress["numInputRows"] > 0:
                last = progress["batchId"]
                yield Batch(last, progress["numInputRows"])


def _refuse_lost_checkpoint(spark: SparkSession, options: LakeOptions) -> None:
    """A job without its checkpoint would begin at the first record again and write rows twice."""
    if _exists(spark, f"{options.checkpoint_location}/metadata"):
        return
    if not _exists(spark, f"{options.table}/_delta_log"):
        return
    rows = spark.read.format("delta").load(options.table)
    if "topic" in rows.columns and rows.where(F.col("topic") == options.topic).take(1):
        raise OperatorError(
            f"{options.table} already holds records of {options.topic}, but there is no "
            f"checkpoint at {options.checkpoint_location}: name the right one with "
            "--checkpoint, or use a new table"
        )


def _exists(spark: SparkSession, location: str) -> bool:
    """Asks Spark's own file systems, so that it holds for every location that a table can have."""
    java = spark.sparkContext._jvm
    assert java is not None
    path = java.org.apache.hadoop.fs.Path(location)
    system = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    return bool(system.exists(path))
