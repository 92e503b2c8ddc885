"""Streams in Spark itself: restarts, limits, and a checkpoint that changes hands with the Kafka
connector.

Source: decisions/0049."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.jobs import Cluster, Record, create_topic, produce, read_topic, started_again

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def write(cluster: Cluster, topic: str, first: int, count: int) -> None:
    produce(cluster, topic, (Record(None, str(n).encode()) for n in range(first, first + count)))


class Job:
    """A query from a topic into Parquet files, run to the end of what there is."""

    def __init__(self, spark: SparkSession, cluster: Cluster, topic: str, directory: Path) -> None:
        self.spark, self.cluster, self.topic = spark, cluster, topic
        self.table, self.checkpoint = directory / "table", directory / "checkpoint"

    def run(self, format_name: str = "strandline", **options: str) -> list[int]:
        """Run it; the input rows of each micro-batch."""
        read = self.spark.readStream.format(format_name)
        given = {"startingOffsets": "earliest", **options}
        given |= {"kafka.bootstrap.servers": self.cluster.bootstrap, "subscribe": self.topic}
        for name, text in given.items():
            read = read.option(name, text)
        counts: list[int] = []

        def attempt() -> None:
            query = (
                read.load()
                .selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
                .writeStream.format("parquet")
                .option("path", str(self.table))
                .option("checkpointLocation", str(self.checkpoint))
                .trigger(availableNow=True)
                .start()
            )
            try:
                query.awaitTermination()
            finally:
                progress = [json.loads(one.json) for one in query.recentProgress]
                counts.extend(one["numInputRows"] for one in progress if one["numInputRows"])

        started_again(attempt)
        return counts

    def rows(self) -> Mapping[tuple[int, int], str]:
        found = self.spark.read.parquet(str(self.table)).collect()
        rows = {(row.partition, row.offset): row.value for row in found}
        assert len(rows) == len(found), "a record is there twice"
        return rows

    def assert_complete(self) -> None:
        """Exactly the topic's records."""
        expected = {
            place: (record.value or b"").decode()
            for place, record in read_topic(self.cluster, self.topic).items()
        }
        assert self.rows() == expected


@pytest.fixture
def job(spark: SparkSession, cluster: Cluster, topic_name: str, tmp_path: Path) -> Job:
    create_topic(cluster, topic_name, partitions=2)
    write(cluster, topic_name, 0, 500)
    return Job(spark, cluster, topic_name, tmp_path)


def test_each_record_is_read_once_through_limits_restarts_and_a_lost_commit(
    job: Job, cluster: Cluster
) -> None:
    counts = job.run(maxOffsetsPerTrigger="200")
    assert sum(counts) == 500 and max(counts) <= 200, counts
    assert job.run() == []
    write(cluster, job.topic, 500, 300)
    assert sum(job.run()) == 300
    job.assert_complete()
    # As if the driver had died between the sink's commit and its own.
    last = max((job.checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    last.unlink()
    (last.parent / f".{last.name}.crc").unlink(missing_ok=True)
    write(cluster, job.topic, 800, 50)
    job.run()
    job.assert_complete()


def test_a_checkpoint_changes_hands_with_the_kafka_connector(job: Job, cluster: Cluster) -> None:
    for round_number, format_name in enumerate(("kafka", "strandline", "kafka", "strandline")):
        write(cluster, job.topic, 500 + 100 * round_number, 100)
        assert sum(job.run(format_name)) == 100 + 500 * (round_number == 0)
    job.assert_complete()


def test_a_stream_from_latest_reads_what_comes_after_it_began(job: Job, cluster: Cluster) -> None:
    assert job.run(startingOffsets="latest") == []
    write(cluster, job.topic, 500, 70)
    assert sum(job.run(startingOffsets="latest")) == 70
    assert set(job.rows().values()) == {str(n) for n in range(500, 570)}
