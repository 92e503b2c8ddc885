"""A table is the same, whether Python workers or Spark's writer wrote its files.

Source: decisions/0064."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import SparkSession
from tests.spark.jobs import Cluster, Record, create_topic, produce
from tests.spark.lakes import Lake, lake_options

from strandline.pipeline.lake import writer
from strandline.pipeline.lake.options import LakeOptions, PartitionColumn, parse_partition_by
from strandline.pipeline.lake.table import read_table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

SCHEMA = (
    "n BIGINT, color STRING, weight DOUBLE, price DECIMAL(18,2), at TIMESTAMP, day DATE, ok "
    "BOOLEAN, tags ARRAY<STRING>, more MAP<STRING, INT>, at_home STRUCT<city: STRING, zip: INT>"
)
RECORDS = [
    Record(
        b"%d" % n,
        json.dumps(
            {
                "n": n + 10**16,
                "color": ("red", "green", None)[n % 3],
                "weight": n / 4,
                "price": n + 0.25,
                "at": f"2026-01-01T00:00:{n % 60:02}.123456Z",
                "day": f"2026-02-{n % 28 + 1:02}",
                "ok": n % 2 == 0,
                "tags": ["a" * 40, None][: n % 3],
                "more": {"x": n},
                "at_home": {"city": "é" * n, "zip": n} if n % 2 else None,
            }
        ).encode(),
        (("h", b"1"),) if n % 2 else (),
    )
    for n in range(60)
] + [Record(b"\xff", b"{}"), Record(None, None), Record(b"bad", b"{"), Record(b"x", b'{"n":"y"}')]


def lake(
    spark: SparkSession, options: LakeOptions, names: Sequence[str], *, by_workers: bool
) -> Lake:
    """A job whose writer is checked to be the one that the test is about."""
    columns = parse_partition_by(names, schema=options.schema)
    opened = Lake(spark, replace(options, partition_by=columns))
    assert opened.writer._files is not None
    if not by_workers:
        opened.writer._files = None
    return opened


def rows_of(spark: SparkSession, table: Path) -> tuple[str, list[Any]]:
    """The table's type, and its rows in order."""
    read = spark.read.format("delta").load(str(table))
    return read.schema.json(), read.orderBy("partition", "offset").collect()


def stats_of(table: Path) -> list[tuple[str, Any]]:
    """(partition values, statistics) of each file, but for the two greatest values that may be
    rounded up in different ways."""
    lines = (table / "_delta_log" / f"{0:020d}.json").read_text().splitlines()
    adds = [json.loads(line)["add"] for line in lines if '"add"' in line]
    found = {json.dumps(add["partitionValues"]): json.loads(add["stats"]) for add in adds}
    assert len(found) == len(adds)
    for stats in found.values():
        value = stats["maxValues"].get("value")
        if value is not None:
            assert value.pop("at") >= "2026-01-01T00:00"
            assert value.get("at_home", {}).pop("city", "é")[0] == "é"
    return sorted(found.items())


@pytest.mark.parametrize("names", [("day=to_date(timestamp)",), ("color", "hour"), ("year",)])
@pytest.mark.parametrize("schema", [SCHEMA, ""])
def test_rows_types_and_statistics_are_those_of_sparks_writer(
    spark: SparkSession,
    cluster: Cluster,
    tmp_path: Path,
    topic_name: str,
    names: tuple[str, ...],
    schema: str,
) -> None:
    create_topic(cluster, topic_name, partitions=2)
    produce(cluster, topic_name, RECORDS)
    found = []
    names = names if schema else tuple(name for name in names if name != "color")
    for by_workers in (True, False):
        table = tmp_path / f"by-workers-{by_workers}"
        options = lake_options(cluster, table, topic_name, schema=schema, key="text")
        (told,) = lake(spark, options, names, by_workers=by_workers).finish()
        assert (told.records, told.malformed > 0) == (len(RECORDS), True)
        found.append((*rows_of(spark, table), stats_of(table), told.problems))
    assert found[0] == found[1]
    files = [str(file.path) for file in read_table(tmp_path / "by-workers-True").files]
    query = "SELECT count(*) FROM read_parquet(?)"
    assert duckdb.execute(query, [files]).fetchall() == [(len(RECORDS),)]


def test_a_value_that_only_sparks_writer_takes_is_written_by_it(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, topic_name: str
) -> None:
    create_topic(cluster, topic_name, partitions=1)
    odd = [Record(None, json.dumps({"color": color}).encode()) for color in ("a", "ü/=%", "", "b")]
    produce(cluster, topic_name, odd)
    options = lake_options(cluster, tmp_path / "t", topic_name, schema="color STRING")
    lake(spark, options, ("color",), by_workers=True).finish()
    _, rows = rows_of(spark, tmp_path / "t")
    assert [row["value"]["color"] for row in rows] == ["a", "ü/=%", "", "b"]
    files = list((tmp_path / "t").rglob("*.parquet"))
    assert len(files) == len(read_table(tmp_path / "t").files), "files of the first try are left"


def test_what_a_table_asks_of_its_writers_is_kept(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, topic_name: str
) -> None:
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, [Record(None, b"1")])
    options = lake_options(cluster, tmp_path / "t", topic_name)
    lake(spark, options, ("day",), by_workers=True).finish()
    spark.sql(f"ALTER TABLE delta.`{tmp_path}/t` ADD CONSTRAINT few CHECK (offset < 2)")
    produce(cluster, topic_name, [Record(None, b"2")])
    lake(spark, options, ("day",), by_workers=True).finish()
    produce(cluster, topic_name, [Record(None, b"3")])
    with pytest.raises(Exception, match="few"):
        lake(spark, options, ("day",), by_workers=True).finish()
    _, rows = rows_of(spark, tmp_path / "t")
    assert [row["offset"] for row in rows] == [0, 1]


def test_a_batch_that_the_table_has_is_not_added_again(
    spark: SparkSession, cluster: Cluster, tmp_path: Path, topic_name: str
) -> None:
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, [Record(None, b"%d" % n) for n in range(5)])
    options = replace(lake_options(cluster, tmp_path / "t", topic_name), batch_records=2)
    first, second = (lake(spark, options, ("day",), by_workers=True) for _ in range(2))
    first.step_once()
    with pytest.raises(Exception, match="another job committed batch 0"):
        second.finish()
    lake(spark, options, ("day",), by_workers=True).finish()
    _, rows = rows_of(spark, tmp_path / "t")
    assert [row["offset"] for row in rows] == list(range(5))


def test_the_plan_without_spark_is_that_of_spark(spark: SparkSession, cluster: Cluster) -> None:
    by_name = parse_partition_by(("day", "hour", "month", "year"), schema=None)
    for changes in ({}, {"key": "text"}, {"keep_raw": True, "schema": SCHEMA}):
        options = lake_options(cluster, Path("/t"), "t", **changes)  # type: ignore[arg-type]
        options = replace(options, partition_by=by_name if not options.schema else by_name[1:])
        opened = writer.TableWriter(spark, options)
        assert writer.row_type(options) == opened._analyzed_type(), changes
    assert PartitionColumn("day", "to_date(timestamp)") in by_name
