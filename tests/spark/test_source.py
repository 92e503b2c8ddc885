"""What the source does beyond the Kafka connector, in Spark: SQL without registration, pruned
columns, filters pushed down, refusals in one line.

Source: docs/pipelines/source.md; decisions/0049."""

import os
import uuid

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as every user of Spark writes it)
from tests.spark.jobs import Cluster, Record, create_topic, produce

from strandline.spark import register

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RECORD_COUNT = 900
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def topic(cluster: Cluster) -> str:
    """Three partitions, each with records: keys spread them. Without keys a client may send all of
    them to one."""
    name = f"source-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    create_topic(cluster, name, partitions=3)
    produce(cluster, name, (Record(b"%d" % n, b"%d" % n) for n in range(RECORD_COUNT)))
    return name


def load(spark: SparkSession, cluster: Cluster, topic: str, **options: str) -> DataFrame:
    read = spark.read.format("strandline").option("subscribe", topic)
    read = read.option("kafka.bootstrap.servers", cluster.bootstrap)
    for name, text in options.items():
        read = read.option(name, text)
    return read.load()


def test_sql_finds_the_source_without_registration(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    view = f"view_{uuid.uuid4().hex[:8]}"
    spark.sql(
        f"CREATE TEMPORARY VIEW {view} USING strandline OPTIONS "
        f"(kafka.bootstrap.servers '{cluster.bootstrap}', subscribe '{topic}', "
        "includeLeaderEpoch 'true')"
    )
    question = f"SELECT count(*), count(DISTINCT partition, offset), min(leaderEpoch) FROM {view}"
    (row,) = spark.sql(question).collect()
    assert (row[0], row[1]) == (RECORD_COUNT, RECORD_COUNT)
    assert row[2] >= 0


def test_a_session_registers_the_source(spark: SparkSession, cluster: Cluster, topic: str) -> None:
    other = spark.newSession()
    register(other)
    assert load(other, cluster, topic).count() == RECORD_COUNT


def test_columns_that_are_not_asked_for_are_not_there(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    assert load(spark, cluster, topic, columns="offset").columns == ["offset"]
    read = spark.read.format("strandline").schema("offset BIGINT, partition INT")
    read = read.option("kafka.bootstrap.servers", cluster.bootstrap).option("subscribe", topic)
    frame = read.load()
    assert frame.columns == ["offset", "partition"]
    assert frame.distinct().count() == RECORD_COUNT


def test_filters_spare_tasks_where_the_session_pushes_them(
    spark: SparkSession, cluster: Cluster, topic: str
) -> None:
    rows, tasks = {}, {}
    for pushed in ("false", "true"):
        # Of the session of all threads: which session counts as active differs by thread.
        spark.conf.set(PUSHDOWN, pushed)
        try:
            frame = load(spark, cluster, topic, includeValue="false")
            newest = frame.agg(F.max("timestamp")).first()
            fullest = (
                frame.groupBy("partition").count().orderBy(F.desc("count"), "partition").first()
            )
            assert newest is not None and fullest is not None
            frame = frame.where((F.col("partition") == fullest[0]) & (F.col("offset") > 20))
            frame = frame.where(F.col("timestamp") <= F.lit(newest[0]))
            rows[pushed], tasks[pushed] = sorted(frame.collect()), frame.rdd.getNumPartitions()
            late = load(spark, cluster, topic).where(F.col("timestamp") >= F.lit(newest[0]))
            assert 0 < late.count() <= RECORD_COUNT
        finally:
            spark.conf.unset(PUSHDOWN)
    assert len(rows["true"]) > 0 and rows["true"] == rows["false"]
    assert tasks == {"false": 3, "true": 1}


def test_an_empty_topic_has_no_rows(spark: SparkSession, cluster: Cluster, topic_name: str) -> None:
    create_topic(cluster, topic_name, partitions=1)
    assert load(spark, cluster, topic_name).count() == 0


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (
            {"subscibe": "x"},
            "OperatorError: option subscibe is not known (did you mean subscribe?)",
        ),
        ({"startingOffsets": "latest"}, "OperatorError: startingOffsets: a batch cannot begin at"),
        ({"subscribe": "no-such-topic"}, "ClientError: topic no-such-topic does not exist"),
        ({"startingOffsets": '{"TOPIC": {"0": 0, "1": 0}}'}, "TOPIC-2 is missing: give every part"),
        ({"endingOffsets": '{"TOPIC": {"0": 9, "1": 9, "2": 99999}}'}, "TOPIC-2 has offsets 0 to "),
        (
            {
                "startingOffsets": '{"TOPIC": {"0": 9, "1": 3, "2": 0}}',
                "endingOffsets": '{"TOPIC": {"0": 9, "1": 2, "2": -1}}',
            },
            "startingOffsets: TOPIC-1 begins at offset 3, and endingOffsets ends it at 2",
        ),
        ({"startingTimestamp": "99999999999999"}, "no record is at or after that time"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(
    spark: SparkSession, cluster: Cluster, topic: str, options: dict[str, str], line: str
) -> None:
    given = {name: text.replace("TOPIC", topic) for name, text in options.items()}
    with pytest.raises(PySparkException) as refused:
        load(spark, cluster, topic, **given).count()
    assert line.replace("TOPIC", topic) in str(refused.value)
