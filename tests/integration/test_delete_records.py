"""DeleteRecords as other people's admin clients and the command line ask for it, across a kill -9.

Source: docs/decisions/0006-deleting-records.md."""

import json

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from kafka import KafkaAdminClient
from kafka import TopicPartition as KafkaPythonPartition
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of

pytestmark = pytest.mark.integration

TIMEOUT_S = 40
COUNT = 100
UNSURE = (
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.OFFSET_NOT_AVAILABLE,
)
"""What a leader answers that is not sure yet that it leads."""


def leader_of(admin: AdminClient, topic: str) -> int:
    return partitions_of(admin, topic)[0].leader


def begins_at(admin: AdminClient, topic: str) -> int:
    wait_until(lambda: leader_of(admin, topic) != -1, what="a leader")
    partition = TopicPartition(topic, 0)
    found: list[int] = []

    def is_told() -> bool:
        answer = admin.list_offsets({partition: OffsetSpec.earliest()})
        try:
            found.append(answer[partition].result(TIMEOUT_S).offset)
        except KafkaException as error:
            assert error.args[0].code() in UNSURE, error
            return False
        return True

    wait_until(is_told, what="an answer of the leader")
    return found[0]


def first_record(cluster: DevCluster, topic: str, offset: int) -> int:
    """The offset of what a consumer reads first that wants to begin at `offset`; -1 if it gets an
    error."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": f"g-{topic}",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, offset)])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None
        return message.offset() if message.error() is None else -1
    finally:
        consumer.close()


def test_deleted_records_stay_deleted_whoever_asked_and_whatever_was_killed(
    own_cluster: DevCluster, topic_name: str
) -> None:
    cluster, topic = own_cluster, topic_name
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(topic, num_partitions=1, replication_factor=3)])
    created[topic].result(TIMEOUT_S)
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(TIMEOUT_S) == 0

    partition = TopicPartition(topic, 0, 30)
    deleted = admin.delete_records([partition])[partition].result(TIMEOUT_S)
    assert deleted.low_watermark == 30
    assert begins_at(admin, topic) == 30
    assert first_record(cluster, topic, 0) == 30

    client = KafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    asked = KafkaPythonPartition(topic, 0)
    assert client.delete_records({asked: 40}, timeout_ms=30_000)[asked]["low_watermark"] == 40
    client.close()

    told = cluster.run(
        "topic", "delete-records", topic, "-p", "0", "--before", "50",
        "--bootstrap", cluster.bootstrap, "--json",
    )  # fmt: skip
    assert json.loads(told.stdout)["start_offset"] == 50

    above = TopicPartition(topic, 0, COUNT + 1)
    with pytest.raises(KafkaException) as refused:
        admin.delete_records([above])[above].result(TIMEOUT_S)
    assert refused.value.args[0].code() == KafkaError.OFFSET_OUT_OF_RANGE

    leader = leader_of(admin, topic)
    cluster.kill(leader)
    wait_until(lambda: leader_of(admin, topic) not in (-1, leader), what="another leader")
    assert begins_at(admin, topic) == 50
    for broker in cluster.brokers:
        if broker != leader:
            cluster.kill(broker)
    cluster.start_all()
    wait_until(lambda: first_record(cluster, topic, 0) == 50, what="the cluster serves")
    assert begins_at(admin, topic) == 50
    everything = TopicPartition(topic, 0, -1)
    deleted = admin.delete_records([everything])[everything].result(TIMEOUT_S)
    assert deleted.low_watermark == COUNT
