"""Fits one JSON document into a type, by rules that are written out: what the fast way must match.

Why:    the fast way (`values/json/typed.py`) must know only which records it may take. What every
        other one means, and the words of its reason, are decided here.
How:    the document with all its text (`values/json/document.py`) beside the type. strict ends at
        the first problem; lenient keeps its reason and goes on with what fits.
Source: decisions/0051, which has the table of rules."""

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.values import numbers, times
from strandline.pipeline.values.decoding import Mode
from strandline.pipeline.values.json.document import Members, Number, parse
from strandline.pipeline.values.problems import TRAILING, UnfitValueError, at, join, shown


def fit(data: bytes, data_type: T.StructType, mode: Mode) -> tuple[Any, str | None]:
    """(the value as `pyarrow.array` takes it or None, the reason or None)"""
    fitting = _Fitting(mode)
    try:
        document, trailing = parse(data)
        if trailing:
            fitting.note(TRAILING)
        value = fitting.value(document, data_type, "")
        if document is None:
            fitting.note("expected an object, got null")
    except UnfitValueError as unfit:
        return None, str(unfit)
    return value, fitting.reason


class _Fitting:
    """One document on its way into its type."""

    def __init__(self, mode: Mode) -> None:
        self.reason: str | None = None
        self._mode = mode

    def note(self, reason: str) -> Any:
        """Keeps the first reason; in strict mode it is also the last. Returns None: no value."""
        if self._mode == "strict":
            raise UnfitValueError(reason)
        self.reason = self.reason or reason
        return None

    def value(self, found: Any, data_type: T.DataType, path: str) -> Any:
        """The value, or None for null and for what does not fit at all."""
        if found is None:
            return None
        return _FIT[type(data_type)](self, found, data_type, path)

    def wrong(self, found: Any, data_type: T.DataType, path: str) -> Any:
        return self.note(at(path, f"expected {_word(data_type)}, got {_kind_of(found)}"))

    def struct(self, found: Any, data_type: T.StructType, path: str) -> Any:
        if not isinstance(found, Members):
            return self.wrong(found, data_type, path)
        values: dict[str, Any] = {}
        for name, one in found:
            if name in values:
                self.note(f"duplicate field {join(path, shown(name))}")
            values[name] = one
        for name, one in found:
            # Null says as much as absence: nothing is lost with it.
            if one is not None and name not in data_type.names:
                self.note(f"unknown field {join(path, shown(name))}")
        fitted: dict[str, Any] = {}
        for field in data_type.fields:
            place = join(path, field.name)
            one = self.value(values.get(field.name), field.dataType, place)
            if one is None and not field.nullable:
                absent = field.name not in values
                self.note(f"missing field {place}" if absent else at(place, "is null"))
                return None
            fitted[field.name] = one
        return fitted

    def array(self, found: Any, data_type: T.ArrayType, path: str) -> Any:
        if not isinstance(found, list) or isinstance(found, Members):
            return self.wrong(found, data_type, path)
        place = join(path, "element")
        fitted = [self.value(one, data_type.elementType, place) for one in found]
        if not data_type.containsNull and None in fitted:
            return self.note(at(place, "is null"))
        return fitted

    def map(self, found: Any, data_type: T.MapType, path: str) -> Any:
        if not isinstance(found, Members):
            return self.wrong(found, data_type, path)
        place = join(path, "value")
        fitted: dict[str, Any] = {}
        for name, one in found:
            key = self.text(name, T.StringType(), join(path, "key"))
            if key is None:
                continue
            if key in fitted:
                self.note(at(path, f"duplicate key {shown(key)}"))
            fitted[key] = self.value(one, data_type.valueType, place)
        if not data_type.valueContainsNull and None in fitted.values():
            return self.note(at(place, "is null"))
        return list(fitted.items())

    def text(self, found: Any, data_type: T.DataType, path: str) -> Any:
        if isinstance(found, Number | bool):
            self.wrong(found, data_type, path)
            return str(found) if isinstance(found, Number) else str(found).lower()
        if not isinstance(found, str):
            return self.wrong(found, data_type, path)
        if not found.isascii():
            try:
                found.encode("utf-8")
            except UnicodeEncodeError:
                return self.note(at(path, "lone surrogate"))
        return found

    def boolean(self, found: Any, data_type: T.DataType, path: str) -> Any:
        return found if isinstance(found, bool) else self.wrong(found, data_type, path)

    def number(self, found: Any, data_type: T.DataType, path: str) -> Any:
        if not isinstance(found, Number):
            self.wrong(found, data_type, path)
            if not isinstance(found, str) or not numbers.is_number(found):
                return None
        if not isinstance(data_type, T.FloatType | T.DoubleType) and not numbers.is_number(found):
            return self.note(at(path, f"expected {_word(data_type)}, got {shown(found)}"))
        value, reason = _NUMBERS[type(data_type)](str(found), data_type)
        return self._noted(value, reason, path)

    def time(self, found: Any, data_type: T.DataType, path: str) -> Any:
        if not isinstance(found, str) or isinstance(found, Number):
            return self.wrong(found, data_type, path)
        if isinstance(data_type, T.DateType):
            value, reason = times.parse_date(found)
        else:
            zoned = isinstance(data_type, T.TimestampType)
            value, reason = times.parse_timestamp(found, zoned=zoned)
        return self._noted(value, reason, path)

    def binary(self, found: Any, data_type: T.DataType, path: str) -> Any:
        if not isinstance(found, str) or isinstance(found, Number):
            return self.wrong(found, data_type, path)
        value = decode_base64(found)
        return value if value is not None else self.note(at(path, f"{shown(found)} is not base64"))

    def _noted(self, value: Any, reason: str | None, path: str) -> Any:
        if reason is not None:
            self.note(at(path, reason))
        return value


def decode_base64(text: str) -> bytes | None:
    """The bytes, if this is the one way to write them: standard alphabet, padded, no stray bits."""
    try:
        value = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return value if base64.b64encode(value).decode() == text else None


def _word(data_type: T.DataType) -> str:
    """The type without its parameters."""
    if isinstance(data_type, T.StructType):
        return "an object"
    return re.split("[<(]", data_type.simpleString())[0]


def _kind_of(found: Any) -> str:
    if isinstance(found, Number):
        return "a number"
    if isinstance(found, str):
        return "text"
    if isinstance(found, bool):
        return "a boolean"
    return "an object" if isinstance(found, Members) else "an array"


_NUMBERS: dict[type[T.DataType], Callable[[str, Any], tuple[Any, str | None]]] = {
    T.ByteType: numbers.integer,
    T.ShortType: numbers.integer,
    T.IntegerType: numbers.integer,
    T.LongType: numbers.integer,
    T.FloatType: numbers.floating,
    T.DoubleType: numbers.floating,
    T.DecimalType: numbers.decimal,
}
_FIT: dict[type[T.DataType], Callable[[_Fitting, Any, Any, str], Any]] = {
    T.StructType: _Fitting.struct,
    T.ArrayType: _Fitting.array,
    T.MapType: _Fitting.map,
    T.StringType: _Fitting.text,
    T.BooleanType: _Fitting.boolean,
    T.BinaryType: _Fitting.binary,
    T.DateType: _Fitting.time,
    T.TimestampType: _Fitting.time,
    T.TimestampNTZType: _Fitting.time,
    **dict.fromkeys(_NUMBERS, _Fitting.number),
}
