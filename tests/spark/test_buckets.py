"""Executors read tiered segments out of buckets, and brokers hand over only the rest.

Source: decision 0065; docs/pipelines/source.md."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.integration.conftest import stop_cluster
from tests.integration.test_tiered_reading import RECORDS, STEP_MS, value_of
from tests.integration.test_tiered_uploads import PARTITIONS
from tests.spark.jobs import started_again
from tests.spark.tiered_history import Kept

from strandline.client.buckets.options import bucket_options
from strandline.pipeline.audit.job import Audit, AuditOptions
from strandline.pipeline.audit.results import AuditResult, Verdict
from strandline.pipeline.audit.runners import SparkRunner, ThreadRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

ANSWER_BYTES_MAX = 300_000
"""What a few answers of a broker have beyond the offsets that are wanted."""


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    made = Kept(tmp_path_factory.mktemp("tiered"))
    yield made
    stop_cluster(made.tiered.cluster)


def rows(frame: "DataFrame") -> list[Any]:
    return sorted(frame.collect(), key=lambda row: (row.partition, row.offset))


def test_no_record_of_a_bucket_crosses_a_broker_and_rows_are_the_same(
    kept: Kept, spark: "SparkSession"
) -> None:
    before = kept.served()
    tiered = rows(kept.load(spark, buckets=kept.buckets, readFrom="bucket"))
    assert len(tiered) == kept.tiered_count > PARTITIONS * RECORDS / 2
    whole = rows(kept.load(spark, buckets=kept.buckets))
    rest_bytes = (PARTITIONS * RECORDS - kept.tiered_count) * 1_000
    assert rest_bytes <= kept.served(before + rest_bytes) - before < rest_bytes + ANSWER_BYTES_MAX
    by_brokers = rows(kept.load(spark))
    assert whole == by_brokers
    assert tiered == [row for row in by_brokers if row.offset < kept.ends[row.partition]]
    assert [row.value for row in whole] == [
        value_of(partition, at) for partition in range(PARTITIONS) for at in range(RECORDS)
    ]


def test_bounds_filters_and_columns_hold_for_buckets(kept: Kept, spark: "SparkSession") -> None:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        frame = kept.load(spark, buckets=kept.buckets, columns="partition,offset,timestamp")
        found = rows(frame.where("partition = 1 and offset between 777 and 1300"))
        assert [row.offset for row in found] == list(range(777, 1_301))
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")
    assert [int(row.timestamp.timestamp() * 1_000) for row in found[:2]] == [
        kept.first_ms + STEP_MS * at for at in (777, 778)
    ]
    since = str(kept.first_ms + STEP_MS * 100)
    timed = kept.load(spark, buckets=kept.buckets, readFrom="bucket", startingTimestamp=since)
    assert timed.count() == kept.tiered_count - 100 * PARTITIONS


def test_a_stream_of_buckets_ends_where_they_end_and_one_of_both_goes_on(
    kept: Kept, spark: "SparkSession", tmp_path: Path
) -> None:
    def run(read_from: str) -> int:
        read = spark.readStream.format("strandline").option("subscribe", "t")
        read = read.option("kafka.bootstrap.servers", kept.tiered.cluster.bootstrap)
        read = read.options(
            buckets=kept.buckets,
            readFrom=read_from,
            startingOffsets="earliest",
            maxOffsetsPerTrigger="3000",
        )
        write = read.load().writeStream.format("parquet").option("path", str(tmp_path / "rows"))
        write = write.option("checkpointLocation", str(tmp_path / "checkpoint"))
        started_again(lambda: write.trigger(availableNow=True).start().awaitTermination())
        return spark.read.parquet(str(tmp_path / "rows")).distinct().count()

    assert run("bucket") == kept.tiered_count
    assert run("auto") == PARTITIONS * RECORDS
    assert spark.read.parquet(str(tmp_path / "rows")).count() == PARTITIONS * RECORDS


def test_without_usable_buckets_brokers_go_on_or_the_query_fails_with_one_line(
    kept: Kept, spark: "SparkSession", tmp_path: Path
) -> None:
    elsewhere = ",".join(f"{name}=file://{tmp_path / name}" for name in kept.tiered.buckets)
    assert kept.load(spark, buckets=elsewhere).count() == PARTITIONS * RECORDS
    alone = kept.load(
        spark, buckets=elsewhere, readFrom="bucket", **{"kafkaConsumer.pollTimeoutMs": "1000"}
    )
    with pytest.raises(Exception, match=r"partition t-\d: no bucket gives offsets 0 to \d+"):
        alone.count()


def test_an_audit_by_executors_finds_what_one_with_threads_finds(
    kept: Kept, spark: "SparkSession"
) -> None:
    buckets = bucket_options("bucket", kept.buckets, "")
    options = AuditOptions(kept.tiered.cluster.bootstrap, ("t",), buckets=buckets)

    def audits() -> list[AuditResult]:
        return [
            Audit(options, SparkRunner(spark, tasks_per_line_max=2)).run(),
            Audit(options, ThreadRunner()).run(),
        ]

    by_executors, by_threads = audits()
    assert by_executors.verdict is Verdict.EQUAL, by_executors.not_compared
    assert by_executors.bucket_bytes == by_threads.bucket_bytes > kept.tiered_count * 1_000
    assert [one.rows for one in by_executors.partitions] == [
        one.rows for one in by_threads.partitions
    ]
    path = next(iter(sorted(kept.tiered.buckets["east"].rglob("*.segment"))))
    sound = path.read_bytes()
    path.write_bytes(sound[:500] + bytes([sound[500] ^ 1]) + sound[501:])
    found = [one.findings for one in audits()]
    path.write_bytes(sound)
    assert found[0] == found[1] and len(found[0]) == 1
    assert found[0][0].buckets == ("east",) and found[0][0].object_name.endswith(path.name)
