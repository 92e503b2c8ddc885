"""Whether a job can do without Spark's writer, and how its files are written then.

Why:    Spark's writer can do everything. What follows here is the usual job on a local disk.
How:    asked once a run. What a table asks of its writers is asked again for each commit
        (`commit.py`), and values that only Spark can write are found by the workers.
Source: decisions/0064."""

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.lake import rows as rows_of
from strandline.pipeline.lake.direct.files import FileOptions
from strandline.pipeline.lake.direct.partitions import texts_of, type_of
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.locations import is_local
from strandline.pipeline.values.arrow_types import to_arrow
from strandline.pipeline.values.evolution import paths, relaxed

_CODECS = {"snappy": "snappy", "zstd": "zstd", "gzip": "gzip", "none": "none"}
"""{Spark's name: Arrow's}"""
_SETTINGS: Mapping[str, str] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings that rows depend on, as `runtime/session.py` makes them."""


def row_type(options: LakeOptions) -> T.StructType | None:
    """The type of a table's rows, partition columns included; None if only Spark can tell."""
    fields = rows_of.table_type(options).fields
    for column in options.partition_by:
        found = type_of(column, options)
        if found is None:
            return None
        fields.append(T.StructField(column.name, found))
    return T.StructType(fields)


def plan_files(spark: SparkSession, options: LakeOptions, rows: T.StructType) -> FileOptions | None:
    """How workers write a job's files; None if Spark's writer must. `rows`: the type of the table's
    rows, partition columns included."""
    needs_spark = (
        options.source != "strandline"
        or options.upsert
        or options.dead_letters is not None
        or options.files is not None
        or not is_local(options.table)
        or any(isinstance(kind, T.TimestampNTZType) for _, kind in paths(rows))
        or any(spark.conf.get(key) != value for key, value in _SETTINGS.items())
    )
    codec = _CODECS.get(str(spark.conf.get("spark.sql.parquet.compression.codec")).lower())
    if needs_spark or codec is None:
        return None
    partitions = {}
    for column in options.partition_by:
        texts = texts_of(column, options)
        if texts is None:
            return None
        partitions[column.name] = texts
    in_files = T.StructType([each for each in rows.fields if each.name not in partitions])
    arrow = to_arrow(relaxed(in_files))
    # Spark takes files without its version for such that may have an old calendar's dates.
    footer = {
        "org.apache.spark.version": spark.version,
        "org.apache.spark.sql.parquet.row.metadata": relaxed(in_files).json(),
    }
    return FileOptions(options.table, pa.schema(list(arrow)), partitions, codec, footer)
