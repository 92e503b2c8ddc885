"""A schema in Spark DDL is read as Spark reads it, or refused in one line with its place."""

from pathlib import Path

import pytest
from pyspark.sql import types as T  # noqa: N812

from strandline.base.errors import OperatorError
from strandline.pipeline.values.ddl import parse_ddl, read_ddl

FLIGHTS = Path(__file__).parents[3] / "demo" / "flights.ddl"

READ = {
    "a INT": "struct<a:int>",
    "a int, B bigint,": "struct<a:int,B:bigint>",
    "a: INT": "struct<a:int>",
    "`a b` STRING, `c``d` BINARY;": "struct<a b:string,c`d:binary>",
    "a DECIMAL, b DEC(5), c NUMERIC(38, 10)": (
        "struct<a:decimal(10,0),b:decimal(5,0),c:decimal(38,10)>"
    ),
    "a ARRAY<MAP<STRING, STRUCT<x: FLOAT, y: BOOLEAN NOT NULL>>>": (
        "struct<a:array<map<string,struct<x:float,y:boolean>>>>"
    ),
    "a TIMESTAMP, b TIMESTAMP_LTZ, c TIMESTAMP_NTZ, d DATE": (
        "struct<a:timestamp,b:timestamp,c:timestamp_ntz,d:date>"
    ),
    "-- one\na TINYINT /* two\n */, b SMALLINT -- three": "struct<a:tinyint,b:smallint>",
    "date DATE, int INT, comment STRING COMMENT 'why'": (
        "struct<date:date,int:int,comment:string>"
    ),
}

REFUSED = {
    "": "S: empty: expected `name TYPE, name TYPE, ...`",
    "-- nothing": "S: empty: expected `name TYPE, name TYPE, ...`",
    "a INT,\nb STRNG": "S, line 2: field b: unknown type STRNG: did you mean STRING?",
    "a": "S, line 1: field a: expected a type, not the end",
    "a INT b INT": "S, line 1: expected a comma or the end, not b",
    "a INT,, b INT": "S, line 1: expected a comma or the end, not ,",
    "a-b INT": "S, line 1: unexpected '-': put the name in `backquotes`",
    "a INT,\n\nA INT": "S, line 3: field A differs from a in case: column names ignore case",
    "a INT, a INT": "S, line 1: field a is there twice: column names ignore case",
    "a VARIANT": (
        "S, line 1: field a: VARIANT is not supported: lake tables have no column for it: "
        "name the fields, or keep the text in STRING"
    ),
    "a VARCHAR(3)": "S, line 1: field a: VARCHAR is not supported: use STRING",
    "a DECIMAL(39)": (
        "S, line 1: field a: DECIMAL(39,0): at most 38 digits, "
        "no more of them after the point than there are"
    ),
    "a DECIMAL(3,4)": (
        "S, line 1: field a: DECIMAL(3,4): at most 38 digits, "
        "no more of them after the point than there are"
    ),
    "a ARRAY<INT": "S, line 1: expected >, not the end",
    "a ARRAY": "S, line 1: expected <, not the end",
    "a STRUCT<>": "S, line 1: expected the name of a field, not >",
    "a STRUCT<b INT>": "S, line 1: field b: expected : and a type, not INT",
    "a INT NOT": "S, line 1: field a: expected NULL after NOT, not the end",
    "`a INT": "S, line 1: unexpected '`' does not end",
    "1 INT": "S, line 1: 1 is a number: write `1` in backquotes to use it as a name",
    "a MAP<MAP<STRING,INT>,INT>": "S, line 1: field a: the key of a map cannot be a map",
    "a " + "ARRAY<" * 60: "S, line 1: field a: more than 50 levels of types",
}


@pytest.mark.parametrize("text", READ)
def test_ddl_is_read(text: str) -> None:
    assert parse_ddl(text).simpleString() == READ[text]


@pytest.mark.parametrize("text", REFUSED, ids=lambda text: text[:20])
def test_bad_ddl_is_refused_with_its_line_and_what_is_wrong(text: str) -> None:
    with pytest.raises(OperatorError) as refusal:
        parse_ddl(text, source="S")
    assert str(refusal.value) == REFUSED[text]


def test_not_null_and_comments_are_kept() -> None:
    field = parse_ddl("a STRUCT<b: INT NOT NULL> NOT NULL COMMENT 'why'")["a"]
    assert (field.nullable, field.metadata) == (False, {"comment": "why"})
    assert isinstance(field.dataType, T.StructType)
    assert field.dataType["b"].nullable is False


def test_a_file_is_named_when_it_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"^--schema .*no\.ddl: cannot read: "):
        read_ddl(tmp_path / "no.ddl")
    path = tmp_path / "flights.ddl"
    path.write_text("id BIGINT,\ncarrier TEXT\n")
    with pytest.raises(OperatorError, match=r"^--schema .*flights\.ddl, line 2: field carrier: "):
        read_ddl(path)
    assert len(read_ddl(FLIGHTS).fields) == 20
