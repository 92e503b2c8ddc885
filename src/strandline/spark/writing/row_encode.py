"""Encodes rows of columns as the records of a batch, by compiled code where it is installed.

Why:    Python takes about 5 us for a record, the compiled `records/_rows.c` about 50 ns.
How:    both ways take the same arrays and write the same bytes.
Source: docs/decisions/0054-spark-sink.md."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from strandline.base.disk import Buffer
from strandline.client.partitioner import partition_for_key
from strandline.records.record import Record, encode_record

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]

REVISION = 1
"""Of the results. A binary of another revision is not used."""
NO_KEY = -1
"""Instead of a partition: the record has no key."""


class BytesColumn(NamedTuple):
    """Row i has the bytes from ends[i] to ends[i + 1]; nulls[i] is 1 for a null."""

    ends: I32
    content: Buffer
    nulls: U8

    def value(self, row: int) -> bytes | None:
        """The bytes of a row."""
        if self.nulls[row]:
            return None
        return bytes(self.content[self.ends[row] : self.ends[row + 1]])


class Headers(NamedTuple):
    """Row i has the entries from ends[i] to ends[i + 1]."""

    ends: I32
    names: BytesColumn
    values: BytesColumn


class Columns(NamedTuple):
    """The columns of some rows; None for a column of nulls. `timestamps` in ms."""

    timestamps: I64
    keys: BytesColumn | None
    values: BytesColumn | None
    headers: Headers | None


def encode_in_python(
    out: bytearray,
    end: int,
    rows: I32,
    delta: int,
    base_timestamp: int,
    timestamps: I64,
    keys: BytesColumn | None,
    values: BytesColumn | None,
    headers: Headers | None,
    /,
) -> tuple[int, int]:
    """See `_rows.c`."""
    done = 0
    for row in rows.tolist():
        entries: list[tuple[str, bytes | None]] = []
        if headers is not None:
            for entry in range(headers.ends[row], headers.ends[row + 1]):
                name = headers.names.value(entry)
                assert name is not None, "each header has a name"
                entries.append((name.decode(), headers.values.value(entry)))
        record = Record(
            offset_delta=delta + done,
            key=None if keys is None else keys.value(row),
            value=None if values is None else values.value(row),
            headers=tuple(entries),
        )
        encoded = encode_record(record, int(timestamps[row]) - base_timestamp)
        # The compiled code compares before it knows how many bytes the length takes.
        if len(encoded) - _length_bytes(encoded) + 5 > len(out) - end:
            break
        out[end : end + len(encoded)] = encoded
        end += len(encoded)
        done += 1
    return done, end


def _length_bytes(encoded: bytes) -> int:
    """How many bytes the length of a record takes."""
    return next(at for at, byte in enumerate(encoded, start=1) if byte < 0x80)


def partitions_in_python(keys: BytesColumn, count: int, out: I32, /) -> None:
    """See `_rows.c`."""
    for row in range(len(out)):
        key = keys.value(row)
        out[row] = NO_KEY if key is None else partition_for_key(key, count)


try:
    from strandline.records import _rows
except ImportError:  # It is not built: there was no compiler when the package was installed.
    IS_COMPILED = False
else:
    IS_COMPILED = _rows.REVISION == REVISION
"""Whether the compiled code does the work."""

_encode: Callable[..., tuple[int, int]] = encode_in_python
_partitions: Callable[[Any, int, Any], None] = partitions_in_python
if IS_COMPILED:
    _encode, _partitions = _rows.encode, _rows.partitions


def encode(
    out: bytearray, end: int, rows: I32, columns: Columns, *, delta: int, base_timestamp: int
) -> tuple[int, int]:
    """Append the records of these rows to `out` from `end` on, as long as they fit.

    Offset deltas count from `delta`. Returns (how many rows, the end behind them)."""
    return _encode(out, end, rows, delta, base_timestamp, *columns)


def partitions_of(keys: BytesColumn, count: int, rows: int) -> I32:
    """The partition of each of `rows` keys by Kafka's partitioner, `NO_KEY` for a null."""
    out = np.empty(rows, np.int32)
    _partitions(keys, count, out)
    return out
