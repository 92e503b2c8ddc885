"""A table's type grows where every value stays exact; all else is refused with its reason."""

import itertools

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.values.ddl import parse_ddl
from strandline.pipeline.values.evolution import compatible, merge

WIDER = {
    ("TINYINT", "SMALLINT"): "smallint",
    ("INT", "BIGINT"): "bigint",
    ("INT", "TINYINT"): "int",
    ("INT", "DOUBLE"): "double",
    ("SMALLINT", "FLOAT"): "double",
    ("FLOAT", "DOUBLE"): "double",
    ("INT", "DECIMAL(5,2)"): "decimal(12,2)",
    ("BIGINT", "DECIMAL(18,2)"): "decimal(22,2)",
    ("BIGINT", "DECIMAL(38,2)"): "decimal(38,2)",
    ("DECIMAL(5,2)", "DECIMAL(6,4)"): "decimal(7,4)",
    ("DATE", "TIMESTAMP_NTZ"): "timestamp_ntz",
    ("ARRAY<INT>", "ARRAY<BIGINT>"): "array<bigint>",
    ("MAP<STRING,INT>", "MAP<STRING,DOUBLE>"): "map<string,double>",
    ("STRUCT<a: INT>", "STRUCT<b: INT>"): "struct<a:int,b:int>",
    ("STRING", "STRING"): "string",
}
EXACT = "integers above 2^53 are not exact as DOUBLE: use DECIMAL, or a new field"
REFUSED = {
    ("BIGINT", "DOUBLE"): EXACT,
    ("FLOAT", "BIGINT"): EXACT,
    ("INT", "STRING"): "values would become text: use a new field",
    ("STRING", "DATE"): "values would become text: use a new field",
    ("DATE", "TIMESTAMP"): "no type holds both: use a new field",
    ("TIMESTAMP", "TIMESTAMP_NTZ"): "no type holds both: use a new field",
    ("BOOLEAN", "INT"): "no type holds both: use a new field",
    ("DECIMAL(10,2)", "DOUBLE"): "decimals are not exact as DOUBLE",
    ("DECIMAL(38,0)", "DECIMAL(38,1)"): "together they need more than 38 digits",
    ("BIGINT", "DECIMAL(38,30)"): "together they need more than 38 digits",
    ("ARRAY<INT>", "INT"): "no type holds both: use a new field",
    ("BINARY", "STRING"): "values would become text: use a new field",
}


@pytest.mark.parametrize("pair", WIDER, ids=" ".join)
def test_the_merged_type_holds_both_in_either_order(pair: tuple[str, str]) -> None:
    left, right = (parse_ddl(f"f {one}") for one in pair)
    assert merge(left, right).type["f"].dataType.simpleString() == WIDER[pair]
    other = merge(right, left).type["f"].dataType
    if not pair[0].startswith("STRUCT"):
        assert other.simpleString() == WIDER[pair]


@pytest.mark.parametrize("pair", REFUSED, ids=" ".join)
def test_what_would_change_values_is_refused_in_either_order(pair: tuple[str, str]) -> None:
    for old, new in itertools.permutations(pair):
        names = (parse_ddl(f"f {one}")["f"].dataType.simpleString() for one in (old, new))
        reason = f"field f: {' and '.join(names)}: {REFUSED[pair]}"
        assert compatible(parse_ddl(f"f {old}"), parse_ddl(f"f {new}")) == [reason]
        with pytest.raises(OperatorError, match=r"^the types do not fit: field f: "):
            merge(parse_ddl(f"f {old}"), parse_ddl(f"f {new}"))


def test_changes_say_what_to_do_to_the_table() -> None:
    old = parse_ddl("a INT NOT NULL, b STRUCT<c: FLOAT>, d ARRAY<STRUCT<e: INT>>, f INT NOT NULL")
    new = parse_ddl(
        "b STRUCT<c: DOUBLE, x: INT NOT NULL>, d ARRAY<STRUCT<e: BIGINT>>, a INT, y DATE"
    )
    evolution = merge(old, new)
    assert [str(change) for change in evolution.changes] == [
        "a may be null",
        "b.c: float becomes double",
        "add b.x int",
        "d.element.e: int becomes bigint",
        "f may be null",
        "add y date",
    ]
    assert evolution.type.simpleString() == (
        "struct<a:int,b:struct<c:double,x:int>,d:array<struct<e:bigint>>,f:int,y:date>"
    )
    assert merge(evolution.type, new).changes == ()
    assert merge(evolution.type, old).changes == ()


def test_new_fields_may_be_null_for_old_rows_have_none() -> None:
    added = merge(parse_ddl("a INT"), parse_ddl("a INT, b STRUCT<c: INT NOT NULL> NOT NULL")).type
    assert added["b"].nullable
    assert added["b"].dataType["c"].nullable  # type: ignore[index]


def test_a_type_that_lacks_fields_is_refused_on_demand() -> None:
    table, schema = parse_ddl("a INT, b STRUCT<c: INT, d: INT>"), parse_ddl("b STRUCT<c: INT>")
    assert merge(table, schema).changes == ()
    assert compatible(table, schema, missing=False) == [
        "field a is missing in the new type",
        "field b.d is missing in the new type",
    ]


def test_names_that_differ_only_in_case_are_refused() -> None:
    assert compatible(parse_ddl("Id INT"), parse_ddl("id INT")) == [
        "field id differs from Id only in case"
    ]


def test_a_long_list_of_reasons_is_cut_in_the_line_and_whole_in_the_details() -> None:
    old = parse_ddl(", ".join(f"f{n} INT" for n in range(8)))
    new = parse_ddl(", ".join(f"f{n} DATE" for n in range(8)))
    with pytest.raises(OperatorError, match=r"; and 3 more$") as refusal:
        merge(old, new)
    assert len(refusal.value.details) == 8
