"""For any type and any bytes: the fast way gives what the exact way gives, and neither changes a
value. An oracle that shares no code with either checks each value that has no problem."""

import base64
import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import types as T  # noqa: N812

from strandline.pipeline.values.arrow_types import to_arrow
from strandline.pipeline.values.json.decoder import json_decoder
from strandline.pipeline.values.json.exact import fit

ATOMS: dict[T.DataType, st.SearchStrategy[Any]] = {
    T.BooleanType(): st.booleans(),
    T.ByteType(): st.integers(-(2**7), 2**7 - 1),
    T.IntegerType(): st.integers(-(2**31), 2**31 - 1),
    T.LongType(): st.integers(-(2**63), 2**63 - 1),
    T.FloatType(): st.floats(width=32, allow_nan=False, allow_infinity=False),
    T.DoubleType(): st.floats(allow_nan=False, allow_infinity=False),
    T.DecimalType(18, 2): st.decimals(-(10**15), 10**15, places=2),
    T.DecimalType(38, 10): st.decimals(-(10**15), 10**15, places=10),
    T.StringType(): st.text(st.characters(codec="utf-8"), max_size=8),
    T.BinaryType(): st.binary(max_size=6),
    T.DateType(): st.dates(),
    T.TimestampType(): st.datetimes(timezones=st.just(UTC)),
    T.TimestampNTZType(): st.datetimes(),
}
NAMES = st.lists(
    st.sampled_from(["a", "b", "c d", 'q"', "é", ":", "e", "f0"]),
    min_size=1,
    max_size=4,
    unique=True,
)


def nested(inner: st.SearchStrategy[T.DataType]) -> st.SearchStrategy[T.DataType]:
    return st.one_of(
        inner.map(T.ArrayType),
        inner.map(lambda one: T.MapType(T.StringType(), one)),
        structs(inner),
    )


def structs(inner: st.SearchStrategy[T.DataType]) -> st.SearchStrategy[T.StructType]:
    field = st.tuples(inner, st.booleans())
    return NAMES.flatmap(
        lambda names: st.tuples(*(field for _ in names)).map(
            lambda kinds: T.StructType(
                [T.StructField(n, k, null) for n, (k, null) in zip(names, kinds, strict=True)]
            )
        )
    )


TYPES = structs(st.recursive(st.sampled_from(list(ATOMS)), nested, max_leaves=4))


def values_of(kind: T.DataType) -> st.SearchStrategy[Any]:
    """Values as `to_pylist` gives them."""
    if isinstance(kind, T.StructType):
        return st.fixed_dictionaries(
            {
                field.name: st.none() | values_of(field.dataType)
                if field.nullable
                else values_of(field.dataType)
                for field in kind.fields
            }
        )
    if isinstance(kind, T.ArrayType):
        return st.lists(st.none() | values_of(kind.elementType), max_size=3)
    if isinstance(kind, T.MapType):
        keys = st.text(st.characters(codec="utf-8"), max_size=3)
        return st.dictionaries(keys, st.none() | values_of(kind.valueType), max_size=3).map(
            lambda entries: list(entries.items())
        )
    return ATOMS[kind]


def encode(value: Any, kind: T.DataType) -> str:
    """A value as JSON, each number with all its digits."""
    if value is None:
        return "null"
    if isinstance(kind, T.StructType):
        parts = (f"{json.dumps(f.name)}:{encode(value[f.name], f.dataType)}" for f in kind.fields)
        return "{" + ",".join(parts) + "}"
    if isinstance(kind, T.ArrayType):
        return "[" + ",".join(encode(one, kind.elementType) for one in value) + "]"
    if isinstance(kind, T.MapType):
        return (
            "{" + ",".join(f"{json.dumps(k)}:{encode(v, kind.valueType)}" for k, v in value) + "}"
        )
    if isinstance(value, bytes):
        return f'"{base64.b64encode(value).decode()}"'
    if isinstance(value, date | datetime):
        return f'"{value.isoformat()}"'
    return str(value) if isinstance(value, Decimal) else json.dumps(value)


class ChangedValueError(AssertionError):
    """A value without a problem is not the record's."""


def check(document: Any, value: Any, kind: T.DataType) -> None:
    """`document` is the standard library's reading, numbers as Decimal or int."""
    if document is None or value is None:
        same = document is None and value is None
    elif isinstance(kind, T.StructType):
        assert isinstance(document, dict)
        extra = {name for name, one in document.items() if one is not None} - set(kind.names)
        same = not extra
        for field in kind.fields:
            check(document.get(field.name), value[field.name], field.dataType)
    elif isinstance(kind, T.ArrayType):
        same = isinstance(document, list) and len(document) == len(value)
        for one, other in zip(document, value, strict=True):
            check(one, other, kind.elementType)
    elif isinstance(kind, T.MapType):
        same = isinstance(document, dict) and list(document) == [key for key, _ in value]
        for one, (_, other) in zip(document.values(), value, strict=True):
            check(one, other, kind.valueType)
    else:
        same = is_same(document, value, kind)
    if not same:
        raise ChangedValueError((document, value, kind.simpleString()))


