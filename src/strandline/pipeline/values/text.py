"""Bytes to a text column: for keys, and for values that are kept as text.

Why:    bytes that are not UTF-8 in a text column make a file that other readers refuse.
How:    Arrow checks a whole column at memory speed; one that fails is read value by
        value."""

from typing import Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.pipeline.values.decoding import DecodedValues
from strandline.pipeline.values.problems import NOT_UTF8


class TextDecoder:
    """A Decoder of UTF-8. Other bytes are null, with a reason, in both modes."""

    @property
    def type(self) -> T.StringType:
        """Spark's type of the values."""
        return T.StringType()

    def decode(self, values: Any) -> DecodedValues:
        """Decodes a BinaryArray."""
        if not pa.types.is_binary(values.type):
            values = values.cast(pa.binary())
        try:
            texts = values.cast(pa.string())
            return DecodedValues(texts, pa.nulls(len(values), pa.string()))
        except pa.ArrowInvalid:
            pairs = [_text(one) for one in values.to_pylist()]
        texts, problems = zip(*pairs, strict=True)
        return DecodedValues(pa.array(texts, pa.string()), pa.array(problems, pa.string()))


def _text(data: bytes | None) -> tuple[str | None, str | None]:
    try:
        return None if data is None else data.decode("utf-8"), None
    except UnicodeDecodeError:
        return None, NOT_UTF8
