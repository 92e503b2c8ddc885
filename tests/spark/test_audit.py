"""An audit whose questions come from Spark's executors finds what one with threads finds.

Source: docs/pipelines/audit.md, "On a Spark cluster"."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.jobs import Cluster, Jobs, Record, create_topic, produce, read_json
from tests.spark.standalone import spark_submit, standalone_cluster

from strandline.pipeline.audit.job import Audit, AuditOptions
from strandline.pipeline.audit.results import Verdict
from strandline.pipeline.audit.runners import SparkRunner, ThreadRunner

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

RECORD_COUNT = 500


def fill(cluster: Cluster, topic: str) -> None:
    create_topic(cluster, topic, partitions=3)
    produce(cluster, topic, (Record(None, str(n).encode()) for n in range(RECORD_COUNT)))


def test_executors_ask_what_threads_ask(
    spark: SparkSession, cluster: Cluster, topic_name: str
) -> None:
    fill(cluster, topic_name)
    options = AuditOptions(cluster.bootstrap, (topic_name,), range_bytes=1_024)
    found = Audit(options, SparkRunner(spark, tasks_per_line_max=2)).run()
    assert found.verdict is Verdict.EQUAL, found.not_compared
    assert sum(one.records for one in found.partitions) == RECORD_COUNT
    expected = Audit(options, ThreadRunner()).run()
    assert [one.rows for one in found.partitions] == [one.rows for one in expected.partitions]
    assert found.wire_bytes > 0 and found.digested_bytes == expected.digested_bytes


def test_the_audit_runs_through_spark_submit(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    fill(cluster, topic_name)
    page = tmp_path / "audit.html"
    with standalone_cluster(tmp_path, jobs.environment) as url:
        done = spark_submit(
            url,
            *("audit", topic_name, "--bootstrap", cluster.bootstrap, "--json"),
            *("--report", str(page)),
            jars=",".join(map(str, jobs.jars)),
            environment=jobs.environment,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert list((tmp_path / "work").glob("app-*")), "the worker ran nothing"
    told = read_json(done.stdout)
    assert told["verdict"] == "equal"
    assert "equal: every replica has the same 500 records" in page.read_text()
