"""Replicas move between real brokers while librdkafka produces, by the command line.

Source: docs/decisions/0009-moving-replicas.md."""

import json

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster, wait_until

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
            cluster.run("partition", "move", topic, "0", "--to", "3", *where)
    assert producer.flush(TIMEOUT_S) == 0
    assert failed == []

    def moves() -> list[object]:
        told = json.loads(cluster.run("partition", "moves", "--json", *where).stdout)
        return [one for one in told["moves"] if one["topic"] == topic]

    def replicas() -> tuple[int, list[int]]:
        one = admin.list_topics(topic, TIMEOUT_S).topics[topic].partitions[0]
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
