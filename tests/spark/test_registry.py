"""Topics whose values carry ids of a schema registry go into tables; executors ask the registry.

Source: docs/pipelines/lake.md, "Values with a schema"; docs/pipelines/values.md, "Formats"."""

import base64
import io
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fastavro
import pytest
from pyspark.sql import SparkSession
from tests.pipeline.values.protobuf.schemas import field, file, message
from tests.pipeline.values.registry_server import Registry, serve_registry
from tests.spark.jobs import Cluster, Record, create_topic, produce
from tests.spark.lakes import fill, lake_options, rows

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.options import LakeOptions, ValueFormat, read_values

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

Encode = Callable[[int, dict[str, Any]], bytes]
"""(id of the schema, value) -> the bytes of a record's value."""


def framed(number: int, data: bytes) -> bytes:
    return b"\x00" + number.to_bytes(4, "big") + data


def avro_fields(*fields: tuple[str, Any]) -> str:
    listed = [
        {"name": name, "type": kind} | ({"default": None} if isinstance(kind, list) else {})
        for name, kind in fields
    ]
    return json.dumps({"type": "record", "name": "R", "fields": listed})


def protobuf(*fields: Any) -> str:
    described = file(message("R", *fields), imports=())
    return base64.b64encode(described.SerializeToString()).decode()


AVRO_OLD = avro_fields(("n", "int"))
AVRO_NEW = avro_fields(("n", "long"), ("color", ["null", "string"]))
JSON_OLD = json.dumps({"properties": {"n": {"type": "integer"}}})
JSON_NEW = json.dumps({"properties": {"n": {"type": "integer"}, "color": {"type": "string"}}})
PROTOBUF_OLD = protobuf(field(1, "n", "int32"))
PROTOBUF_NEW = protobuf(field(1, "n", "int64"), field(2, "color", "string"))


def avro(schema: str, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(json.loads(schema)), value)
    return out.getvalue()


def as_protobuf(value: dict[str, Any]) -> bytes:
    color = value.get("color", "").encode()
    tail = b"\x12" + bytes([len(color)]) + color if color else b""
    return b"\x00\x08" + bytes([value["n"]]) + tail  # The index of the first message comes first.


def encoders(name: str) -> tuple[str, str, str, Encode, Encode]:
    """(the registry's name of the format, its older and newer schema, and how each writes)"""
    if name == "avro":
        return "AVRO", AVRO_OLD, AVRO_NEW, writes_avro(AVRO_OLD), writes_avro(AVRO_NEW)
    if name == "protobuf":
        write = lambda number, value: framed(number, as_protobuf(value))  # noqa: E731
        return "PROTOBUF", PROTOBUF_OLD, PROTOBUF_NEW, write, write
    plain = lambda number, value: framed(number, json.dumps(value).encode())  # noqa: E731
    return "JSON", JSON_OLD, JSON_NEW, plain, plain


def writes_avro(schema: str) -> Encode:
    return lambda number, value: framed(number, avro(schema, value))


def registered(
    cluster: Cluster, table: Path, topic: str, registry: Registry, name: str
) -> LakeOptions:
    """As the command builds it: the schema is the subject's newest one."""
    words = ValueFormat(name, registry.url, f"{topic}-value", None)
    schema = read_values(None, words, "strict")
    options = lake_options(cluster, table, topic, dead_letters=f"{table}_dead")
    return replace(options, schema=schema)


@pytest.mark.parametrize("name", ["avro", "protobuf", "json-schema"])
def test_a_table_follows_the_newest_schema_of_its_subject(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str, name: str
) -> None:
    table = tmp_path / "lake"
    kind, older, newer, write_old, write_new = encoders(name)
    create_topic(cluster, topic_name, partitions=2)
    with serve_registry() as registry:
        first = registry.register(f"{topic_name}-value", older, kind)
        old = [Record(b"%d" % n, write_old(first, {"n": n})) for n in range(40)]
        produce(cluster, topic_name, [*old, Record(b"none", None), Record(b"odd", b"\x07")])
        fill(spark, registered(cluster, table, topic_name, registry, name))
        assert sorted(each["n"] for (each,) in rows(table, "value") if each) == list(range(40))
        assert rows(f"{table}_dead", "key", "problem") == [
            (b"odd", "no schema id in front of the value")
        ]

        # A writer goes on with the older schema while another one has the newer.
        second = registry.register(f"{topic_name}-value", newer, kind)
        both = [
            Record(b"a", write_new(second, {"n": 50, "color": "red"})),
            Record(b"b", write_old(first, {"n": 51})),
            Record(b"c", write_new(99, {"n": 52, "color": "red"})),
        ]
        produce(cluster, topic_name, both)
        fill(spark, registered(cluster, table, topic_name, registry, name))
        found = spark.read.format("delta").load(str(table)).where("value.n >= 50")
        values = sorted(
            tuple(row) for row in found.select("key", "value.n", "value.color").collect()
        )
        none = "" if name == "protobuf" else None
        assert [(bytes(key), n, color or none) for key, n, color in values] == [
            (b"a", 50, "red"),
            (b"b", 51, none),
        ]
        assert (b"c", "schema 99 is not in the registry") in rows(f"{table}_dead", "key", "problem")
        asked = [path for path in registry.requests if path.startswith("/schemas/ids/99")]
        assert 0 < len(asked) <= 4  # A process of Spark's asks for an id once.

        # A registry that is away makes no good record a dead letter.
        registry.failures = 1_000
        produce(cluster, topic_name, [Record(b"d", write_new(second, {"n": 60, "color": "red"}))])
        with pytest.raises(OperatorError, match="answered 503"):
            registered(cluster, table, topic_name, registry, name)
        registry.failures = 0
        options = registered(cluster, table, topic_name, registry, name)
        told = fill(spark, options)
        assert [(each.records, each.dead_letters) for each in told] == [(1, 0)]


def test_a_registry_that_goes_away_while_a_batch_is_decoded_stops_the_job(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=1)
    with serve_registry() as registry:
        number = registry.register(f"{topic_name}-value", AVRO_OLD)
        produce(cluster, topic_name, [Record(b"k", framed(number, avro(AVRO_OLD, {"n": 1})))])
        options = registered(cluster, table, topic_name, registry, "avro")
        other = registry.register("other", AVRO_OLD)
        produce(cluster, topic_name, [Record(b"k", framed(other, avro(AVRO_OLD, {"n": 2})))])
        registry.failures = 1_000
        with pytest.raises(Exception, match="answered 503"):
            fill(spark, options)
        assert not (table / "_delta_log/00000000000000000000.json").exists() or not rows(
            table, "offset"
        )
        registry.failures = 0
        assert [(each.records, each.dead_letters) for each in fill(spark, options)] == [(2, 0)]
    assert rows(table, "offset") == [(0,), (1,)]
