"""JSON values with a schema id in front, as Confluent's JSON Schema serializers write them.

How:    00 | id, 4 bytes | JSON.  The id must be one of a JSON Schema in the registry; the value is
        decoded strictly by the reader's type, whatever the writer's schema says: what that one has
        in addition is an unknown field.
        The reader's schema is fixed when the decoder is made: the file's, or the newest of the
        registry's subject at that moment."""

from typing import Any

import pyarrow as pa
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.values.decoding import DecodedValues, Decoder, Mode
from strandline.pipeline.values.json.decoder import JsonDecoder, json_decoder
from strandline.pipeline.values.json_schema import parse_json_schema
from strandline.pipeline.values.problems import UnfitValueError
from strandline.pipeline.values.registry.client import SchemaRegistry, UnknownSchemaError
from strandline.pipeline.values.registry.framing import CONFLUENT_BYTES, confluent_id


def json_schema_decoder(
    schema: str | None = None,
    *,
    registry: SchemaRegistry | None = None,
    subject: str | None = None,
    mode: Mode = "strict",
) -> Decoder:
    """Decodes JSON by a JSON Schema: its text, or the newest of `subject` in the registry.

    With a registry values have ids in front. OperatorError for a schema without columns.
    """
    source = "--schema"
    if schema is None:
        if registry is None or subject is None:
            raise OperatorError("JSON Schema needs --schema FILE, or --registry URL and a subject")
        source = f"registry {registry.url}: {subject}"
        found = registry.latest(subject)
        if found.kind != "JSON":
            raise OperatorError(f"{source} is {found.kind}, not JSON")
        schema = found.text
    decoder = json_decoder(parse_json_schema(schema, source=source), mode)
    return decoder if registry is None else RegisteredJsonDecoder(decoder, registry)


class RegisteredJsonDecoder:
    """A Decoder of JSON behind a schema id."""

    def __init__(self, decoder: JsonDecoder, registry: SchemaRegistry) -> None:
        self._decoder = decoder
        self._registry = registry

    @property
    def type(self) -> T.StructType:
        """Spark's type of the values."""
        return self._decoder.type

    def decode(self, values: Any) -> DecodedValues:
        """Decodes a BinaryArray. OperatorError if the registry does not answer."""
        known: dict[int, str | None] = {}
        bodies: list[bytes | None] = []
        framing: list[str | None] = []
        for data in values.to_pylist():
            reason = None if data is None else self._reason(data, known)
            framing.append(reason)
            bodies.append(None if data is None or reason else data[CONFLUENT_BYTES:])
        decoded = self._decoder.decode(pa.array(bodies, pa.binary()))
        if not any(framing):
            return decoded
        problems = zip(framing, decoded.problems.to_pylist(), strict=True)
        return DecodedValues(
            decoded.values, pa.array([first or then for first, then in problems], pa.string())
        )

    def _reason(self, data: bytes, known: dict[int, str | None]) -> str | None:
        """Why a value's schema is none, asked once for each id of one call."""
        try:
            number = confluent_id(data)
        except UnfitValueError as unfit:
            return str(unfit)
        if number not in known:
            try:
                kind = self._registry.schema(number).kind
                known[number] = None if kind == "JSON" else f"schema {number} is {kind}, not JSON"
            except UnknownSchemaError as error:
                known[number] = str(error)
        return known[number]
