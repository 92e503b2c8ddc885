"""Many decoded records -> Arrow columns, and how many JSON members each record must have had.

Why:    texts become dates and timestamps a column at a time; and a record with more members than
        its values account for has duplicates (`values/json/suspects.py`).
How:    one column object for each type. `build` takes the values of one field of all records, in
        order, None for null. If some do not fit, it raises UnfitColumnError with their places.
        Members of a record = its non-null fields + the members within them, at all depths."""

from collections.abc import Sequence
from decimal import Decimal
from operator import attrgetter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.values import times
from strandline.pipeline.values.arrow_types import to_arrow, to_arrow_field
from strandline.pipeline.values.json.exact import decode_base64
from strandline.pipeline.values.json.typed import attribute
from strandline.pipeline.values.numbers import DOUBLE_NORMAL_MIN, FLOAT_MAX, FLOAT_NORMAL_MIN

Members = Any
"""Members within the values of a column: an int if all have as many, else an int64 array."""


class UnfitColumnError(Exception):
    """Some values do not fit the column. `places`: their numbers among those it was to be of."""

    def __init__(self, places: list[int]) -> None:
        super().__init__()
        self.places = places


class _UnfitError(Exception):
    """A value does not fit."""


_ARROW_ERRORS = (pa.ArrowException, _UnfitError, OverflowError, UnicodeError, TypeError)
LONG_INTEGER_MIN = 10**15
"""The least integer of more than 15 digits."""
_MORE_THAN_MICROS = r"(\.\d{6})0+(Z|[+-]|$)"


class Column(Protocol):
    """The values of one field -> an Arrow array and the members within them."""

    def build(self, items: Sequence[Any]) -> tuple[Any, Members]:
        """Raises UnfitColumnError if a value does not fit."""
        ...


def column_of(data_type: T.DataType) -> Column:
    """The column of a type."""
    if isinstance(data_type, T.StructType):
        return StructColumn(data_type)
    if isinstance(data_type, T.ArrayType):
        return _ArrayColumn(data_type)
    if isinstance(data_type, T.MapType):
        return _MapColumn(data_type)
    return _LeafColumn(data_type)


class _LeafColumn:
    """Numbers, texts and what is written as text."""

    def __init__(self, data_type: T.DataType) -> None:
        self._type = data_type
        self._arrow = to_arrow(data_type)

    def build(self, items: Sequence[Any]) -> tuple[Any, Members]:
        try:
            return self._array(items), 0
        except _ARROW_ERRORS:
            places = [place for place, one in enumerate(items) if not self._fits(one)]
        raise UnfitColumnError(places or list(range(len(items))))

    def _fits(self, one: Any) -> bool:
        if one is None:
            return True
        if isinstance(self._type, T.DateType):
            return times.parse_date(one)[1] is None
        if isinstance(self._type, T.TimestampType | T.TimestampNTZType):
            zoned = isinstance(self._type, T.TimestampType)
            return times.parse_timestamp(one, zoned=zoned)[1] is None
        try:
            self._array([one])
            return True
        except _ARROW_ERRORS:
            return False

    def _array(self, items: Sequence[Any]) -> Any:
        kind = self._type
        if isinstance(kind, T.DateType | T.TimestampType | T.TimestampNTZType):
            return self._time(items)
        if isinstance(kind, T.BinaryType):
            return pa.array([_binary(one) for one in items], self._arrow)
        if isinstance(kind, T.DecimalType):
            # Arrow would take other types here, and cut or round what they hold.
            if not set(map(type, items)) <= _DECIMAL_TYPES:
                raise _UnfitError
            if max((_digits(one) for one in items), default=0) > _DIGITS_MAX:
                raise _UnfitError
        if isinstance(kind, T.FloatType):
            return self._single(items)
        return pa.array(items, self._arrow)

    def _time(self, items: Sequence[Any]) -> Any:
        texts = pa.array(items, pa.string())
        try:
            array = pc.cast(texts, self._arrow)
        except pa.ArrowInvalid:
            # Many programs write nanoseconds; Arrow does not take them, not even zeros.
            texts = pc.replace_substring_regex(texts, _MORE_THAN_MICROS, r"\1\2")
            array = pc.cast(texts, self._arrow)
        if isinstance(self._type, T.DateType):
            low, high, numbers = times.DATE_MIN, None, pc.cast(array, pa.int32())
        else:
            low, high, numbers = times.TIMESTAMP_MIN, times.TIMESTAMP_MAX, array.cast(pa.int64())
        bounds = pc.min_max(numbers).as_py()
        if bounds["min"] is not None and (
            bounds["min"] < low or (high is not None and bounds["max"] > high)
        ):
            raise _UnfitError
        return array

    def _single(self, items: Sequence[Any]) -> Any:
        """A FLOAT fits at once if it, or its shortest text, is the record's number."""
        for one in items:
            if one and not FLOAT_NORMAL_MIN <= abs(one) <= FLOAT_MAX:
                raise _UnfitError
            if one and one not in (float(str(np.float32(one))), np.float32(one).item()):
                raise _UnfitError
        return pa.array(items, self._arrow)


