"""Each record is in the table or among the dead letters, once, also where the two disagree on how
far the job is.

Source: decisions/0050, docs/pipelines/lake.md."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.jobs import Cluster, Record, create_topic, produce
from tests.spark.lakes import Lake, fill, lake_options, rows

from strandline.base.errors import OperatorError

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

BAD = b"no JSON"


def values(*found: bytes | int) -> list[Record]:
    return [Record(b"k", b'{"n":%d}' % one if isinstance(one, int) else one) for one in found]


def test_rows_that_a_restore_took_are_read_again_below_newer_dead_letters(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    table, dead = tmp_path / "lake", tmp_path / "dead"
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, values(0, BAD, 2, 3, BAD, 5, BAD))
    given = {"schema": "n INT", "dead_letters": str(dead)}
    fill(spark, lake_options(cluster, table, topic_name, batch_records=3, **given))
    spark.sql(f"RESTORE TABLE delta.`{table}` TO VERSION AS OF 0")
    recovered = lake_options(cluster, table, topic_name, batch_records=2, recover=True, **given)
    Lake(spark, recovered).step_once()
    fill(spark, lake_options(cluster, table, topic_name, **given))
    assert rows(table, "offset") == [(0,), (2,), (3,), (5,)]
    assert rows(dead, "offset") == [(1,), (4,), (6,)]


def test_two_jobs_do_not_share_dead_letters(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    dead = str(tmp_path / "dead")
    given = {"schema": "n INT", "dead_letters": dead}
    jobs = {}
    for name in ("a", "b"):
        topic = f"{topic_name}-{name}"
        create_topic(cluster, topic, partitions=1)
        produce(cluster, topic, values(0, BAD))
        jobs[name] = Lake(spark, lake_options(cluster, tmp_path / name, topic, **given))
    jobs["a"].finish()
    with pytest.raises(OperatorError, match=r"dead letters of another job.*another --dead-lett"):
        jobs["b"].finish()
    assert not (tmp_path / "b" / "_delta_log").exists()
    assert rows(dead, "topic") == [(f"{topic_name}-a",)]
