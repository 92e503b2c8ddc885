"""Protobuf values by a descriptor: Google's own classes write, and agree on every value."""

import base64
import pickle
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pipeline.values.protobuf.schemas import (
    descriptor_set,
    field,
    file,
    map_entry,
    message,
    message_class,
)
from tests.pipeline.values.registry_server import serve_registry

from strandline.base.errors import OperatorError
from strandline.pipeline.values.decoding import Decoder, Mode
from strandline.pipeline.values.protobuf.decoder import protobuf_decoder
from strandline.pipeline.values.protobuf.descriptors import read_descriptor_set
from strandline.pipeline.values.registry.client import SchemaRegistry

ENUM = descriptor_pb2.EnumDescriptorProto(
    name="Colour",
    value=[
        descriptor_pb2.EnumValueDescriptorProto(name=name, number=number)
        for name, number in (("RED", 0), ("GREEN", 1), ("BLACK", -1))
    ],
)
NUMBERS = ("int32", "sint32", "sfixed32", "int64", "sint64", "sfixed64", "uint32", "fixed32",
           "uint64", "fixed64")  # fmt: skip
EVERYTHING = file(
    message("Point", field(1, "x", "int32"), field(2, "name", "string")),
    message(
        "All",
        *(field(number, kind, kind) for number, kind in enumerate(NUMBERS, 1)),
        *(
            field(number, f"{kind}s", kind, repeated=True)
            for number, kind in enumerate(NUMBERS, 11)
        ),
        field(21, "b", "bool"),
        field(22, "f", "float"),
        field(23, "d", "double"),
        field(24, "s", "string"),
        field(25, "y", "bytes"),
        field(26, "e", ".t.Colour", enum=True),
        field(27, "p", ".t.Point"),
        field(28, "ps", ".t.Point", repeated=True),
        field(29, "t", ".google.protobuf.Timestamp"),
        field(30, "m", ".t.All.MEntry", repeated=True),
        field(31, "left", "int32", oneof_index=0),
        field(32, "right", "string", oneof_index=0),
        field(33, "ds", "double", repeated=True, packed=False),
        field(34, "es", ".t.Colour", enum=True, repeated=True),
        nested=[map_entry("MEntry", field(1, "key", "int32"), field(2, "value", ".t.Point"))],
        oneofs=["side"],
    ),
    enums=[ENUM],
)
ALL = message_class("t.All", EVERYTHING)
SET = descriptor_set(EVERYTHING)

SIGNED = {32: st.integers(-(2**31), 2**31 - 1), 64: st.integers(-(2**63), 2**63 - 1)}
TEXT = st.text(st.characters(codec="utf-8"), max_size=4)
POINTS = st.fixed_dictionaries({}, optional={"x": SIGNED[32], "name": TEXT})


def numbers_of(kind: str) -> st.SearchStrategy[int]:
    bits = int(kind[-2:])
    if kind.startswith(("u", "fixed")):
        return st.integers(0, 2**bits - 1)
    return SIGNED[bits]


VALUES = st.fixed_dictionaries(
    {},
    optional={
        **{kind: numbers_of(kind) for kind in NUMBERS},
        **{f"{kind}s": st.lists(numbers_of(kind), max_size=3) for kind in NUMBERS},
        "b": st.booleans(),
        "f": st.floats(width=32, allow_nan=False),
        "d": st.floats(allow_nan=False),
        "s": TEXT,
        "y": st.binary(max_size=4),
        "e": st.sampled_from([0, 1, -1]),
        "p": POINTS,
        "ps": st.lists(POINTS, max_size=2),
        "m": st.dictionaries(SIGNED[32], POINTS, max_size=2),
        "right": TEXT,
        "ds": st.lists(st.floats(allow_nan=False), max_size=3),
        "es": st.lists(st.sampled_from([0, 1, -1]), max_size=3),
    },
)


def build(value: dict[str, Any]) -> Any:
    made = ALL(**{name: one for name, one in value.items() if name != "m"})
    for key, point in value.get("m", {}).items():
        made.m[key].MergeFrom(
            ALL.DESCRIPTOR.fields_by_name["p"].message_type._concrete_class(**point)
        )
    return made


