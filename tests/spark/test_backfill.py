"""History goes from buckets into a table past the brokers, once, also across a kill; then the lake
job goes on at the next offset.

Source: decisions 0050 and 0065; docs/pipelines/lake.md."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.integration.conftest import stop_cluster
from tests.integration.test_tiered_reading import RECORDS, fill, value_of
from tests.integration.test_tiered_uploads import PARTITIONS
from tests.spark.jobs import Cluster, Jobs, read_json, read_rows
from tests.spark.tiered_history import Kept

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "tiered")
    yield made
    stop_cluster(made.tiered.cluster)


def test_a_killed_backfill_goes_on_and_the_lake_job_after_it(
    kept: Kept, jobs: Jobs, tmp_path: Path
) -> None:
    near = replace(jobs, cluster=Cluster(kept.tiered.cluster.bootstrap))
    table = tmp_path / "table"
    words = ("t", str(table), "--bootstrap", near.cluster.bootstrap)
    backfill = ("backfill", *words, "--buckets", kept.buckets, "--batch-records", "2000")
    before = kept.served()
    near.run_until_killed(table / "_delta_log" / f"{1:020d}.json", *backfill, with_java=True)
    told = read_json(near.run(*backfill, "--json"))
    assert 0 < int(str(told["records"])) < kept.tiered_count
    assert told["table_rows"] == kept.tiered_count
    assert read_json(near.run(*backfill, "--json"))["batches"] == 0

    fill(kept.tiered, "t", RECORDS, RECORDS + 100, first_ms=kept.first_ms)
    rest = PARTITIONS * (RECORDS + 100) - kept.tiered_count
    told = read_json(near.run("lake", *words, "--json"))
    assert told["records"] == rest
    # Answers of a broker begin with whole batches: some have offsets before the one asked for.
    assert rest * 1_000 <= kept.served(before + rest * 1_000) - before < rest * 1_000 + 300_000
    rows = sorted((row["partition"], row["offset"], row["value"]) for row in read_rows(table))  # type: ignore[type-var]
    assert rows == [
        (partition, at, value_of(partition, at))
        for partition in range(PARTITIONS)
        for at in range(RECORDS + 100)
    ]
    # A table that is ahead of the buckets has nothing to read there.
    assert read_json(near.run(*backfill, "--json"))["batches"] == 0
    assert "east=file" not in json.dumps([path.read_text() for path in table.rglob("*.json")])
