"""What every decoder of values offers, and what one pass over a column of bytes gives.

Why:    a job reads JSON, Avro or Protobuf by the same loop; only the factory differs.
How:    strict: a value that does not round-trip is null and has a reason. lenient: the value as far
        as it fits, and the same reason. A null (a tombstone) stays null and has no reason.
Source: decisions/0051."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

Mode = Literal["strict", "lenient"]


@dataclass(frozen=True, slots=True)
class DecodedValues:
    """Two columns as long as the bytes they come from."""

    values: Any
    """A StructArray of the decoder's type; a StringArray for keys that are text."""
    problems: pa.StringArray
    """Null where the value fits and round-trips, else a short reason (`values/problems.py`)."""


class Decoder(Protocol):
    """Bytes -> typed columns. A decoder has no state that changes and can be pickled."""

    @property
    def type(self) -> T.DataType:
        """Spark's type of the values."""
        ...

    def decode(self, values: Any) -> DecodedValues:
        """Decodes a BinaryArray: one value each, in the same order. Never raises for bad bytes."""
        ...


def decode_each(
    values: Any, one: Callable[[bytes], tuple[Any, str | None]], value_type: pa.DataType
) -> DecodedValues:
    """A BinaryArray, each value of which `one` decodes: (value, problem). Nulls stay null."""
    found: list[Any] = []
    problems: list[str | None] = []
    for data in values.to_pylist():
        value, problem = (None, None) if data is None else one(data)
        found.append(value)
        problems.append(problem)
    return DecodedValues(pa.array(found, value_type), pa.array(problems, pa.string()))
