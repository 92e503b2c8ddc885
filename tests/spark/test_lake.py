"""The promise of the lake: the table equals the topic, however often its job is killed.

Source: decisions/0050, docs/pipelines.md."""

import json
import os
import signal
from collections import defaultdict
from pathlib import Path

import deltalake
import duckdb
import pytest
from tests.integration.conftest import wait_until
from tests.spark.jobs import (
    JOB_TIMEOUT_S,
    Cluster,
    Jobs,
    Record,
    children,
    create_topic,
    produce,
    read_json,
    read_rows,
    read_topic,
)

from strandline.pipeline.lake.table import read_table

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]

SCHEMA = "n BIGINT, color STRING, weight DOUBLE"
COLORS = ("red", "green", "blue", None)
BATCH_RECORDS = 6_000


def fruit(n: int) -> Record:
    weight = None if n % 7 == 0 else n % 1000 / 4
    value = {"n": n, "color": COLORS[n % len(COLORS)], "weight": weight}
    return Record(str(n).encode(), json.dumps(value).encode(), (("n", str(n).encode()),))


ODD_RECORDS = (
    Record(b"tombstone", None),
    Record(None, b'{"n": 1, "color": "red", "weight": 2.5}'),
    Record(b"not json", b"\x00\xff{"),
    Record(b"wrong type", b'{"n": "many", "color": "red"}'),
    Record(b"empty", b""),
    Record(b"two values", b'{"n": 1, "color": "red", "weight": 1.5} {"n": 2}'),
    Record(b"\xff\xfe", b'{"n": 3, "color": "red", "weight": 2.5}'),
)


REASONS = {
    b"not json": "not UTF-8",
    b"wrong type": "field n: expected bigint, got text",
    b"empty": "empty value",
    b"two values": "trailing bytes",
    b"\xff\xfe": "key: not UTF-8",
}
"""{key of an odd record: why it does not fit}."""


def expected_row(place: tuple[int, int], record: Record) -> dict[str, object]:
    reason = REASONS.get(record.key or b"")
    is_bad_key = reason is not None and reason.startswith("key")
    is_malformed = reason is not None and not is_bad_key
    decoded = None if is_malformed or record.value is None else json.loads(record.value)
    return {
        "partition": place[0],
        "offset": place[1],
        "timestamp_ms": record.timestamp_ms,
        "key": None if record.key is None or is_bad_key else record.key.decode(),
        "malformed_key": record.key if is_bad_key else None,
        "headers": record.headers,
        "value": decoded,
        "malformed": record.value if is_malformed else None,
        "problem": reason,
        "color": None if decoded is None else decoded["color"],
    }


def found_row(row: dict[str, object]) -> dict[str, object]:
    headers = row.pop("headers") or ()
    timestamp = row.pop("timestamp")
    assert row.pop("topic")
    return {
        **row,
        "headers": tuple((each["key"], each["value"]) for each in headers),
        "timestamp_ms": round(timestamp.timestamp() * 1000),
    }


def by_place(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


def assert_equal(cluster: Cluster, topic: str, table: Path) -> list[dict[str, object]]:
    """Exactly one row for each record, and each row is its record."""
    rows = by_place([found_row(dict(row)) for row in read_rows(table)])
    records = read_topic(cluster, topic)
    assert [(row["partition"], row["offset"]) for row in rows] == sorted(records)
    for row, place in zip(rows, sorted(records), strict=True):
        assert row == expected_row(place, records[place])
    return rows


@pytest.mark.parametrize("is_killed_again", [False, True], ids=["once", "again and again"])
def test_table_equals_the_topic_though_its_job_is_killed(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str, is_killed_again: bool
) -> None:
    table = tmp_path / "lake"
    (tmp_path / "fruit.ddl").write_text(SCHEMA)
    create_topic(cluster, topic_name, partitions=4)
    produce(cluster, topic_name, [*map(fruit, range(20_000)), *ODD_RECORDS])
    lake = (
        *("lake", topic_name, str(table), "--bootstrap", cluster.bootstrap),
        *("--schema", str(tmp_path / "fruit.ddl"), "--key", "text", "--partition-by", "color"),
        *("--batch-records", str(BATCH_RECORDS), "--json"),
    )

    # Killed as batch 1 is in the table.
    jobs.run_until_killed(commit_of(table, 1), *lake, with_java=True)
    if is_killed_again:  # As batch 2 is in the table and batch 3 begins, the driver alone.
        jobs.run_until_killed(commit_of(table, 2), *lake, with_java=False)
    produce(cluster, topic_name, map(fruit, range(20_000, 21_000)))
    question = ("--by", "color", "--by", "partition % 2", "--mean", "value.weight")
    told = read_json(jobs.run(*lake, *question))

    rows = assert_equal(cluster, topic_name, table)
    assert told["table_rows"] == len(rows) == 21_000 + len(ODD_RECORDS)
    assert told["groups"] == expected_means(rows)
    assert_readable_elsewhere(table, rows)
    if not is_killed_again:
        return
    again = read_json(jobs.run("aggregate", str(table), *question, "--json"))
    assert again["groups"] == told["groups"]


def test_a_job_whose_java_is_killed_says_so_in_one_line(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, map(fruit, range(10)))
    lake = ("lake", topic_name, str(table), "--bootstrap", cluster.bootstrap, "--continuous")
    with jobs.start(*lake, "--interval-ms", "100") as job:
        wait_until(commit_of(table, 0).exists, what="a batch", timeout_s=JOB_TIMEOUT_S)
        for pid in children(job.pid):
            os.kill(pid, signal.SIGKILL)
        produce(cluster, topic_name, [fruit(10)])
        _, err = job.communicate(timeout=JOB_TIMEOUT_S)
    assert job.returncode == 1
    lines = [one for one in err.splitlines() if not one.startswith("  batch ")]
    assert len(lines) == 1 and lines[0].startswith("error: Spark: Spark's Java process ended"), err


def commit_of(table: Path, batch: int) -> Path:
    """The commit of a batch, in a table that has no other commits."""
    return table / "_delta_log" / f"{batch:020d}.json"


def assert_readable_elsewhere(table: Path, rows: list[dict[str, object]]) -> None:
    """Readers that are not Spark find the same rows."""
    expected = sorted((row["partition"], row["offset"], row["color"]) for row in map(placed, rows))
    delta = deltalake.DeltaTable(str(table))
    columns = ["partition", "offset", "color"]
    found = delta.to_pyarrow_table(columns=columns).to_pylist()
    assert (
        sorted((row["partition"], row["offset"], row["color"] or "") for row in found) == expected
    )
    files = [str(file.path) for file in read_table(table).files]
    query = """SELECT "partition", "offset", coalesce("value"."color", '')
               FROM read_parquet(?) ORDER BY ALL"""
    assert duckdb.execute(query, [files]).fetchall() == expected


def placed(row: dict[str, object]) -> dict[str, object]:
    return {**row, "color": row["color"] or ""}


def expected_means(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    groups: dict[tuple[str | None, str], list[float | None]] = defaultdict(list)
    for row in rows:
        weight = row["value"]["weight"] if row["value"] else None
        groups[row["color"], str(row["partition"] % 2)].append(weight)
    means = []
    for group in sorted(groups, key=lambda group: (group[0] is not None, group)):
        values = [weight for weight in groups[group] if weight is not None]
        means.append(
            {
                "group": list(group),
                "rows": len(groups[group]),
                "values": len(values),
                # Quarters add up exactly, in any order.
                "mean": sum(values) / len(values) if values else None,
            }
        )
    return means
