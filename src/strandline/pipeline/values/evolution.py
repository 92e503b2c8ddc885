"""Decides how the type of a table grows when the type of its values changes.

Why:    a table outlives many schemas. A change that keeps every value exactly is made; any other is
        refused with its reason before a record is read.
How:    two types -> the narrowest type that holds every value of both exactly, and the changes that
        take the first one there:

            add      a field that the old type lacks; it may be null, for old rows have none
            widen    TINYINT -> SMALLINT -> INT -> BIGINT, FLOAT -> DOUBLE, up to INT -> DOUBLE,
                     integers -> DECIMAL, DECIMAL -> more digits, DATE -> TIMESTAMP_NTZ
            relax    NOT NULL -> may be null

        All of these are changes that Delta's type widening can make. BIGINT to DOUBLE, anything to
        STRING and the like are refused: values would change.
Source: decisions/0051; https://docs.delta.io/latest/delta-type-widening.html"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.values.ddl import DECIMAL_DIGITS_MAX

_INTEGERS: tuple[type[T.DataType], ...] = (T.ByteType, T.ShortType, T.IntegerType, T.LongType)
_DIGITS: dict[type[T.DataType], int] = {
    T.ByteType: 10,
    T.ShortType: 10,
    T.IntegerType: 10,
    T.LongType: 20,
}
"""Digits before the point that a DECIMAL needs so that Delta widens an integer column to it."""
REASONS_SHOWN_MAX = 5


@dataclass(frozen=True, slots=True)
class Change:
    """One step from the old type to the merged one."""

    kind: Literal["add", "widen", "relax"]
    path: str
    """`a.b`; `.element`, `.key` and `.value` lead into arrays and maps, as in Delta and Spark."""
    old: str | None
    """Spark's name of the old type; None for a new field."""
    new: str

    def __str__(self) -> str:
        if self.kind == "add":
            return f"add {self.path} {self.new}"
        if self.kind == "relax":
            return f"{self.path} may be null"
        return f"{self.path}: {self.old} becomes {self.new}"


@dataclass(frozen=True, slots=True)
class Evolution:
    """The merged type, and what to change in the old one; no change: the old type holds all."""

    type: T.StructType
    changes: tuple[Change, ...]


def merge(old: T.StructType, new: T.StructType, *, missing: bool = True) -> Evolution:
    """The type that holds the values of both, with the fields of `old` first.

    `missing` says whether `new` may lack fields of `old`. OperatorError lists what is unsafe.
    """
    merger = _Merger(missing=missing)
    merged = merger.struct(old, new, "")
    if merger.reasons:
        shown = "; ".join(merger.reasons[:REASONS_SHOWN_MAX])
        more = len(merger.reasons) - REASONS_SHOWN_MAX
        raise OperatorError(
            f"the types do not fit: {shown}" + (f"; and {more} more" if more > 0 else ""),
            merger.reasons,
        )
    return Evolution(merged, tuple(merger.changes))


def compatible(old: T.StructType, new: T.StructType, *, missing: bool = True) -> list[str]:
    """Why `merge` refuses; empty if it does not."""
    merger = _Merger(missing=missing)
    merger.struct(old, new, "")
    return merger.reasons


class _Merger:
    """Walks two types side by side and collects changes and reasons for refusal."""

    def __init__(self, *, missing: bool) -> None:
        self.changes: list[Change] = []
        self.reasons: list[str] = []
        self._missing = missing

    def struct(self, old: T.StructType, new: T.StructType, path: str) -> T.StructType:
        fields = []
        incoming = {field.name: field for field in new.fields}
        for field in old.fields:
            place = _join(path, field.name)
            twin = incoming.pop(field.name, None)
            if twin is None:
                fields.append(self._without(field, place))
            else:
                fields.append(self._field(field, twin, place))
        known = {field.name.lower(): field.name for field in old.fields}
        for name, field in incoming.items():
            place = _join(path, name)
            if name.lower() in known:
                self.reasons.append(
                    f"field {place} differs from {known[name.lower()]} only in case"
                )
            self.changes.append(Change("add", place, None, field.dataType.simpleString()))
            fields.append(T.StructField(name, relaxed(field.dataType), True, field.metadata))
        return T.StructType(fields)

    def _without(self, field: T.StructField, place: str) -> T.StructField:
        if not self._missing:
            self.reasons.append(f"field {place} is missing in the new type")
        elif not field.nullable:
            self.changes.append(Change("relax", place, *2 * (field.dataType.simpleString(),)))
            return T.StructField(field.name, field.dataType, True, field.metadata)
        return field

    def _field(self, old: T.StructField, new: T.StructField, place: str) -> T.StructField:
        merged = self._type(old.dataType, new.dataType, place)
        if new.nullable and not old.nullable:
            self.changes.append(Change("relax", place, *2 * (old.dataType.simpleString(),)))
        return T.StructField(old.name, merged, old.nullable or new.nullable, old.metadata)

    def _type(self, old: T.DataType, new: T.DataType, place: str) -> T.DataType:
        if isinstance(old, T.StructType) and isinstance(new, T.StructType):
            return self.struct(old, new, place)
        if isinstance(old, T.ArrayType) and isinstance(new, T.ArrayType):
            element = self._type(old.elementType, new.elementType, f"{place}.element")
            return T.ArrayType(element, old.containsNull or new.containsNull)
        if isinstance(old, T.MapType) and isinstance(new, T.MapType):
            key = self._type(old.keyType, new.keyType, f"{place}.key")
            value = self._type(old.valueType, new.valueType, f"{place}.value")
            return T.MapType(key, value, old.valueContainsNull or new.valueContainsNull)
        merged = wider(old, new)
        names = old.simpleString(), new.simpleString()
        if merged is None:
            self.reasons.append(f"field {place}: {names[0]} and {names[1]}: {_why(old, new)}")
            return old
        if merged != old:
            self.changes.append(Change("widen", place, names[0], merged.simpleString()))
        return merged


