"""Queries written for Spark's Kafka connector, run with both formats: the same columns, types and
rows.

Source: decisions/0049; docs/pipelines/from-the-kafka-connector.md."""

import json
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as every user of Spark writes it)
from tests.spark.jobs import Cluster, Record, create_topic, produce, read_topic

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

PARTITIONS = 3
RECORD_COUNT = 3_000
FORMATS = ("kafka", "strandline")


@dataclass(frozen=True)
class Topics:
    """Two topics whose names begin alike. `middle_ms`: a time within their records."""

    bootstrap: str
    prefix: str
    middle_ms: int

    @property
    def orders(self) -> str:
        return f"{self.prefix}-orders"

    @property
    def returns(self) -> str:
        return f"{self.prefix}-returns"


def record(n: int) -> Record:
    """Keys, values and headers of every kind: present, empty and null."""
    key = None if n % 7 == 0 else str(n % 50).encode()
    value = None if n % 11 == 0 else json.dumps({"n": n, "price": n % 97}).encode()
    headers = (("trace", b"%d" % n), ("trace", b"")) if n % 3 else ()
    return Record(key, value, headers)


@pytest.fixture(scope="module")
def topics(cluster: Cluster) -> Topics:
    """The topics, filled by an independent client in two steps with a known time between."""
    prefix = f"side-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    found = Topics(cluster.bootstrap, prefix, 0)
    for topic, count in ((found.orders, RECORD_COUNT), (found.returns, 100)):
        create_topic(cluster, topic, partitions=PARTITIONS)
        produce(cluster, topic, (record(n) for n in range(count)))
    times = sorted(one.timestamp_ms for one in read_topic(cluster, found.orders).values())
    return Topics(cluster.bootstrap, prefix, times[len(times) // 2])


Query = Callable[[DataFrameReader, Topics], DataFrame]


def whole_topic(read: DataFrameReader, topics: Topics) -> DataFrame:
    return read.option("subscribe", topics.orders).load()


def with_headers(read: DataFrameReader, topics: Topics) -> DataFrame:
    return read.option("subscribe", topics.orders).option("includeHeaders", "true").load()


def two_topics(read: DataFrameReader, topics: Topics) -> DataFrame:
    return read.option("subscribe", f"{topics.orders},{topics.returns}").load()


def by_pattern(read: DataFrameReader, topics: Topics) -> DataFrame:
    return read.option("subscribePattern", f"{topics.prefix}-.*").load()


def assigned(read: DataFrameReader, topics: Topics) -> DataFrame:
    return read.option("assign", json.dumps({topics.orders: [0, 2]})).load()


def by_offsets(read: DataFrameReader, topics: Topics) -> DataFrame:
    starts = {topics.orders: {"0": 5, "1": -2, "2": 100}}
    ends = {topics.orders: {"0": 50, "1": 7, "2": -1}}
    return (
        read.option("subscribe", topics.orders)
        .option("startingOffsets", json.dumps(starts))
        .option("endingOffsets", json.dumps(ends))
        .load()
    )


def by_time(read: DataFrameReader, topics: Topics) -> DataFrame:
    return (
        read.option("subscribe", topics.orders)
        .option("startingTimestamp", str(topics.middle_ms))
        .option("endingTimestamp", str(topics.middle_ms + 3_600_000))
        .load()
    )


def by_times(read: DataFrameReader, topics: Topics) -> DataFrame:
    times = {topics.orders: {str(n): topics.middle_ms for n in range(PARTITIONS)}}
    return (
        read.option("subscribe", topics.orders)
        .option("endingOffsetsByTimestamp", json.dumps(times))
        .option("minPartitions", "8")
        .option("failOnDataLoss", "false")
        .load()
    )


def decoded_values(read: DataFrameReader, topics: Topics) -> DataFrame:
    """As most queries go on: key and value as text, JSON parsed."""
    return (
        read.option("subscribe", topics.orders)
        .option("kafka.isolation.level", "read_committed")
        .option("kafka.max.poll.records", "20000")
        .option("groupIdPrefix", "mine")
        .load()
        .select(
            F.col("key").cast("string").alias("customer"),
            F.from_json(F.col("value").cast("string"), "n BIGINT, price INT").alias("order"),
            "partition",
            "offset",
        )
        .where("order.price > 50")
    )


def aggregated(read: DataFrameReader, topics: Topics) -> DataFrame:
    return (
        read.option("subscribe", topics.orders)
        .load()
        .groupBy("topic", "partition", "timestampType")
        .agg(F.count("*"), F.count("value"), F.min("offset"), F.max("timestamp"), F.sum("offset"))
    )


QUERIES: tuple[Query, ...] = (
    *(whole_topic, with_headers, two_topics, by_pattern, assigned, by_offsets, by_time, by_times),
    *(decoded_values, aggregated),
)


@pytest.mark.parametrize("query", QUERIES, ids=lambda one: one.__name__)
def test_a_query_gives_the_same_after_changing_its_format(
    query: Query, spark: SparkSession, topics: Topics
) -> None:
    frames = {}
    for name in FORMATS:
        read = spark.read.format(name).option("kafka.bootstrap.servers", topics.bootstrap)
        frames[name] = query(read, topics)
    kafka, ours = (frames[name] for name in FORMATS)
    assert ours.schema == kafka.schema
    rows = {name: sorted(map(repr, frame.collect())) for name, frame in frames.items()}
    assert len(rows["kafka"]) > 2
    assert rows["strandline"] == rows["kafka"]


def test_both_refuse_a_partition_that_ends_before_it_begins(
    spark: SparkSession, topics: Topics
) -> None:
    begins, ends = ({topics.orders: {"0": n, "1": 0, "2": 0}} for n in (5, 3))
    for name in FORMATS:
        read = spark.read.format(name).option("kafka.bootstrap.servers", topics.bootstrap)
        read = read.option("subscribe", topics.orders)
        read = read.option("startingOffsets", json.dumps(begins))
        with pytest.raises(PySparkException):
            read.option("endingOffsets", json.dumps(ends)).load().count()