def is_same(document: Any, value: Any, kind: T.DataType) -> bool:
    if isinstance(kind, T.FloatType | T.DoubleType):
        assert not isinstance(document, bool | str)
        spellings = {Decimal(f"{value:.{digits}e}") for digits in range(17)}
        return Decimal(document) in spellings | {Decimal(value), Decimal(repr(value))}
    if isinstance(kind, T.DecimalType):
        return not isinstance(document, bool | str) and Decimal(document) == value
    if isinstance(kind, T.BinaryType):
        return bool(base64.b64decode(document, validate=True) == value)
    if isinstance(kind, T.DateType):
        return bool(date.fromisoformat(document) == value)
    if isinstance(kind, T.TimestampType | T.TimestampNTZType):
        return bool(datetime.fromisoformat(document) == value)
    return type(document) is type(value) and document == value


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ChangedValueError(pairs)
    return dict(pairs)


def refuse(text: str) -> None:
    raise ChangedValueError(text)


def agree(kind: T.StructType, rows: list[bytes]) -> list[str | None]:
    """Both ways agree in both modes, and values without a problem are the record's."""
    for mode in ("strict", "lenient"):
        decoded = json_decoder(kind, mode).decode(pa.array(rows, pa.binary()))  # type: ignore[arg-type]
        decoded.values.validate(full=True)
        exact = [fit(row, kind, mode) for row in rows]  # type: ignore[arg-type]
        assert decoded.problems.to_pylist() == [problem for _, problem in exact]
        expected = pa.array([value for value, _ in exact], to_arrow(kind))
        assert repr(decoded.values.to_pylist()) == repr(expected.to_pylist())
        for row, value, problem in zip(
            rows, decoded.values.to_pylist(), decoded.problems.to_pylist(), strict=True
        ):
            if problem is None:
                document = json.loads(
                    row.decode(),
                    object_pairs_hook=unique,
                    parse_float=Decimal,
                    parse_constant=refuse,
                )
                check(document, value, kind)
    return [problem for _, problem in exact]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_a_value_that_is_encoded_and_decoded_is_the_same(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    values = data.draw(st.lists(values_of(kind), min_size=1, max_size=4))
    rows = [encode(value, kind).encode() for value in values]
    decoded = json_decoder(kind).decode(pa.array(rows, pa.binary()))
    assert decoded.problems.to_pylist() == [None] * len(rows)
    expected = pa.array(values, to_arrow(kind))
    assert repr(decoded.values.to_pylist()) == repr(expected.to_pylist())
    agree(kind, rows)


PIECES = st.sampled_from(
    [
        *(b'"a":1', b'"a":', b",", b"null", b"1e3", b"3.0", b"0.10", b"1e-400", b" ", b'"', b"{"),
        *(b"9" * 17, b"9" * 40, b"-", b"NaN", b"true", b"[]", b"\\ud800", b"\xff", b"Z", b"}"),
        *(b":", b'" :', b"0", b"-0", b"1", b"E5", b"\\u0061", b"+01:00", b"000Z"),
    ]
)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_no_bytes_make_the_ways_disagree_or_change_a_value(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    rows = []
    for value in data.draw(st.lists(values_of(kind), min_size=1, max_size=3)):
        row = encode(value, kind).encode()
        for _ in range(data.draw(st.integers(0, 2))):
            start = data.draw(st.integers(0, len(row)))
            end = data.draw(st.integers(start, min(len(row), start + 6)))
            row = row[:start] + data.draw(PIECES) + row[end:]
        rows.append(row)
    agree(kind, rows)


NUMBERS = st.from_regex(
    r"-?(0|[1-9][0-9]{0,19})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([kind for kind in ATOMS if isinstance(kind, T.NumericType)]), NUMBERS)
def test_any_number_is_exact_or_a_problem(kind: T.DataType, text: str) -> None:
    agree(T.StructType([T.StructField("e", kind)]), [b'{"e":%s}' % text.encode()])


MOMENTS = st.from_regex(
    r"(000[01]|19[67][0-9]|2[0-9]{3}|9999)-(0[0-9]|1[0-3])-[0-3][0-9]"
    r"([T ][0-2][0-9](:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,9})?)?)?)?"
    r"(Z|z| Z|[+-][0-9]{2}(:?[0-9]{2})?|[+-][0-9])?",
    fullmatch=True,
)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([T.DateType(), T.TimestampType(), T.TimestampNTZType()]), MOMENTS)
def test_any_date_or_timestamp_is_exact_or_a_problem(kind: T.DataType, text: str) -> None:
    agree(T.StructType([T.StructField("e", kind)]), [b'{"e":"%s"}' % text.encode()])
