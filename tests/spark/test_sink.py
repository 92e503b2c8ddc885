"""The sink in Spark itself, read back by another client: rows, partitions, restarts, refusals.

Source: docs/pipelines/sink.md; decision 0054."""

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as every user of Spark writes it)
from tests.integration.conftest import wait_until
from tests.spark.jobs import (
    CLIENT_TIMEOUT_S,
    KEPT,
    Cluster,
    create_topic,
    read_topic,
    started_again,
)

if TYPE_CHECKING:
    from pyarrow import RecordBatch

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

NOW_MS = 1_700_000_000_000
COUNT = 20_000
SCHEMA = (
    "key STRING, value BINARY, partition INT, timestamp TIMESTAMP, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)


def save(frame: DataFrame, cluster: Cluster, topic: str = "", **options: str) -> None:
    write = frame.write.format("strandline").mode("append")
    write = write.option("kafka.bootstrap.servers", cluster.bootstrap)
    if topic:
        write = write.option("topic", topic)
    for name, text in options.items():
        write = write.option(name.replace("__", "."), text)
    write.save()


def numbers(spark: SparkSession, count: int) -> DataFrame:
    return spark.range(count, numPartitions=4).selectExpr(
        "CAST(id AS STRING) AS key",
        "CAST(concat('value-', id) AS BINARY) AS value",
        "CAST(id % 3 AS INT) AS partition",
        f"timestamp_millis({NOW_MS} + id) AS timestamp",
        "CASE WHEN id % 2 = 0 THEN array(named_struct('key', 'n', 'value', CAST(CAST(id AS STRING) "
        "AS BINARY)), named_struct('key', 'none', 'value', CAST(NULL AS BINARY))) END AS headers",
    )


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_every_column_is_read_back_as_it_was_written(
    spark: SparkSession, cluster: Cluster, topic_name: str, codec: str
) -> None:
    create_topic(cluster, topic_name, partitions=3)
    frame = numbers(spark, 5_000)
    save(frame, cluster, topic_name, kafka__compression__type=codec, kafka__batch__size="20000")
    found = read_topic(cluster, topic_name)
    assert len(found) == 5_000
    for (partition, _), record in found.items():
        number = int(record.key or b"")
        assert record.value == b"value-%d" % number
        assert (partition, record.timestamp_ms) == (number % 3, NOW_MS + number)
        headers = (("n", b"%d" % number), ("none", None)) if number % 2 == 0 else ()
        assert record.headers == headers
    assert len({record.key for record in found.values()}) == 5_000


def test_keys_go_to_the_partitions_of_kafkas_partitioner(
    spark: SparkSession, cluster: Cluster, topic_name: str
) -> None:
    create_topic(cluster, topic_name, partitions=7)
    producer = Producer(
        {"bootstrap.servers": cluster.bootstrap, "partitioner": "murmur2_random", "acks": "all"}
    )
    for number in range(300):
        producer.produce(topic_name, key=str(number), value=b"by librdkafka")
    assert producer.flush(CLIENT_TIMEOUT_S) == 0
    frame = spark.range(300).selectExpr("CAST(id AS STRING) AS key", "'by Spark' AS value")
    save(frame, cluster, topic_name)
    places: dict[bytes, set[int]] = {}
    for (partition, _), record in read_topic(cluster, topic_name).items():
        places.setdefault(record.key or b"", set()).add(partition)
    assert len(places) == 300
    assert all(len(partitions) == 1 for partitions in places.values())


def test_rows_name_their_topics_and_may_lack_all_but_a_value(
    spark: SparkSession, cluster: Cluster, topic_name: str
) -> None:
    for name in (topic_name, f"{topic_name}-b"):
        create_topic(cluster, name, partitions=2)
    rows = [(topic_name, "a"), (f"{topic_name}-b", None), (topic_name, "")]
    save(spark.createDataFrame(rows, "topic STRING, value STRING"), cluster)
    first = read_topic(cluster, topic_name).values()
    assert sorted(record.value or b"" for record in first) == [b"", b"a"]
    (tombstone,) = read_topic(cluster, f"{topic_name}-b").values()
    assert (tombstone.key, tombstone.value) == (None, None)
    assert tombstone.timestamp_ms > NOW_MS


class KillsItsTaskOnce:
    """Passes rows on, all but the last batch; then, the first time, waits until some of them are in
    a topic and kills its own process."""

    def __init__(self, marker: Path, bootstrap: str, topic: str) -> None:
        self._marker, self._bootstrap, self._topic = str(marker), bootstrap, topic

    def __call__(self, batches: Iterator["RecordBatch"]) -> Iterator["RecordBatch"]:
        held = next(batches)
        for batch in batches:
            yield held
            held = batch
        if not os.path.exists(self._marker):
            self._await_records()
            Path(self._marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        yield held

    def _await_records(self) -> None:
        consumer = Consumer({"bootstrap.servers": self._bootstrap, "group.id": "watch"})
        deadline = time.monotonic() + CLIENT_TIMEOUT_S
        while time.monotonic() < deadline:
            for partition in (0, 1):
                place = TopicPartition(self._topic, partition)
                if consumer.get_watermark_offsets(place, timeout=CLIENT_TIMEOUT_S)[1]:
                    consumer.close()
                    return
            time.sleep(0.05)
        raise TimeoutError(f"no record reached {self._topic}")


def running_tasks(spark: SparkSession) -> int:
    """How many tasks run in the session's executors."""
    tracker = spark.sparkContext._jsc.sc().statusTracker()  # type: ignore[union-attr]
    return sum(one.numRunningTasks() for one in tracker.getExecutorInfos())


def test_a_stream_whose_task_is_killed_misses_nothing_after_a_restart(
    spark: SparkSession, cluster: Cluster, topic_name: str, tmp_path: Path
) -> None:
    source, target = f"{topic_name}-in", f"{topic_name}-out"
    for name in (source, target):
        create_topic(cluster, name, partitions=2)
    save(numbers(spark, COUNT).drop("partition"), cluster, source)
    spark = spark.newSession()
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "200")
    marker = tmp_path / "killed"

    def run() -> None:
        read = spark.readStream.format("strandline").option("startingOffsets", "earliest")
        read = read.option("kafka.bootstrap.servers", cluster.bootstrap)
        frame = read.option("subscribe", source).option("includeHeaders", "true").load()
        frame = frame.drop("topic", "partition").mapInArrow(
            KillsItsTaskOnce(marker, cluster.bootstrap, target),
            frame.drop("topic", "partition").schema,
        )
        query = (
            frame.writeStream.format("strandline")
            .option("kafka.bootstrap.servers", cluster.bootstrap)
            .option("topic", target)
            .option("kafka.batch.size", "4000")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    with pytest.raises(PySparkException):
        started_again(run)
    assert marker.exists()
    # The task beside the one that died is ended, but not waited for, when the query has failed.
    wait_until(lambda: not running_tasks(spark), what="all tasks end", timeout_s=CLIENT_TIMEOUT_S)
    before = len(read_topic(cluster, target))
    assert 0 < before < COUNT, "it died in the middle"
    started_again(run)
    written = Counter(
        (record.key, record.value, record.headers, record.timestamp_ms)
        for record in read_topic(cluster, target).values()
    )
    wanted = {
        (record.key, record.value, record.headers, record.timestamp_ms)
        for record in read_topic(cluster, source).values()
    }
    assert len(wanted) == COUNT
    assert set(written) == wanted, "nothing is missing, nothing is made up"
    assert sum(written.values()) == COUNT + before, "what was written twice is said in the docs"


@pytest.mark.parametrize(
    ("columns", "options", "line"),
    [
        (("CAST(id AS STRING) AS value", "id"), {}, "column id would be lost: the columns of a"),
        (("id AS value",), {}, "column value is bigint, not string or binary"),
        (("'x' AS value", "9 AS partition"), {}, "has no partition 9: its partitions are 0 to 0"),
        (("'x' AS value",), {"topic": "no-such-topic"}, "topic no-such-topic does not exist"),
        (("'x' AS value",), {"kafka__acks": "1"}, "kafka.acks: '1' is not offered: all or -1"),
        (("'x' AS value", "CAST(NULL AS STRING) AS topic"), {"topic": ""}, "a row has no topic"),
    ],
)
def test_a_refusal_says_in_a_line_what_is_wrong(
    spark: SparkSession,
    cluster: Cluster,
    topic_name: str,
    columns: tuple[str, ...],
    options: dict[str, str],
    line: str,
) -> None:
    create_topic(cluster, topic_name, partitions=1)
    given = {"topic": topic_name, **options}
    with pytest.raises(PySparkException) as refusal:
        save(spark.range(1).selectExpr(*columns), cluster, **given)
    assert line in str(refusal.value)
    assert read_topic(cluster, topic_name) == {}


def test_a_batch_larger_than_the_topic_takes_says_which_option_helps(
    spark: SparkSession, cluster: Cluster, topic_name: str
) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(topic_name, 1, 1, config={**KEPT, "max.message.bytes": "5000"})
    admin.create_topics([topic])[topic_name].result(CLIENT_TIMEOUT_S)
    frame = numbers(spark, 4_000).drop("partition")
    with pytest.raises(PySparkException, match=r"max\.message\.bytes: lower kafka\.batch\.size"):
        save(frame, cluster, topic_name)
    save(frame, cluster, topic_name, kafka__batch__size="4000")
    assert len(read_topic(cluster, topic_name)) == 4_000


def test_an_aggregate_is_written_by_key(
    spark: SparkSession, cluster: Cluster, topic_name: str
) -> None:
    create_topic(cluster, topic_name, partitions=2)
    frame = spark.range(100).groupBy((F.col("id") % 5).cast("string").alias("key"))
    save(frame.agg(F.count("*").cast("string").alias("value")), cluster, topic_name)
    found = {record.key: record.value for record in read_topic(cluster, topic_name).values()}
    assert found == {b"%d" % n: b"20" for n in range(5)}
