"""Delta's statistics of a file: how many rows, and nulls, least and greatest of each column.

Why:    readers skip files by them, and the job takes its counts from them.
How:    the first COLUMNS_MAX leaves, as Delta counts them: fields of structs are leaves, arrays and
        maps are leaves without bounds. A bound that JSON cannot tell exactly is left out, so that
        the file is not skipped.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Per-file Statistics"."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

COLUMNS_MAX = 32
"""`delta.dataSkippingNumIndexedCols`, by default."""
TEXT_CHARS_MAX = 32
_LAST_CHARACTER = "\U0010ffff"
_ENCODE = msgspec.json.Encoder(decimal_format="number").encode

Path = tuple[str, ...]


class Statistics:
    """Of one file, from its record batches."""

    def __init__(self, schema: pa.Schema) -> None:
        self._leaves = list(_leaves(schema))[:COLUMNS_MAX]
        self.rows = 0
        self._nulls = [0] * len(self._leaves)
        self._bounds: list[tuple[Any, Any] | None] = [None] * len(self._leaves)
        """(least, greatest) so far; None: no value yet."""
        self._unbounded: set[int] = set()

    def add(self, batch: Any) -> None:
        """Takes in more rows of the file."""
        self.rows += batch.num_rows
        for number, (path, kind) in enumerate(self._leaves):
            column = batch.column(path[0])
            if len(path) > 1:
                column = pc.struct_field(column, path[1:])
            self._nulls[number] += column.null_count
            if _has_bounds(kind) and number not in self._unbounded:
                self._widen(number, column)

    def _widen(self, number: int, column: Any) -> None:
        if pa.types.is_floating(column.type) and pc.any(pc.invert(pc.is_finite(column))).as_py():
            self._unbounded.add(number)  # NaN is the greatest of all for Spark, not for Arrow.
            return
        try:
            bounds = pc.min_max(column).as_py()
        except (ValueError, OverflowError):  # A year that Python does not know.
            self._unbounded.add(number)
            return
        if bounds["min"] is None:
            return
        known = self._bounds[number]
        least, greatest = bounds["min"], bounds["max"]
        if known is not None:
            least, greatest = min(least, known[0]), max(greatest, known[1])
        self._bounds[number] = (least, greatest)

    def json(self) -> str:
        """As Delta's log has them."""
        least: dict[str, Any] = {}
        greatest: dict[str, Any] = {}
        nulls: dict[str, Any] = {}
        for number, (path, _) in enumerate(self._leaves):
            _put(nulls, path, self._nulls[number])
            bounds = self._bounds[number]
            if bounds is not None and number not in self._unbounded:
                _put(least, path, _lower(bounds[0]))
                _put(greatest, path, _upper(bounds[1]))
        told = {
            "numRecords": self.rows,
            "minValues": least,
            "maxValues": greatest,
            "nullCount": nulls,
        }
        return _ENCODE(told).decode()


def _leaves(schema: pa.Schema) -> Iterator[tuple[Path, pa.DataType]]:
    for field in schema:
        yield from _leaves_of((field.name,), field.type)


def _leaves_of(path: Path, kind: pa.DataType) -> Iterator[tuple[Path, pa.DataType]]:
    if not pa.types.is_struct(kind):
        yield path, kind
        return
    for index in range(kind.num_fields):
        field = kind.field(index)
        yield from _leaves_of((*path, field.name), field.type)


def _has_bounds(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(
        types.is_integer(kind)
        or types.is_floating(kind)
        or types.is_decimal(kind)
        or types.is_string(kind)
        or types.is_date(kind)
        or types.is_timestamp(kind)
    )


def _put(into: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        into = into.setdefault(name, {})
    into[path[-1]] = value


def _lower(bound: Any) -> Any:
    """At most the bound."""
    if isinstance(bound, str):
        return bound[:TEXT_CHARS_MAX]
    if isinstance(bound, datetime):
        return _milliseconds(bound)
    return bound


def _upper(bound: Any) -> Any:
    """At least the bound, in the order of UTF-8's bytes."""
    if isinstance(bound, str) and len(bound) > TEXT_CHARS_MAX:
        end = TEXT_CHARS_MAX
        while bound[end : end + 1] == _LAST_CHARACTER:
            end += 1
        return bound[:end] + _LAST_CHARACTER
    if isinstance(bound, datetime):
        spare = -bound.microsecond % 1000
        try:
            return _milliseconds(bound + timedelta(microseconds=spare))
        except OverflowError:
            return _milliseconds(bound)
    return bound


def _milliseconds(time: datetime) -> str:
    return f"{time.replace(tzinfo=None).isoformat(timespec='milliseconds')}Z"
