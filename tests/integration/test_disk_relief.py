"""A file system that fills is relieved: replicas move to a broker of the same region that has room,
and the page about it says what is seen.

Source: docs/decisions/0010-the-balancer.md, "Room"; docs/operating/placement.md."""

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.pages import commands, type_in
from tests.integration.placed_load import (
    PARTITIONS,
    TIMEOUT_S,
    TOPIC,
    balance,
    expect_read,
    place,
    regions_of,
)
from tests.integration.test_full_disk import DISK_BYTES, FILLER, cluster_on_small_disks

pytestmark = [
    pytest.mark.integration,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount (2026-11-22)"),
]

FIVE = (1, 2, 3, 4, 5)
RECORD_BYTES = 50_000
RECORDS = 20
"""Of each partition: a megabyte."""


@pytest.fixture
def small(tmp_path: Path) -> Iterator[DevCluster]:
    """Five brokers in three regions on small disks."""
    settings = ("--set", "storage.preallocate=false")
    regions = "east=2,west=2,south=1"
    with cluster_on_small_disks(tmp_path, *settings, brokers=FIVE, regions=regions) as cluster:
        yield cluster


def write(cluster: DevCluster) -> dict[int, list[bytes]]:
    """A megabyte in each partition: what was acknowledged."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    written: dict[int, list[bytes]] = {}
    for number in range(RECORDS):
        for partition in range(PARTITIONS):
            value = b"%d/" % number + os.urandom(RECORD_BYTES)
            producer.produce(TOPIC, value, partition=partition)
            written.setdefault(partition, []).append(value)
        assert producer.flush(TIMEOUT_S) == 0
    return written


def held(admin: AdminClient) -> Counter[int]:
    """{broker: how many partitions of the topic it holds}"""
    partitions = partitions_of(admin, TOPIC).values()
    return Counter(broker for one in partitions for broker in one.replicas)


def fill_up_to(data: Path, percent: int) -> None:
    """Put something else onto a disk until it is so full."""
    status = os.statvfs(data)
    used_bytes = (status.f_blocks - status.f_bfree) * status.f_frsize
    (data / FILLER).write_bytes(bytes(DISK_BYTES * percent // 100 - used_bytes))


def used_percent(data: Path) -> int:
    status = os.statvfs(data)
    return 100 * (status.f_blocks - status.f_bavail) // status.f_blocks


def test_a_disk_that_fills_is_relieved_as_the_page_says(small: DevCluster, tmp_path: Path) -> None:
    admin = place(small, tmp_path / "policy.yaml")
    before = regions_of(admin, TOPIC)
    written = write(small)
    where = ("--bootstrap", small.bootstrap)
    small.run("cluster", "alter", "-c", "moves.bytes.per.s=0", *where)
    nodes = {node.id: node.rack for node in admin.describe_cluster().result(TIMEOUT_S).nodes}
    full, other = sorted(broker for broker, rack in nodes.items() if rack == "east")
    held_before = held(admin)
    assert held_before[full] == held_before[other] == PARTITIONS // 2
    data = small.directory / f"broker-{full}" / "data"
    fill_up_to(data, 89)

    def moves() -> list[dict[str, object]]:
        found = balance(small)["moves"]
        assert isinstance(found, list)
        return found

    wait_until(lambda: bool(moves()), what="that replicas move away", timeout_s=90)
    lines = commands("placement.md", "When a disk fills")
    told = type_in(small, lines)
    head = rf"disk-high: disk of broker {full} is 8\d % full, 80 is wanted: "
    assert re.search(head + r"2 partitions move, 2\.\d MB", told), told
    assert {one["reason"] for one in moves()} == {"disk-high"}
    small.run("cluster", "alter", "-c", "moves.bytes.per.s=-1", *where)
    wait_until(lambda: used_percent(data) <= 80 and not moves(), what="room", timeout_s=90)
    assert held(admin) == held_before + Counter({other: 2}) - Counter({full: 2})
    assert regions_of(admin, TOPIC) == before
    wait_until(lambda: balance(small)["waits"] == [], what="that nothing waits")
    expect_read(small, written)
