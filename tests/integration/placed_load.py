"""A topic that is placed by a policy, on real brokers, and producers that must not notice what
becomes of its replicas."""

import json
import threading
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster
from tests.integration.metadata import partitions_of

TIMEOUT_S = 60
PARTITIONS = 6
TOPIC = "payments"
GONE = "gone"


def place(cluster: DevCluster, file: Path) -> AdminClient:
    """Create the topic, with a policy in `file` that survives a region."""
    file.write_text("survive: region\n")
    cluster.run(
        "topic", "create", TOPIC, "-p", str(PARTITIONS), "--policy", str(file),
        "--bootstrap", cluster.bootstrap,
    )  # fmt: skip
    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def regions_of(admin: AdminClient, topic: str) -> set[tuple[str, ...]]:
    """The regions of each partition's replicas, sorted; "gone" of a broker that is not alive."""
    brokers = {node.id: node.rack for node in admin.describe_cluster().result(TIMEOUT_S).nodes}
    partitions = partitions_of(admin, topic).values()
    return {tuple(sorted(brokers.get(one, GONE) for one in each.replicas)) for each in partitions}


class Load:
    """An idempotent producer with acks=all that goes on until it is stopped."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "acks": "all"}
        )
        self.failed: list[str] = []
        self.written: dict[int, list[bytes]] = {}
        self._is_over = False
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._is_over:
            value = b"%d" % number
            partition = number % PARTITIONS
            self._producer.produce(TOPIC, value, partition=partition, on_delivery=self._on_delivery)
            self._producer.poll(0.002)
            number += 1

    def _on_delivery(self, error: object, message: object) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.written.setdefault(message.partition(), []).append(message.value())  # type: ignore[attr-defined]

    @property
    def count(self) -> int:
        return sum(map(len, self.written.values()))

    def stop(self) -> None:
        """No write may have failed."""
        self._is_over = True
        self._thread.join()
        assert self._producer.flush(TIMEOUT_S) == 0
        assert self.failed == []


def expect_read(
    cluster: DevCluster, written: Mapping[int, list[bytes]], topic: str = TOPIC
) -> None:
    """Everything that was acknowledged is there, by partition, in its order, and nothing before
    it or between."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "expected"})
    consumer.assign([TopicPartition(topic, one, 0) for one in written])
    read: dict[int, list[bytes]] = {one: [] for one in written}
    for _ in range(sum(map(len, written.values()))):
        message = consumer.poll(TIMEOUT_S)
        assert message is not None and message.error() is None, message
        read[message.partition()].append(message.value())
    consumer.close()
    assert read == written


def balance(cluster: DevCluster) -> dict[str, object]:
    told = cluster.run("cluster", "balance", "--json", "--bootstrap", cluster.bootstrap)
    return json.loads(told.stdout)  # type: ignore[no-any-return]
