"""The decoders of values agree with Spark: its DDL, its types, and executors that run them."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import types as T  # noqa: N812
from tests.pipeline.values.test_ddl import READ, REFUSED

from strandline.pipeline.values.ddl import parse_ddl
from strandline.pipeline.values.json.decoder import json_decoder

pytestmark = pytest.mark.spark

FLIGHTS = Path(__file__).parents[2] / "demo" / "flights.ddl"
OURS = ("a int, B bigint,", "`a b` STRING, `c``d` BINARY;")
"""A comma or semicolon at the end, which Spark's own parser refuses."""
WITHOUT_COLUMNS = (
    "VARIANT",
    "VARCHAR",
    "STRUCT<>",
    "ARRAY<ARRAY",
    "MAP<MAP",
    "A INT",
    "a INT, a INT",
    "b INT>",
)
"""What Spark reads and a lake table cannot hold, or what is another matter than grammar."""
SCHEMA = """id BIGINT, d DECIMAL(18,2), t TIMESTAMP, n TIMESTAMP_NTZ, day DATE, b BINARY,
    a ARRAY<STRUCT<x: INT, y: STRING>>, m MAP<STRING, DOUBLE>"""
ROWS = [
    b'{"id":1,"d":1.5,"t":"2013-01-01T05:00:00Z","day":"2013-01-02","b":"aGk=","m":{"k":0.5}}',
    b'{"id":2,"a":[{"x":1},null],"n":"2013-01-01T05:00:00.000001"}',
    b'{"id":3} garbage',
    b'{"id":4,"id":5}',
    b"",
    None,
]


def test_ddl_is_read_as_spark_reads_it(spark: SparkSession) -> None:
    for text in (*READ, FLIGHTS.read_text()):
        if text not in OURS:
            assert parse_ddl(text) == T.StructType.fromDDL(text), text
    others = [one for one in REFUSED if one and not any(words in one for words in WITHOUT_COLUMNS)]
    assert [text for text in others if is_read_by_spark(text)] == []


def is_read_by_spark(text: str) -> bool:
    try:
        T.StructType.fromDDL(text)
        return True
    except PySparkException:
        return False


def test_executors_decode_as_this_process_does(spark: SparkSession) -> None:
    decoder = json_decoder(SCHEMA)

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            decoded = decoder.decode(batch.column("value"))
            yield pa.RecordBatch.from_arrays(
                [decoded.values, decoded.problems], ["value", "problem"]
            )

    columns = T.StructType(
        [T.StructField("value", decoder.type), T.StructField("problem", T.StringType())]
    )
    frame = spark.createDataFrame([(row,) for row in ROWS], "value BINARY").coalesce(1)
    found = frame.mapInArrow(decode, columns).toArrow()
    here = decoder.decode(pa.array(ROWS, pa.binary()))
    assert found.column("problem").to_pylist() == here.problems.to_pylist()
    assert found.column("value").to_pylist() == here.values.to_pylist()
