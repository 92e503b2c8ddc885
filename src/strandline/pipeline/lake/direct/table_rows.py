"""A worker's records as the table's columns: the twin of `lake/rows.py` in Arrow.

Why:    rows must not depend on which of the two writes them; a test compares.
How:    `rows.worker_columns` has decoded the value; here key, bytes and reasons find their
        columns."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from strandline.pipeline.lake.options import LakeOptions
from strandline.pipeline.lake.rows import (
    KEY_PROBLEM,
    PARSED,
    PROBLEM,
    RAW_KEY,
    RAW_VALUE,
    table_columns,
)


def table_rows(options: LakeOptions, schema: pa.Schema) -> Callable[[Any], Any]:
    """A batch of `rows.record_type` -> a batch of `schema`, the table's columns without those it is
    partitioned by, for a job without dead letters."""
    names = table_columns(options)
    assert tuple(schema.names) == names, (schema.names, names)

    def convert(batch: Any) -> Any:
        columns = {name: batch.column(name) for name in batch.schema.names}
        key, value = columns[RAW_KEY], columns[RAW_VALUE]
        problem = columns.get(PROBLEM)
        columns |= {"key": key, "raw": value, "value": columns.get(PARSED, value)}
        if problem is not None:
            columns["malformed"] = _where(pc.is_valid(problem), value)
        if options.key == "text":
            columns["key"], is_bad = _texts(key)
            columns["malformed_key"] = _where(is_bad, key)
            problem = _joined(problem, is_bad)
        columns["problem"] = problem
        arrays = [columns[name].cast(schema.field(name).type) for name in names]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    return convert


def _where(condition: Any, values: Any) -> Any:
    """The values where the condition holds, else null."""
    return pc.if_else(condition, values, pa.scalar(None, values.type))


def _texts(keys: Any) -> tuple[Any, Any]:
    """(keys as text, null where they are not UTF-8; where that is)"""
    try:
        return keys.cast(pa.string()), pa.repeat(pa.scalar(value=False), len(keys))
    except pa.ArrowInvalid:
        texts = pa.array([_text(key) for key in keys.to_pylist()], pa.string())
        return texts, pc.and_(pc.is_valid(keys), pc.is_null(texts))


def _text(key: bytes | None) -> str | None:
    try:
        return None if key is None else key.decode()
    except UnicodeDecodeError:
        return None


def _joined(problem: Any, is_bad_key: Any) -> Any:
    """The reasons of value and key, with "; " between them."""
    of_key = _where(is_bad_key, pa.repeat(pa.scalar(KEY_PROBLEM), len(is_bad_key)))
    if problem is None:
        return of_key
    both = pc.binary_join_element_wise(problem, of_key, "; ")  # Null if one of them is.
    return pc.coalesce(both, problem, of_key)