def expected(made: Any) -> dict[str, Any]:
    """What Google's class holds, as `to_pylist` shows it."""

    def point(one: Any) -> dict[str, Any]:
        return {"x": one.x, "name": one.name}

    names = {0: "RED", 1: "GREEN", -1: "BLACK"}
    found = {name: getattr(made, name) for name in (*NUMBERS, *"bfdsy")}
    found |= {f"{kind}s": list(getattr(made, f"{kind}s")) for kind in NUMBERS}
    return found | {
        "e": names[made.e],
        "es": [names[one] for one in made.es],
        "p": point(made.p) if made.HasField("p") else None,
        "ps": [point(one) for one in made.ps],
        "t": made.t.ToDatetime(UTC) if made.HasField("t") else None,
        "m": sorted((key, point(one)) for key, one in made.m.items()),
        "left": made.left if made.HasField("left") else None,
        "right": made.right if made.HasField("right") else None,
        "ds": list(made.ds),
    }


def decode(decoder: Decoder, *rows: bytes | None) -> list[tuple[Any, str | None]]:
    decoded = decoder.decode(pa.array(rows, pa.binary()))
    decoded.values.validate(full=True)
    return list(zip(decoded.values.to_pylist(), decoded.problems.to_pylist(), strict=True))


@cache
def everything(mode: Mode = "strict") -> Decoder:
    return protobuf_decoder(SET, message="t.All", mode=mode)


def test_types_hold_every_number() -> None:
    assert everything().type.simpleString() == (
        "struct<int32:int,sint32:int,sfixed32:int,int64:bigint,sint64:bigint,sfixed64:bigint,"
        "uint32:bigint,fixed32:bigint,uint64:decimal(20,0),fixed64:decimal(20,0),"
        "int32s:array<int>,sint32s:array<int>,sfixed32s:array<int>,int64s:array<bigint>,"
        "sint64s:array<bigint>,sfixed64s:array<bigint>,uint32s:array<bigint>,"
        "fixed32s:array<bigint>,uint64s:array<decimal(20,0)>,fixed64s:array<decimal(20,0)>,"
        "b:boolean,f:float,d:double,s:string,y:binary,e:string,p:struct<x:int,name:string>,"
        "ps:array<struct<x:int,name:string>>,t:timestamp,m:map<int,struct<x:int,name:string>>,"
        "left:int,right:string,ds:array<double>,es:array<string>>"
    )


@settings(max_examples=20, deadline=None)
@given(st.lists(VALUES, max_size=2))
def test_what_google_writes_is_read_exactly(values: list[dict[str, Any]]) -> None:
    made = [build(value) for value in values]
    for one, (value, problem) in zip(
        made, decode(everything(), *(one.SerializeToString() for one in made)), strict=True
    ):
        assert problem is None
        value["m"].sort()
        assert value == expected(one)


FULL = build({"int32": -5, "uint64": 2**64 - 1, "s": "é", "ps": [{"x": 1}, {}], "e": -1,
              "m": {1: {"x": 2}}, "ds": [0.5], "sint64s": [-3, 4], "right": "r"})  # fmt: skip
FULL.t.FromDatetime(datetime(2020, 1, 1, 0, 0, 0, 123456))


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_damaged_bytes_never_raise_and_agree_with_google(data: st.DataObject) -> None:
    row = FULL.SerializeToString()
    start = data.draw(st.integers(0, len(row)))
    row = (
        row[:start] + data.draw(st.binary(max_size=8)) + row[data.draw(st.integers(0, len(row))) :]
    )
    ((value, problem),) = decode(everything(), row)
    if problem is None:
        value["m"].sort()
        assert value == expected(ALL.FromString(row))


