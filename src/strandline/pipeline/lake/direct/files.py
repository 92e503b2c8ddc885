"""What a Python worker does with a group of splits: it writes their rows into Parquet files.

How:    rows are gathered until they have ROW_GROUP_BYTES, then each partition of the table that has
        some gets a row group. A worker gives the `add` action of Delta's log, as JSON, for each
        file. A file that no commit names is no part of the table; a worker that fails
        removes its own.
Owns:   the open files of one task.
Source: https://github.com/delta-io/delta/blob/master/PROTOCOL.md, "Add File"."""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from strandline.pipeline.lake.direct.partitions import Texts, UnfitRowsError
from strandline.pipeline.lake.direct.statistics import Statistics

ROW_GROUP_BYTES = 32 << 20
"""Of rows in memory, which a task gathers before it writes."""
OPEN_FILES_MAX = 64
"""Of a task; it closes all of them when it would need more."""
UNFIT = "unfit"
"""Given instead of files if Spark's writer must write the batch."""
NULL_DIRECTORY = "__HIVE_DEFAULT_PARTITION__"

PartitionTexts = tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class FileOptions:
    """Where files go and how they are written. `partitions`: {column: its texts}; `footer`: more
    entries of a file's footer."""

    table: str
    schema: pa.Schema
    partitions: dict[str, Texts]
    codec: str
    footer: dict[str, str]


@dataclass(slots=True)
class _OpenFile:
    """One file of one partition of the table, and rows that are not in it yet."""

    name: str
    writer: Any
    statistics: Statistics
    gathered: list[Any] = field(default_factory=list)

    def write(self) -> None:
        if self.gathered:
            self.writer.write_table(pa.Table.from_batches(self.gathered))
            self.gathered = []


class FileWriter:
    """See the module. `add` all rows, then `close`; or `remove`."""

    def __init__(self, options: FileOptions, *, task: int) -> None:
        self._options = options
        self._task = task
        self._open: dict[PartitionTexts, _OpenFile] = {}
        self._names: list[str] = []
        self._actions: list[str] = []
        self._gathered_bytes = 0

    def add(self, batch: Any) -> None:
        """Rows of the table's columns. Raises UnfitRowsError."""
        for texts, rows in self._by_partition(batch):
            if texts not in self._open and len(self._open) >= OPEN_FILES_MAX:
                self._close_all()
            file = self._open.get(texts) or self._new(texts)
            file.gathered.append(rows)
            file.statistics.add(rows)
        self._gathered_bytes += batch.nbytes
        if self._gathered_bytes >= ROW_GROUP_BYTES:
            for file in self._open.values():
                file.write()
            self._gathered_bytes = 0

    def close(self) -> list[str]:
        """The `add` actions of all files."""
        self._close_all()
        return self._actions

    def remove(self) -> None:
        """No file of this task is left."""
        for file in self._open.values():
            with suppress(OSError, pa.ArrowException):
                file.writer.close()
        for name in self._names:
            (Path(self._options.table) / name).unlink(missing_ok=True)

    def _by_partition(self, batch: Any) -> Iterator[tuple[PartitionTexts, Any]]:
        columns = [texts(batch) for texts in self._options.partitions.values()]
        if not columns:
            yield (), batch
            return
        places = pa.Table.from_arrays(columns, names=[str(n) for n in range(len(columns))])
        found = places.group_by(places.column_names).aggregate([]).to_pylist()
        for row in found:
            texts = tuple(row.values())
            if len(found) == 1:
                yield texts, batch
                continue
            kept = None
            for column, text in zip(columns, texts, strict=True):
                same = pc.is_null(column) if text is None else pc.equal(column, text)
                kept = same if kept is None else pc.and_(kept, same)
            yield texts, batch.filter(kept)

    def _new(self, texts: PartitionTexts) -> _OpenFile:
        options = self._options
        directory = "".join(
            f"{name}={NULL_DIRECTORY if text is None else text}/"
            for name, text in zip(options.partitions, texts, strict=True)
        )
        suffix = "" if options.codec == "none" else f".{options.codec}"
        name = f"{directory}part-{self._task:05}-{uuid.uuid4()}.c000{suffix}.parquet"
        path = Path(options.table) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        self._names.append(name)
        writer = pq.ParquetWriter(
            path, options.schema, compression=options.codec, store_schema=False
        )
        file = _OpenFile(name, writer, Statistics(options.schema))
        self._open[texts] = file
        return file

    def _close_all(self) -> None:
        for texts, file in self._open.items():
            file.write()
            file.writer.add_key_value_metadata(self._options.footer)
            file.writer.close()
            self._actions.append(self._action(texts, file))
        self._open = {}
        self._gathered_bytes = 0

    def _action(self, texts: PartitionTexts, file: _OpenFile) -> str:
        options = self._options
        added = {
            "path": file.name,
            "partitionValues": dict(zip(options.partitions, texts, strict=True)),
            "size": (Path(options.table) / file.name).stat().st_size,
            "modificationTime": time.time_ns() // 1_000_000,
            "dataChange": True,
            "stats": file.statistics.json(),
        }
        return json.dumps({"add": added})


def write_groups(
    read: Callable[[int], Iterable[Any]],
    rows_of: Callable[[Any], Any],
    options: FileOptions,
) -> Callable[[int], Sequence[str]]:
    """What a Python worker does with the number of a group. `read`: the records of a group;
    `rows_of`: records -> the table's columns."""

    def write(number: int) -> Sequence[str]:
        return _write_group(map(rows_of, read(number)), options, task=number)

    return write


def _write_group(rows: Iterable[Any], options: FileOptions, *, task: int) -> Sequence[str]:
    writer = FileWriter(options, task=task)
    try:
        for batch in rows:
            writer.add(batch)
        return writer.close()
    except UnfitRowsError:
        writer.remove()
        return [UNFIT]
    except BaseException:
        writer.remove()
        raise
