"""A JSON Schema gives columns, or one line with the place of what has none."""

import json
from pathlib import Path
from typing import Any

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.values.json_schema import parse_json_schema, read_json_schema


def of(**properties: Any) -> str:
    return json.dumps({"type": "object", "properties": properties})


READ: list[tuple[str, str]] = [
    (of(a={"type": "integer"}, b={"type": "number"}), "struct<a:bigint,b:double>"),
    (of(a={"type": "boolean"}, b={"type": ["string", "null"]}), "struct<a:boolean,b:string>"),
    (of(a={"type": "string", "format": "date-time"}), "struct<a:timestamp>"),
    (of(a={"type": "string", "format": "date"}), "struct<a:date>"),
    (of(a={"type": "string", "format": "email"}), "struct<a:string>"),
    (of(a={"type": "string", "contentEncoding": "base64"}), "struct<a:binary>"),
    (of(a={"items": {"type": "integer"}}), "struct<a:array<bigint>>"),
    (
        of(a={"type": "object", "additionalProperties": {"type": "number"}}),
        "struct<a:map<string,double>>",
    ),
    (of(a={"enum": ["x", "y", None]}, b={"const": 3}), "struct<a:string,b:bigint>"),
    (of(a={"anyOf": [{"type": "null"}, {"type": "integer"}]}), "struct<a:bigint>"),
    (
        json.dumps(
            {
                "properties": {"a": {"$ref": "#/$defs/x~1y"}},
                "$defs": {"x/y": {"properties": {"b": {"type": "string"}}}},
            }
        ),
        "struct<a:struct<b:string>>",
    ),
]
REFUSED: list[tuple[str, str]] = [
    (
        "{",
        "S: not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)",
    ),
    ("true", "S: #: any value is allowed here: name its type"),
    (
        '{"type":"array","items":{"type":"integer"}}',
        "S: #: expected a schema of objects with `properties`",
    ),
    (of(a={}), "S: #/properties/a: no type: a column has exactly one type"),
    (of(a=True), "S: #/properties/a: any value is allowed here: name its type"),
    (
        of(a={"type": ["string", "integer"]}),
        "S: #/properties/a: string and integer: a column has exactly one type",
    ),
    (of(a={"type": "object"}), "S: #/properties/a: an object without `properties` has no columns"),
    (of(a={"type": "text"}), "S: #/properties/a: unknown type text"),
    (
        of(a={"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        "S: #/properties/a/anyOf: a column has exactly one type, and null at most",
    ),
    (of(a={"$ref": "#/no"}), "S: #/properties/a: $ref #/no points to nothing"),
    (
        of(a={"$ref": "http://x"}),
        "S: #/properties/a: $ref http://x: only references within the file (#/...)",
    ),
    (
        json.dumps({"properties": {"a": {"$ref": "#"}}}),
        "S: #/properties/a/properties/a: # contains itself: no column is that deep",
    ),
    (
        of(a={"type": "integer"}, A={"type": "integer"}),
        "S: #: A differs from a in case: column names ignore case",
    ),
]


@pytest.mark.parametrize(("text", "expected"), READ)
def test_a_schema_gives_columns(text: str, expected: str) -> None:
    assert parse_json_schema(text).simpleString() == expected


@pytest.mark.parametrize(("text", "expected"), REFUSED)
def test_what_has_no_column_is_refused_with_its_place(text: str, expected: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        parse_json_schema(text, source="S")
    assert str(refusal.value) == expected


def test_required_properties_are_not_null_unless_null_is_allowed() -> None:
    text = json.dumps(
        {
            "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
            "required": ["a", "b"],
        }
    )
    assert [field.nullable for field in parse_json_schema(text)] == [False, True]


def test_a_file_is_named_when_it_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"^--schema .*no\.json: cannot read: "):
        read_json_schema(tmp_path / "no.json")