def test_a_timestamp_is_exact_to_the_microsecond() -> None:
    ((value, problem),) = decode(everything(), FULL.SerializeToString())
    assert problem is None
    assert value["t"] == datetime(2020, 1, 1, 0, 0, 0, 123456, UTC)
    found = decode(
        everything(),
        b"\xea\x01\x02\x10\x01",
        b"\xea\x01\x0b\x08" + b"\xff" * 9 + b"\x01",
        b"\xea\x01\x00",
    )
    assert [problem for _, problem in found] == [
        "field t: 1 ns has more than 6 decimals of a second",
        None,
        None,
    ]
    assert found[1][0]["t"] == datetime(1969, 12, 31, 23, 59, 59, tzinfo=UTC)


FAULTS: list[tuple[bytes, str]] = [
    (b"\x08\x01\x08\x02", "duplicate field int32"),
    (b"\xc0\x3e\x01", "unknown field 1000"),
    (b"\x08" + b"\xff\xff\xff\xff\x0f", "field int32: 4294967295 is out of range for int32"),
    (b"\x38" + b"\xff\xff\xff\xff\x1f", "field uint32: 8589934591 is out of range for uint32"),
    (b"\x20" + b"\xff" * 10 + b"\x01", "field int64: a number of more than 64 bits"),
    (b"\xa8\x01\x02", "field b: a boolean of 2"),
    (b"\xd0\x01\x07", "field e: 7 is no value of its enum"),
    (b"\xc2\x01\x02\xff\xff", "field s: not UTF-8"),
    (b"\xc2\x01\x05ab", "field s: ends too early"),
    (b"\xda\x01\x04\x08\x01\x08\x02", "duplicate field p.x"),
    (b"\xda\x01\x02\x18\x01", "unknown field p.3"),
    (b"\xda\x01\x02\x08", "field p: ends too early"),
    (b"\xf8\x01\x01\x82\x02\x01a", "field right: expected one member of its oneof, got two"),
    (b"\xf2\x01\x02\x08\x01" * 2, "field m: duplicate key 1"),
    (b"\x09" + b"\x00" * 8, "field int32: expected wire type 0, got 1"),
    (b"\x0b", "not Protobuf"),
    (b"\x00", "not Protobuf"),
    (b"\x08", "field int32: ends too early"),
    (b"\x80", "ends too early"),
]


@pytest.mark.parametrize(("data", "reason"), FAULTS, ids=repr)
def test_what_a_parser_passes_over_is_a_problem(data: bytes, reason: str) -> None:
    assert decode(everything(), data, None) == [(None, reason), (None, None)]


def test_lenient_takes_what_a_parser_takes() -> None:
    rows = [b"\x08\x01\x08\x02", b"\xc0\x3e\x01\x08\x03", b"\x08"]
    found = decode(everything("lenient"), *rows)
    assert [value and value["int32"] for value, _ in found] == [2, 3, None]
    assert all(problem for _, problem in found)


def test_required_fields_of_proto2_must_be_there() -> None:
    old = file(message("R", field(1, "a", "int32", required=True), field(2, "b", "int32")),
               syntax="proto2", imports=())  # fmt: skip
    decoder = protobuf_decoder(descriptor_set(old))
    assert [one.nullable for one in decoder.type] == [False, True]
    assert decode(decoder, b"", b"\x08\x01") == [
        (None, "missing field a"),
        ({"a": 1, "b": None}, None),
    ]


REFUSED: list[tuple[bytes, str | None, str]] = [
    (b"\xff", None, "--schema: not a descriptor set: write it with protoc"),
    (b"", None, "--schema: not a descriptor set: write it with protoc"),
    (SET, "t.No", "--schema: there is no message t.No"),
    (SET, None, "--schema: name one of its messages with --message: t.All, t.Point"),
    (
        descriptor_set(file(message("R", field(1, "r", ".t.R")), imports=())),
        None,
        "--schema: field r: t.R contains itself: no column is that deep",
    ),
    (descriptor_set(file(message("R"), imports=())), None, "--schema: t.R has no fields"),
    (
        descriptor_set(file(message("R", field(1, "a", "int32")), imports=("no.proto",))),
        None,
        "--schema: it imports no.proto, which is not there",
    ),
    (
        descriptor_set(file(message("R", field(1, "a", ".t.No")), imports=())),
        None,
        "--schema: the descriptors do not fit together: ",
    ),
]


