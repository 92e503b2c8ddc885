"""Gathers rows in arrays that grow, and hands them over as columns of Arrow.

Why:    what a compressed batch holds is not known before it is decompressed. Arrays that double
        copy each byte at most once more.
Owns:   the arrays. A column that is not asked for has none."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from strandline.base.disk import Buffer
from strandline.spark.decoding.columns import TYPES
from strandline.spark.decoding.fill import fill, fill_headers
from strandline.spark.decoding.table import U8, Arrays, BytesColumn, Filled

_ARRAY_TYPES = {
    "offsets": np.int64,
    "timestamps": np.int64,
    "epochs": np.int32,
    "timestamp_types": np.int32,
    "headers_at": np.int32,
    "headers_counts": np.int32,
}
_COLUMN_OF_ARRAY = {
    "offsets": "offset",
    "timestamps": "timestamp",
    "epochs": "leaderEpoch",
    "timestamp_types": "timestampType",
    "headers_at": "headers",
    "headers_counts": "headers",
    "keys": "key",
    "values": "value",
}
_GROWTH = 2
_A = TypeVar("_A", bound=np.ndarray[Any, Any])


class Rows:
    """See the module. `count`: rows so far."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.count = 0
        self._columns = tuple(columns)
        self._capacity = 0
        self._entries = 0
        self._names = _new_bytes()
        self._header_values = _new_bytes()
        wanted: dict[str, Any] = {
            name: np.empty(0, kind)
            for name, kind in _ARRAY_TYPES.items()
            if _COLUMN_OF_ARRAY[name] in columns
        }
        for name in ("keys", "values"):
            if _COLUMN_OF_ARRAY[name] in columns:
                wanted[name] = _new_bytes()
        self._arrays = Arrays(**wanted)

    def reserve(self, rows: int, bytes_count: int) -> None:
        """Have room for this many rows and bytes behind those that are there."""
        if self.count + rows > self._capacity:
            self._capacity = max(self.count + rows, self._capacity * _GROWTH)
        resized: list[Any] = []
        for column in self._arrays:
            if isinstance(column, BytesColumn):
                resized.append(_grown(column, self.count, self._capacity, bytes_count))
            else:
                resized.append(_resized(column, self.count, self._capacity))
        self._arrays = Arrays(*resized)

    def add(self, records: Buffer, table: Any, size: tuple[int, int]) -> Filled:
        """Fill rows with the batches of a table; see `fill`. `size`: at most so many rows and
        bytes."""
        self.reserve(*size)
        first = self.count
        filled = fill(records, table, first, self._arrays)
        fault, _, _, self.count, headers = filled
        if headers and not fault:
            self._add_headers(records, slice(first, self.count), headers)
        return filled

    def _add_headers(self, records: Buffer, rows: slice, headers: int) -> None:
        at, counts = self._arrays.headers_at, self._arrays.headers_counts
        assert at is not None and counts is not None, "headers are counted where they are asked for"
        used, entries = self._entries, self._entries + headers
        capacity = max(entries, used * _GROWTH) if entries >= len(self._names.nulls) else 0
        size = len(records)
        self._names = _grown(self._names, used, capacity, size)
        self._header_values = _grown(self._header_values, used, capacity, size)
        into = (self._names, self._header_values)
        self._entries = fill_headers(records, (at[rows], counts[rows]), (used, entries), into)

    def column(self, name: str, *, topic: str, partition: int) -> pa.Array:
        """All rows of a column that was asked for."""
        arrays, count = self._arrays, self.count
        if name == "topic":
            return pa.repeat(pa.scalar(topic, TYPES[name]), count)
        if name == "partition":
            return pa.repeat(pa.scalar(partition, TYPES[name]), count)
        if name == "headers":
            return self._headers()
        if name in ("key", "value"):
            column = arrays.keys if name == "key" else arrays.values
            assert column is not None, name
            return _binary(column, count)
        numbers = {
            "offset": arrays.offsets,
            "timestamp": arrays.timestamps,
            "leaderEpoch": arrays.epochs,
            "timestampType": arrays.timestamp_types,
        }[name]
        assert numbers is not None, name
        return pa.Array.from_buffers(TYPES[name], count, [None, pa.py_buffer(numbers[:count])])

    def _headers(self) -> pa.Array:
        counts = self._arrays.headers_counts
        assert counts is not None, "the column was asked for"
        counts = counts[: self.count]
        entry = TYPES["headers"].value_type
        entries = pa.StructArray.from_arrays(
            [
                _texts(_binary(self._names, self._entries)),
                _binary(self._header_values, self._entries),
            ],
            fields=[entry.field(0), entry.field(1)],
        )
        ends = np.zeros(self.count + 1, np.int32)
        np.cumsum(counts, out=ends[1:])
        validity, nulls = _validity(counts == 0)
        return pa.Array.from_buffers(
            TYPES["headers"],
            self.count,
            [validity, pa.py_buffer(ends)],
            null_count=nulls,
            children=[entries],
        )


def _new_bytes() -> BytesColumn:
    return BytesColumn(np.zeros(1, np.int32), np.empty(0, np.uint8), np.empty(0, np.uint8))


def _new_array(capacity: int, kind: Any) -> Any:
    """Arrow's pool keeps memory that is free; NumPy's would come from the kernel, page by page."""
    memory = pa.allocate_buffer(capacity * np.dtype(kind).itemsize)
    return np.frombuffer(memory, kind)


def _resized(array: _A | None, used: int, capacity: int) -> _A | None:
    """The array with room for `capacity` items, the first `used` of them kept."""
    if array is None or len(array) >= capacity:
        return array
    larger = _new_array(capacity, array.dtype)
    larger[:used] = array[:used]
    return larger  # type: ignore[no-any-return]


def _grown(column: BytesColumn, used: int, capacity: int, bytes_count: int) -> BytesColumn:
    """The column with room for `capacity` rows, and `bytes_count` bytes behind those of the first
    `used` rows, which are kept."""
    end = int(column.ends[used])
    room = len(column.bytes)
    if end + bytes_count > room:
        room = max(end + bytes_count, room * _GROWTH)
    ends = _resized(column.ends, used + 1, capacity + 1)
    content = _resized(column.bytes, end, room)
    nulls = _resized(column.nulls, used, capacity)
    assert ends is not None and content is not None and nulls is not None
    return BytesColumn(ends, content, nulls)


def _validity(nulls: "np.ndarray[Any, np.dtype[np.bool_]] | U8") -> tuple[pa.Buffer | None, int]:
    """(Arrow's bitmap, how many are null); no bitmap without nulls."""
    count = int(np.count_nonzero(nulls))
    if not count:
        return None, 0
    return pa.py_buffer(np.packbits(nulls == 0, bitorder="little")), count


def _binary(column: BytesColumn, count: int) -> pa.Array:
    """The first `count` rows, without a copy."""
    ends = column.ends[: count + 1]
    content = column.bytes[: ends[-1]]
    validity, nulls = _validity(column.nulls[:count])
    buffers = [validity, pa.py_buffer(ends), pa.py_buffer(content)]
    return pa.Array.from_buffers(pa.binary(), count, buffers, null_count=nulls)


def _texts(names: pa.Array) -> pa.Array:
    """Names of headers as text, in which Java's U+FFFD stands for bytes that are no UTF-8."""
    try:
        return names.cast(pa.string())
    except pa.ArrowInvalid:
        texts = [name.decode(errors="replace") for name in names.to_pylist()]
        return pa.array(texts, pa.string())
