"""Avro values -> a typed column, each by its writer's schema, resolved to the reader's.

How:    framing none           all values have one schema, the given one
        framing confluent      the id in front of a value names its schema in the registry
        framing single-object  the fingerprint in front names one of the given schemas
        The reader's schema is fixed when the decoder is made, so that all executors agree on it:
        the file's, or the newest of the registry's subject at that moment. A writer's schema that
        cannot be resolved to it makes each of its values a problem.
        lenient differs for trailing bytes and unknown fields only: other faults of a binary value
        leave nothing to trust behind them."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fastavro.schema import fingerprint as avro_fingerprint
from fastavro.schema import to_parsing_canonical_form
from pyspark.sql import types as T  # noqa: N812  (as in all of Spark's documentation)

from strandline.base.errors import OperatorError
from strandline.pipeline.values.arrow_types import to_arrow
from strandline.pipeline.values.avro.binary import TRUNCATED
from strandline.pipeline.values.avro.resolution import Read, UnresolvableError, resolve
from strandline.pipeline.values.avro.schema import parse_avro, spark_type
from strandline.pipeline.values.decoding import DecodedValues, Mode, decode_each
from strandline.pipeline.values.problems import (
    NOT_UTF8,
    TOO_DEEP,
    TRAILING,
    UnfitValueError,
    encodable,
)
from strandline.pipeline.values.registry import framing as frames
from strandline.pipeline.values.registry.client import SchemaRegistry, UnknownSchemaError
from strandline.pipeline.values.registry.framing import Framing

Plan = tuple[Read, list[str]]
"""How to read a value of one writer's schema, and the list that gets what has no column."""


def read_avro_schema(path: Path, *, option: str = "--schema") -> str:
    """The text of a schema file that describes a record. OperatorError names the file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise OperatorError(f"{option} {path}: cannot read: {error}") from error
    spark_type(parse_avro(text, source=f"{option} {path}"), source=f"{option} {path}")
    return text


def avro_decoder(
    schema: str | None = None,
    *,
    registry: SchemaRegistry | None = None,
    subject: str | None = None,
    framing: Framing | None = None,
    writers: tuple[str, ...] = (),
    mode: Mode = "strict",
) -> "AvroDecoder":
    """Decodes Avro records. `schema`: the reader's, as JSON text; without it the newest of
    `subject` in the registry. `writers`: more schemas for fingerprints. OperatorError if not so.
    """
    framing = framing or ("confluent" if registry else "none")
    if framing == "confluent" and registry is None:
        raise OperatorError("values with schema ids need --registry URL")
    references: tuple[str, ...] = ()
    source = "--schema"
    if schema is None:
        if registry is None or subject is None:
            raise OperatorError("Avro needs --schema FILE, or --registry URL and a subject")
        found = registry.latest(subject)
        if found.kind != "AVRO":
            raise OperatorError(f"registry {registry.url}: {subject} is {found.kind}, not AVRO")
        schema, references = found.text, tuple(text for _, text in found.references)
        source = f"registry {registry.url}: {subject}"
    return AvroDecoder(schema, references, registry, framing, writers, mode, source)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text.strip()


class AvroDecoder:
    """A Decoder of Avro records."""

    def __init__(
        self,
        schema: str,
        references: tuple[str, ...],
        registry: SchemaRegistry | None,
        framing: Framing,
        writers: tuple[str, ...],
        mode: Mode,
        source: str,
    ) -> None:
        self._arguments = (schema, references, registry, framing, writers, mode, source)
        self._reader = parse_avro(schema, source=source, references=references)
        kind, _ = spark_type(self._reader, source=source)
        if not isinstance(kind, T.StructType):
            raise OperatorError(f"{source}: expected a record, not {kind.simpleString()}")
        self._type = kind
        self._arrow = to_arrow(kind)
        self._registry = registry
        self._mode = mode
        self._plans: dict[int, Plan | str] = {}
        """{id or fingerprint: the plan, or why there is none}"""
        self._unknown: dict[int, str] = {}
        """{id that the registry does not know: the reason}, for one call of `decode`"""
        own = self._plan(schema, references)
        self._split: Callable[[bytes], tuple[Plan | str, int]]
        if framing == "none":
            self._split = lambda data: (own, 0)
        elif framing == "confluent":
            self._split = self._by_id
        else:
            self._split = self._by_fingerprint
            for one in (schema, *writers):
                print_hex = avro_fingerprint(to_parsing_canonical_form(_json(one)), "CRC-64-AVRO")
                number = int.from_bytes(bytes.fromhex(print_hex), "little")
                self._plans[number] = self._plan(one, ())

    def __reduce__(self) -> tuple[Any, ...]:
        return AvroDecoder, self._arguments

    @property
    def type(self) -> T.StructType:
        """Spark's type of the values."""
        return self._type

    def decode(self, values: Any) -> DecodedValues:
        """Decodes a BinaryArray. OperatorError if the registry does not answer."""
        self._unknown.clear()
        return decode_each(values, self._one, self._arrow)

    def _one(self, data: bytes) -> tuple[Any, str | None]:
        try:
            plan, start = self._split(data)
            if isinstance(plan, str):
                return None, plan
            read, notes = plan
            value, end = read(data, start)
        except (IndexError, struct.error):
            return None, TRUNCATED
        except UnicodeDecodeError:
            return None, NOT_UTF8
        except RecursionError:
            return None, TOO_DEEP
        except UnfitValueError as unfit:
            return None, encodable(str(unfit))
        if not notes and end == len(data):
            return value, None
        reason = notes[0] if notes else TRAILING
        notes.clear()
        return (value if self._mode == "lenient" else None), reason

    def _by_id(self, data: bytes) -> tuple[Plan | str, int]:
        number = frames.confluent_id(data)
        plan = self._plans.get(number) or self._unknown.get(number)
        if plan is None:
            assert self._registry is not None
            try:
                schema = self._registry.schema(number)
            except UnknownSchemaError as error:
                self._unknown[number] = str(error)
                raise
            if schema.kind != "AVRO":
                plan = f"schema {number} is {schema.kind}, not AVRO"
            else:
                references = tuple(text for _, text in schema.references)
                plan = self._plan(schema.text, references, name=f"schema {number}")
            self._plans[number] = plan
        return plan, frames.CONFLUENT_BYTES

    def _by_fingerprint(self, data: bytes) -> tuple[Plan | str, int]:
        number = frames.fingerprint(data)
        plan = self._plans.get(number, f"no schema has the fingerprint {number:016x}")
        return plan, frames.SINGLE_OBJECT_BYTES

    def _plan(
        self, text: str, references: tuple[str, ...], *, name: str = "a writer's schema"
    ) -> Plan | str:
        notes: list[str] = []
        try:
            writer = parse_avro(text, source=name, references=references)
            return resolve(writer, self._reader, notes), notes
        except OperatorError as error:
            return str(error)
        except UnresolvableError as error:
            return f"{name} does not resolve: {error}"
