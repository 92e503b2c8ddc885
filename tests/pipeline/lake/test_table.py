"""A Delta table's live files are what its commits add and do not remove; nothing else is."""

import json
from pathlib import Path

import pytest

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.table import read_table


def commit(table: Path, version: int, *actions: dict[str, object]) -> None:
    (table / "_delta_log").mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(action) + "\n" for action in actions)
    (table / "_delta_log" / f"{version:020d}.json").write_text(lines)


def add(path: str, rows: int, **partition: str | None) -> dict[str, object]:
    stats = json.dumps({"numRecords": rows})
    return {"add": {"path": path, "partitionValues": partition, "stats": stats}}


def test_files_of_all_commits_are_live(tmp_path: Path) -> None:
    commit(tmp_path, 0, {"protocol": {}}, {"metaData": {}}, add("c=AA/0.parquet", 3, c="AA"))
    commit(tmp_path, 1, {"txn": {"appId": "x", "version": 1}}, add("c=B%20B/1.parquet", 4))
    version = read_table(tmp_path)
    assert version.version == 1
    assert version.rows == 7
    assert [file.path for file in version.files] == [
        tmp_path / "c=AA/0.parquet",
        tmp_path / "c=B B/1.parquet",
    ]
    assert version.files[0].partition == {"c": "AA"}


def test_removed_files_and_files_without_a_commit_are_not_part_of_the_table(
    tmp_path: Path,
) -> None:
    commit(tmp_path, 0, add("a.parquet", 1), add("b.parquet", 2))
    commit(tmp_path, 1, {"remove": {"path": "a.parquet"}}, add("c.parquet", 1))
    (tmp_path / "left-by-a-killed-job.parquet").write_bytes(b"")
    assert [file.path.name for file in read_table(tmp_path).files] == ["b.parquet", "c.parquet"]


def test_what_is_no_table_or_lacks_its_first_commits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="is not a Delta table"):
        read_table(tmp_path)
    commit(tmp_path, 7, add("a.parquet", 1))
    with pytest.raises(OperatorError, match="oldest commits were removed"):
        read_table(tmp_path)
