"""A table of the newest record of each key equals a model in plain Python.

Source: decisions/0055, docs/pipelines/upkeep.md."""

import random
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.lake.upsert_model import Keyed, Table, apply_batch

from strandline.pipeline.lake import upsert
from strandline.pipeline.lake.progress import CommitId

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

TYPE = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value STRING, "
    "color STRING, _value STRING"
)
COLORS = ("red", "green", None)


def random_batches(seed: int, *, count: int, size: int) -> list[list[Keyed]]:
    """Keys come back in later batches in other table partitions, in another partition of the
    topic, as tombstones; some records have no key."""
    draw = random.Random(seed)
    ends = [0, 0, 0]
    batches = []
    for _ in range(count):
        batch = []
        for _ in range(size):
            partition = draw.randrange(3)
            key = draw.choice([None, *(b"%d" % n for n in range(12))])
            value = None if draw.random() < 0.3 else f"{draw.choice(COLORS)}-{draw.random()}"
            at_ms = draw.randrange(50) * 1000
            batch.append(Keyed(partition, ends[partition], key, value, at_ms))
            ends[partition] += 1
        draw.shuffle(batch)
        batches.append(batch)
    return batches


def write(spark: SparkSession, table: Path, batch: list[Keyed], *, number: int) -> None:
    rows = [
        (
            *("fruit", one.partition, one.offset),
            datetime.fromtimestamp(one.timestamp_ms / 1000, UTC),
            *(one.key, one.value),
            None if one.value is None or one.value.startswith("None") else one.value.split("-")[0],
            one.value,
        )
        for one in batch
    ]
    marked = upsert.with_marks(spark.createDataFrame(rows, TYPE)).drop("_value")
    source = upsert.newest(marked)
    if number == 0:
        live = upsert.live(source)
        live.write.format("delta").partitionBy("color").save(str(table))
        return
    commit = CommitId("strandline-lake", number, "{}")
    upsert.merge(spark, source, str(table), order="batch", commit=commit)


def read(spark: SparkSession, table: Path) -> list[Keyed]:
    rows = spark.read.format("delta").load(str(table)).collect()
    found = []
    for row in rows:
        key = None if row["key"] is None else bytes(row["key"])
        at_ms = round(row["timestamp"].timestamp() * 1000)
        found.append(Keyed(row["partition"], row["offset"], key, row["value"], at_ms))
    return sorted(found, key=lambda one: (one.partition, one.offset))


def test_batches_leave_what_the_model_leaves(spark: SparkSession, tmp_path: Path) -> None:
    table = tmp_path / "lake"
    model: Table = {}
    for number, batch in enumerate(random_batches(7, count=4, size=25)):
        write(spark, table, batch, number=number)
        if number == 2:  # Repeated, as after a kill: it enters once.
            write(spark, table, batch, number=number)
        apply_batch(model, batch)
        expected = sorted(model.values(), key=lambda one: (one.partition, one.offset))
        assert read(spark, table) == expected, number
    assert any(one.key is None for one in expected) and len(expected) > 10
