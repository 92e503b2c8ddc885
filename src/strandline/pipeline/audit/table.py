"""The ranges of an audit as a Parquet file, one file for each audit in a directory.

Why:    a directory of such files is a table for every engine: what was equal on which day.
How:    written beside its name and renamed, so a reader never sees half a file. PyArrow writes it;
        an audit without a table needs no PyArrow."""

from datetime import UTC, datetime
from pathlib import Path

from strandline.base.errors import OperatorError
from strandline.pipeline.audit.results import AuditResult, Row

COLUMNS = (
    "topic", "partition", "start_offset", "end_offset", "broker", "kind", "status", "records",
    "batches", "size_bytes", "digest", "bucket",
)  # fmt: skip


def check_directory(directory: Path) -> None:
    """Refuse a directory that cannot be one before any work is done; raises OperatorError."""
    if directory.exists() and not directory.is_dir():
        raise OperatorError(f"--table {directory}: it is a file; name a directory")
    if not directory.exists() and not directory.parent.is_dir():
        raise OperatorError(f"--table {directory}: {directory.parent} does not exist")
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise OperatorError("--table needs PyArrow: pip install 'strandline[pipeline]'") from None


def write_table(result: AuditResult, directory: Path) -> Path:
    """Write all rows; returns the file. Raises OperatorError."""
    import pyarrow as pa
    from pyarrow import parquet

    rows = [row for one in result.partitions for row in one.rows]
    began = datetime.fromtimestamp(result.started_ms / 1000, UTC)
    schema = pa.schema(
        [
            ("cluster_id", pa.string()),
            ("audited_at", pa.timestamp("ms", "UTC")),
            *((name, _type_of(name, pa)) for name in COLUMNS),
        ]
    )
    columns: dict[str, list[object]] = {
        "cluster_id": [result.cluster_id] * len(rows),
        "audited_at": [began] * len(rows),
    }
    columns |= {name: [_value(row, name) for row in rows] for name in COLUMNS}
    file = directory / f"audit-{began:%Y%m%dT%H%M%S}-{result.started_ms % 1000:03d}.parquet"
    part = file.with_name(f".{file.name}.part")
    try:
        directory.mkdir(exist_ok=True)
        parquet.write_table(pa.Table.from_pydict(columns, schema=schema), part)
        part.replace(file)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise OperatorError(f"--table {directory}: cannot write: {error}") from error
    return file


def _value(row: Row, name: str) -> object:
    value: object = getattr(row, name)
    return None if value in (-1, "") and name not in ("topic", "kind", "status") else value


def _type_of(name: str, pa: "object") -> object:
    if name in ("topic", "kind", "status", "digest", "bucket"):
        return pa.string()  # type: ignore[attr-defined]
    is_small = name in ("partition", "broker")
    return pa.int32() if is_small else pa.int64()  # type: ignore[attr-defined]