@pytest.mark.parametrize(("data", "name", "reason"), REFUSED, ids=range(len(REFUSED)))
def test_a_descriptor_without_columns_is_refused(
    data: bytes, name: str | None, reason: str
) -> None:
    with pytest.raises(OperatorError) as refusal:
        protobuf_decoder(data, message=name)
    assert str(refusal.value).startswith(reason)


def test_a_file_is_named_when_it_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"^--schema .*no: cannot read"):
        read_descriptor_set(tmp_path / "no")
    (tmp_path / "a.desc").write_bytes(SET)
    assert read_descriptor_set(tmp_path / "a.desc") == SET


def serialized(proto: Any) -> str:
    return base64.b64encode(proto.SerializeToString()).decode()


def test_values_of_a_registry_name_schema_and_message() -> None:
    point = file(message("Point", field(1, "x", "int32")), name="point", imports=())
    old = file(message("Other", field(1, "o", "int32")),
               message("R", field(1, "a", "int32"), nested=[message("In", field(1, "i", "int32"))]),
               imports=())  # fmt: skip
    new = file(message("R", field(1, "a", "int64"), field(2, "p", ".t.Point")), imports=("point",))
    changed = file(message("R", field(1, "a", "string")), imports=())
    with serve_registry() as server:
        server.register("point", serialized(point), "PROTOBUF")
        first = server.register("r-value", serialized(old), "PROTOBUF")
        third = server.register("r-value", serialized(changed), "PROTOBUF")
        second = server.register("r-value", serialized(new), "PROTOBUF", references=("point",))
        server.register("j", "{}", "JSON")
        registry = SchemaRegistry(server.url, retry_delays_s=())
        decoder = pickle.loads(
            pickle.dumps(protobuf_decoder(registry=registry, subject="r-value", message="t.R"))
        )
        assert decoder.type.simpleString() == "struct<a:bigint,p:struct<x:int>>"

        def framed(number: int, indexes: bytes, data: bytes) -> bytes:
            return b"\x00" + number.to_bytes(4, "big") + indexes + data

        rows = [
            framed(second, b"\x00", b"\x08\x07\x12\x02\x08\x09"),
            framed(first, b"\x02\x02", b"\x08\x05"),
            framed(first, b"\x00", b"\x08\x05"),
            framed(first, b"\x04\x02\x00", b""),
            framed(first, b"\x02\x08", b""),
            framed(third, b"\x00", b"\x0a\x00"),
            framed(99, b"\x00", b""),
            framed(99, b"\x00", b""),
            framed(5, b"\x00", b""),
            framed(first, b"\x01", b""),
            b"\x08\x01",
            framed(second, b"", b""),
        ]
        assert decode(decoder, *rows) == [
            ({"a": 7, "p": {"x": 9}}, None),
            ({"a": 5, "p": None}, None),
            (None, "a t.Other, not a t.R"),
            (None, "a t.R.In, not a t.R"),
            (None, f"schema {first} has no message [4]"),
            (None, f"schema {third} does not resolve: field a: string into int64"),
            (None, "schema 99 is not in the registry"),
            (None, "schema 99 is not in the registry"),
            (None, "schema 5 is JSON, not PROTOBUF"),
            (None, "no message indexes in front of the value"),
            (None, "no schema id in front of the value"),
            (None, "ends too early"),
        ]
        asked = [path for path in server.requests if path.startswith("/schemas/ids/99")]
        assert asked == ["/schemas/ids/99?format=serialized"]


def test_a_registry_without_serialized_descriptors_is_told() -> None:
    with serve_registry() as server:
        server.register("r-value", 'syntax = "proto3"; message R {}', "PROTOBUF")
        with pytest.raises(OperatorError, match=r"does not answer \?format=serialized: give a"):
            protobuf_decoder(registry=SchemaRegistry(server.url), subject="r-value")
