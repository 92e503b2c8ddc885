"""The words of a command choose one decoder, or are refused in one line."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.pipeline.values.protobuf.schemas import descriptor_set, field, file, message
from tests.pipeline.values.registry_server import serve_registry

from strandline.base.errors import OperatorError
from strandline.pipeline.values.formats import open_decoder

AVRO = json.dumps({"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]})
PROTOBUF = descriptor_set(file(message("R", field(1, "a", "int32")), imports=()))
JSON_SCHEMA = json.dumps({"properties": {"a": {"type": "integer"}}})
FILES: list[tuple[str, bytes, bytes]] = [
    ("s.ddl", b"a INT", b'{"a":1}'),
    ("s.json", JSON_SCHEMA.encode(), b'{"a":1}'),
    ("s.avsc", AVRO.encode(), b"\x02"),
    ("s.desc", PROTOBUF, b"\x08\x01"),
]


@pytest.mark.parametrize(("name", "content", "value"), FILES)
def test_the_ending_of_the_schema_chooses_the_format(
    name: str, content: bytes, value: bytes, tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    decoded = open_decoder(None, schema=path).decode(pa.array([value]))
    assert (decoded.values.to_pylist(), decoded.problems.to_pylist()) == ([{"a": 1}], [None])


def test_a_subject_of_a_registry_is_the_readers_schema() -> None:
    with serve_registry() as server:
        server.register("t-value", AVRO)
        server.register("j-value", JSON_SCHEMA, "JSON")
        for name, subject, value in (
            ("avro", "t-value", b"\x00\x00\x00\x00\x01\x02"),
            ("json-schema", "j-value", b'\x00\x00\x00\x00\x02{"a":1}'),
        ):
            decoder = open_decoder(name, registry=server.url, subject=subject)
            assert decoder.decode(pa.array([value])).values.to_pylist() == [{"a": 1}]


def test_text_needs_no_schema() -> None:
    assert open_decoder("text").decode(pa.array([b"x"])).values.to_pylist() == ["x"]


REFUSED: list[tuple[str | None, dict[str, Any], str]] = [
    ("xml", {}, "--format xml: expected one of json, json-schema, avro, protobuf, text"),
    (None, {}, "--format: expected one of json, json-schema, avro, protobuf, text, or a --schema"),
    (None, {"schema": Path("s.txt")}, "--format: expected one of json, json-schema"),
    ("json", {}, "--format json needs --schema FILE with Spark DDL"),
    ("json", {"registry": "http://x"}, "--registry: --format json has no schema ids"),
    ("text", {"schema": Path("s.ddl")}, "--schema s.ddl: text has no schema"),
    ("avro", {"subject": "s"}, "--subject s: give --registry URL, too"),
    ("avro", {"message": "R"}, "--message R: only Protobuf has messages"),
    ("avro", {}, "Avro needs --schema FILE, or --registry URL and a subject"),
    ("protobuf", {"registry": "http://x"}, "Protobuf needs --schema FILE, or --registry URL"),
    (
        "avro",
        {"registry": "http://x", "subject": "s", "schema": Path("s.avsc")},
        "--schema and --subject: the reader's schema is one of them",
    ),
    ("avro", {"schema": Path("no.avsc")}, "--schema no.avsc: cannot read"),
]


@pytest.mark.parametrize(("name", "words", "reason"), REFUSED)
def test_words_that_do_not_go_together_are_refused(
    name: str | None, words: dict[str, Any], reason: str
) -> None:
    with pytest.raises(OperatorError) as refusal:
        open_decoder(name, **words)
    assert str(refusal.value).startswith(reason)
