"""JSON behind a schema id is decoded by the reader's schema; the id must be a JSON Schema's."""

import json
import pickle

import pyarrow as pa
import pytest
from tests.pipeline.values.registry_server import serve_registry

from strandline.base.errors import OperatorError
from strandline.pipeline.values.json.registered import json_schema_decoder
from strandline.pipeline.values.registry.client import SchemaRegistry

SCHEMA = json.dumps({"properties": {"a": {"type": "integer"}}, "required": ["a"]})


def test_values_behind_an_id_are_decoded_strictly() -> None:
    with serve_registry() as server:
        number = server.register("t-value", SCHEMA, "JSON")
        avro = server.register("x", '"int"')
        registry = SchemaRegistry(server.url, retry_delays_s=())
        decoder = pickle.loads(
            pickle.dumps(json_schema_decoder(registry=registry, subject="t-value"))
        )

        def framed(schema_id: int, data: bytes) -> bytes:
            return b"\x00" + schema_id.to_bytes(4, "big") + data

        rows = [
            framed(number, b'{"a":1}'),
            None,
            framed(number, b'{"a":1,"b":2}'),
            framed(number, b"{}"),
            framed(number, b""),
            framed(avro, b'{"a":1}'),
            framed(9, b'{"a":1}'),
            b'{"a":1}',
            b"",
        ]
        decoded = decoder.decode(pa.array(rows, pa.binary()))
        assert decoded.values.to_pylist() == [{"a": 1}, *[None] * 8]
        assert decoded.problems.to_pylist() == [
            None,
            None,
            "unknown field b",
            "missing field a",
            "empty value",
            "schema 2 is AVRO, not JSON",
            "schema 9 is not in the registry",
            "no schema id in front of the value",
            "empty value",
        ]
        good = decoder.decode(pa.array(rows[:1]))
        assert good.problems.null_count == 1
        server.failures = 1
        with pytest.raises(OperatorError, match=r"answered 503"):
            decoder.decode(pa.array([framed(77, b"{}")]))
        with pytest.raises(OperatorError, match=r": x is AVRO, not JSON$"):
            json_schema_decoder(registry=SchemaRegistry(server.url), subject="x")


def test_without_a_registry_values_are_plain_json() -> None:
    decoded = json_schema_decoder(SCHEMA, mode="lenient").decode(pa.array([b'{"a":2} x']))
    assert decoded.values.to_pylist() == [{"a": 2}]
    with pytest.raises(OperatorError, match=r"^JSON Schema needs --schema FILE, or --registry"):
        json_schema_decoder()
