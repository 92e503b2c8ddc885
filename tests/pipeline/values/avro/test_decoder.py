"""Avro values by the writer's schema; what has no exact place in the reader's is a problem."""

import io
import json
import pickle
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.values.registry_server import Registry, serve_registry

from strandline.base.errors import OperatorError
from strandline.pipeline.values.avro.decoder import avro_decoder, read_avro_schema
from strandline.pipeline.values.decoding import Decoder
from strandline.pipeline.values.registry.client import SchemaRegistry


def record(*fields: Any, name: str = "R") -> str:
    listed = [
        {"name": one[0], "type": one[1], **(one[2] if len(one) > 2 else {})} for one in fields
    ]
    return json.dumps({"type": "record", "name": name, "fields": listed})


def write(schema: str, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), value)
    return out.getvalue()


def problems(decoder: Decoder, *rows: bytes | None) -> list[str | None]:
    decoded = decoder.decode(pa.array(rows, pa.binary()))
    decoded.values.validate(full=True)
    for value, problem, row in zip(decoded.values, decoded.problems, rows, strict=True):
        assert value.is_valid == (row is not None and not problem.is_valid)
    found: list[str | None] = decoded.problems.to_pylist()
    return found


EVERYTHING = record(
    ("i", "int"),
    ("l", ["null", "long"]),
    ("f", "float"),
    ("d", ["int", "double"]),
    ("s", "string"),
    ("b", "boolean"),
    ("y", "bytes"),
    ("x", {"type": "fixed", "name": "X", "size": 2}),
    ("e", {"type": "enum", "name": "E", "symbols": ["P", "Q"]}),
    ("p", {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}),
    ("t", {"type": "long", "logicalType": "timestamp-millis"}),
    ("n", {"type": "long", "logicalType": "local-timestamp-micros"}),
    ("a", {"type": "array", "items": ["null", "string"]}),
    ("m", {"type": "map", "values": {"type": "record", "name": "V", "fields": [
        {"name": "z", "type": {"type": "int", "logicalType": "date"}}]}}),
)  # fmt: skip
VALUES = st.fixed_dictionaries(
    {
        "i": st.integers(-(2**31), 2**31 - 1),
        "l": st.none() | st.integers(-(2**63), 2**63 - 1),
        "f": st.floats(width=32, allow_nan=False),
        "d": st.floats(allow_nan=False).filter(lambda one: not one.is_integer()),
        "s": st.text(st.characters(codec="utf-8"), max_size=5),
        "b": st.booleans(),
        "y": st.binary(max_size=5),
        "x": st.binary(min_size=2, max_size=2),
        "e": st.sampled_from("PQ"),
        "p": st.decimals(-(10**15), 10**15, places=2),
        "t": st.datetimes(timezones=st.just(UTC)).map(
            lambda one: one.replace(microsecond=one.microsecond // 1000 * 1000)
        ),
        "n": st.datetimes(),
        "a": st.lists(st.none() | st.text(st.characters(codec="utf-8"), max_size=3), max_size=3),
        "m": st.dictionaries(
            st.text(st.characters(codec="utf-8"), max_size=3),
            st.fixed_dictionaries({"z": st.dates()}),
            max_size=3,
        ),
    }
)


def test_types_are_those_that_spark_has_for_avro() -> None:
    assert avro_decoder(EVERYTHING).type.simpleString() == (  # type: ignore[attr-defined]
        "struct<i:int,l:bigint,f:float,d:double,s:string,b:boolean,y:binary,x:binary,e:string,"
        "p:decimal(18,2),t:timestamp,n:timestamp_ntz,a:array<string>,m:map<string,struct<z:date>>>"
    )


@settings(max_examples=30, deadline=None)
@given(st.lists(VALUES, max_size=3))
def test_what_fastavro_writes_is_read_exactly(values: list[dict[str, Any]]) -> None:
    rows = [write(EVERYTHING, value) for value in values]
    decoded = avro_decoder(EVERYTHING).decode(pa.array(rows, pa.binary()))
    assert decoded.problems.null_count == len(rows)
    expected = [value | {"m": list(value["m"].items())} for value in values]
    assert decoded.values.to_pylist() == expected


ROW = write(EVERYTHING, {
    "i": 1, "l": 2, "f": 0.5, "d": 0.1, "s": "é", "b": True, "y": b"\x01", "x": b"ab", "e": "Q",
    "p": Decimal("1.25"), "t": datetime(2020, 1, 1, tzinfo=UTC), "n": datetime(2020, 1, 1),
    "a": ["x", None], "m": {"k": {"z": date(2020, 1, 1)}},
})  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_damaged_bytes_never_raise_and_never_give_what_a_writer_cannot_write(
    data: st.DataObject,
) -> None:
    start = data.draw(st.integers(0, len(ROW)))
    row = ROW[:start] + data.draw(st.binary(max_size=12)) + ROW[data.draw(st.integers(0, 90)) :]
    decoded = avro_decoder(EVERYTHING).decode(pa.array([row], pa.binary()))
    decoded.values.validate(full=True)
    if not decoded.problems[0].is_valid:
        found = decoded.values.to_pylist()[0]
        again = write(EVERYTHING, found | {"m": dict(found["m"])})
        assert avro_decoder(EVERYTHING).decode(pa.array([again])).values.equals(decoded.values)


def test_every_prefix_of_a_value_is_a_problem() -> None:
    found = problems(avro_decoder(EVERYTHING), *(ROW[:end] for end in range(len(ROW))), ROW)
    assert all(found[:-1])
    assert found[-1] is None


FAULTS: list[tuple[Any, bytes, str]] = [
    ("boolean", b"\x02", "field a: a boolean of 2"),
    ("int", b"\x80\x80\x80\x80\x10", "field a: an int of more than 32 bits"),
    ("long", b"\xff" * 10 + b"\x01", "field a: a number of more than 64 bits"),
    ("string", b"\x04a", "field a: ends too early"),
    ("string", b"\x05abcdef", "field a: ends too early"),
    ("string", b"\x04\xff\xff", "field a: not UTF-8"),
    (["null", "int"], b"\x09", "field a: branch -5 of a union of 2"),
    (
        {"type": "enum", "name": "E", "symbols": ["P"]},
        b"\x01",
        "field a: symbol -1 of an enum of 1",
    ),
    ({"type": "array", "items": "int"}, b"\xfe\xff\xff\xff\x1f\x02", "field a: ends too early"),
    ({"type": "map", "values": "int"}, b"\x04\x02k\x02\x02k\x04\x00", "field a: duplicate key k"),
    (
        {"type": "int", "logicalType": "date"},
        b"\xfe\xff\xff\xff\x0f",
        "field a: 2147483647 is out of range for date",
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 2, "scale": 1},
        b"\x02\x64",
        "field a: out of range for decimal(2,1)",
    ),
    ("int", b"\x02\x00", "trailing bytes"),
    ("int", b"", "field a: ends too early"),
]


