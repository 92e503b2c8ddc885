"""Replicas move between real brokers while librdkafka produces, by the command line.

Source: docs/decisions/0009-moving-replicas.md."""

import json

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of

pytestmark = pytest.mark.integration

TIMEOUT_S = 40
COUNT = 2_000


def test_a_partition_moves_to_another_broker_while_it_is_written(
    cluster: DevCluster, topic_name: str
) -> None:
    topic = topic_name
    where = ("--bootstrap", cluster.bootstrap)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2]])])
    created[topic].result(TIMEOUT_S)
    failed: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})

    def on_delivery(error: object, _: object) -> None:
        if error is not None:
            failed.append(error)

    for number in range(COUNT):
        producer.produce(topic, b"%d" % number, on_delivery=on_delivery)
        producer.poll(0.001)
        if number == COUNT // 4:
            cluster.run("partition", "move", topic, "0", "--to", "3", "--force", *where)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []

    def moves() -> list[object]:
        told = json.loads(cluster.run("partition", "moves", "--json", *where).stdout)
        return [one for one in told["moves"] if one["topic"] == topic]

    def replicas() -> tuple[int, list[int]]:
        one = partitions_of(admin, topic)[0]
        return one.leader, list(one.replicas)

    wait_until(lambda: not moves(), what="the end of the move")
    wait_until(lambda: replicas() == (3, [3]), what="the new leader")
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": f"g-{topic}"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    read: list[bytes | None] = []
    while len(read) < COUNT:
        messages = consumer.consume(COUNT, TIMEOUT_S)
        assert messages
        read += [one.value() for one in messages]
    consumer.close()
    assert read == [b"%d" % number for number in range(COUNT)]
    refused = cluster.run("partition", "cancel", topic, "0", *where, check=False)
    assert refused.returncode != 0
    assert "Nothing moves" in refused.stderr


def test_copies_are_throttled_by_what_kafka_clients_set_while_they_run(
    own_cluster: DevCluster, topic_name: str
) -> None:
    """As `kafka-reassign-partitions --throttle` does it, and by the budgets for all of them."""
    cluster, topic = own_cluster, topic_name
    where = ("--bootstrap", cluster.bootstrap)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(topic, num_partitions=1, replica_assignment=[[1, 2]])])
    created[topic].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "compression.type": "none"})
    for number in range(200):  # More than a leader keeps in memory.
        producer.produce(topic, bytes(100_000) + b"%d" % number)
        producer.poll(0)
    assert producer.flush(TIMEOUT_S) == 0

    def alter(kind: ResourceType, name: str, **values: str | None) -> None:
        entries = [
            ConfigEntry(
                key.replace("_", "."),
                value or "",
                incremental_operation=AlterConfigOpType.DELETE
                if value is None
                else AlterConfigOpType.SET,
            )
            for key, value in values.items()
        ]
        resource = ConfigResource(kind, name, incremental_configs=entries)
        for future in admin.incremental_alter_configs([resource]).values():
            future.result(TIMEOUT_S)

    def told() -> dict[str, object]:
        shown: dict[str, object] = json.loads(
            cluster.run("partition", "moves", "--json", *where).stdout
        )
        return shown

    for broker in ("1", "2", "3"):
        rates = {"leader_replication_throttled_rate": "0"}
        alter(ResourceType.BROKER, broker, **rates, follower_replication_throttled_rate="50000000")
    alter(ResourceType.TOPIC, topic, leader_replication_throttled_replicas="0:1,0:2")
    cluster.run("partition", "move", topic, "0", "--to", "1,3", "--force", *where)
    for _ in range(3):
        producer.produce(topic, b"on")
        assert producer.flush(TIMEOUT_S) == 0
        (move,) = told()["moves"]  # type: ignore[misc]
        assert move["reached"]["3"] in (None, 0)
    cluster.run("cluster", "alter", "-c", "moves.bytes.per.s=40000000", *where)
    rates_told = told()["rates"]
    assert isinstance(rates_told, dict) and rates_told["all"]["bytes_per_s"] == 40_000_000
    assert "copies may use 40.0 MB/s in total" in cluster.run("cluster", "balance", *where).stdout
    for broker in ("1", "2", "3"):
        alter(
            ResourceType.BROKER,
            broker,
            leader_replication_throttled_rate=None,
            follower_replication_throttled_rate=None,
        )
    wait_until(lambda: not told()["moves"], what="the end of the move")
    replicas = partitions_of(admin, topic)[0].replicas
    assert list(replicas) == [1, 3]
