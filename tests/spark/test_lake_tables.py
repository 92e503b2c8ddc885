"""What a lake job does with keys and values that do not fit, with schemas that change, with records
that are gone, and with another job on its table.

Source: decisions/0050, docs/pipelines/lake.md."""

from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession
from tests.spark.jobs import (
    CLIENT_TIMEOUT_S,
    Cluster,
    Jobs,
    Record,
    create_topic,
    produce,
    read_json,
)
from tests.spark.lakes import Lake, fill, lake_options, rows

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.cluster import Cluster as Asked
from strandline.pipeline.lake.progress import Batch
from strandline.pipeline.lake.writer import TableWriter

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]


class KilledError(BaseException):
    """The job's process is gone."""


def numbered(*numbers: int) -> list[Record]:
    return [Record(b"k", b'{"n":%d}' % n) for n in numbers]


def test_dead_letters_and_rows_have_each_record_once_though_the_job_is_killed_between_them(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    class Killed(TableWriter):
        def _commit_rows(self, found: Any, batch: Batch) -> None:
            raise KilledError

    create_topic(cluster, topic_name, partitions=1)
    odd = [
        Record(b"\xff", b'{"n":2}'),
        Record(b"k", b'{"n":3} {"n":4}'),
        Record(b"k", b'{"n":1.5}'),
    ]
    produce(cluster, topic_name, [*numbered(0, 1), *odd])
    dead = tmp_path / "dead"
    options = lake_options(
        *(cluster, tmp_path / "lake", topic_name),
        schema="n INT",
        key="text",
        dead_letters=str(dead),
    )
    with pytest.raises(KilledError):
        Lake(spark, options, Killed).finish()
    assert len(rows(dead, "offset")) == 3
    produce(cluster, topic_name, numbered(5))

    another = lake_options(
        *(cluster, tmp_path / "lake", topic_name),
        schema="n BIGINT",
        key="text",
        dead_letters=str(dead),
    )
    with pytest.raises(OperatorError, match="begun with another --schema"):
        Lake(spark, another)

    told = fill(spark, options)
    counts = [(each.records, each.dead_letters, each.elsewhere) for each in told]
    assert counts == [(2, 3, 0), (1, 0, 0)]
    assert told[0].problems == {"key: not UTF-8": 1, "trailing bytes": 1, "not an integer": 1}
    assert rows(tmp_path / "lake", "offset", "key") == [(0, "k"), (1, "k"), (5, "k")]
    assert rows(dead, "offset", "key", "value", "problem") == [
        (2, b"\xff", b'{"n":2}', "key: not UTF-8"),
        (3, b"k", b'{"n":3} {"n":4}', "trailing bytes"),
        (4, b"k", b'{"n":1.5}', "field n: 1.5 is not written as an integer"),
    ]


@pytest.mark.parametrize("widen", ["rewrite", "in-place"])
def test_a_schema_that_grows_takes_its_table_along(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str, widen: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, [Record(None, b'{"a":1,"b":"x"}'), Record(None, None)])
    fill(spark, lake_options(cluster, table, topic_name, schema="a INT, b STRING", widen=widen))
    produce(cluster, topic_name, [Record(None, b'{"b":"y","a":3000000000,"c":[1]}')])
    # The order differs too: values must not go under other names.
    wider = "c ARRAY<INT>, b STRING, a BIGINT"
    lake = Lake(spark, lake_options(cluster, table, topic_name, schema=wider, widen=widen))
    lake.finish()
    assert any("value.a: int becomes bigint" in each for each in lake.notices)
    # A job that still has the old type for a field goes on with the table's.
    produce(cluster, topic_name, [Record(None, b'{"a":2,"b":"z"}')])
    narrow = "a INT, b STRING, c ARRAY<INT>"
    fill(spark, lake_options(cluster, table, topic_name, schema=narrow, widen=widen))
    found = spark.read.format("delta").load(str(table)).orderBy("offset").collect()
    assert [None if row.value is None else row.value.asDict() for row in found] == [
        {"a": 1, "b": "x", "c": None},
        None,
        {"a": 3000000000, "b": "y", "c": [1]},
        {"a": 2, "b": "z", "c": None},
    ]
    if widen == "rewrite":
        assert len(rows(table, "offset")) == 4  # delta-rs reads it still.
    with pytest.raises(OperatorError, match=r"values.ddl does not fit.*would become text"):
        text = lake_options(cluster, table, topic_name, schema="a STRING, b STRING, c ARRAY<INT>")
        Lake(spark, text)


def test_a_gap_is_a_row_of_the_table_of_gaps(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, numbered(*range(4)))
    fill(spark, lake_options(cluster, table, topic_name))
    produce(cluster, topic_name, numbered(*range(4)))
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_records([TopicPartition(topic_name, 0, 6)])[
        TopicPartition(topic_name, 0, 6)
    ].result(CLIENT_TIMEOUT_S)
    with pytest.raises(OperatorError, match="offsets 4 to 5 were deleted before they were read"):
        fill(spark, lake_options(cluster, table, topic_name))
    fill(spark, lake_options(cluster, table, topic_name, on_gap="record"))
    assert [offset for (offset,) in rows(table, "offset")] == [0, 1, 2, 3, 6, 7]
    columns = ("topic", "partition", "first_offset", "end_offset", "reason", "batch")
    gap = (topic_name, 0, 4, 6, "deleted before it was read", 1)
    assert rows(f"{table}_gaps", *columns) == [gap]


def test_a_topic_that_was_made_anew_goes_on_from_its_first_record_by_start_anew(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    (tmp_path / "n.ddl").write_text("n INT")
    lake = (
        *("lake", topic_name, str(table), "--bootstrap", cluster.bootstrap, "--json"),
        *("--schema", str(tmp_path / "n.ddl"), "--partition-by", "bucket=pmod(offset, 2)"),
    )
    create_topic(cluster, topic_name, partitions=2)
    produce(cluster, topic_name, numbered(*range(5)))
    assert read_json(jobs.run(*lake))["table_rows"] == 5
    produce(cluster, topic_name, numbered(5, 6))  # Gone with the topic, and not read.
    old = topic_id(cluster, topic_name)
    delete_topic(cluster, topic_name)
    create_topic(cluster, topic_name, partitions=2)
    produce(cluster, topic_name, numbered(100, 101, 102))

    for choice in ("stop", "record"):
        refused = jobs.run(*lake, "--on-gap", choice, fails=True)
        assert "was deleted and made anew" in refused and "--on-gap start-anew" in refused
    told = read_json(jobs.run(*lake, "--on-gap", "start-anew"))
    assert (told["records"], told["table_rows"], told["gaps"]) == (3, 8, 2)
    values = [value["n"] for _, value in rows(table, "offset", "value")]
    assert sorted(values) == [0, 1, 2, 3, 4, 100, 101, 102]
    gaps = rows(f"{table}_gaps", "topic", "topic_id", "partition", "end_offset", "reason")
    assert gaps == [(topic_name, old, each, None, "the topic was made anew") for each in (0, 1)]
    # The new topic is the table's now: nothing more is noted, and nothing is read twice.
    produce(cluster, topic_name, numbered(103))
    told = read_json(jobs.run(*lake))
    assert (told["records"], told["table_rows"], told["gaps"]) == (1, 9, 0)


def test_by_the_connector_a_topic_that_was_made_anew_since_the_plan_is_planned_anew(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, numbered(*range(5)))
    lake = Lake(spark, lake_options(cluster, table, topic_name, source="kafka"))
    delete_topic(cluster, topic_name)
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, numbered(*range(100, 105)))  # The same offsets.
    assert [each.records for each in lake.finish()] == [5]
    # The table knows the topic whose records it has: the next run does not take it for another.
    produce(cluster, topic_name, numbered(105))
    assert [each.records for each in fill(spark, lake.job.options)] == [1]
    values = [value for _, value in rows(table, "offset", "value")]
    assert values == [b'{"n":%d}' % n for n in range(100, 106)]


def topic_id(cluster: Cluster, topic: str) -> str:
    with Asked(cluster.bootstrap) as asked:
        return asked.snapshot([topic]).topics[topic].id


def delete_topic(cluster: Cluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([topic])[topic].result(CLIENT_TIMEOUT_S)


def test_of_two_jobs_on_a_table_one_is_told_and_nothing_is_doubled(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=2)
    produce(cluster, topic_name, numbered(*range(10)))
    first = Lake(spark, lake_options(cluster, table, topic_name, batch_records=4))
    first.job.step(first.writer)
    second = Lake(spark, lake_options(cluster, table, topic_name))
    produce(cluster, topic_name, numbered(10))
    assert [each.records for each in second.finish()] == [6]
    with pytest.raises(OperatorError, match="another job committed batch 1 first"):
        first.finish()
    fill(spark, lake_options(cluster, table, topic_name))
    places = rows(table, "partition", "offset")
    assert len(places) == len(set(places)) == 11


def test_a_table_whose_log_does_not_tell_goes_on_after_its_rows(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, numbered(*range(6)))
    fill(spark, lake_options(cluster, table, topic_name, batch_records=3))
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0")
    produce(cluster, topic_name, numbered(6))
    with pytest.raises(OperatorError, match=r"RESTORE made its version 2.*--recover"):
        fill(spark, lake_options(cluster, table, topic_name))
    told = fill(spark, lake_options(cluster, table, topic_name, recover=True))
    assert [(each.number, each.records) for each in told] == [(2, 4)]
    assert [offset for (offset,) in rows(table, "offset")] == list(range(7))


def test_many_topics_share_a_table_that_knows_them(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    table, other = tmp_path / "lake", f"{topic_name}-b"
    for name in (topic_name, other):
        create_topic(cluster, name, partitions=1)
        produce(cluster, name, numbered(1, 2))
    fill(spark, lake_options(cluster, table, topic_name))
    with pytest.raises(OperatorError, match=f"not of {other}.*--add-topic"):
        fill(spark, lake_options(cluster, table, other))
    fill(spark, lake_options(cluster, table, topic_name, other, add_topics=True))
    expected = [(name, offset) for name in (topic_name, other) for offset in (0, 1)]
    assert rows(table, "topic", "offset") == sorted(expected, key=repr)


def test_other_readers_see_the_times_that_spark_sees(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    create_topic(cluster, topic_name, partitions=1)
    times = ("0001-01-01T00:00:00Z", "2262-04-12T00:00:00.000001Z", "9999-12-31T23:59:59.999999Z")
    produce(cluster, topic_name, [Record(None, b'{"at":"%s"}' % one.encode()) for one in times])
    table = tmp_path / "lake"
    fill(spark, lake_options(cluster, table, topic_name, schema="at TIMESTAMP"))
    expected = [datetime.fromisoformat(one) for one in times]
    assert [value["at"] for _, value in rows(table, "offset", "value")] == expected
    read = duckdb.sql(f"SELECT value.at FROM '{table}/*/*.parquet' ORDER BY \"offset\"").fetchall()
    assert [at for (at,) in read] == expected
