"""Replicas of real brokers move by themselves while librdkafka produces: a policy is changed, a
broker is lost; and the page about it does what it says.

Source: docs/decisions/0010-the-balancer.md."""

import json
import threading
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.pages import commands, type_in
from tests.integration.test_placement import regions_of

pytestmark = pytest.mark.integration

TIMEOUT_S = 60
PARTITIONS = 6
TOPIC = "payments"
WEST = "rules:\n  - {count: 2, where: [{label: region, op: in, values: [west]}]}\n"


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


def read_all(bootstrap: str, counts: dict[int, int]) -> dict[int, list[bytes]]:
    """What is in each partition, up to so many records."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "balanced"})
    consumer.assign([TopicPartition(TOPIC, one, 0) for one in counts])
    read: dict[int, list[bytes]] = {one: [] for one in counts}
    left = sum(counts.values())
    while left:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None and message.error() is None, message
        read[message.partition()].append(message.value())
        left -= 1
    consumer.close()
    return read


def balance(cluster: DevCluster) -> dict[str, object]:
    told = cluster.run("cluster", "balance", "--json", "--bootstrap", cluster.bootstrap)
    return json.loads(told.stdout)  # type: ignore[no-any-return]


def test_a_policy_is_changed_under_load_as_the_page_says_and_no_write_fails(
    five: DevCluster, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("survive: region\n")
    where = ("--bootstrap", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "--policy", str(file), *where)
    admin = AdminClient({"bootstrap.servers": five.bootstrap})
    assert regions_of(admin, TOPIC) == {("east", "south", "west")}
    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        file.write_text("survive: [region, 2 brokers]\n")
        lines = commands("placement.md", "Change your mind")
        assert len(lines) >= 4
        type_in(five, lines, directory=tmp_path)
        spread = {("east", "east", "south", "west", "west")}
        wait_until(lambda: regions_of(admin, TOPIC) == spread, what="5 replicas", timeout_s=90)

        file.write_text(WEST)
        five.run("topic", "alter", TOPIC, "--policy", str(file), *where)
        wait_until(
            lambda: regions_of(admin, TOPIC) == {("west", "west")}, what="the west", timeout_s=90
        )
        before = load.count
        wait_until(lambda: load.count > before + 500, what="more load")

        file.write_text("survive: [2 regions]\n")
        refused = five.run("topic", "alter", TOPIC, "--policy", str(file), *where, check=False)
        assert refused.returncode == 1
        assert "what can be met" in refused.stderr and len(refused.stderr.splitlines()) == 1
    finally:
        load.stop()
    read = read_all(five.bootstrap, {one: len(load.written[one]) for one in load.written})
    assert read == load.written
    wait_until(lambda: not balance(five)["moves"], what="the end of all moves")
    assert balance(five)["waits"] == []


def test_a_lost_broker_is_replaced_under_load_and_the_lost_region_is_waited_for(
    five: DevCluster, tmp_path: Path
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("survive: region\n")
    where = ("--bootstrap", five.bootstrap)
    five.run("topic", "create", TOPIC, "-p", str(PARTITIONS), "--policy", str(file), *where)
    admin = AdminClient({"bootstrap.servers": five.bootstrap})
    five.run("cluster", "alter", "-c", "broker.lost.after.ms=4000", *where)
    nodes = {node.id: node.rack for node in admin.describe_cluster().result(TIMEOUT_S).nodes}
    (south,) = [broker for broker, rack in nodes.items() if rack == "south"]
    victim = max(broker for broker, rack in nodes.items() if rack == "west")

    def holders() -> set[int]:
        found = admin.list_topics(TOPIC, TIMEOUT_S).topics[TOPIC].partitions.values()
        return {broker for one in found for broker in one.replicas}

    load = Load(five.bootstrap)
    try:
        wait_until(lambda: load.count > 500, what="the load")
        assert victim in holders()
        five.kill(victim)
        wait_until(lambda: victim not in holders(), what="other replicas", timeout_s=90)
        assert south in holders()
        five.kill(south)

        def needed() -> list[str]:
            waits = balance(five)["waits"]
            assert isinstance(waits, list)
            return [one["text"] for one in waits if one["reason"] == "needs-broker"]

        text = f"needs one more broker with region=south in place of broker {south}"
        wait_until(lambda: text in needed(), what="that it is said who is needed", timeout_s=90)
        assert south in holders()
        five.start_all()
        wait_until(lambda: balance(five)["waits"] == [], what="all to be well", timeout_s=90)
    finally:
        load.stop()
    read = read_all(five.bootstrap, {one: len(load.written[one]) for one in load.written})
    assert read == load.written