def wider(left: T.DataType, right: T.DataType) -> T.DataType | None:
    """The narrowest type that holds every value of two atomic types exactly; None: there is none.

    The order of the two does not matter.
    """
    if left == right:
        return left
    pair = {type(left), type(right)}
    if pair <= set(_INTEGERS):
        return max(left, right, key=lambda one: _INTEGERS.index(type(one)))
    if pair == {T.FloatType, T.DoubleType}:
        return T.DoubleType()
    if pair & {T.FloatType, T.DoubleType} and pair & set(_INTEGERS[:3]):
        return T.DoubleType()
    if pair == {T.DateType, T.TimestampNTZType}:
        return T.TimestampNTZType()
    if T.DecimalType in pair:
        return _wider_decimal(left, right)
    return None


def _wider_decimal(left: T.DataType, right: T.DataType) -> T.DataType | None:
    whole = scale = 0
    for one in (left, right):
        if isinstance(one, T.DecimalType):
            whole, scale = max(whole, one.precision - one.scale), max(scale, one.scale)
        elif type(one) in _DIGITS:
            whole = max(whole, _DIGITS[type(one)])
        else:
            return None
    return T.DecimalType(whole + scale, scale) if whole + scale <= DECIMAL_DIGITS_MAX else None


def _why(old: T.DataType, new: T.DataType) -> str:
    pair = {type(old), type(new)}
    if T.LongType in pair and pair & {T.FloatType, T.DoubleType}:
        return "integers above 2^53 are not exact as DOUBLE: use DECIMAL, or a new field"
    if T.DecimalType in pair and pair <= {T.DecimalType, *_INTEGERS}:
        return f"together they need more than {DECIMAL_DIGITS_MAX} digits"
    if T.DecimalType in pair and pair & {T.FloatType, T.DoubleType}:
        return "decimals are not exact as DOUBLE"
    if T.StringType in pair:
        return "values would become text: use a new field"
    return "no type holds both: use a new field"


def relaxed(data_type: T.DataType) -> T.DataType:
    """The same type with every field nullable, at all depths."""
    if isinstance(data_type, T.StructType):
        return T.StructType([_relaxed_field(field) for field in data_type.fields])
    if isinstance(data_type, T.ArrayType):
        return T.ArrayType(relaxed(data_type.elementType), True)
    if isinstance(data_type, T.MapType):
        return T.MapType(data_type.keyType, relaxed(data_type.valueType), True)
    return data_type


def _relaxed_field(field: T.StructField) -> T.StructField:
    return T.StructField(field.name, relaxed(field.dataType), True, field.metadata)


def paths(data_type: T.DataType, path: str = "") -> Iterator[tuple[str, T.DataType]]:
    """Every (path, type) within a type, outermost first."""
    yield path, data_type
    if isinstance(data_type, T.StructType):
        for field in data_type.fields:
            yield from paths(field.dataType, _join(path, field.name))
    elif isinstance(data_type, T.ArrayType):
        yield from paths(data_type.elementType, _join(path, "element"))
    elif isinstance(data_type, T.MapType):
        yield from paths(data_type.keyType, _join(path, "key"))
        yield from paths(data_type.valueType, _join(path, "value"))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
