"""The compiled encoding of rows; see `_rows.c`."""

from typing import Any

REVISION: int

def encode(
    out: bytearray,
    end: int,
    rows: Any,
    delta: int,
    base_timestamp: int,
    timestamps: Any,
    keys: Any,
    values: Any,
    headers: Any,
    /,
) -> tuple[int, int]: ...
def partitions(keys: Any, count: int, out: Any, /) -> None: ...
