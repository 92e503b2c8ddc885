"""Dead letters that fit a new schema become rows, each exactly once, wherever a replay is killed.

Source: decisions/0055, docs/pipelines/upkeep.md."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.spark.jobs import Cluster, Record, create_topic, produce
from tests.spark.lakes import fill, lake_options, rows

from strandline.base.errors import OperatorError
from strandline.pipeline.lake.options import ValueSchema
from strandline.pipeline.lake.writer import TableWriter
from strandline.pipeline.replay.job import Replay
from strandline.pipeline.values.ddl import parse_ddl

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

OLD, NEW = "n BIGINT", "n BIGINT, color STRING"


class KilledError(Exception):
    """The process ends here."""


def replay(spark: SparkSession, dead: Path, table: Path) -> Replay:
    schema = ValueSchema(Path("new.ddl"), parse_ddl(NEW))
    return Replay(spark, dead_letters=str(dead), table=str(table), schema=schema, mode="strict")


def test_a_replay_that_is_killed_between_its_commits_loses_and_doubles_nothing(
    cluster: Cluster,
    spark: SparkSession,
    tmp_path: Path,
    topic_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table, dead = tmp_path / "lake", tmp_path / "dead"
    create_topic(cluster, topic_name, partitions=1)
    values = [b'{"n":0}', b'{"n":1,"color":"red"}', b"garbage", b'{"n":3,"color":"blue"}']
    produce(cluster, topic_name, [Record(b"k", value) for value in values])
    options = lake_options(cluster, table, topic_name, schema=OLD, dead_letters=str(dead))
    fill(spark, options)
    assert rows(table, "offset") == [(0,)]

    def killed(*_: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:  # Marked, not in the table yet.
        patch.setattr(TableWriter, "replay", killed)
        with pytest.raises(KilledError):
            replay(spark, dead, table).run()
    assert rows(table, "offset") == [(0,)]
    with pytest.raises(OperatorError, match="replay into another table"):
        other = replay(spark, dead, table)
        other._table_id = "another"  # As of a second table that is told the same job.
        other.run()
    with monkeypatch.context() as patch:  # In the table, still among the dead letters.
        job = replay(spark, dead, table)
        finish = job._finish
        patch.setattr(job, "_finish", lambda done: killed() if done >= 0 else finish(done))
        with pytest.raises(KilledError):
            job.run()
    assert rows(table, "offset") == [(0,), (1,), (3,)]
    assert rows(dead, "offset") == [(1,), (2,), (3,)]
    done = replay(spark, dead, table).run()
    assert (done.finished, done.replayed, done.left) == (2, 0, 1)
    assert rows(table, "offset") == [(0,), (1,), (3,)]
    assert rows(dead, "offset", "value") == [(2, b"garbage")]
    colors = spark.read.format("delta").load(str(table)).orderBy("offset").select("value.color")
    assert [color for (color,) in colors.collect()] == [None, "red", "blue"]

    # The lake job goes on, with the new schema, and knows how far it is.
    produce(cluster, topic_name, [Record(b"k", values[1]), Record(b"k", b"rubbish")])
    later = lake_options(cluster, table, topic_name, schema=NEW, dead_letters=str(dead))
    assert [(each.records, each.dead_letters) for each in fill(spark, later)] == [(1, 1)]
    assert rows(table, "offset") == [(0,), (1,), (3,), (4,)]
    assert rows(dead, "offset") == [(2,), (5,)]


def test_a_replay_by_key_brings_back_no_older_value_and_no_deleted_key(
    cluster: Cluster, spark: SparkSession, tmp_path: Path, topic_name: str
) -> None:
    table, dead = tmp_path / "lake", tmp_path / "dead"
    create_topic(cluster, topic_name, partitions=1)
    red = b'{"n":1,"color":"red"}'
    records = [
        *(Record(b"deleted", red), Record(b"replaced", red), Record(b"newest", b'{"n":0}')),
        *(Record(b"deleted", None), Record(b"replaced", b'{"n":2}'), Record(b"newest", red)),
    ]
    produce(cluster, topic_name, records)
    options = lake_options(
        cluster,
        table,
        topic_name,
        schema=OLD,
        dead_letters=str(dead),
        upsert=True,
        batch_records=3,
    )
    fill(spark, options)
    assert rows(table, "offset", "key") == [(2, b"newest"), (4, b"replaced")]
    done = replay(spark, dead, table).run()
    assert (done.replayed, done.superseded, done.left) == (2, 1, 0)
    assert rows(table, "offset", "key") == [(4, b"replaced"), (5, b"newest")]
    assert rows(dead, "offset") == []
