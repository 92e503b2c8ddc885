"""Leaders of real brokers go to where their producers are, and no write fails.

Producers are told apart by the address that they connect from: all of 127.0.0.0/8 is this machine.

Source: docs/decisions/0014-following-the-writers.md."""

import json
import re
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer as KafkaProducer
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.pages import PAGES, commands, type_in
from tests.integration.placed_load import expect_read

from strandline.client.cluster import Client
from strandline.client.producer import Producer
from strandline.client.wire.transport import Stream, TcpStream, TcpTransport
from strandline.config.addresses import parse_bootstrap
from strandline.model.cluster import Address

pytestmark = pytest.mark.integration

REGIONS = {1: "east", 2: "west", 3: "south"}
TOPIC = "flights"
PARTITIONS = 3
HERE, EAST = "127.0.0.1", "127.1.0.1"
"""From where librdkafka connects, and another address of this machine."""
NETWORKS = f"west={HERE}/32,east=127.1.0.0/16"
POLICY = "survive: region\nleaders: {follow: writers, failback_delay_ms: 10000}\n"
TITLE = "Leaders where producers are"
TIMEOUT_S = 90


@pytest.fixture
def three(tmp_path: Path) -> Iterator[DevCluster]:
    """A broker in each of three regions."""
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=1,south=1")
    (cluster.directory / "policy.yaml").write_text(POLICY)
    yield cluster
    stop_cluster(cluster)


class FromAddress(TcpTransport):
    """Connections from one address of this machine."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self._source = source

    def connect(self, address: Address, timeout_ms: int) -> Stream:
        """See `Transport.connect`."""
        made = socket.create_connection(
            (address.host, address.port), timeout_ms / 1000, source_address=(self._source, 0)
        )
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return TcpStream(made)


class Load:
    """Writes to all partitions in turn, until it is stopped. `written`: {partition: values}"""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.written: dict[int, list[bytes]] = {one: [] for one in range(PARTITIONS)}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._over.wait(0.02):
            self.write(number % PARTITIONS, b"%d" % number)
            number += 1

    def write(self, partition: int, value: bytes) -> None:
        """One record."""
        raise AssertionError("a kind of load writes somewhere")

    def stop(self) -> None:
        """No write may have failed."""
        self._over.set()
        self._thread.join()
        assert self.failed == []


class FromLibrdkafka(Load):
    """An idempotent librdkafka with acks=all."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = KafkaProducer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"}
        )
        super().__init__()

    def write(self, partition: int, value: bytes) -> None:
        self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._on_delivery)
        self._producer.poll(0)

    def _on_delivery(self, error: object, message: object) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.written[message.partition()].append(message.value())  # type: ignore[attr-defined]

    def stop(self) -> None:
        super().stop()
        assert self._producer.flush(TIMEOUT_S) == 0
        assert self.failed == []


class FromElsewhere(Load):
    """The command line's own producer, idempotent and with acks=all, at another address."""

    def __init__(self, bootstrap: str, source: str) -> None:
        self._client = Client(
            parse_bootstrap(bootstrap), transport=FromAddress(source), timeout_ms=TIMEOUT_S * 1_000
        )
        self._producer = Producer(self._client, TOPIC)
        super().__init__()

    def write(self, partition: int, value: bytes) -> None:
        try:
            self._producer.send(value, partition=partition)
            self._producer.flush()
            self.written[partition].append(value)
        except Exception as error:
            self.failed.append(str(error))

    def stop(self) -> None:
        super().stop()
        self._client.close()


def led_in(cluster: DevCluster) -> set[str]:
    """The regions of the leaders."""
    told = cluster.run("topic", "describe", TOPIC, "--json", "-b", cluster.bootstrap)
    (topic,) = json.loads(told.stdout)["topics"]
    leaders = {one["leader"] for one in topic["partitions"]}
    return {REGIONS.get(one, "") for one in leaders}


def explained(cluster: DevCluster) -> list[dict[str, object]]:
    told = cluster.run("topic", "explain", TOPIC, "--json", "-b", cluster.bootstrap)
    return json.loads(told.stdout)["writers"]  # type: ignore[no-any-return]


def test_leaders_go_to_the_region_that_produces_and_no_write_fails(three: DevCluster) -> None:
    policy, bootstrap = str(three.directory / "policy.yaml"), ("-b", three.bootstrap)
    create = ("topic", "create", TOPIC, "-p", str(PARTITIONS), "--policy", policy, *bootstrap)
    refused = three.run(*create, check=False)
    assert refused.returncode == 1
    assert "set client.networks for the cluster" in refused.stderr
    assert refused.stderr.count("\n") == 1
    three.run("cluster", "alter", "-c", f"client.networks={NETWORKS}", *bootstrap)
    three.run(*create)
    assert len(led_in(three)) == PARTITIONS  # Nobody has written yet: evenly.

    near = FromLibrdkafka(three.bootstrap)
    wait_until(lambda: led_in(three) == {"west"}, what="leaders in the west", timeout_s=TIMEOUT_S)
    near.stop()
    far = FromElsewhere(three.bootstrap, EAST)
    wait_until(lambda: led_in(three) == {"east"}, what="leaders in the east", timeout_s=TIMEOUT_S)
    wait_until(
        lambda: [one["code"] for one in explained(three)] == ["here"] * PARTITIONS,
        what="the new leaders to have looked",
    )
    assert all(one["text"] == "east produces 100 %" for one in explained(three))
    far.stop()
    both = {one: near.written[one] + far.written[one] for one in near.written}
    assert all(len(near.written[one]) > 10 < len(far.written[one]) for one in both)
    expect_read(three, both, TOPIC)


def test_the_commands_of_the_page_do_what_it_says(three: DevCluster) -> None:
    page = (PAGES / "placement.md").read_text().partition(f"### {TITLE}\n")[2]
    (policy,) = re.findall(r"```yaml\n(.*?)```", page.partition("\n### ")[0], re.DOTALL)
    (three.directory / "policy.yaml").write_text(policy)
    type_in(three, commands("placement.md", TITLE, 1))
    create = "strandline topic create flights --policy policy.yaml"
    type_in(three, [create], directory=three.directory)
    wait_until(lambda: [one["code"] for one in explained(three)] == ["idle"], what="a first look")
