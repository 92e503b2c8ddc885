"""The page about tiered storage is typed line by line; then a bucket loses objects.

Source: docs/operating/tiered.md."""

import json
import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.integration.conftest import DevCluster, run
from tests.integration.ports import port_base
from tests.integration.walk import Step, Walk, steps

pytestmark = pytest.mark.integration

PAGE = "tiered.md"
FIRST, LAST = "1. A cluster with buckets", "5. The end of the walk"
RECORDS = 6_040
"""At most 1,035 of them, of 1,013 bytes each in the log, are in the open segment of 1 MiB."""


def walked() -> list[Step]:
    return [one for one in steps(PAGE) if one.title[:1].isdigit()]


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Walk]:
    """After the first step, in a directory of the test's own, as the page names its files."""
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "strandline-dev"
    (first,) = (one for one in walked() if one.title == FIRST)
    command = shlex.split(*first.lines)[1:]
    told = run(*command, "--dir", str(directory), "--port-base", port_base(), "--json").stdout
    walk = Walk(DevCluster(directory, json.loads(told)["bootstrap"], {}))
    try:
        yield walk
    finally:
        walk.end()
        walk.cluster.dev("stop")


def write(bootstrap: str) -> list[bytes]:
    # Batches that are small beside a segment: so all segments have about the same size.
    small = {"batch.size": 16_384, "acks": "all", "log_level": 0}
    producer = Producer({"bootstrap.servers": bootstrap, **small})
    values = [b"%6d" % number + os.urandom(994) for number in range(RECORDS)]
    for value in values:
        producer.produce("history", value=value)
        producer.poll(0)
    assert producer.flush(60) == 0
    return values


def read(bootstrap: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "x", "log_level": 0})
    consumer.assign([TopicPartition("history", 0, 0)])
    found: list[bytes] = []
    while len(found) < count:
        batch = consumer.consume(1_000, timeout=30)
        assert batch, f"{len(found)} of {count} records came"
        found += [one.value() or b"" for one in batch if one.error() is None]
    consumer.close()
    return found


def test_the_walk_shows_what_the_page_shows_and_a_loss_is_seen(begun: Walk) -> None:
    values: list[bytes] = []
    for step in walked():
        if step.title not in (FIRST, LAST):
            begun.take(step)
        if step.title.startswith("2."):
            values = write(begun.cluster.bootstrap)
    assert read(begun.cluster.bootstrap, RECORDS) == values

    buckets = begun.cluster.directory / "buckets"
    damaged, missing = sorted((buckets / "west").rglob("*.segment"))[:2]
    damaged.write_bytes(b"X" + damaged.read_bytes()[1:])
    missing.unlink()
    command = ("tiered", "verify", "-b", begun.cluster.bootstrap, "--json")
    done = begun.cluster.run(*command, check=False)
    faults = json.loads(done.stdout)["faults"]
    assert done.returncode == 10
    assert [(one["bucket"], one["verdict"], Path(one["name"]).name) for one in faults] == [
        ("west", "damaged", damaged.name),
        ("west", "missing", missing.name),
    ]