@pytest.mark.parametrize(("kind", "data", "reason"), FAULTS, ids=repr)
def test_a_fault_of_the_bytes_names_its_field(kind: Any, data: bytes, reason: str) -> None:
    assert problems(avro_decoder(record(("a", kind))), data, None) == [reason, None]


def test_lenient_keeps_a_value_before_trailing_bytes() -> None:
    decoded = avro_decoder(record(("a", "int")), mode="lenient").decode(pa.array([b"\x02\x00"]))
    assert decoded.values.to_pylist() == [{"a": 1}]
    assert decoded.problems.to_pylist() == ["trailing bytes"]


REFUSED: list[tuple[str, str]] = [
    ("{", "--schema: unknown type {"),
    ('"int"', "--schema: expected a record, not int"),
    (record(("a", "nothing")), "--schema: field a: unknown type nothing"),
    (
        record(("a", ["string", "int"])),
        "--schema: field a: a union of string and int has no column: use one type, or null",
    ),
    (
        record(("a", ["null", "R"])),
        "--schema: field a: R contains itself: no column is that deep",
    ),
    (record(("a", "null")), "--schema: field a: null alone has no column"),
    (record(("a", "int"), ("A", "int")), "--schema: field A differs from a only in case"),
    (record(), "--schema: the schema: a record without fields"),
]


