"""A cluster loses all its disks; another one gets its topics, records and committed offsets back
out of a bucket, under the same offsets.

Source: decision 0063; docs/operating/restore.md."""

import json
import shutil
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Message, TopicPartition
from tests.integration.conftest import run, stop_cluster, wait_until
from tests.integration.pages import commands
from tests.integration.test_tiered_uploads import PARTITIONS, Tiered

pytestmark = pytest.mark.integration

TOPIC = "t"
TIMEOUT_S = 60
Row = tuple[int, int, bytes | None, tuple[int, int]]
"""(partition, offset, value, timestamp)"""


def rows(bootstrap: str, count: int, *, start: int = 0) -> list[Row]:
    """So many records of the topic, from an offset on."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "reader", "log_level": 0}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.assign([TopicPartition(TOPIC, one, start) for one in range(PARTITIONS)])
    found: list[Row] = []
    while len(found) < count:
        (message,) = consumer.consume(1, timeout=TIMEOUT_S) or [None]
        assert isinstance(message, Message) and message.error() is None, f"{len(found)} of {count}"
        found.append((message.partition(), message.offset(), message.value(), message.timestamp()))
    consumer.close()
    return sorted(found)


def commit(bootstrap: str, offsets: dict[int, int]) -> None:
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "log_level": 0}
    consumer = Consumer(settings)
    places = [TopicPartition(TOPIC, one, offset) for one, offset in offsets.items()]
    consumer.commit(offsets=places, asynchronous=False)
    consumer.close()


def committed(bootstrap: str) -> dict[int, int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "log_level": 0})
    places = [TopicPartition(TOPIC, one) for one in range(PARTITIONS)]
    found = {one.partition: one.offset for one in consumer.committed(places, timeout=TIMEOUT_S)}
    consumer.close()
    return found


def listed(url: str) -> dict[str, object]:
    told: dict[str, object] = json.loads(
        run("restore", "--from", url, "--dry-run", "--json").stdout
    )
    return told


def ends(plan: dict[str, object]) -> dict[int, tuple[int, int]]:
    """{partition: (first, end)} of the topic in a plan."""
    (topic,) = [one for one in plan["topics"] if one["name"] == TOPIC]  # type: ignore[attr-defined]
    return {one["index"]: (one["start_offset"], one["end_offset"]) for one in topic["partitions"]}


def is_exported(url: str, end: int) -> bool:
    """Whether the bucket has the topic up to there, and the group."""
    done = run("restore", "--from", url, "--dry-run", "--json", check=False)
    if done.returncode:
        return False
    plan = json.loads(done.stdout)
    if not any(one["name"] == TOPIC for one in plan["topics"]) or not plan["offsets"]:
        return False
    return all(one >= end for _, one in ends(plan).values())


def test_a_lost_cluster_comes_back_record_by_record(tmp_path: Path) -> None:
    lost = Tiered(tmp_path / "lost", "tiered.export_interval_ms=200")
    url = f"file://{lost.buckets['east']}"
    try:
        lost.create(TOPIC)
        lost.set(TOPIC, "retention.ms", "987654321")
        lost.produce(TOPIC, 6_000)
        commit(lost.cluster.bootstrap, {0: 1_500, 1: 2_999})
        wait_until(lambda: is_exported(url, 1_800), what="the bucket has it", timeout_s=TIMEOUT_S)
        plan = listed(url)
        end = ends(plan)
        before = rows(lost.cluster.bootstrap, 6_000)
        where = ("--records", "-b", lost.cluster.bootstrap)
        done = run("restore", "--from", url, *where, check=False)
        assert done.returncode and "restore into another one" in done.stderr
    finally:
        stop_cluster(lost.cluster)
    shutil.rmtree(lost.cluster.directory)

    other = Tiered(tmp_path / "other")
    bootstrap = other.cluster.bootstrap
    try:
        # A bucket that lacks an object is not taken for one that has everything.
        hidden = sorted(lost.buckets["east"].glob("*/*/0/*.segment"))[-1]
        hidden.rename(hidden.with_suffix(".hidden"))
        done = run("restore", "--from", url, "--records", "-b", bootstrap, check=False)
        assert done.returncode and "--partial" in done.stderr
        assert f"{TOPIC}-0" in done.stderr
        # One that has half of it interrupts the copying.
        whole = hidden.with_suffix(".hidden").read_bytes()
        hidden.write_bytes(whole[: len(whole) // 2])
        done = run("restore", "--from", url, "--records", "-b", bootstrap, check=False)
        assert done.returncode and "cannot be read" in done.stderr
        hidden.with_suffix(".hidden").rename(hidden)
        options = ("--records", "--config", "segment.bytes=2000000")
        run("restore", "--from", url, *options, "-b", bootstrap)
        expected = [one for one in before if one[1] < end[one[0]][1]]
        assert rows(bootstrap, len(expected)) == expected
        assert committed(bootstrap) == {
            0: 1_500,
            1: min(2_999, end[1][1]),
        }
        told = json.loads(
            run("topic", "describe", TOPIC, "--bootstrap", bootstrap, "--json").stdout
        )
        assert "987654321" in json.dumps(told)
        assert "2000000" in json.dumps(told)
        # A second run finds everything there.
        again = on_the_page(1, url, bootstrap)
        run(*(one for one in again if "remote.storage" not in one and one != "--unset"))
        assert rows(bootstrap, len(expected)) == expected
        other.produce(TOPIC, 2)
        last = rows(bootstrap, len(expected) + 2)[-1]
        assert last[1] == end[last[0]][1]
        done = run("restore", "--from", url, "--records", "-b", bootstrap, check=False)
        assert done.returncode and f"topic {TOPIC} exists" in done.stderr
    finally:
        stop_cluster(other.cluster)


def test_a_time_before_the_grace_names_what_is_gone_and_one_within_it_has_all(
    tmp_path: Path,
) -> None:
    cluster = Tiered(
        tmp_path / "lost", "tiered.export_interval_ms=200", "tiered.delete_grace_ms=60000"
    )
    url = f"file://{cluster.buckets['east']}"

    def cut() -> dict[str, object]:
        done = run("restore", "--from", url, "--as-of", str(at_ms), "--dry-run", "--json")
        (topic,) = json.loads(done.stdout)["topics"]
        (first, _) = topic["partitions"]
        return dict(first)

    try:
        cluster.create(TOPIC)
        cluster.produce(TOPIC, 6_000)
        commit(cluster.cluster.bootstrap, {0: 1})
        wait_until(lambda: is_exported(url, 1_800), what="the bucket has it", timeout_s=TIMEOUT_S)
        at_ms = round(time.time() * 1000)
        before = cut()
        place = TopicPartition(TOPIC, 0, 1_100)
        cluster.admin.delete_records([place])[place].result(TIMEOUT_S)
        newest = ends(listed(url))
        wait_until(
            lambda: ends(listed(url))[0][0] > newest[0][0] or ends(listed(url))[0][0] == 1_100,
            what="an export without the deleted records",
            timeout_s=TIMEOUT_S,
        )
        within = cut()
        assert (within["start_offset"], within["gone"]) == (0, [])
        assert within == before
        wait_until(lambda: cut()["gone"], what="the end of the grace", timeout_s=2 * TIMEOUT_S)
        after = cut()
        names = sorted((cluster.buckets["east"]).glob("*/*/0/*.segment"))
        first = int(names[0].name.split("-")[0])
        assert 0 < first <= 1_100
        assert after["gone"] == [[0, first]]
        assert (after["start_offset"], after["end_offset"]) == (first, before["end_offset"])
    finally:
        stop_cluster(cluster.cluster)


def on_the_page(block: int, url: str, bootstrap: str, file: str = "") -> list[str]:
    """The command of the page, about these places."""
    (line,) = commands("restore.md", "Bring it back", block)
    words = {
        "s3://log-east/prod?region=us-east-1": url,
        "/etc/strandline/broker.toml": file,
        "new-cluster:9092": bootstrap,
    }
    return [words.get(word, word) for word in line.split()[1:]]


def files(bucket: Path) -> dict[str, tuple[int, int]]:
    """{file: (size, time)} of all objects of a bucket."""
    return {
        str(one.relative_to(bucket)): (one.stat().st_size, one.stat().st_mtime_ns)
        for one in bucket.rglob("*")
        if one.is_file()
    }


def test_a_lost_clusters_objects_are_copied_and_read_at_once(tmp_path: Path) -> None:
    lost = Tiered(tmp_path / "lost", "tiered.export_interval_ms=200")
    url = f"file://{lost.buckets['east']}"
    try:
        lost.create(TOPIC)
        lost.set(TOPIC, "retention.ms", "987654321")
        lost.produce(TOPIC, 6_000)
        commit(lost.cluster.bootstrap, {0: 1_500, 1: 2_999})
        wait_until(lambda: is_exported(url, 1_800), what="the bucket has it", timeout_s=TIMEOUT_S)
        end = ends(listed(url))
        before = rows(lost.cluster.bootstrap, 6_000)
    finally:
        stop_cluster(lost.cluster)
    shutil.rmtree(lost.cluster.directory)
    end = ends(listed(url))

    other = Tiered(tmp_path / "other")
    bootstrap = other.cluster.bootstrap
    options = ("--to", str(other.cluster.directory / "broker-1/config.toml"))
    expected = [one for one in before if one[1] < end[one[0]][1]]
    try:
        done = run("restore", "--from", url, "-b", bootstrap, check=False)
        assert done.returncode and "--to FILE" in done.stderr and "--records" in done.stderr
        dry = run("restore", "--from", url, *options, "--dry-run").stdout
        assert dry.count("to east, inside the store") == PARTITIONS and "bytes in all" in dry
        # A bucket that lacks an object is not taken for one that has everything.
        hidden = sorted(lost.buckets["east"].glob("*/*/1/*.segment"))[-1]
        whole = hidden.read_bytes()
        hidden.unlink()
        done = run("restore", "--from", url, *options, "-b", bootstrap, check=False)
        assert done.returncode and "--partial" in done.stderr
        # One that has half of it interrupts the copying.
        hidden.write_bytes(whole[: len(whole) // 2])
        done = run("restore", "--from", url, *options, "-b", bootstrap, check=False)
        assert done.returncode and "cannot be read" in done.stderr and hidden.name in done.stderr
        hidden.write_bytes(whole)
        untouched = files(lost.buckets["east"])
        told = run(*on_the_page(0, url, bootstrap, options[1])).stdout
        assert "0 through this client" in told and " were there" in told
        assert rows(bootstrap, len(expected)) == expected
        assert committed(bootstrap) == {0: 1_500, 1: min(2_999, end[1][1])}
        described = run("topic", "describe", TOPIC, "--bootstrap", bootstrap, "--json").stdout
        assert "987654321" in described
        # A second run finds everything there.
        again = run("restore", "--from", url, *options, "-b", bootstrap).stdout
        assert f"topic {TOPIC}: restored before" in again
        assert files(lost.buckets["east"]) == untouched
        other.produce(TOPIC, 4_000)
        assert rows(bootstrap, len(expected) + 4_000)[: end[0][1]] == expected[: end[0][1]]
        assert all(rows_at[1] >= end[rows_at[0]][1] for rows_at in later_rows(bootstrap, end))
        done = run("restore", "--from", url, *options, "-b", bootstrap, check=False)
        assert done.returncode and "was written to since" in done.stderr
        # The other buckets get the history, too, and all of it is sound.
        wait_until(lambda: other.has_all(TOPIC), what="later uploads", timeout_s=TIMEOUT_S)
        verified = run("tiered", "verify", "--config", options[1], "-b", bootstrap)
        assert "0 not sound" in verified.stdout
    finally:
        stop_cluster(other.cluster)


def later_rows(bootstrap: str, end: dict[int, tuple[int, int]]) -> list[Row]:
    """Some records behind those that came back."""
    return rows(bootstrap, 10, start=max(one for _, one in end.values()))
