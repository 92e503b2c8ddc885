"""The commits of a Delta table, read from its log, without Spark.

Why:    the job keeps its progress in the table's own commits, so it must read them before it reads
        a record; a local table's log needs no Java machine.
How:    `_delta_log/{version:020d}.json`: one action a line. `LogFiles` is the seam: a local
        directory here, Spark's file systems in hadoop_log.py.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md"""

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote

_MERGED_ROWS = ("numTargetRowsInserted", "numTargetRowsUpdated")


class LogFiles(Protocol):
    """The files of one `_delta_log`."""

    def names(self) -> list[str]:
        """The names of all files; empty if there is no table."""

    def read(self, name: str) -> str:
        """The text of one file."""


@dataclass(frozen=True, slots=True)
class LocalLog:
    """The log of a table on a local disk."""

    table: Path

    def names(self) -> list[str]:
        """See LogFiles."""
        try:
            return [path.name for path in (self.table / "_delta_log").iterdir()]
        except (FileNotFoundError, NotADirectoryError):
            return []

    def read(self, name: str) -> str:
        """See LogFiles."""
        return (self.table / "_delta_log" / name).read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of a table."""

    version: int
    operation: str
    """Delta's name of what made it: WRITE, OPTIMIZE, RESTORE..."""
    metadata: Mapping[str, object] | None
    """The commit's `userMetadata`, if it is a JSON object."""
    rows: int
    """Rows of the files that it adds; of a MERGE, the rows that it added or replaced."""
    present: Mapping[str, int]
    """{column: its rows that are not null}, for the columns that the files' statistics cover."""
    newest_ms: int | None
    """The newest `timestamp` of its rows; None if none is known, or if it is not within the years 1
    to 9999."""
    files: tuple[str, ...] = ()
    """The files that it adds, as paths within the table."""


def versions(log: LogFiles) -> list[int]:
    """The versions whose commits the log still has, in order."""
    found = []
    for name in log.names():
        stem, _, ending = name.partition(".")
        if ending == "json" and len(stem) == 20 and stem.isdigit():
            found.append(int(stem))
    return sorted(found)


def newest_commits(log: LogFiles, *, after: int = -1) -> Iterator[Commit]:
    """The commits that the log still has, newest first, down to the one after `after`."""
    for version in reversed(versions(log)):
        if version <= after:
            return
        yield read_commit(log, version)


def read_commit(log: LogFiles, version: int) -> Commit:
    """One commit."""
    operation, metadata = "", None
    metrics: Mapping[str, str] = {}
    rows = 0
    present: dict[str, int] = {}
    newest: list[int] = []
    files: list[str] = []
    for line in log.read(f"{version:020d}.json").splitlines():
        action = json.loads(line)
        if "commitInfo" in action:
            operation = action["commitInfo"].get("operation", "")
            metadata = _json_object(action["commitInfo"].get("userMetadata"))
            metrics = action["commitInfo"].get("operationMetrics", {})
        elif "add" in action:
            files.append(unquote(action["add"]["path"]))
            stats = json.loads(action["add"].get("stats") or "{}")
            count = stats.get("numRecords", 0)
            rows += count
            for column, nulls in stats.get("nullCount", {}).items():
                if isinstance(nulls, int):
                    present[column] = present.get(column, 0) + count - nulls
            newest.extend(_times_ms(stats.get("maxValues", {}).get("timestamp")))
    if operation == "MERGE":  # Its files hold rows that it only copied, too.
        rows = sum(int(metrics.get(name, 0)) for name in _MERGED_ROWS)
        present, files = {}, []
    return Commit(
        version=version,
        operation=operation,
        metadata=metadata,
        rows=rows,
        present=present,
        newest_ms=max(newest, default=None),
        files=tuple(files),
    )


def _times_ms(text: object) -> Iterator[int]:
    """The time of a statistic, in ms since 1970; nothing for a year that Python does not know. A
    producer that writes microseconds for milliseconds has records of the year 57,000."""
    if isinstance(text, str):
        with suppress(ValueError, OverflowError):
            yield round(datetime.fromisoformat(text).timestamp() * 1000)


def _json_object(text: object) -> Mapping[str, object] | None:
    if not isinstance(text, str):
        return None
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