_DECIMAL_TYPES = {int, type(None), Decimal}
_DIGITS_MAX = 76


def _digits(one: Any) -> int:
    """At least as many digits as Arrow must handle."""
    if not one:
        return 0
    if isinstance(one, int):
        return one.bit_length() // 3 + 1
    return len(one.as_tuple().digits) + abs(int(one.adjusted()))


def _binary(one: str | None) -> bytes | None:
    if one is None:
        return None
    value = decode_base64(one)
    if value is None:
        raise _UnfitError
    return value


class StructColumn:
    """Structs as `values/json/typed.py` makes them; None for null."""

    def __init__(self, data_type: T.StructType) -> None:
        self._fields = [to_arrow_field(field) for field in data_type.fields]
        self._columns = [column_of(field.dataType) for field in data_type.fields]
        self._get = [attrgetter(attribute(index)) for index in range(len(self._fields))]

    def build(self, items: Sequence[Any]) -> tuple[Any, Members]:
        present = [one for one in items if one is not None]
        children = []
        members: Members = 0
        for get, column in zip(self._get, self._columns, strict=True):
            try:
                array, within = column.build(list(map(get, present)))
            except UnfitColumnError as unfit:
                rows = [row for row, one in enumerate(items) if one is not None]
                raise UnfitColumnError([rows[place] for place in unfit.places]) from None
            members = members + within + _valid(array)
            children.append(array)
        if len(present) == len(items):
            return pa.StructArray.from_arrays(children, fields=self._fields), members
        valid = np.fromiter((one is not None for one in items), bool, len(items))
        places = pa.array(np.cumsum(valid) - 1, mask=~valid)
        spread = [child.take(places) for child in children]
        array = pa.StructArray.from_arrays(spread, fields=self._fields, mask=pa.array(~valid))
        return array, _spread(members, valid)


class _ArrayColumn:
    """Lists; None for null."""

    def __init__(self, data_type: T.ArrayType) -> None:
        self._arrow = to_arrow(data_type)
        self._element = column_of(data_type.elementType)

    def build(self, items: Sequence[Any]) -> tuple[Any, Members]:
        offsets, null = _offsets(items)
        flat = [one for item in items if item is not None for one in item]
        array, within = _built(self._element, flat, offsets)
        built = pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), array, type=self._arrow, mask=null
        )
        return built, _sums(within, offsets)


class _MapColumn:
    """Dicts with texts as keys; None for null."""

    def __init__(self, data_type: T.MapType) -> None:
        self._arrow = to_arrow(data_type)
        self._value = column_of(data_type.valueType)

    def build(self, items: Sequence[Any]) -> tuple[Any, Members]:
        offsets, null = _offsets(items)
        present = [item for item in items if item is not None]
        keys = pa.array([key for item in present for key in item], pa.string())
        parts = [one for item in present for one in item.values()]
        values, within = _built(self._value, parts, offsets)
        buffers = [None if null is None else pa.array(~np.asarray(null)).buffers()[1]]
        entries = pa.StructArray.from_arrays(
            [keys, values], fields=[self._arrow.key_field, self._arrow.item_field]
        )
        built = pa.Array.from_buffers(
            self._arrow,
            len(items),
            [*buffers, pa.array(offsets, pa.int32()).buffers()[1]],
            children=[entries],
        )
        return built, _sums(within, offsets) + np.diff(offsets)


