"""Librdkafka with `client.rack` reads from the observer in its region, and goes on without it.

Source: KIP-392; docs/decisions/0031-reading-near.md."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.ports import free_ports
from tests.integration.test_metrics import scrape

pytestmark = pytest.mark.integration

TOPIC = "near"
RECORD_COUNT = 1_000
VALUE_BYTES = 500
POLICY = """
rules:
  - {count: 3, where: [{label: region, op: in, values: [east, south]}]}
  - {role: observer, count: 1, where: [{label: region, op: in, values: [west]}]}
"""
BROKERS = (1, 2, 3, 4, 5)
WEST = (3, 4)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[DevCluster, dict[int, str]]]:
    """Five brokers in three regions, and where each is scraped."""
    base = free_ports(1)[0]
    options = ("--set", f"metrics.port={base}")
    cluster = start_cluster(tmp_path / "cluster", regions="east=2,west=2,south=1", options=options)
    yield cluster, {one: f"http://127.0.0.1:{base + one - 1}" for one in BROKERS}
    stop_cluster(cluster)


def produce(cluster: DevCluster, first: int) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(first, first + RECORD_COUNT):
        producer.produce(TOPIC, str(number).encode().ljust(VALUE_BYTES), partition=0)
    assert producer.flush(60) == 0


def consumer_in(cluster: DevCluster, rack: str) -> Consumer:
    made = Consumer(
        {"bootstrap.servers": cluster.bootstrap, "group.id": f"of-{rack}", "client.rack": rack}
    )
    made.assign([TopicPartition(TOPIC, 0, 0)])
    return made


def read(consumer: Consumer, into: list[int], *, until: int) -> None:
    def is_there() -> bool:
        for message in consumer.consume(500, timeout=1):
            assert message.error() is None, message.error()
            into.append(int(message.value()))
        return len(into) >= until

    wait_until(is_there, what=f"{until} records", timeout_s=90)


def served(pages: dict[int, str], *, sum_bytes: int = 0) -> dict[int, float]:
    """How many bytes of records each broker has answered to fetches with, once that is so many in
    all: a page may be a second old."""
    found = dict[int, float]()

    def is_told() -> bool:
        for broker, url in pages.items():
            ((_, value),) = scrape(url)["strandline_fetched_bytes_total"].items()
            found[broker] = value
        return sum(found.values()) >= sum_bytes

    wait_until(is_told, what=f"{sum_bytes} bytes are told of")
    return found


def test_records_come_from_the_region_of_the_consumer_and_none_is_lost_with_it(
    watched: tuple[DevCluster, dict[int, str]], tmp_path: Path
) -> None:
    cluster, pages = watched
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    where = ("--bootstrap", cluster.bootstrap)
    cluster.run("topic", "create", TOPIC, "-p", "1", "--policy", str(file), *where)
    produce(cluster, 0)
    size_bytes = RECORD_COUNT * VALUE_BYTES
    near, numbers = consumer_in(cluster, "west"), list[int]()
    read(near, numbers, until=RECORD_COUNT)
    after = served(pages, sum_bytes=size_bytes)
    servers = [one for one in BROKERS if after[one]]
    assert len(servers) == 1 and servers[0] in WEST, after
    (observer,) = servers

    far, others = consumer_in(cluster, "nowhere"), list[int]()
    read(far, others, until=RECORD_COUNT)
    both = served(pages, sum_bytes=2 * size_bytes)
    assert both[observer] < 2 * size_bytes, "who is nowhere reads from the leader"
    far.close()

    cluster.kill(observer)
    produce(cluster, RECORD_COUNT)
    read(near, numbers, until=2 * RECORD_COUNT)
    near.close()
    assert numbers == list(range(2 * RECORD_COUNT))
    cluster.start(observer)
