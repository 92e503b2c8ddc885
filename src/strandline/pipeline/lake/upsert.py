"""The newest record of each key: rows of a batch merged into the table by key.

Why:    of a compacted topic only the newest record of a key counts; a table of all records would
        have to be reduced by each query.
How:    batch -> the newest record of each key in it -> MERGE, one commit with the batch's progress.

            key in the table    record is a tombstone    the row
            yes                 yes                      is deleted
            yes                 no                       is replaced, also in another partition of
                                                         the table
            no                  yes                      -
            no                  no                       is added

        Newest is the highest offset. A key's records lie in one partition of the topic unless
        partitions were added; between two partitions the later timestamp counts. Records without a
        key replace nothing: each stays a row.
Source: decisions/0055; https://kafka.apache.org/documentation/#compaction"""

from collections.abc import Mapping, Sequence
from typing import Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.lake.progress import CommitId
from strandline.pipeline.lake.rows import DEAD_LETTER_COLUMNS, RAW_KEY, RAW_VALUE, as_dead_letters
from strandline.pipeline.runtime.overrides import overridden

KEYED, TOMBSTONE = MARKS = ("_keyed", "_tombstone")
SOURCE_VIEW = "strandline_upserts"
TOMBSTONE_PROBLEM = "tombstone after a dead letter"
"""`problem` of tombstones among the dead letters: those whose key has a dead letter. Without them
a replay would bring back a key that was deleted since."""

Order = Literal["batch", "replay"]
"""A batch's records are newer than the table's rows of the same partition, for a job reads each
partition in order. Replayed records can be older, and their offsets tell."""

MERGE_SETTINGS: Mapping[str, str] = {
    # A batch that changes no row must move the job's progress on all the same.
    "spark.databricks.delta.skipRecordingEmptyCommits": "false",
    # Delta reads the source twice; what it reads must not change in between.
    "spark.databricks.delta.merge.materializeSource": "all",
}


def with_marks(rows: DataFrame) -> DataFrame:
    """`rows.decoded` with `_keyed` and `_tombstone`."""
    keyed = F.col("key").isNotNull()
    if "malformed_key" in rows.columns:
        keyed = keyed | F.col("malformed_key").isNotNull()
    return rows.withColumn(KEYED, keyed).withColumn(TOMBSTONE, keyed & F.col(RAW_VALUE).isNull())


def newest(rows: DataFrame) -> DataFrame:
    """The newest record of each key of a batch, and all records without a key."""
    identity = _identity(rows.columns)
    keyed = rows.where(F.col(KEYED)).withColumn("_row", F.struct(*rows.columns))
    # One shuffle: records of one key meet in one task, for both steps.
    placed = keyed.repartition(*identity)
    in_partition = placed.groupBy(*identity, "partition").agg(
        F.max_by("_row", "offset").alias("_row")
    )
    order = F.struct("_row.timestamp", "partition")
    whole = in_partition.groupBy(*identity).agg(F.max_by("_row", order).alias("_row"))
    return whole.select("_row.*").unionByName(rows.where(~F.col(KEYED)))


def merge_statement(table: str, columns: Mapping[str, bool], *, order: Order) -> str:
    """MERGE of SOURCE_VIEW into `table`, a quoted name. `columns`: {column of the table: whether
    the source has it}; the others become null."""
    identity = _identity([name for name, is_there in columns.items() if is_there])
    same_key = " AND ".join(f"t.`{name}` <=> s.`{name}`" for name in identity)
    same_place = " AND ".join(
        f"t.`{name}` = s.`{name}`" for name in ("partition", "offset", "timestamp")
    )
    values = {name: f"s.`{name}`" if is_there else "NULL" for name, is_there in columns.items()}
    names = ", ".join(f"`{name}`" for name in values)
    sets = ", ".join(f"t.`{name}` = {value}" for name, value in values.items())
    newer = f"s.{KEYED} AND ({_newer(order)})"
    return f"""
        MERGE INTO {table} t USING {SOURCE_VIEW} s
        ON {same_key} AND (s.{KEYED} OR ({same_place}))
        WHEN MATCHED AND {newer} AND s.{TOMBSTONE} THEN DELETE
        WHEN MATCHED AND {newer} THEN UPDATE SET {sets}
        WHEN NOT MATCHED AND NOT s.{TOMBSTONE} THEN INSERT ({names})
        VALUES ({", ".join(values.values())})"""


def _newer(order: Order) -> str:
    if order == "batch":
        return "s.partition = t.partition OR s.timestamp >= t.timestamp"
    return (
        "CASE WHEN s.partition = t.partition THEN s.offset > t.offset "
        "ELSE s.timestamp > t.timestamp END"
    )


def _identity(columns: Sequence[str]) -> list[str]:
    """What two records of one key have in common. A key that is not text has its bytes in
    `malformed_key`."""
    return ["topic", "key", *(name for name in ("malformed_key",) if name in columns)]


def live(rows: DataFrame) -> DataFrame:
    """The rows that make a new table: those of `newest` that are not tombstones."""
    return rows.where(~F.col(TOMBSTONE)).drop(*MARKS)


def merge(
    spark: SparkSession, source: DataFrame, table: str, *, order: Order, commit: CommitId
) -> None:
    """Merges `newest` rows into a table, in one commit that Delta accepts once."""
    name = "delta.`" + table.replace("`", "``") + "`"
    columns = {
        column: column in source.columns
        for column in spark.read.format("delta").load(table).columns
    }
    settings = {
        **MERGE_SETTINGS,
        "spark.databricks.delta.write.txnAppId": commit.application,
        "spark.databricks.delta.write.txnVersion": str(commit.number),
        "spark.databricks.delta.commitInfo.userMetadata": commit.metadata,
    }
    source.createOrReplaceTempView(SOURCE_VIEW)
    try:
        with overridden(spark, settings):
            spark.sql(merge_statement(name, columns, order=order)).collect()
    finally:
        spark.catalog.dropTempView(SOURCE_VIEW)


def late_tombstones(rows: DataFrame, letters: DataFrame) -> DataFrame:
    """Of a batch (`rows.decoded`) the tombstones whose key has a dead letter, as dead letters."""
    keys = letters.select("topic", "key").distinct()
    is_tombstone = F.col(RAW_KEY).isNotNull() & F.col(RAW_VALUE).isNull()
    tombstones = as_dead_letters(rows.where(is_tombstone), F.lit(TOMBSTONE_PROBLEM))
    return tombstones.join(keys, ["topic", "key"], "left_semi").select(*DEAD_LETTER_COLUMNS)


def superseded(rows: DataFrame, tombstones: DataFrame, *, keep: bool) -> DataFrame:
    """The rows whose key a newer tombstone deleted; without `keep` all the others."""
    row, stone = rows.alias("r"), tombstones.alias("t")
    newer = F.when(
        F.col("t.partition") == F.col("r.partition"), F.col("t.offset") > F.col("r.offset")
    ).otherwise(F.col("t.timestamp") > F.col("r.timestamp"))
    same = (F.col("t.topic") == F.col("r.topic")) & (F.col("t.key") == F.col(f"r.{RAW_KEY}"))
    return row.join(stone, same & newer, "left_semi" if keep else "left_anti")
