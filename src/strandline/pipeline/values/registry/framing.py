"""The bytes in front of a value that name its schema.

How:    confluent      00 | id, 4 bytes, most significant first | the value
        single-object  C3 01 | CRC-64-AVRO of the schema, 8 bytes, least significant first | value
        none           the value alone
Source: Confluent's wire format; Avro 1.12, "Single-object encoding"."""

from typing import Literal

from strandline.pipeline.values.problems import EMPTY, UnfitValueError

Framing = Literal["none", "confluent", "single-object"]

CONFLUENT_BYTES = 5
SINGLE_OBJECT_BYTES = 10
_SINGLE_OBJECT = b"\xc3\x01"


def confluent_id(data: bytes) -> int:
    """The id of the schema; the value begins at CONFLUENT_BYTES. Raises UnfitValueError."""
    if not data:
        raise UnfitValueError(EMPTY)
    if data[0] != 0 or len(data) < CONFLUENT_BYTES:
        raise UnfitValueError("no schema id in front of the value")
    return int.from_bytes(data[1:CONFLUENT_BYTES], "big")


def fingerprint(data: bytes) -> int:
    """The fingerprint of the schema; the value begins at SINGLE_OBJECT_BYTES."""
    if not data:
        raise UnfitValueError(EMPTY)
    if data[:2] != _SINGLE_OBJECT or len(data) < SINGLE_OBJECT_BYTES:
        raise UnfitValueError("no schema fingerprint in front of the value")
    return int.from_bytes(data[2:SINGLE_OBJECT_BYTES], "little")
