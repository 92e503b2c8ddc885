"""A table takes what changes no value, and refuses the rest before a record is read.

Source: decisions/0050."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import types as T  # noqa: N812

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.evolution import TableChange, plan_change
from strandline.pipeline.lake.options import LakeOptions, PartitionColumn, ValueSchema
from strandline.pipeline.values.ddl import parse_ddl

HEAD = "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY"
PLAIN = LakeOptions(bootstrap="h:1", topics=("a",), table="/lake")


def change(old: str, new: str, **changes: object) -> TableChange:
    schema = None
    if "STRUCT" in new:
        inner = parse_ddl(new)["value"].dataType
        assert isinstance(inner, T.StructType)
        schema = ValueSchema(Path("v.ddl"), inner)
    options = replace(PLAIN, schema=schema, **changes)  # type: ignore[arg-type]
    return plan_change(
        parse_ddl(f"{HEAD}, {old}"),
        parse_ddl(f"{HEAD}, {new}"),
        partitioned_by=["date"],
        options=options,
    )


def test_new_fields_and_wider_types_are_taken() -> None:
    found = change("value STRUCT<n: INT>", "value STRUCT<n: BIGINT, m: STRING>")
    assert [str(each) for each in found.widened] == ["value.n: int becomes bigint"]
    assert [str(each) for each in found.added] == ["add value.m string"]


def test_a_narrower_schema_writes_the_wider_type_of_the_table() -> None:
    found = change("value STRUCT<n: BIGINT>", "value STRUCT<n: INT>")
    assert not found.widened and not found.added
    assert found.type["value"].dataType.simpleString() == "struct<n:bigint>"


@pytest.mark.parametrize(
    ("old", "new", "changes", "reason"),
    [
        ("value STRUCT<n: INT>", "value STRUCT<n: STRING>", {}, "--schema v.ddl .* become text"),
        ("value STRUCT<n: INT, m: INT>", "value STRUCT<n: INT>", {}, "m is missing"),
        ("value STRUCT<n: INT>", "value BINARY", {}, "give their --schema"),
        ("value BINARY", "value STRUCT<n: INT>", {}, "leave --schema out"),
        ("value BINARY", "value BINARY", {"key": "text"}, "keys as bytes: use --key raw"),
        ("value BINARY", "value BINARY",
         {"partition_by": (PartitionColumn("day", "1"),)}, "is partitioned by date"),
        ("value STRUCT<n: INT>", "value STRUCT<n: BIGINT>", {"widen": "refuse"},
         "allow it by --widen rewrite"),
        ("valu BINARY", "value BINARY", {}, "has no column value"),
    ],
)  # fmt: skip
def test_the_rest_is_refused_with_what_helps(
    old: str, new: str, changes: dict[str, object], reason: str
) -> None:
    with pytest.raises(OperatorError, match=reason):
        change(old, new, **changes)


def test_reasons_follow_the_line_only_where_it_is_cut() -> None:
    with pytest.raises(OperatorError, match=r"field value\.n: ") as refused:
        change("value STRUCT<n: BIGINT>", "value STRUCT<n: STRING>")
    assert not refused.value.details
    old, new = (", ".join(f"f{each}: {kind}" for each in range(6)) for kind in ("INT", "STRING"))
    with pytest.raises(OperatorError, match="and 1 more") as refused:
        change(f"value STRUCT<{old}>", f"value STRUCT<{new}>")
    assert len(refused.value.details) == 6
