"""JSON records -> a typed column, strictly, at hundreds of thousands of records a second.

How:    `_ROWS` records at a time: the fast way for all; what it refuses and what is suspect goes
        the exact way, which has the last word; the two results are put in order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.values.arrow_types import to_arrow
from strandline.pipeline.values.ddl import parse_ddl
from strandline.pipeline.values.decoding import DecodedValues, Mode
from strandline.pipeline.values.evolution import paths
from strandline.pipeline.values.json import suspects
from strandline.pipeline.values.json.columns import (
    StructColumn,
    UnfitColumnError,
    count_long_integers,
    doubtful_doubles,
)
from strandline.pipeline.values.json.exact import fit
from strandline.pipeline.values.json.typed import typed_decode

_ROWS = 4096


def json_decoder(schema: str | T.StructType, mode: Mode = "strict") -> "JsonDecoder":
    """Decodes JSON objects of this type: DDL, or a Spark type. OperatorError for bad DDL."""
    return JsonDecoder(parse_ddl(schema) if isinstance(schema, str) else schema, mode)


class JsonDecoder:
    """A Decoder of JSON objects."""

    def __init__(self, data_type: T.StructType, mode: Mode) -> None:
        self._type = data_type
        self._mode: Mode = mode
        self._arrow = to_arrow(data_type)
        self._column = StructColumn(data_type)
        self._decode: Callable[[bytes], Any] = typed_decode(data_type)
        kinds = [kind for _, kind in paths(data_type)]
        self._has_doubles = any(isinstance(kind, T.DoubleType | T.FloatType) for kind in kinds)

    def __reduce__(self) -> tuple[Any, ...]:
        return JsonDecoder, (self._type, self._mode)

    @property
    def type(self) -> T.StructType:
        """Spark's type of the values."""
        return self._type

    def decode(self, values: Any) -> DecodedValues:
        """Decodes a BinaryArray. Never raises for bad bytes."""
        if not pa.types.is_binary(values.type):
            values = values.cast(pa.binary())
        parts = [
            self._part(values.slice(start, _ROWS)) for start in range(0, len(values), _ROWS)
        ] or [DecodedValues(pa.array([], self._arrow), pa.array([], pa.string()))]
        if len(parts) == 1:
            return parts[0]
        return DecodedValues(
            pa.concat_arrays([part.values for part in parts]),
            pa.concat_arrays([part.problems for part in parts]),
        )

    def _part(self, values: Any) -> DecodedValues:
        records = _Records(values)
        rows, decoded = self._try(records)
        kept, array, members = self._build(rows, decoded)
        suspected = self._suspects(records, kept, array, members)
        if len(kept) == len(values) and not suspected:
            return DecodedValues(array, pa.nulls(len(values), pa.string()))
        return self._merged(records, kept, array, suspected)

    def _try(self, records: "_Records") -> tuple[list[int], list[Any]]:
        """(the rows that msgspec takes, and their structs)"""
        decode, data = self._decode, records.data
        rows: list[int] = []
        decoded: list[Any] = []
        start = records.starts[0]
        for row, end in enumerate(records.starts[1:]):
            try:
                decoded.append(decode(data[start:end]))
                rows.append(row)
            except (ValueError, RecursionError, ArithmeticError):
                pass
            start = end
        if records.null_count:
            # Bytes may lie below a null.
            pairs = [one for one in zip(rows, decoded, strict=True) if records.valid(one[0])]
            return [row for row, _ in pairs], [one for _, one in pairs]
        return rows, decoded

    def _build(self, rows: list[int], decoded: list[Any]) -> tuple[Any, Any, Any]:
        """(the rows whose values fit, their column, the members of each)"""
        while True:
            try:
                return np.array(rows, np.int64), *self._column.build(decoded)
            except UnfitColumnError as unfit:
                bad = set(unfit.places)
                rows = [row for place, row in enumerate(rows) if place not in bad]
                decoded = [one for place, one in enumerate(decoded) if place not in bad]

    def _suspects(self, records: "_Records", kept: Any, array: Any, members: Any) -> set[int]:
        """The rows among those kept that the fast way may have changed."""
        if not len(kept):
            return set()
        pairs = suspects.count_pairs(records.bytes, records.offsets)[kept]
        found = {
            int(row)
            for row, count in zip(*_where(pairs != members, kept, pairs), strict=True)
            if suspects.count_distinct(records.row(row)) != count
        }
        if self._has_doubles:
            numbers = suspects.count_long_numbers(records.bytes, records.offsets)[kept]
            long = kept[numbers != count_long_integers(array)].tolist() if numbers.any() else ()
            found |= {row for row in long if suspects.has_lost_digits(records.row(row))}
            doubtful = kept[doubtful_doubles(array)].tolist()
            found |= {row for row in doubtful if suspects.may_be_no_zero(records.row(row))}
        return found

    def _merged(
        self, records: "_Records", kept: Any, array: Any, suspected: set[int]
    ) -> DecodedValues:
        places = np.full(len(records), -1, np.int64)
        places[kept] = np.arange(len(kept))
        places[list(suspected)] = -1
        rest = np.flatnonzero(places < 0)
        found: list[Any] = []
        problems: list[str | None] = [None] * len(records)
        for row in rest.tolist():
            value = None
            if records.valid(row):
                value, problems[row] = fit(records.row(row), self._type, self._mode)
            found.append(value)
        places[rest] = len(kept) + np.arange(len(rest))
        both = pa.concat_arrays([array, pa.array(found, self._arrow)])
        return DecodedValues(both.take(pa.array(places)), pa.array(problems, pa.string()))


class _Records:
    """The bytes of some records, and where each begins."""

    def __init__(self, values: Any) -> None:
        self._values = values
        self.null_count: int = values.null_count
        self._valid = values.is_valid().to_pylist() if values.null_count else None
        _, offsets, data = values.buffers()
        starts = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values) + 1]
        first, last = int(starts[0]), int(starts[-1])
        self.data: bytes = b"" if data is None else data[first:last].to_pybytes()
        self.bytes = np.frombuffer(self.data, np.uint8)
        self.offsets = starts.astype(np.int64) - first
        self.starts: list[int] = self.offsets.tolist()

    def __len__(self) -> int:
        return len(self._values)

    def row(self, row: int) -> bytes:
        """The bytes of one record."""
        return self.data[self.starts[row] : self.starts[row + 1]]

    def valid(self, row: int) -> bool:
        """False for a tombstone."""
        return self._valid is None or bool(self._valid[row])


def _where(mask: Any, *arrays: Any) -> list[list[int]]:
    return [array[mask].tolist() for array in arrays]
