"""What a Python worker does to a batch of rows, and which columns a table has."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.options import LakeOptions, ValueFormat, ValueSchema, read_values
from strandline.pipeline.lake.progress import Batch, TopicProgress
from strandline.pipeline.lake.rows import RAW_VALUE, RECORD_TYPE, table_columns, worker_columns
from strandline.pipeline.lake.source import cut
from strandline.pipeline.values.ddl import parse_ddl

PLAIN = LakeOptions(bootstrap="h:1", topics=("a",), table="/lake")
SCHEMA = ValueSchema(Path("v.ddl"), parse_ddl("n INT"))


def test_values_are_decoded_beside_the_other_columns() -> None:
    values = pa.array([b'{"n":1}', b"{} x", None], pa.binary())
    place = {name: pa.array([7, 8, 9]) for name in RECORD_TYPE.fieldNames()}
    batch = pa.RecordBatch.from_pydict(place | {"value": values})
    found = worker_columns(replace(PLAIN, schema=SCHEMA))(batch)
    assert found.column("offset").to_pylist() == [7, 8, 9]
    assert found.column("_parsed").to_pylist() == [{"n": 1}, None, None]
    assert found.column("_problem").to_pylist() == [None, "trailing bytes", None]
    # Bytes that no column needs do not go to Java.
    assert found.column(RAW_VALUE).to_pylist() == [None, b"{} x", None]
    kept = worker_columns(replace(PLAIN, schema=SCHEMA, keep_raw=True))(batch)
    assert kept.column(RAW_VALUE).to_pylist() == values.to_pylist()


def test_a_batch_is_cut_into_equal_groups_that_cover_it_once() -> None:
    read = {0: (5, 25), 1: (0, 3), 2: (7, 8)}
    batch = Batch(0, "c", {"a": TopicProgress("id", {}, read)})
    for tasks in (1, 2, 3, 5, 24, 30):
        groups = cut(batch, tasks)
        assert len(groups) == tasks
        places = [
            (split.partition, offset)
            for group in groups
            for split in group
            for offset in range(split.start, split.end)
        ]
        assert places == [(one, offset) for one, ends in read.items() for offset in range(*ends)]
        sizes = [sum(split.end - split.start for split in group) for group in groups]
        assert max(sizes) == -(-24 // tasks)


def test_columns_for_what_does_not_fit_are_there_only_if_it_can_be_there() -> None:
    assert "problem" not in table_columns(PLAIN)
    decoded = replace(PLAIN, schema=SCHEMA)
    assert {"malformed", "problem"} <= set(table_columns(decoded))
    assert "problem" not in table_columns(replace(decoded, dead_letters="/dead"))
    lenient = replace(decoded, dead_letters="/dead", mode="lenient")
    assert "problem" in table_columns(lenient)
    assert "malformed_key" in table_columns(replace(PLAIN, key="text"))
    assert table_columns(replace(decoded, keep_raw=True))[-2:] == ("raw", "value")


def test_values_may_be_of_another_format(tmp_path: Path) -> None:
    file = tmp_path / "n.avsc"
    file.write_text('{"type": "record", "name": "r", "fields": [{"name": "n", "type": "int"}]}')
    schema = read_values(file, ValueFormat(), "strict")
    assert schema is not None
    values = pa.array([b"\x06", b"\x06\x00"], pa.binary())
    place = {name: pa.array([7, 8]) for name in RECORD_TYPE.fieldNames()}
    batch = pa.RecordBatch.from_pydict(place | {"value": values})
    found = worker_columns(replace(PLAIN, schema=schema))(batch)
    assert found.column("_parsed").to_pylist() == [{"n": 3}, None]
    assert found.column("_problem").to_pylist()[0] is None
    assert found.column("_problem").to_pylist()[1]


def test_without_a_word_about_values_they_stay_bytes(tmp_path: Path) -> None:
    assert read_values(None, ValueFormat(), "strict") is None
    ddl = tmp_path / "no-ending"
    ddl.write_text("n INT")
    found = read_values(ddl, ValueFormat(), "strict")
    assert found is not None and found.type.simpleString() == "struct<n:int>"
    with pytest.raises(OperatorError, match="--format text"):
        read_values(None, ValueFormat("text"), "strict")
    with pytest.raises(OperatorError, match="--format nonsense: expected one of"):
        read_values(ddl, ValueFormat("nonsense"), "strict")
