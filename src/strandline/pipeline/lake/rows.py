"""A batch's rows: a record's own columns, the decoded value, the partition columns.

Why:    each record is one row, also if its key or its value does not fit: its bytes stay whole.
How:    records -> `decoded` (every column that any table needs) -> `table_rows`, and `dead_letters`
        if they have a table. Values are decoded in Python workers, a column at a time."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (as in all of Spark's documentation)
from pyspark.sql.types import StringType, StructField, StructType

from strandline.pipeline.lake.options import LakeOptions

if TYPE_CHECKING:
    from pyarrow import RecordBatch

    from strandline.pipeline.values.decoding import Decoder

RAW_KEY = "_key"
RAW_VALUE = "_value"
_PARSED = "_parsed"
_PROBLEM = "_problem"
DEAD_LETTER_COLUMNS = (
    *("topic", "partition", "offset", "timestamp", "key", "headers", "value", "problem"),
)
KEY_PROBLEM = "key: not UTF-8"


def decoded(records: DataFrame, options: LakeOptions) -> DataFrame:
    """Records with key and value as bytes -> the table's columns, `problem` (null where all fits),
    `is_dead` (the record has no row in a table that has dead letters beside it), and the bytes as
    `_key` and `_value`."""
    rows = records.select(
        *("topic", "partition", "offset", "timestamp", "headers"),
        F.col("key").alias(RAW_KEY),
        F.col("value").alias(RAW_VALUE),
    )
    key, value = F.col(RAW_KEY), F.col(RAW_VALUE)
    problems: list[Column] = []
    dead = F.lit(False)
    if options.schema is None:
        rows = rows.withColumn("value", value)
    else:
        rows = _with_values(rows, options.schema.decoder(options.mode))
        problem, parsed = F.col(_PROBLEM), F.col(_PARSED)
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


def _with_values(rows: DataFrame, decoder: "Decoder") -> DataFrame:
    """The rows with `_parsed`, the values in the decoder's type, and `_problem`."""
    fields = [StructField(_PARSED, decoder.type), StructField(_PROBLEM, StringType())]
    wanted = StructType([*rows.schema.fields, *fields])
    return rows.mapInArrow(value_columns(decoder), wanted)


def value_columns(
    decoder: "Decoder",
) -> "Callable[[Iterable[RecordBatch]], Iterator[RecordBatch]]":
    """What a Python worker does to each batch of rows: decodes the column `_value`."""

    def decode(batches: "Iterable[RecordBatch]") -> "Iterator[RecordBatch]":
        import pyarrow as pa

        for batch in batches:
            found = decoder.decode(batch.column(RAW_VALUE))
            yield pa.RecordBatch.from_arrays(
                [*batch.columns, found.values, found.problems],
                names=[*batch.schema.names, _PARSED, _PROBLEM],
            )

    return decode
