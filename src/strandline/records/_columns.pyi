"""The compiled fill of columns; see `_columns.c`."""

from typing import Any

from strandline.base.disk import Buffer

REVISION: int

def fill(
    records: Buffer,
    batches: Any,
    row: int,
    offsets: Any,
    timestamps: Any,
    epochs: Any,
    timestamp_types: Any,
    headers_at: Any,
    headers_counts: Any,
    keys: Any,
    values: Any,
    /,
) -> tuple[int, int, int, int, int]: ...
def fill_headers(
    records: Buffer, at: Any, counts: Any, entry: int, entries: int, names: Any, values: Any, /
) -> int: ...
def scan(
    data: Buffer,
    position: int,
    expected: int,
    first_offset: int,
    end_offset: int,
    reads_records: bool,
    reads_times: bool,
    bytes_max: int,
    table: Any,
    /,
) -> tuple[int, int, int, int, int]: ...
