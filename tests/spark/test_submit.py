"""The same job runs on a Spark cluster, unchanged, through spark-submit.

Source: docs/pipelines.md, "On a cluster"."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.spark.jobs import (
    Cluster,
    Jobs,
    Record,
    create_topic,
    produce,
    read_json,
    read_rows,
    read_topic,
)
from tests.spark.standalone import spark_submit, standalone_cluster

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def test_raw_topic_lands_in_a_table_through_spark_submit(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    create_topic(cluster, topic_name, partitions=2)
    produce(cluster, topic_name, (Record(bytes([n % 256]), b"x" * (n % 50)) for n in range(5_000)))
    table = tmp_path / "lake"
    with standalone_cluster(tmp_path, jobs.environment) as url:
        done = spark_submit(
            url,
            *("lake", topic_name, str(table), "--bootstrap", cluster.bootstrap, "--json"),
            jars=",".join(map(str, jobs.jars)),
            environment=jobs.environment,
        )
        assert done.returncode == 0, done.stderr
        assert list((tmp_path / "work").glob("app-*")), "the worker ran nothing"
    assert read_json(done.stdout)["table_rows"] == 5_000
    rows = {
        (row["partition"], row["offset"]): (row["key"], row["value"], row["date"])
        for row in read_rows(table)
    }
    assert rows == {
        place: (record.key, record.value, date_of(record))
        for place, record in read_topic(cluster, topic_name).items()
    }


def date_of(record: Record) -> str:
    """The day in UTC by which tables are partitioned when nobody says otherwise."""
    return datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).date().isoformat()
