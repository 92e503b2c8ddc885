"""Upkeep changes files, never rows, and the lake job's progress outlives its own commits.

Source: decisions/0055, docs/pipelines/upkeep.md."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from strandline.pipeline.lake.delta_log import LocalLog, versions
from strandline.pipeline.lake.progress import (
    APPLICATION_ID,
    Batch,
    TopicProgress,
    read_state,
    to_json,
)
from strandline.pipeline.upkeep.options import DAY_MS, UpkeepOptions
from strandline.pipeline.upkeep.table import keep_up, keep_up_in_turn, look_over

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

NOW = UpkeepOptions(small_files=3, keep_ms=0)
"""No query reads older snapshots here, so upkeep may delete their files at once."""


def batch(number: int) -> Batch:
    return Batch(number, "cluster", {"fruit": TopicProgress("id", {0: (number + 1) * 10})}, "lake")


def append(spark: SparkSession, table: Path, number: int) -> None:
    """Batch `number` as a lake job commits it: a file in each of three partitions; one's value
    is null, another's needs quoting."""
    first = number * 10
    rows = spark.range(first, first + 10, 1, 1).selectExpr(
        "'fruit' AS topic",
        "0 AS partition",
        "id AS offset",
        "CASE WHEN id % 3 = 0 THEN 'it''s \\\\ red' WHEN id % 3 = 1 THEN 'green' END AS color",
    )
    (
        rows.write.format("delta")
        .mode("append")
        .partitionBy("color")
        .option("txnAppId", APPLICATION_ID)
        .option("txnVersion", number)
        .option("userMetadata", json.dumps(to_json(batch(number))))
        .save(str(table))
    )


def offsets(spark: SparkSession, table: Path) -> list[int]:
    read = spark.read.format("delta").load(str(table))
    return sorted(row["offset"] for row in read.select("offset").collect())


def data_files(table: Path) -> int:
    return len(list(table.rglob("*.parquet")))


def test_a_round_compacts_and_expires_and_leaves_rows_and_progress(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = tmp_path / "lake"
    for number in range(3):
        append(spark, table, number)
    assert data_files(table) == 9
    told = look_over(spark, str(table), NOW)
    assert (told.partitions, told.files_before, told.expired_files) == (3, 9, 0)
    assert data_files(table) == 9

    done = keep_up(spark, str(table), NOW)
    assert (done.partitions, done.files_before, done.files_after) == (3, 9, 3)
    assert done.expired_files == 9 and done.expired_bytes > 0
    assert data_files(table) == 3
    assert offsets(spark, table) == list(range(30))

    # A job goes on from upkeep's commit though the log has none of its own any more.
    log = table / "_delta_log"
    newest = versions(LocalLog(table))[-1]
    for version in range(newest):
        (log / f"{version:020d}.json").rename(tmp_path / f"{version}.json")
    state = read_state(LocalLog(table), str(table))
    assert state.batch == batch(2) and state.version == newest
    for version in range(newest):
        (tmp_path / f"{version}.json").rename(log / f"{version:020d}.json")

    append(spark, table, 3)
    assert read_state(LocalLog(table), str(table)).batch == batch(3)
    assert keep_up(spark, str(table), NOW).is_nothing
    assert offsets(spark, table) == list(range(40))


def test_a_round_within_a_job_expires_once_a_day(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "lake"
    for number in range(3):
        append(spark, table, number)
    first = keep_up_in_turn(spark, str(table), NOW)
    assert (first.files_before, first.expired_files) == (9, 0)
    second = keep_up_in_turn(spark, str(table), NOW)
    assert second.is_nothing
    mark = table / "_strandline" / "expired"
    tomorrow_ms = round(mark.stat().st_mtime * 1000) + DAY_MS
    third = keep_up_in_turn(spark, str(table), NOW, now_ms=tomorrow_ms)
    assert third.expired_files == 9
    assert offsets(spark, table) == list(range(30))
