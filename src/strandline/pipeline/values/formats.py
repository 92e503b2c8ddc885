"""The decoder that a command's words ask for: format, schema file, registry.

Why:    every job that decodes takes the same words and refuses the same mistakes.
How:    format       --schema FILE                       --registry URL, --subject NAME
        json         Spark DDL                           -
        json-schema  JSON Schema                         values have ids; FILE or subject
        avro         a schema; all values have it,       values have ids; FILE or subject is the
                     unless there is a registry          reader's schema
        protobuf     a descriptor set                    values have ids; FILE or subject
        text         -                                   -
        Without --format the file's ending decides: .ddl, .json, .avsc, .desc or .pb."""

from pathlib import Path
from typing import Literal, get_args

from strandline.base.errors import OperatorError
from strandline.pipeline.values.avro.decoder import avro_decoder, read_avro_schema
from strandline.pipeline.values.ddl import read_ddl
from strandline.pipeline.values.decoding import Decoder, Mode
from strandline.pipeline.values.json.decoder import json_decoder
from strandline.pipeline.values.json.registered import json_schema_decoder
from strandline.pipeline.values.json_schema import read_json_schema
from strandline.pipeline.values.protobuf.decoder import protobuf_decoder
from strandline.pipeline.values.protobuf.descriptors import read_descriptor_set
from strandline.pipeline.values.registry.client import SchemaRegistry
from strandline.pipeline.values.text import TextDecoder

Format = Literal["json", "json-schema", "avro", "protobuf", "text"]

ENDINGS: dict[str, Format] = {
    ".ddl": "json",
    ".json": "json-schema",
    ".avsc": "avro",
    ".desc": "protobuf",
    ".pb": "protobuf",
}


def open_decoder(
    format: str | None,
    *,
    schema: Path | None = None,
    registry: str | None = None,
    subject: str | None = None,
    message: str | None = None,
    mode: Mode = "strict",
) -> Decoder:
    """The decoder of a format. OperatorError for words that do not go together, or bad schemas.

    `subject` such as `flights-value`; `message`: the full name of a Protobuf message.
    """
    chosen = _format(format, schema)
    if message is not None and chosen != "protobuf":
        raise OperatorError(f"--message {message}: only Protobuf has messages")
    if registry is not None and chosen in ("json", "text"):
        raise OperatorError(f"--registry: --format {chosen} has no schema ids: use json-schema")
    if subject is not None and registry is None:
        raise OperatorError(f"--subject {subject}: give --registry URL, too")
    if schema is not None and subject is not None:
        raise OperatorError("--schema and --subject: the reader's schema is one of them")
    asked = SchemaRegistry(registry) if registry is not None else None
    if chosen == "text":
        if schema is not None:
            raise OperatorError(f"--schema {schema}: text has no schema")
        return TextDecoder()
    if chosen == "json":
        if schema is None:
            raise OperatorError("--format json needs --schema FILE with Spark DDL")
        return json_decoder(read_ddl(schema), mode)
    if chosen == "json-schema":
        text = None
        if schema is not None:
            read_json_schema(schema)
            text = schema.read_text(encoding="utf-8")
        return json_schema_decoder(text, registry=asked, subject=subject, mode=mode)
    if chosen == "avro":
        text = None if schema is None else read_avro_schema(schema)
        return avro_decoder(text, registry=asked, subject=subject, mode=mode)
    data = None if schema is None else read_descriptor_set(schema)
    return protobuf_decoder(data, message=message, registry=asked, subject=subject, mode=mode)


def _format(given: str | None, schema: Path | None) -> Format:
    if given is not None:
        for one in get_args(Format):
            if given == one:
                found: Format = one
                return found
        raise OperatorError(f"--format {given}: expected one of {', '.join(get_args(Format))}")
    if schema is not None and schema.suffix in ENDINGS:
        return ENDINGS[schema.suffix]
    raise OperatorError(
        f"--format: expected one of {', '.join(get_args(Format))}, or a --schema that ends in "
        f"{', '.join(ENDINGS)}"
    )
