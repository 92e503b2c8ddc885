"""Schemas are asked for once; a registry that cannot answer stops the job, not the record."""

import pickle
import socket

import pytest
from tests.pipeline.values.registry_server import serve_registry

from strandline.base.errors import OperatorError
from strandline.pipeline.values.registry.client import SchemaRegistry, UnknownSchemaError


def test_a_schema_is_asked_for_once_and_travels_with_the_client() -> None:
    with serve_registry() as server:
        number = server.register("a-value", '"string"')
        registry = SchemaRegistry(server.url + "/")
        assert registry.schema(number).text == '"string"'
        assert pickle.loads(pickle.dumps(registry)).schema(number).kind == "AVRO"
        assert server.requests == ["/schemas/ids/1"]


def test_an_unknown_id_is_the_records_fault_and_asked_anew() -> None:
    with serve_registry() as server:
        registry = SchemaRegistry(server.url)
        with pytest.raises(UnknownSchemaError, match=r"^schema 1 is not in the registry$"):
            registry.schema(1)
        server.register("a-value", '"string"')
        assert registry.schema(1).text == '"string"'


def test_references_come_before_what_needs_them() -> None:
    with serve_registry() as server:
        server.register("leaf", "L")
        server.register("middle", "M", references=("leaf",))
        server.register("a/b value", "T", references=("middle", "leaf"))
        found = SchemaRegistry(server.url).latest("a/b value")
        assert (found.text, found.references) == ("T", (("leaf", "L"), ("middle", "M")))


def test_a_failure_that_passes_is_tried_again() -> None:
    with serve_registry() as server:
        server.register("a-value", '"string"')
        server.failures = 2
        assert SchemaRegistry(server.url, retry_delays_s=(0.0, 0.0)).schema(1).text == '"string"'
        server.failures = 3
        with pytest.raises(OperatorError, match=r"answered 503 Service Unavailable to /subjects/"):
            SchemaRegistry(server.url, retry_delays_s=(0.0, 0.0)).latest("a-value")


def test_a_registry_that_is_not_there_is_named_without_its_password() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        registry = SchemaRegistry(f"http://me:secret@127.0.0.1:{port}", retry_delays_s=())
        with pytest.raises(OperatorError) as refusal:
            registry.schema(1)
    told = str(refusal.value)
    assert told.startswith(f"registry http://127.0.0.1:{port}: no answer: ")
    assert "secret" not in told


def test_what_is_no_registry_is_told() -> None:
    with serve_registry() as server:
        with pytest.raises(
            OperatorError, match=r"/elsewhere: answered 404 Not Found to /schemas/ids/1$"
        ):
            SchemaRegistry(server.url + "/elsewhere").schema(1)
        with pytest.raises(OperatorError, match=r"there is no subject b-value: name one"):
            SchemaRegistry(server.url).latest("b-value")
    for url in ("ftp://x", "localhost:8081", "http://"):
        with pytest.raises(OperatorError, match=r"^--registry: expected http://HOST:PORT"):
            SchemaRegistry(url)


def test_user_and_password_of_the_url_are_sent() -> None:
    with serve_registry() as server:
        server.register("a-value", '"string"')
        SchemaRegistry(server.url.replace("//", "//me:se%40cret@")).schema(1)
        assert server.authorization == ["Basic bWU6c2VAY3JldA=="]
