"""The same job runs on a Spark cluster, unchanged, through spark-submit; a user's own job has the
data source there by its name alone, and spark-sql without any Python.

Source: docs/pipelines.md, "On a cluster"; docs/pipelines/source.md."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.spark import submitted_source
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
from tests.spark.standalone import spark_command, spark_submit, standalone_cluster

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


def test_a_users_job_has_the_source_on_a_cluster_by_its_name_alone(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    other = f"{topic_name}-copy"
    for topic in (topic_name, other):
        create_topic(cluster, topic, partitions=2)
    produce(cluster, topic_name, (Record(b"%d" % n, b"x") for n in range(500)))
    warehouse = ("--conf", f"spark.sql.warehouse.dir={tmp_path}/warehouse")
    with standalone_cluster(tmp_path, jobs.environment) as url:
        done = spark_command(
            *("spark-submit", "--master", url, "--conf", "spark.executor.memory=512m"),
            *(*warehouse, str(Path(submitted_source.__file__))),
            *(cluster.bootstrap, topic_name, other, str(tmp_path)),
            environment=jobs.environment,
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told.pop("refused").count("CREATE TEMPORARY VIEW instead") == 1
    assert told.pop("view")[:2] == [500, 500]
    assert told == {"kept": 500, "written": 500, "streamed": 500}


def test_spark_sql_has_the_source_without_a_line_of_python(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, [Record(None, b"a"), Record(None, b"b")])
    statements = (
        "CREATE TEMPORARY VIEW records USING strandline OPTIONS ("
        f"kafka.bootstrap.servers '{cluster.bootstrap}', subscribe '{topic_name}'); "
        "SELECT offset, CAST(value AS STRING) FROM records ORDER BY offset"
    )
    settings = ("--conf", "spark.sql.catalogImplementation=in-memory")
    warehouse = ("--conf", f"spark.sql.warehouse.dir={tmp_path}/warehouse")
    done = spark_command(
        *("spark-sql", "--master", "local[1]", *settings, *warehouse, "-e", statements),
        environment=jobs.environment,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-2:] == ["0\ta", "1\tb"]


def date_of(record: Record) -> str:
    """The day in UTC by which tables are partitioned when nobody says otherwise."""
    return datetime.fromtimestamp(record.timestamp_ms / 1000, UTC).date().isoformat()