@pytest.mark.parametrize(("schema", "reason"), REFUSED)
def test_a_schema_without_columns_is_refused(schema: str, reason: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        avro_decoder(schema)
    assert str(refusal.value) == reason


def framed(number: int, data: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + data


def evolving(server: Registry, reader: str, *writers: str) -> tuple[Decoder, list[int]]:
    ids = [server.register("old", writer) for writer in writers]
    server.register("t-value", reader)
    registry = SchemaRegistry(server.url, retry_delays_s=())
    return avro_decoder(registry=registry, subject="t-value"), ids


def test_values_of_many_versions_are_resolved_to_the_readers() -> None:
    reader = record(
        ("n", "long"),
        ("s", "string", {"aliases": ["text"]}),
        ("q", ["null", "int"], {"default": None}),
    )
    first, second = record(("text", "string"), ("n", "int")), record(("n", "long"), ("s", "string"))
    with serve_registry() as server:
        decoder, (one, two) = evolving(server, reader, first, second)
        decoder = pickle.loads(pickle.dumps(decoder))
        rows = [
            framed(one, write(first, {"text": "a", "n": 1})),
            framed(two, write(second, {"text": "b", "n": 2**40, "s": "b"})),
            framed(3, write(reader, {"n": 3, "s": "c", "q": 4})),
        ] * 50
        decoded = decoder.decode(pa.array(rows))
        assert decoded.problems.null_count == 150
        assert decoded.values.to_pylist()[:3] == [
            {"n": 1, "s": "a", "q": None},
            {"n": 2**40, "s": "b", "q": None},
            {"n": 3, "s": "c", "q": 4},
        ]
        asked = [path for path in server.requests if path.startswith("/schemas")]
        assert sorted(asked) == ["/schemas/ids/1", "/schemas/ids/2", "/schemas/ids/3"]


def test_a_field_that_the_reader_lacks_is_a_problem_unless_it_is_null() -> None:
    reader, writer = record(("a", "int")), record(("a", "int"), ("new", ["null", "string"]))
    with serve_registry() as server:
        decoder, (number,) = evolving(server, reader, writer)
        rows = [write(writer, {"a": 1, "new": new}) for new in (None, "x", None)]
        found = problems(decoder, *(framed(number, row) for row in rows))
        assert found == [None, "unknown field new", None]


UNRESOLVED: list[tuple[Any, Any, str]] = [
    ("long", "double", "field a: bigint into double"),
    ("long", "int", "field a: bigint into int"),
    ("string", "int", "field a: string into int"),
    ({"type": "array", "items": "int"}, "int", "field a: array into int"),
    (
        {"type": "long", "logicalType": "timestamp-millis"},
        "long",
        "field a: timestamp into bigint",
    ),
    (
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 3},
        {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        "field a: decimal(9,3) into decimal(9,2)",
    ),
]


@pytest.mark.parametrize(("writer", "reader", "reason"), UNRESOLVED)
def test_a_writers_schema_that_is_not_exact_here_makes_problems(
    writer: Any, reader: Any, reason: str
) -> None:
    with serve_registry() as server:
        decoder, (number,) = evolving(server, record(("a", reader)), record(("a", writer)))
        found = problems(decoder, framed(number, b"\x02"))
        assert found == [f"schema {number} does not resolve: {reason}"]


def test_missing_fields_without_a_default_do_not_resolve() -> None:
    with serve_registry() as server:
        decoder, (one,) = evolving(server, record(("a", "int"), ("b", "int")), record(("a", "int")))
        reason = "field b: the writer's schema lacks it, and it has no default"
        assert problems(decoder, framed(one, b"\x02")) == [f"schema 1 does not resolve: {reason}"]


def test_defaults_have_the_readers_types() -> None:
    reader = record(
        ("a", "int"),
        ("d", "double", {"default": 1}),
        ("m", {"type": "map", "values": "int"}, {"default": {"k": 1}}),
        ("y", "bytes", {"default": "\u00ff"}),
        ("t", {"type": "long", "logicalType": "timestamp-millis"}, {"default": 5}),
    )
    with serve_registry() as server:
        decoder, (one,) = evolving(server, reader, record(("a", "int")))
        values = decoder.decode(pa.array([framed(one, b"\x02")])).values.to_pylist()
        moment = datetime(1970, 1, 1, 0, 0, 0, 5000, UTC)
        assert values == [{"a": 1, "d": 1.0, "m": [("k", 1)], "y": b"\xff", "t": moment}]


def test_a_null_for_a_required_field_is_a_problem() -> None:
    with serve_registry() as server:
        decoder, (one,) = evolving(server, record(("a", "int")), record(("a", ["null", "int"])))
        assert problems(decoder, framed(one, b"\x00"), framed(one, b"\x02\x02")) == [
            "field a: is null",
            None,
        ]


def test_values_without_a_known_schema_are_problems_and_other_failures_stop_the_job() -> None:
    with serve_registry() as server:
        decoder, (one,) = evolving(server, record(("a", "int")), record(("a", "int")))
        json_id = server.register("j", "{}", "JSON")
        assert problems(
            decoder, framed(99, b""), framed(99, b""), b"{}", b"\x00\x00", b"", framed(json_id, b"")
        ) == [
            "schema 99 is not in the registry",
            "schema 99 is not in the registry",
            "no schema id in front of the value",
            "no schema id in front of the value",
            "empty value",
            "schema 3 is JSON, not AVRO",
        ]
        assert server.requests.count("/schemas/ids/99") == 1
        server.failures = 1
        with pytest.raises(OperatorError, match=r"^registry .* answered 503"):
            decoder.decode(pa.array([framed(one, b"\x02")]))


def test_schemas_may_refer_to_others() -> None:
    with serve_registry() as server:
        server.register("x.Point", record(("x", "int"), name="x.Point"))
        text = record(("p", "x.Point"), ("q", ["null", "x.Point"]))
        number = server.register("t-value", text, references=("x.Point",))
        registry = SchemaRegistry(server.url)
        decoder = avro_decoder(registry=registry, subject="t-value")
        assert decoder.type.simpleString() == "struct<p:struct<x:int>,q:struct<x:int>>"
        assert problems(decoder, framed(number, b"\x02\x00")) == [None]


def test_single_objects_name_their_schema_by_its_fingerprint() -> None:
    old, new = record(("a", "int")), record(("a", "long"))
    decoder = avro_decoder(new, framing="single-object", writers=(old,))
    # The specification's value for "int": how a fingerprint is computed is known from outside.
    assert fastavro.schema.fingerprint('"int"', "CRC-64-AVRO") == "8f5c393f1ad57572"
    marks = [
        b"\xc3\x01" + bytes.fromhex(fastavro.schema.fingerprint(
            fastavro.schema.to_parsing_canonical_form(json.loads(one)), "CRC-64-AVRO"))
        for one in (old, new)
    ]  # fmt: skip
    rows = [marks[0] + b"\x02", marks[1] + b"\x04", b"\xc3\x01" + b"\x00" * 8, b"\x02"]
    assert problems(decoder, *rows) == [
        None,
        None,
        "no schema has the fingerprint 0000000000000000",
        "no schema fingerprint in front of the value",
    ]


def test_what_is_missing_is_told_before_a_record_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.avsc"
    path.write_text(record(("a", ["int", "string"])))
    with pytest.raises(OperatorError, match=r"^--schema .*r\.avsc: field a: a union of "):
        read_avro_schema(path)
    with pytest.raises(OperatorError, match=r"cannot read"):
        read_avro_schema(tmp_path / "no")
    with pytest.raises(OperatorError, match=r"^Avro needs --schema FILE, or --registry URL"):
        avro_decoder()
    with pytest.raises(OperatorError, match=r"^values with schema ids need --registry URL"):
        avro_decoder(record(("a", "int")), framing="confluent")