def _built(column: Column, parts: list[Any], offsets: Any) -> tuple[Any, Members]:
    """The column of the parts of items; an item is unfit if one of its parts is."""
    try:
        return column.build(parts)
    except UnfitColumnError as unfit:
        items = np.unique(np.searchsorted(offsets, unfit.places, "right") - 1)
        raise UnfitColumnError(items.tolist()) from None


def _valid(array: Any) -> Members:
    """1 for each value that is not null."""
    if array.null_count == 0:
        return 1
    return pc.cast(array.is_valid(), pa.int64()).to_numpy(zero_copy_only=False)


def _spread(members: Members, valid: Any) -> Any:
    spread = np.zeros(len(valid), np.int64)
    spread[valid] = members
    return spread


def _offsets(items: Sequence[Any]) -> tuple[Any, Any]:
    """(where each item's parts begin, and the end; which items are null, or None if none is)"""
    lengths = np.fromiter((0 if one is None else len(one) for one in items), np.int64, len(items))
    offsets = np.zeros(len(items) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    null = np.fromiter((one is None for one in items), bool, len(items))
    return offsets, pa.array(null) if null.any() else None


def _sums(within: Members, offsets: Any) -> Members:
    """Members of the parts -> members of the items that they belong to."""
    if isinstance(within, int):
        return within * np.diff(offsets) if within else 0
    total = np.zeros(len(within) + 1, np.int64)
    np.cumsum(within, out=total[1:])
    return total[offsets[1:]] - total[offsets[:-1]]


def doubtful_doubles(array: Any) -> Any:
    """Numbers of the rows where a DOUBLE is zero or subnormal: digits may be lost there."""
    doubtful = np.zeros(len(array), bool)
    _find_doubtful(array, np.arange(len(array)), doubtful)
    return np.flatnonzero(doubtful)


def _find_doubtful(array: Any, rows: Any, doubtful: Any) -> None:
    kind = array.type
    if pa.types.is_struct(kind):
        for child in array.flatten():
            _find_doubtful(child, rows, doubtful)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        _find_doubtful(*_within(array, rows), doubtful)
    elif pa.types.is_float64(kind) or pa.types.is_float32(kind):
        wide = array.to_numpy(zero_copy_only=False).astype(np.float64)
        values = np.nan_to_num(wide, nan=1.0)
        doubtful[rows[np.abs(values) < DOUBLE_NORMAL_MIN]] = True


def count_long_integers(array: Any) -> Any:
    """How many integers of more than 15 digits each row has, at all depths."""
    counts = np.zeros(len(array), np.int64)
    _count_long(array, np.arange(len(array)), counts)
    return counts


def _count_long(array: Any, rows: Any, counts: Any) -> None:
    kind = array.type
    if pa.types.is_struct(kind):
        for child in array.flatten():
            _count_long(child, rows, counts)
    elif pa.types.is_list(kind) or pa.types.is_map(kind):
        _count_long(*_within(array, rows), counts)
    elif pa.types.is_int64(kind):
        values = pc.fill_null(array, 0).to_numpy(zero_copy_only=False)
        is_long = (values >= LONG_INTEGER_MIN) | (values <= -LONG_INTEGER_MIN)
        np.add.at(counts, rows[is_long], 1)


def _within(array: Any, rows: Any) -> tuple[Any, Any]:
    """(the parts of all lists or maps, the row that each is of)"""
    offsets = np.asarray(array.offsets)
    parts = array.items if pa.types.is_map(array.type) else array.values
    within = parts.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return within, np.repeat(rows, np.diff(offsets))
