"""Writes batches into the table, and what belongs beside it: dead letters and gaps.

Why:    a batch's rows and its progress enter the table in one commit, or not at all.
How:
            dead letters, if any        main table                 table of gaps, if any
            {rows, txn n, plan of n}->  {rows, txn n, batch n} ->  {gaps of n, txn n}
              killed: n is repeated       killed: n is done, its gaps are written by the next run
              with the same offsets

        Delta accepts `txn` n of an application once: whatever is repeated enters once. After a
        commit the writer looks for it in the log: if another run's batch n is there, the writer
        says so and stops.
Owns:   the commits of the job in the table and beside it.
Source: decisions/0050; https://docs.delta.io/latest/delta-streaming.html#idempotent-table-writes"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)
from pyspark.sql import types as T  # noqa: N812

from strandline.base.errors import OperatorError
from strandline.pipeline.lake import rows as rows_of
from strandline.pipeline.lake import upsert
from strandline.pipeline.lake.casting import in_type
from strandline.pipeline.lake.delta_log import Commit, LocalLog, LogFiles
from strandline.pipeline.lake.direct.commit import Transaction, described
from strandline.pipeline.lake.direct.files import FileOptions
from strandline.pipeline.lake.direct.plan import plan_files, row_type
from strandline.pipeline.lake.direct.run import write_files
from strandline.pipeline.lake.evolution import TableChange, plan_change
from strandline.pipeline.lake.hadoop_log import HadoopLog
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.progress import (
    APPLICATION_ID,
    Batch,
    CommitId,
    commit_of,
    from_json,
    furthest,
    is_same,
    own_commit,
    to_json,
)
from strandline.pipeline.lake.source import no_records, read_batch
from strandline.pipeline.locations import is_local
from strandline.pipeline.values.problems import kind

LOG_RETENTION = "interval 90 days"
"""How long the table keeps commits: the newest batch must be in the log when the next run begins,
even if others committed in between."""
PROPERTIES = {"delta.logRetentionDuration": LOG_RETENTION}
"""Of a new table."""
PLACE = ("topic", "partition", "offset", "timestamp")
"""What tells one dead letter from another; the timestamp, for a topic that was made anew."""
TASK_RECORDS = 200_000
"""A batch is split so that each task has about as many records, up to the cores there are."""

Counts = Mapping[str, int] | None
"""{column: its values that are not null}, where the commit itself does not tell it."""

GAP_TYPE = T.StructType(
    [
        T.StructField("topic", T.StringType()),
        T.StructField("topic_id", T.StringType()),
        T.StructField("partition", T.IntegerType()),
        T.StructField("first_offset", T.LongType()),
        T.StructField("end_offset", T.LongType()),
        T.StructField("reason", T.StringType()),
        T.StructField("batch", T.LongType()),
        T.StructField("noted_at", T.TimestampType()),
    ]
)
"""A gap: offsets [first_offset, end_offset); end_offset is null for a topic made anew."""


def open_log(spark: SparkSession | None, table: str) -> LogFiles | None:
    """The log of a table; None if it is not on a local disk and Spark does not run yet."""
    if is_local(table):
        return LocalLog(Path(table))
    return None if spark is None else HadoopLog(spark, table)


def _commit_id(batch: Batch) -> CommitId:
    return CommitId(APPLICATION_ID, batch.number, json.dumps(to_json(batch)))


class TableWriter:
    """See the module. One for a table; `prepare` comes first."""

    def __init__(self, spark: SparkSession, options: LakeOptions) -> None:
        self._spark = spark
        self._options = options
        log = open_log(spark, options.table)
        assert log is not None
        self.log = log
        self._change: TableChange | None = None
        self._is_there = False
        self._row_type = T.StructType()
        self._files: FileOptions | None = None
        """How workers write the table's files; None if Spark's writer does it."""
        self._letters_end: Mapping[tuple[str, str, int], int] | None = None
        """{(topic, its id, partition): up to where earlier runs had noted dead letters}."""

    def prepare(self, *, exists: bool) -> list[str]:
        """Checks that the table takes the job's rows, and changes it so that it does; returns what
        it changed. Raises OperatorError before a record is read."""
        self._is_there = exists
        wanted = row_type(self._options) or self._analyzed_type()
        self._row_type = wanted
        self._files = plan_files(self._spark, self._options, wanted)
        if not exists:
            return []
        table, partitioned_by = described(self._spark, self._options.table)
        self._change = plan_change(
            table, wanted, partitioned_by=partitioned_by, options=self._options
        )
        if self._change.widened:
            self._widen(self._change)
        return [str(each) for each in (*self._change.widened, *self._change.added)]

    def _analyzed_type(self) -> T.StructType:
        """The type of the table's rows, by Spark's analysis."""
        try:
            return rows_of.table_rows(self._decoded(self._empty()), self._options).schema
        except (AnalysisException, ParseException) as error:
            raise OperatorError(self._bad_partition(error)) from error

    def write(self, batch: Batch, *, after: int) -> Commit:
        """Commits a batch; `after`: the table's newest version before it. Raises OperatorError if
        another job committed it."""
        counts = None if self._write_files(batch) else self._write_rows(batch)
        commit = own_commit(self.log, batch, after=after)
        if commit is None:
            raise OperatorError(
                f"{self._options.table}: another job committed batch {batch.number} first: run one "
                "job at a time for a table"
            )
        self._is_there = True
        return commit if counts is None else replace(commit, present=counts)

    def _write_files(self, batch: Batch) -> bool:
        """Commits files that the workers write; False if Spark's writer must write the batch."""
        if self._files is None or not batch.offsets:
            return False
        commit = _commit_id(batch)
        transaction = Transaction(
            self._spark, self._options.table, self._row_type, list(self._files.partitions)
        )
        if not transaction.takes_files():
            return False
        if not transaction.has(commit):
            actions = write_files(
                self._spark, batch, self._options, self._files, tasks=self._tasks(batch)
            )
            if actions is None:
                return False
            transaction.commit(actions, commit, properties=PROPERTIES)
        return True

    def _write_rows(self, batch: Batch) -> Counts:
        rows = self._decoded(self._records(batch))
        if self._options.dead_letters is None:
            return self._commit_rows(rows, batch)
        rows = rows.persist()  # Both tables see the same rows.
        try:
            self._commit_dead_letters(rows, batch)
            return self._commit_rows(rows, batch)
        finally:
            rows.unpersist()

    def note_gaps(self, batch: Batch) -> None:
        """Adds the batch's gaps to the table of gaps, once."""
        noted = datetime.now(UTC)
        found = [
            (
                *(gap.topic, gap.topic_id, gap.partition, gap.first),
                None if gap.end < 0 else gap.end,
                *(gap.reason, batch.number, noted),
            )
            for gap in batch.gaps
        ]
        if found:
            rows = self._spark.createDataFrame(found, GAP_TYPE).coalesce(1)
            self._writer(rows, _commit_id(batch)).save(self._options.gaps_table)

    def dead_letters(self, batch: Batch) -> Commit | None:
        """The commit of the batch's dead letters; None if it has none."""
        if self._options.dead_letters is None:
            return None
        log = open_log(self._spark, self._options.dead_letters)
        assert log is not None
        return commit_of(log, batch.number)

    def problems(self, commits: Sequence[tuple[str, Commit]]) -> dict[str, int]:
        """{kind of problem: records}, in the files of (table, commit)."""
        files = [
            # Spark takes a path for a pattern.
            re.sub(r"([\[\]{}*?\\])", r"\\\1", f"{table}/{name}")
            for table, commit in commits
            for name in commit.files
        ]
        if not files:
            return {}
        found: dict[str, int] = {}
        read = self._spark.read.parquet(*files).select("problem").dropna()
        for reason, count in read.groupBy("problem").count().collect():
            for each in reason.split("; "):
                name = kind(each)
                found[name] = found.get(name, 0) + count
        return dict(sorted(found.items()))

    def recovered(self) -> dict[str, dict[int, int]]:
        """{topic: {partition: the offset after its newest row}}, from the table's rows."""
        table = self._options.table
        read = self._spark.read.format("delta").load(table)
        if {"topic", "partition", "offset"} - set(read.columns):
            raise OperatorError(
                f"{table} has no columns topic, partition and offset: it is not a lake table"
            )
        # Dead letters may be ahead of the rows that a RESTORE left. Of a topic that has nothing
        # else they tell its name.
        found: dict[str, dict[int, int]] = {}
        dead = self._options.dead_letters
        log = None if dead is None else open_log(self._spark, dead)
        if dead is not None and log is not None and log.names():
            topics = self._spark.read.format("delta").load(dead).select("topic").distinct()
            found = {row["topic"]: {} for row in topics.collect()}
        newest = read.groupBy("topic", "partition").agg(F.max("offset"))
        for topic, partition, offset in newest.collect():
            found.setdefault(topic, {})[partition] = offset + 1
        return found

    def last_number(self) -> int:
        """The number of the last batch that Delta accepted, from the table's snapshot; -1: none."""
        java: Any = self._spark._jvm
        log = java.org.apache.spark.sql.delta.DeltaLog.forTable(
            self._spark._jsparkSession, self._options.table
        )
        found = log.unsafeVolatileSnapshot().transactions().get(APPLICATION_ID)
        return int(found.get()) if found.isDefined() else -1

    def _records(self, batch: Batch) -> DataFrame:
        if not batch.offsets:
            return self._empty()
        return read_batch(self._spark, batch, self._options, tasks=self._tasks(batch))

    def _tasks(self, batch: Batch) -> int:
        cores = self._spark.sparkContext.defaultParallelism
        return max(1, min(cores, batch.offsets // TASK_RECORDS))

    def _empty(self) -> DataFrame:
        return no_records(self._spark, self._options)

    def _decoded(self, records: DataFrame) -> DataFrame:
        return rows_of.decoded(records, self._options)

    def replay(self, rows: DataFrame, commit: CommitId) -> None:
        """Adds decoded rows that are no batch: each as a row, or by key if the table is of the
        newest records."""
        if self._options.upsert:
            self._merge(self._newest(rows), order="replay", commit=commit)
            return
        rows = self._in_table_type(rows_of.table_rows(rows, self._options))
        self._append(rows, commit)

    def _commit_rows(self, rows: DataFrame, batch: Batch) -> Counts:
        commit = _commit_id(batch)
        if not self._options.upsert or not batch.offsets:
            rows = self._in_table_type(rows_of.table_rows(rows, self._options))
            self._append(rows, commit)
            return None
        rows = self._newest(rows)
        if self._is_there:
            return self._merge(rows, order="batch", commit=commit)
        self._append(upsert.live(rows), commit)
        return None

    def _newest(self, rows: DataFrame) -> DataFrame:
        rows = upsert.with_marks(rows)
        rows = upsert.newest(rows_of.table_rows(rows, self._options, marks=upsert.MARKS))
        return self._in_table_type(rows)

    def _merge(self, rows: DataFrame, *, order: upsert.Order, commit: CommitId) -> Counts:
        self._add_columns()
        rows = rows.persist()
        try:
            upsert.merge(self._spark, rows, self._options.table, order=order, commit=commit)
            if "problem" not in rows.columns:
                return None
            return {"problem": rows.where(F.col("problem").isNotNull()).count()}
        finally:
            rows.unpersist()

    def _in_table_type(self, rows: DataFrame) -> DataFrame:
        if self._change is None:
            return rows
        marks = [T.StructField(name, T.BooleanType()) for name in upsert.MARKS]
        return in_type(rows, T.StructType([*self._change.type.fields, *marks]))

    def _add_columns(self) -> None:
        """Adds the columns that `prepare` allowed, in a commit without rows: MERGE adds none."""
        if self._change is not None and self._change.added:
            empty = self._spark.createDataFrame([], self._change.type)
            writer = empty.write.format("delta").mode("append").option("mergeSchema", "true")
            names = [column.name for column in self._options.partition_by]
            writer.partitionBy(*names).save(self._options.table)
            self._change = replace(self._change, added=())

    def _append(self, rows: DataFrame, commit: CommitId) -> None:
        writer = self._writer(rows_of.gathered(rows, self._options), commit)
        if self._is_there:
            writer = writer.option("mergeSchema", "true")  # Columns that `prepare` allowed.
        else:
            writer = writer.options(**PROPERTIES)
        names = [column.name for column in self._options.partition_by]
        writer.partitionBy(*names).save(self._options.table)

    def _commit_dead_letters(self, rows: DataFrame, batch: Batch) -> None:
        dead = self._options.dead_letters
        assert dead is not None
        bad = rows_of.dead_letters(rows)
        if self._options.upsert:
            bad = bad.unionByName(upsert.late_tombstones(rows, self._known_letters(bad)))
        log = open_log(self._spark, dead)
        assert log is not None
        if self._may_be_there(batch, log):
            known = self._spark.read.format("delta").load(dead).select(*PLACE)
            bad = bad.join(known, [*PLACE], "left_anti").select(*rows_of.DEAD_LETTER_COLUMNS)
        if bad.isEmpty():
            return
        writer = self._writer(bad.coalesce(1), _commit_id(batch))
        writer.option("delta.logRetentionDuration", LOG_RETENTION).save(dead)
        commit = commit_of(log, batch.number)
        # Delta passes over a batch whose number it has, whatever is in it.
        if commit is None or not is_same(from_json(commit.metadata or {}), batch):
            raise OperatorError(
                f"{dead} holds the dead letters of another job, and does not take those of batch "
                f"{batch.number}: name another --dead-letters"
            )

    def _may_be_there(self, batch: Batch, log: LogFiles) -> bool:
        """Whether some of the batch's dead letters are in their table: the job was that far before
        it began again after the table's newest rows."""
        if self._letters_end is None:
            self._letters_end = furthest(log)  # Later ones are this run's own.
        return any(
            self._letters_end.get((name, topic.id, partition), 0) > first
            for name, topic in batch.topics.items()
            for partition, (first, _) in topic.read.items()
        )

    def _known_letters(self, bad: DataFrame) -> DataFrame:
        """The dead letters of a batch, and those of the batches before."""
        dead = self._options.dead_letters
        assert dead is not None
        log = open_log(self._spark, dead)
        if log is None or not log.names():
            return bad
        known = self._spark.read.format("delta").load(dead).select(*bad.columns)
        return bad.unionByName(known)

    def _writer(self, rows: DataFrame, commit: CommitId) -> DataFrameWriter:
        return (
            rows.write.format("delta")
            .mode("append")
            .option("txnAppId", commit.application)
            .option("txnVersion", commit.number)
            .option("userMetadata", commit.metadata)
        )

    def _widen(self, change: TableChange) -> None:
        table = self._options.table
        if self._options.widen == "rewrite":
            wider = in_type(self._spark.read.format("delta").load(table), change.type)
            names = [column.name for column in self._options.partition_by]
            writer = wider.write.format("delta").mode("overwrite").option("overwriteSchema", "true")
            writer.partitionBy(*names).save(table)
            return
        self._spark.sql(
            f"ALTER TABLE {self._quoted} SET TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
        )
        for each in change.widened:
            path = ".".join(f"`{part}`" for part in each.path.split("."))
            self._spark.sql(f"ALTER TABLE {self._quoted} ALTER COLUMN {path} TYPE {each.new}")

    @property
    def _quoted(self) -> str:
        return "delta.`" + self._options.table.replace("`", "``") + "`"

    def _bad_partition(self, error: Exception) -> str:
        empty = rows_of.decoded(self._empty(), self._options)
        for column in self._options.partition_by:
            try:
                empty = empty.withColumn(column.name, F.expr(column.expression))
            except (AnalysisException, ParseException) as found:
                reason = " ".join(str(found).partition(" SQLSTATE")[0].split())
                return f"--partition-by {column.name}={column.expression}: {reason}"
        return " ".join(str(error).split())
