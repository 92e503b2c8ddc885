"""Whether a table takes a job's rows, and what must change in it first.

Why:    a table outlives its schemas; a job must not stop at each change, nor change a value.
How:    the table's type and the type of the rows -> the steps that take the table there. Refused
        before a record is read: what would change values, a key of another type, other partition
        columns.
Source: decisions/0050; `pipeline/values/evolution.py` for the rules of types."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.values.evolution import REASONS_SHOWN_MAX, Change, merge


@dataclass(frozen=True, slots=True)
class TableChange:
    """How a table takes a job's rows. `type`: of the table afterwards; its fields are written in
    this type."""

    type: T.StructType
    widened: tuple[Change, ...]
    added: tuple[Change, ...]


def plan_change(
    table: T.StructType, rows: T.StructType, *, partitioned_by: Sequence[str], options: LakeOptions
) -> TableChange:
    """What to change in a table of type `table` so that it takes rows of type `rows`."""
    _check_partitions(partitioned_by, options)
    _check_columns(table, options)
    try:
        # Columns that only some of the table's rows have, such as `malformed`, may be missing.
        evolution = merge(table, rows)
        if options.schema is not None and isinstance(table["value"].dataType, T.StructType):
            merge(table["value"].dataType, options.schema.type, missing=False)
    except OperatorError as error:
        where = f"--schema {options.schema.path}" if options.schema is not None else "the rows"
        raise OperatorError(
            f"{where} does not fit {options.table}: {error}: correct the schema, or fill a new "
            "table",
            error.details if len(error.details) > REASONS_SHOWN_MAX else (),
        ) from None
    widened = tuple(each for each in evolution.changes if each.kind == "widen")
    if widened and options.widen == "refuse":
        raise OperatorError(
            f"{options.table}: {'; '.join(map(str, widened))}: allow it by --widen rewrite (one "
            "commit writes all rows anew) or --widen in-place (readers need Delta's typeWidening)"
        )
    added = tuple(each for each in evolution.changes if each.kind == "add")
    return TableChange(evolution.type, widened, added)


def _check_partitions(partitioned_by: Sequence[str], options: LakeOptions) -> None:
    names = [column.name for column in options.partition_by]
    if list(partitioned_by) != names:
        raise OperatorError(
            f"{options.table} is partitioned by {', '.join(partitioned_by) or 'no column'}, and "
            f"--partition-by gives {', '.join(names)}: give the table's, or fill a new table"
        )


def _check_columns(table: T.StructType, options: LakeOptions) -> None:
    names = table.fieldNames()
    missing = [name for name in ("topic", "partition", "offset", "value") if name not in names]
    if missing:
        raise OperatorError(f"{options.table} has no column {missing[0]}: it is not a lake table")
    text = isinstance(table["key"].dataType, T.StringType)
    if text != (options.key == "text"):
        found, other = ("text", "text") if text else ("bytes", "raw")
        raise OperatorError(
            f"{options.table} has keys as {found}: use --key {other}, or fill a new table"
        )
    is_struct = isinstance(table["value"].dataType, T.StructType)
    if is_struct and options.schema is None:
        raise OperatorError(
            f"{options.table} has decoded values: give their --schema, or fill a new table"
        )
    if not is_struct and options.schema is not None:
        raise OperatorError(
            f"{options.table} has values as bytes: leave --schema out, or fill a new table"
        )
