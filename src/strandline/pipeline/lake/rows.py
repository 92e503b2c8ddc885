"""A batch's rows: a record's own columns, the decoded value, the partition columns.

Why:    each record is one row, also if its key or its value does not fit: its bytes stay whole.
How:    a data source's columns -> `worker_columns` in Python workers, which decode values a column
        at a time -> `decoded` (every column that any table needs) -> `table_rows`, and
        `dead_letters` if they have a table."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)
from pyspark.sql.types import StringType, StructField, StructType

from strandline.pipeline.lake.options import LakeOptions
from strandline.spark.columns import TYPES

if TYPE_CHECKING:
    from pyarrow import RecordBatch

RAW_KEY = "_key"
RAW_VALUE = "_value"
PARSED = "_parsed"
PROBLEM = "_problem"
DEAD_LETTER_COLUMNS = (
    *("topic", "partition", "offset", "timestamp", "key", "headers", "value", "problem"),
)
_PLACE = ("topic", "partition", "offset", "timestamp", "headers")
KEY_PROBLEM = "key: not UTF-8"

RECORD_TYPE = StructType([StructField(name, TYPES[name]) for name in (*_PLACE, "key", "value")])
"""What a data source gives."""


def record_type(options: LakeOptions) -> StructType:
    """What workers give: the record's place, its bytes, and with a schema the decoded value and why
    it does not fit. The value's bytes are null where only the decoded value is needed."""
    fields = [StructField(name, TYPES[name]) for name in _PLACE]
    fields += [StructField(RAW_KEY, TYPES["key"]), StructField(RAW_VALUE, TYPES["value"])]
    if options.schema is not None:
        decoder = options.schema.decoder(options.mode)
        fields += [StructField(PARSED, decoder.type), StructField(PROBLEM, StringType())]
    return StructType(fields)


def worker_columns(options: LakeOptions) -> "Callable[[RecordBatch], RecordBatch]":
    """What a Python worker does to each batch of a source's records."""
    names = record_type(options).fieldNames()
    decoder = None if options.schema is None else options.schema.decoder(options.mode)
    # Upserts tell a tombstone by its missing value.
    keeps_values = options.keep_raw or options.upsert or options.dead_letters is not None

    def columns(batch: "RecordBatch") -> "RecordBatch":
        import pyarrow as pa
        import pyarrow.compute as pc

        arrays = [batch.column(name) for name in (*_PLACE, "key", "value")]
        if decoder is not None:
            found = decoder.decode(arrays[-1])
            if not keeps_values:
                nothing = pa.scalar(None, pa.binary())
                arrays[-1] = pc.if_else(pc.is_valid(found.problems), arrays[-1], nothing)
            arrays += [found.values, found.problems]
        return pa.RecordBatch.from_arrays(arrays, names=names)

    return columns


def records_of(records: DataFrame, options: LakeOptions) -> DataFrame:
    """A source's data frame as `record_type` says."""
    plain = records.select(*_PLACE, "key", "value")
    if options.schema is None:
        return plain.withColumnsRenamed({"key": RAW_KEY, "value": RAW_VALUE})
    columns = worker_columns(options)

    def convert(batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
        return map(columns, batches)

    return plain.mapInArrow(convert, record_type(options))


def decoded(rows: DataFrame, options: LakeOptions) -> DataFrame:
    """Rows of `record_type` -> the table's columns, `problem` (null where all fits), `is_dead` (the
    record has no row in a table that has dead letters beside it), and the bytes as `_key` and
    `_value`."""
    key, value = F.col(RAW_KEY), F.col(RAW_VALUE)
    problems: list[Column] = []
    dead = F.lit(False)
    if options.schema is None:
        rows = rows.withColumn("value", value)
    else:
        problem, parsed = F.col(PROBLEM), F.col(PARSED)
        rows = rows.withColumn("value", parsed)
        rows = rows.withColumn("malformed", F.when(problem.isNotNull(), value))
        problems.append(problem)
        dead = dead | (problem.isNotNull() & parsed.isNull())
    if options.key == "text":
        text = F.try_validate_utf8(key.cast("string"))
        is_bad = key.isNotNull() & text.isNull()
        rows = rows.withColumn("key", text).withColumn("malformed_key", F.when(is_bad, key))
        problems.append(F.when(is_bad, F.lit(KEY_PROBLEM)))
        dead = dead | is_bad
    else:
        rows = rows.withColumn("key", key)
    if options.keep_raw:
        rows = rows.withColumn("raw", value)
    whole = F.concat_ws("; ", *problems) if problems else F.lit("")
    return rows.withColumn("problem", F.nullif(whole, F.lit(""))).withColumn("is_dead", dead)


def table_rows(rows: DataFrame, options: LakeOptions, *, marks: Sequence[str] = ()) -> DataFrame:
    """The rows of the table itself, from `decoded`, and the columns `marks`."""
    if options.dead_letters is not None:
        rows = rows.where(~F.col("is_dead"))
    for column in options.partition_by:
        rows = rows.withColumn(column.name, F.expr(column.expression))
    names = (column.name for column in options.partition_by)
    return rows.select(*table_columns(options), *names, *marks)


def table_columns(options: LakeOptions) -> tuple[str, ...]:
    """The columns of the job's table, in order, without those it is partitioned by."""
    # Statistics cover the first columns only, and they count what is malformed.
    columns = ["topic", "partition", "offset", "timestamp", "key"]
    has_dead = options.dead_letters is not None
    keeps_values = options.schema is not None and not (has_dead and options.mode == "strict")
    keeps_keys = options.key == "text" and not has_dead
    if keeps_keys:
        columns.append("malformed_key")
    columns.append("headers")
    if keeps_values:
        columns.append("malformed")
    if keeps_keys or keeps_values:
        columns.append("problem")
    if options.keep_raw:
        columns.append("raw")
    return (*columns, "value")


def table_type(options: LakeOptions) -> StructType:
    """The type of `table_columns`."""
    known = {name: TYPES[name] for name in _PLACE}
    known["key"] = StringType() if options.key == "text" else TYPES["key"]
    known["value"] = (
        TYPES["value"] if options.schema is None else options.schema.decoder(options.mode).type
    )
    known["problem"] = StringType()
    for name in ("malformed_key", "malformed", "raw"):
        known[name] = TYPES["value"]
    return StructType([StructField(name, known[name]) for name in table_columns(options)])


def dead_letters(rows: DataFrame) -> DataFrame:
    """The records of `decoded` that have no row in the table, with their bytes and the reason."""
    return as_dead_letters(rows.where(F.col("is_dead")), F.col("problem"))


def as_dead_letters(rows: DataFrame, problem: Column) -> DataFrame:
    """Rows of `decoded` as rows of a table of dead letters."""
    return rows.select(
        *("topic", "partition", "offset", "timestamp"),
        F.col(RAW_KEY).alias("key"),
        "headers",
        F.col(RAW_VALUE).alias("value"),
        problem.alias("problem"),
    )


def gathered(rows: DataFrame, options: LakeOptions) -> DataFrame:
    """The same rows, in at most `--files` tasks for each of the table's partitions."""
    if options.files is None:
        return rows
    # Without this every task would write a file into every one of the table's partitions.
    names: list[Any] = [column.name for column in options.partition_by]
    if options.files > 1:
        names.append(F.pmod(F.xxhash64("partition", "offset"), F.lit(options.files)))
    return rows.repartition(*names)
