"""Clients with `client.rack` read from the observer in their region, and go on without it:
librdkafka, kafka-python, aiokafka.

Source: KIP-392; docs/decisions/0031-reading-near.md."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol

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


def caught_up(cluster: DevCluster) -> int:
    """How many replicas keep up: the leader sends consumers to no others."""
    told = cluster.run("replica", "status", "--topics", TOPIC, "--json", "-b", cluster.bootstrap)
    (partition,) = json.loads(told.stdout)["partitions"]
    return int(partition["metrics"].get("CaughtUpReplicasCount", 0))


class Reader(Protocol):
    """A consumer of the one partition, from its beginning."""

    def take(self) -> Sequence[bytes]:
        """The next values, if there are any within a second."""

    def close(self) -> None:
        """End."""


class Librdkafka:
    """By confluent-kafka."""

    def __init__(self, bootstrap: str, rack: str) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap, "group.id": f"of-{rack}", "client.rack": rack}
        )
        self._consumer.assign([TopicPartition(TOPIC, 0, 0)])

    def take(self) -> Sequence[bytes]:
        messages = self._consumer.consume(500, timeout=1)
        assert all(one.error() is None for one in messages)
        return [one.value() for one in messages]

    def close(self) -> None:
        self._consumer.close()


class KafkaPython:
    """By kafka-python."""

    def __init__(self, bootstrap: str, rack: str) -> None:
        from kafka import KafkaConsumer
        from kafka import TopicPartition as Place

        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            client_rack=rack,
            group_id=None,
            auto_offset_reset="earliest",
        )
        self._consumer.assign([Place(TOPIC, 0)])

    def take(self) -> Sequence[bytes]:
        found = self._consumer.poll(timeout_ms=1_000)
        return [one.value for records in found.values() for one in records]

    def close(self) -> None:
        self._consumer.close()


class Aiokafka:
    """By aiokafka, in a loop that runs while it is asked."""

    def __init__(self, bootstrap: str, rack: str) -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka import TopicPartition as Place

        async def start() -> AIOKafkaConsumer:
            made = AIOKafkaConsumer(
                bootstrap_servers=bootstrap,
                client_rack=rack,
                group_id=None,
                auto_offset_reset="earliest",
            )
            await made.start()
            made.assign([Place(TOPIC, 0)])
            return made

        self._loop = asyncio.new_event_loop()
        self._consumer = self._loop.run_until_complete(start())

    def take(self) -> Sequence[bytes]:
        found = self._loop.run_until_complete(self._consumer.getmany(timeout_ms=1_000))
        return [one.value for records in found.values() for one in records]

    def close(self) -> None:
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()


def read(reader: Reader, into: list[int], *, until: int) -> None:
    def is_there() -> bool:
        into.extend(int(value) for value in reader.take())
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


@pytest.mark.parametrize("client", [Librdkafka, KafkaPython, Aiokafka])
def test_records_come_from_the_region_of_the_consumer_and_none_is_lost_with_it(
    watched: tuple[DevCluster, dict[int, str]], tmp_path: Path, client: Callable[[str, str], Reader]
) -> None:
    cluster, pages = watched
    file = tmp_path / "policy.yaml"
    file.write_text(POLICY)
    where = ("--bootstrap", cluster.bootstrap)
    cluster.run("topic", "create", TOPIC, "-p", "1", "--policy", str(file), *where)
    produce(cluster, 0)
    wait_until(lambda: caught_up(cluster) == 4, what="the observer to keep up")
    size_bytes = RECORD_COUNT * VALUE_BYTES
    near, numbers = client(cluster.bootstrap, "west"), list[int]()
    read(near, numbers, until=RECORD_COUNT)
    after = served(pages, sum_bytes=size_bytes)
    servers = [one for one in BROKERS if after[one]]
    assert len(servers) == 1 and servers[0] in WEST, after
    (observer,) = servers

    far, others = client(cluster.bootstrap, "nowhere"), list[int]()
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
