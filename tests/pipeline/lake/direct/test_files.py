"""What a worker writes is whole, lies where its partition says, and is gone if the worker fails."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.pipeline.lake.direct import files
from strandline.pipeline.lake.direct.files import UNFIT, FileOptions, write_groups
from strandline.pipeline.lake.direct.partitions import UnfitRowsError, texts_of
from strandline.pipeline.lake.options import LakeOptions, PartitionColumn, parse_partition_by

SCHEMA = pa.schema([("timestamp", pa.timestamp("us", "UTC")), ("n", pa.int64())])
HOUR_US = 3_600_000_000
OPTIONS = LakeOptions(bootstrap="localhost:9092", topics=("t",), table="/table")


def rows(first: int, end: int) -> pa.RecordBatch:
    """One an hour."""
    times = pa.array([n * HOUR_US for n in range(first, end)], pa.int64())
    return pa.RecordBatch.from_arrays(
        [times.cast(SCHEMA.field(0).type), pa.array(range(first, end), pa.int64())], schema=SCHEMA
    )


def file_options(table: Path, *names: str) -> FileOptions:
    columns = parse_partition_by(names, schema=None)
    partitions = {one.name: texts_of(one, OPTIONS) for one in columns}
    assert None not in partitions.values()
    return FileOptions(str(table), SCHEMA, partitions, "snappy", {"made": "here"})  # type: ignore[arg-type]


def written(table: Path, actions: list[str]) -> dict[tuple[str, ...], list[int]]:
    """{partition values: the rows of their files}, and each file is as its action says."""
    found: dict[tuple[str, ...], list[int]] = {}
    for action in actions:
        add = json.loads(action)["add"]
        path = table / add["path"]
        file = pq.ParquetFile(path)
        numbers = file.read().column("n").to_pylist()
        stats = json.loads(add["stats"])
        assert add["size"] == path.stat().st_size
        assert (stats["numRecords"], stats["minValues"]["n"]) == (len(numbers), min(numbers))
        assert file.metadata.metadata[b"made"] == b"here"
        directories = [f"{name}={text}" for name, text in add["partitionValues"].items()]
        assert add["path"].split("/")[:-1] == directories
        found.setdefault(tuple(add["partitionValues"].values()), []).extend(numbers)
    return {texts: sorted(numbers) for texts, numbers in found.items()}


def test_each_partition_has_its_rows(tmp_path: Path) -> None:
    work = write_groups(
        lambda _: [rows(0, 30), rows(30, 60)], lambda batch: batch, file_options(tmp_path, "day")
    )
    assert written(tmp_path, list(work(0))) == {
        ("1970-01-01",): list(range(24)),
        ("1970-01-02",): list(range(24, 48)),
        ("1970-01-03",): list(range(48, 60)),
    }


def test_two_partition_columns(tmp_path: Path) -> None:
    work = write_groups(
        lambda _: [rows(23, 25)], lambda batch: batch, file_options(tmp_path, "year", "hour")
    )
    assert written(tmp_path, list(work(0))) == {
        ("1970", "1970-01-01-23"): [23],
        ("1970", "1970-01-02-00"): [24],
    }


def test_a_task_has_few_files_open_and_little_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "OPEN_FILES_MAX", 3)
    monkeypatch.setattr(files, "ROW_GROUP_BYTES", 100)
    parts = [rows(n, n + 7) for n in range(0, 70, 7)] * 2
    work = write_groups(lambda _: parts, lambda batch: batch, file_options(tmp_path, "hour"))
    found = written(tmp_path, list(work(0)))
    assert len(found) == 70
    assert sorted(n for each in found.values() for n in each) == sorted([*range(70), *range(70)])


@pytest.mark.parametrize("error", [RuntimeError, UnfitRowsError])
def test_a_worker_that_fails_leaves_no_file(tmp_path: Path, error: type[Exception]) -> None:
    def read(_: int) -> Iterator[Any]:
        yield rows(0, 60)
        raise error

    work = write_groups(read, lambda batch: batch, file_options(tmp_path, "day"))
    if error is UnfitRowsError:
        assert work(0) == [UNFIT]
    else:
        with pytest.raises(error):
            work(0)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("year_us", [-62_135_596_800_000_001, 253_402_300_800_000_000])
def test_a_year_that_not_each_reader_knows_is_unfit(year_us: int) -> None:
    times = pa.array([year_us], pa.int64()).cast(SCHEMA.field(0).type)
    batch = pa.RecordBatch.from_arrays([times, pa.array([1], pa.int64())], schema=SCHEMA)
    for column in parse_partition_by(("day", "hour"), schema=None):
        texts = texts_of(column, OPTIONS)
        assert texts is not None
        with pytest.raises(UnfitRowsError):
            texts(batch)


def test_other_expressions_are_sparks() -> None:
    assert texts_of(PartitionColumn("b", "pmod(offset, 2)"), OPTIONS) is None
