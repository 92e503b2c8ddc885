"""The promise of the lake: the table equals the topic, however often its job is killed.

Source: decisions/0003, docs/pipelines.md."""

import json
from collections import defaultdict
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
)
MALFORMED = {b"not json", b"wrong type", b"empty"}


def expected_row(place: tuple[int, int], record: Record) -> dict[str, object]:
    malformed = record.key in MALFORMED
    decoded = None if malformed or record.value is None else json.loads(record.value)
    return {
        "partition": place[0],
        "offset": place[1],
        "timestamp_ms": record.timestamp_ms,
        "key": None if record.key is None else record.key.decode(),
        "headers": record.headers,
        "value": decoded,
        "malformed": record.value if malformed else None,
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
    checkpoint = table / "_checkpoints" / topic_name
    lake = (
        *("lake", topic_name, str(table), "--bootstrap", cluster.bootstrap),
        *("--schema", str(tmp_path / "fruit.ddl"), "--key", "text", "--partition-by", "color"),
        *("--batch-records", str(BATCH_RECORDS), "--json"),
    )

    # Killed as batch 1 is in the table; its mark in the checkpoint is taken back when it was made,
    # so that the next run must find out by itself that the batch is there.
    committed = table / "_delta_log" / f"{1:020d}.json"
    jobs.run_until_killed(committed, *lake, with_java=True)
    (checkpoint / "commits" / "1").unlink(missing_ok=True)
    if is_killed_again:  # While batch 3 is being written, the driver alone.
        jobs.run_until_killed(checkpoint / "offsets" / "3", *lake, with_java=False)
    produce(cluster, topic_name, map(fruit, range(20_000, 21_000)))
    question = ("--by", "color", "--by", "partition % 2", "--mean", "value.weight")
    told = read_json(jobs.run(*lake, *question))

    rows = assert_equal(cluster, topic_name, table)
    assert told["table_rows"] == len(rows) == 21_000 + len(ODD_RECORDS)
    assert told["groups"] == expected_means(rows)
    if not is_killed_again:
        return
    again = read_json(jobs.run("aggregate", str(table), *question, "--json"))
    assert again["groups"] == told["groups"]

    # A job that has lost its checkpoint would write every record a second time.
    refused = jobs.run(*lake, "--checkpoint", str(tmp_path / "other"), fails=True)
    assert "there is no checkpoint" in refused
    assert len(refused.splitlines()) == 1


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
