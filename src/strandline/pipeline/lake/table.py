"""The files of a Delta table, from its log alone, without Spark.

Why:    a check of Spark's output should not use Spark, and a count should not start a Java machine.
How:    commits `_delta_log/{version:020d}.json` in order, one action a line: `add` makes a file
        live, `remove` ends it. Files that no commit names were left by a killed job and are no
        part of the table.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md"""

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from strandline.base.errors import OperatorError


@dataclass(frozen=True, slots=True)
class TableFile:
    """One live Parquet file."""

    path: Path
    partition: dict[str, str | None]
    """The values of the partition columns as text; these columns are not in the file."""
    rows: int


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table as of its newest commit."""

    version: int
    files: tuple[TableFile, ...]

    @property
    def rows(self) -> int:
        """How many rows the live files hold."""
        return sum(file.rows for file in self.files)


def read_table(table: Path) -> TableVersion:
    """The newest version of a table on a local disk; raises OperatorError if it cannot be
    determined."""
    log = table / "_delta_log"
    commits = sorted(path for path in log.glob("*.json") if path.stem.isdigit())
    if not commits:
        raise OperatorError(f"{table} is not a Delta table: {log} has no commits")
    if [int(path.stem) for path in commits] != list(range(len(commits))):
        raise OperatorError(
            f"{table}: its oldest commits were removed: read it with a Delta reader"
        )
    live: dict[str, TableFile] = {}
    for commit in commits:
        for line in commit.read_text(encoding="utf-8").splitlines():
            action = json.loads(line)
            if "add" in action:
                live[action["add"]["path"]] = _table_file(table, action["add"])
            elif "remove" in action:
                live.pop(action["remove"]["path"], None)
    return TableVersion(len(commits) - 1, tuple(live.values()))


def _table_file(table: Path, add: dict[str, object]) -> TableFile:
    path, partition, stats = add["path"], add["partitionValues"], add.get("stats")
    assert isinstance(path, str) and isinstance(partition, dict)
    rows = json.loads(stats)["numRecords"] if isinstance(stats, str) else 0
    return TableFile(table / unquote(path), partition, rows)
