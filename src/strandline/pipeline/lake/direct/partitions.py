"""The partition columns that Arrow can compute, as the texts that Delta's log has for them.

Why:    any expression of Spark SQL may partition a table; only the usual ones are worth a twin.
How:    `texts_of` and `type_of` know the expressions of `--partition-by day` and the like, and
        fields of the value whose text is plain. Texts raise UnfitRowsError for values that only
        Spark can write."""

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.lake.options import TIME_COLUMNS, LakeOptions, PartitionColumn

Texts = Callable[[Any], Any]
"""A batch of the table's columns -> a string array, null for null."""

_FIELD = re.compile(r"value\.`([^`]+)`")
_FIELD_TYPES = (T.StringType, T.IntegerType, T.LongType, T.ShortType, T.ByteType)
_PLAIN = "^[A-Za-z0-9_.-]+$"
"""Texts that are the same in a path, in a URL and in Hive's names of directories."""
_YEAR_MIN_US = -62_135_596_800_000_000
_YEAR_MAX_US = 253_402_300_799_999_999
"""Of the years 1 to 9999: all that texts of times have in Python, in Java and in Delta's log."""


class UnfitRowsError(Exception):
    """Some rows need Spark's writer."""


def texts_of(column: PartitionColumn, options: LakeOptions) -> Texts | None:
    """How a partition column's texts follow from a batch; None if only Spark can tell."""
    by_time = _BY_TIME.get(column.expression)
    if by_time is not None:
        _, texts = by_time
        return lambda batch: texts(checked_times(batch.column("timestamp")))
    field = _field(column, options)
    if field is None:
        return None
    return lambda batch: _plain(pc.struct_field(batch.column("value"), field.name))


def type_of(column: PartitionColumn, options: LakeOptions) -> T.DataType | None:
    """The type of a partition column that `texts_of` knows."""
    if column.expression in _BY_TIME:
        return _BY_TIME[column.expression][0]
    field = _field(column, options)
    return None if field is None else field.dataType


def _field(column: PartitionColumn, options: LakeOptions) -> T.StructField | None:
    """The field of the value that the column is, if its texts are usually plain."""
    found = _FIELD.fullmatch(column.expression)
    if found is None or options.schema is None or found[1] not in options.schema.type.names:
        return None
    field: T.StructField = options.schema.type[found[1]]
    return field if isinstance(field.dataType, _FIELD_TYPES) else None


def checked_times(times: Any) -> Any:
    """The same; raises UnfitRowsError for a year that not each reader can write."""
    bounds = pc.min_max(times.cast(pa.int64())).as_py()
    if bounds["min"] is not None and not (
        bounds["min"] >= _YEAR_MIN_US and bounds["max"] <= _YEAR_MAX_US
    ):
        raise UnfitRowsError
    return times


def _plain(values: Any) -> Any:
    texts = values.cast(pa.string())
    if not pc.all(pc.match_substring_regex(texts, _PLAIN)).as_py() and texts.null_count < len(
        texts
    ):
        raise UnfitRowsError
    return texts


_BY_TIME: dict[str, tuple[T.DataType, Callable[[Any], Any]]] = {
    TIME_COLUMNS["day"]: (
        T.DateType(),
        lambda times: times.cast(pa.date32()).cast(pa.string()),
    ),
    TIME_COLUMNS["hour"]: (T.StringType(), lambda times: pc.strftime(times, "%Y-%m-%d-%H")),
    TIME_COLUMNS["month"]: (T.StringType(), lambda times: pc.strftime(times, "%Y-%m")),
    TIME_COLUMNS["year"]: (T.IntegerType(), lambda times: pc.year(times).cast(pa.string())),
}
"""{Spark SQL: (its type, the same texts)}"""
