"""What a Python worker does to a batch of rows, and which columns a table has."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from strandline.pipeline.lake.options import LakeOptions, ValueSchema
from strandline.pipeline.lake.rows import RAW_VALUE, table_columns, value_columns
from strandline.pipeline.values.ddl import parse_ddl
from strandline.pipeline.values.json.decoder import json_decoder

PLAIN = LakeOptions(bootstrap="h:1", topics=("a",), table="/lake")
SCHEMA = ValueSchema(Path("v.ddl"), parse_ddl("n INT"))


def test_values_are_decoded_beside_the_other_columns() -> None:
    values = pa.array([b'{"n":1}', b"{} x", None], pa.binary())
    batch = pa.RecordBatch.from_arrays([pa.array([7, 8, 9]), values], names=["offset", RAW_VALUE])
    (found,) = value_columns(json_decoder("n INT"))([batch])
    assert found.column("offset").to_pylist() == [7, 8, 9]
    assert found.column("_parsed").to_pylist() == [{"n": 1}, None, None]
    assert found.column("_problem").to_pylist() == [None, "trailing bytes", None]


def test_columns_for_what_does_not_fit_are_there_only_if_it_can_be_there() -> None:
    assert "problem" not in table_columns(PLAIN)
    decoded = replace(PLAIN, schema=SCHEMA)
    assert {"malformed", "problem"} <= set(table_columns(decoded))
    assert "problem" not in table_columns(replace(decoded, dead_letters="/dead"))
    lenient = replace(decoded, dead_letters="/dead", mode="lenient")
    assert "problem" in table_columns(lenient)
    assert "malformed_key" in table_columns(replace(PLAIN, key="text"))
    assert table_columns(replace(decoded, keep_raw=True))[-2:] == ("raw", "value")
