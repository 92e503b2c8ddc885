"""Jobs that merge, compact and place their tables, as processes; some are killed by SIGKILL.

Source: decisions/0055, docs/pipelines/upkeep.md."""

import json
import random
from pathlib import Path

import deltalake
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.spark.jobs import (
    CLIENT_TIMEOUT_S,
    Cluster,
    Jobs,
    Record,
    create_topic,
    produce,
    read_json,
    read_topic,
)
from tests.spark.lakes import rows

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]


def changes(seed: int, count: int) -> list[Record]:
    """Changes of a few hundred keys; every fifth deletes."""
    draw = random.Random(seed)
    return [
        Record(
            b"%d" % draw.randrange(300),
            None if draw.random() < 0.2 else b"%d" % n,
        )
        for n in range(count)
    ]


def newest(cluster: Cluster, topic: str) -> list[tuple[bytes, bytes, int]]:
    """(key, value, offset) that the newest record of each key leaves."""
    found: dict[bytes, tuple[bytes, bytes, int]] = {}
    for (_, offset), record in sorted(read_topic(cluster, topic).items()):
        assert record.key is not None
        found.pop(record.key, None)
        if record.value is not None:
            found[record.key] = (record.key, record.value, offset)
    return sorted(found.values(), key=repr)


def test_a_table_of_the_newest_records_is_exact_though_its_job_is_killed(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=2)
    produce(cluster, topic_name, changes(1, 2_000))
    lake = (
        *("lake", topic_name, str(table), "--bootstrap", cluster.bootstrap, "--upsert"),
        *("--partition-by", "bucket=pmod(offset, 3)", "--batch-records", "500", "--json"),
    )
    commits = table / "_delta_log"
    jobs.run_until_killed(commits / f"{1:020d}.json", *lake, with_java=True)
    jobs.run_until_killed(commits / f"{2:020d}.json", *lake, with_java=False)
    produce(cluster, topic_name, changes(2, 300))
    jobs.run(*lake)
    assert rows(table, "key", "value", "offset") == newest(cluster, topic_name)
    refused = jobs.run(*(word for word in lake if word != "--upsert"), fails=True)
    assert refused.endswith("has the newest record of each key: add --upsert\n")


def test_a_job_compacts_its_table_and_goes_on_though_it_is_killed_at_it(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    table = tmp_path / "lake"
    create_topic(cluster, topic_name, partitions=1)
    produce(cluster, topic_name, [Record(b"k", b"%d" % n) for n in range(1_800)])
    lake = (
        *("lake", topic_name, str(table), "--bootstrap", cluster.bootstrap, "--json"),
        *("--batch-records", "100", "--upkeep", "8"),
    )
    # Version 8 sets the table's properties; compaction comes next.
    jobs.run_until_killed(table / "_delta_log" / f"{8:020d}.json", *lake, with_java=True)
    told = read_json(jobs.run(*lake))
    operations = [each["operation"] for each in deltalake.DeltaTable(str(table)).history()]
    assert operations.count("OPTIMIZE") == 1
    offsets = [offset for (offset,) in rows(table, "offset")]
    assert sorted(offsets) == list(range(1_800))
    files = told["table_files"]
    assert isinstance(files, int) and files < 8

    produce(cluster, topic_name, [Record(b"k", b"last")])
    assert read_json(jobs.run(*lake))["records"] == 1
    looked = read_json(jobs.run("upkeep", str(table), "--small-files", "2", "--dry-run", "--json"))
    done = read_json(jobs.run("upkeep", str(table), "--small-files", "2", "--json"))
    assert looked["files_before"] == done["files_before"] == files + 1
    assert (done["files_after"], done["expired_files"]) == (1, 0)
    assert len(deltalake.DeltaTable(str(table)).file_uris()) == 1
    assert len(rows(table, "offset")) == 1_801
    assert read_json(jobs.run(*lake))["records"] == 0


def test_tables_lie_where_the_residency_of_their_topics_allows(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    resident, free = f"{topic_name}-resident", f"{topic_name}-free"
    east = {"residency": {"allow": [{"label": "region", "op": "in", "values": ["east"]}]}}
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    config = {"placement.policy": json.dumps(east)}
    created = admin.create_topics([NewTopic(resident, 1, 1, config=config), NewTopic(free, 1, 1)])
    for made in created.values():
        made.result(CLIENT_TIMEOUT_S)
    for topic in (resident, free):
        produce(cluster, topic, [Record(b"k", topic.encode())])
    lake = ("lake", resident, free, str(tmp_path / "lake"), "--bootstrap", cluster.bootstrap)
    west = ("--location", f"west={tmp_path / 'west'}")

    refused = jobs.run(*lake, *west, fails=True)
    assert f"the residency of topic {resident} allows no --location (west: region" in refused
    assert list(tmp_path.iterdir()) == []
    jobs.run(*lake, *west, "--location", f"east={tmp_path / 'east'}")
    assert rows(tmp_path / "east" / resident, "value") == [(resident.encode(),)]
    assert rows(tmp_path / "lake" / free, "value") == [(free.encode(),)]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["east", "lake"]


def test_a_replay_that_is_killed_in_the_middle_is_exact_when_it_is_run_again(
    cluster: Cluster, jobs: Jobs, tmp_path: Path, topic_name: str
) -> None:
    table, dead = tmp_path / "lake", tmp_path / "dead"
    create_topic(cluster, topic_name, partitions=2)
    fits = [Record(None, b'{"n":%d,"color":"red"}' % n) for n in range(400)]
    plain = [Record(None, b'{"n":%d}' % n) for n in range(400, 500)]
    produce(cluster, topic_name, [*fits, *plain, Record(None, b"garbage")])
    for name, fields in (("old", "n INT"), ("new", "n INT, color STRING")):
        (tmp_path / f"{name}.ddl").write_text(fields)
    lake = ("lake", topic_name, str(table), "--bootstrap", cluster.bootstrap)
    jobs.run(*lake, "--schema", str(tmp_path / "old.ddl"), "--dead-letters", str(dead))
    assert (len(rows(table, "offset")), len(rows(dead, "offset"))) == (100, 401)
    replay = ("replay", str(dead), "--into", str(table), "--schema", str(tmp_path / "new.ddl"))

    # Killed when the column that marks is there; when the letters are marked, with Java left to
    # end by itself; and when the rows are in the table, and still among the dead letters.
    jobs.run_until_killed(dead / "_delta_log" / f"{1:020d}.json", *replay, with_java=True)
    jobs.run_until_killed(next_commit(dead), *replay, with_java=False)
    jobs.run_until_killed(next_commit(table), *replay, with_java=True)
    told = read_json(jobs.run(*replay, "--json"))
    assert told["left"] == 1
    found = [value["n"] for (value,) in rows(table, "value")]
    assert sorted(found) == list(range(500))
    assert rows(dead, "value") == [(b"garbage",)]
    assert read_json(jobs.run(*replay, "--json"))["replayed"] == 0
    assert len(rows(table, "offset")) == 500


def next_commit(table: Path) -> Path:
    """The file that the table's next commit makes."""
    version = deltalake.DeltaTable(str(table)).version()
    return table / "_delta_log" / f"{version + 1:020d}.json"
