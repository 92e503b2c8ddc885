"""Decodes one JSON record into a typed struct with msgspec, which refuses most of what is unfit.

Why:    400,000 records a second and core leave 2.5 us for a record, Arrow included.
How:    a msgspec type for the Spark type. It refuses unknown fields, wrong types, integers that are
        out of range or not written as integers, trailing bytes, bad UTF-8 and lone surrogates. It
        does not see duplicates and lost digits of a DOUBLE (`values/json/suspects.py`). Dates,
        timestamps, decimals and base64 are the column's to read (`values/json/columns.py`).
Owns:   classes made at run time, one a struct: a decoder is pickled without them."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Any

import msgspec
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.values.evolution import paths
from strandline.pipeline.values.numbers import INTEGER_BITS

_UNABLE = re.compile(r'["\\\x00-\x1f]')
_TEXT = (T.StringType, T.BinaryType, T.DateType, T.TimestampType, T.TimestampNTZType)


def typed_decode(data_type: T.StructType) -> Callable[[bytes], Any]:
    """bytes -> a struct with the attributes f0, f1, ...; raises for most of what does not fit.

    For names that msgspec cannot have, it raises for every record.
    """
    names = (name for _, kind in paths(data_type) for name in getattr(kind, "names", ()))
    if any(_UNABLE.search(name) for name in names):
        return _unable
    # Numbers of DECIMAL fields are untyped for msgspec: it would take texts for a Decimal, too.
    return msgspec.json.Decoder(_typed(data_type), float_hook=Decimal).decode


def _unable(_: bytes) -> Any:
    raise ValueError


def attribute(index: int) -> str:
    """The attribute that has field number `index` of a struct."""
    return f"f{index}"


def _typed(data_type: T.DataType) -> Any:
    if isinstance(data_type, T.StructType):
        return _struct(data_type)
    if isinstance(data_type, T.ArrayType):
        return list[_or_none(data_type.elementType, data_type.containsNull)]  # type: ignore[misc]
    if isinstance(data_type, T.MapType):
        value = _or_none(data_type.valueType, data_type.valueContainsNull)
        return dict[str, value]  # type: ignore[valid-type]
    if isinstance(data_type, _TEXT):
        return str
    if isinstance(data_type, T.BooleanType):
        return bool
    if isinstance(data_type, T.FloatType | T.DoubleType):
        return float
    if isinstance(data_type, T.DecimalType):
        return Any
    half = 1 << INTEGER_BITS[type(data_type)] - 1
    return Annotated[int, msgspec.Meta(ge=-half, le=half - 1)]


def _or_none(data_type: T.DataType, nullable: bool) -> Any:  # noqa: FBT001
    typed = _typed(data_type)
    return typed if not nullable or typed is Any else typed | None


def _struct(data_type: T.StructType) -> Any:
    required: list[Any] = []
    optional: list[Any] = []
    for index, field in enumerate(data_type.fields):
        typed = _or_none(field.dataType, field.nullable)
        if field.nullable:
            optional.append((attribute(index), typed, None))
        else:
            required.append((attribute(index), typed))
    names = {attribute(index): field.name for index, field in enumerate(data_type.fields)}
    return msgspec.defstruct(
        "Record", [*required, *optional], rename=names, forbid_unknown_fields=True, gc=False
    )
