"""kill -9: what was acknowledged with acks=all is there afterwards, and writing goes on."""

import time

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster, wait_until
from tests.integration.metadata import partitions_of
from tests.integration.raw_client import Broker

from strandline.protocol.errors import Error
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

pytestmark = pytest.mark.integration

TIMEOUT_S = 60
DELIVERY_S = 120
"""A record is given up after so long; it may wait for an election, or for a command."""


def create(cluster: DevCluster, topic: str, partitions: int) -> AdminClient:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    created = admin.create_topics([NewTopic(topic, partitions, 3)])
    created[topic].result(TIMEOUT_S)
    return admin


def leaders(admin: AdminClient, topic: str) -> dict[int, int]:
    return {number: one.leader for number, one in partitions_of(admin, topic).items()}


class Writer:
    """Writes numbered records and remembers which were acknowledged."""

    def __init__(self, cluster: DevCluster, topic: str, partitions: int) -> None:
        self.acknowledged: dict[bytes, tuple[int, int]] = {}
        self.failed: list[str] = []
        self._topic = topic
        self._partitions = partitions
        self._next = 0
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 2,
                "delivery.timeout.ms": 1_000 * DELIVERY_S,
                # A client notices a frozen broker only by its own time-out, 60 s by default.
                "socket.timeout.ms": 5_000,
                "request.timeout.ms": 4_000,
            }
        )

    def write(self, count: int) -> None:
        for _ in range(count):
            value = b"%d" % self._next
            partition = self._next % self._partitions
            self._next += 1
            self._producer.produce(
                self._topic, value=value, partition=partition, on_delivery=self._delivered
            )
            self._producer.poll(0)

    def flush(self) -> None:
        assert self._producer.flush(DELIVERY_S) == 0
        assert self.failed == []

    def _delivered(self, error: object, message: Message) -> None:
        if error is not None:
            self.failed.append(str(error))
        else:
            self.acknowledged[message.value()] = (message.partition(), message.offset())


def read_back(cluster: DevCluster, topic: str, partitions: int) -> dict[bytes, tuple[int, int]]:
    """Everything in the topic; a value that is there twice fails the test."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
        }
    )
    found: dict[bytes, tuple[int, int]] = {}
    try:
        for partition in range(partitions):
            place = TopicPartition(topic, partition)
            _, end = consumer.get_watermark_offsets(place, timeout=TIMEOUT_S)
            consumer.assign([TopicPartition(topic, partition, 0)])
            next_offset = 0
            deadline = time.monotonic() + TIMEOUT_S
            while next_offset < end:
                assert time.monotonic() < deadline, f"stuck at {next_offset} of {end}"
                for message in consumer.consume(1000, timeout=0.2):
                    assert message.error() is None, message.error()
                    assert message.offset() == next_offset, "offsets are dense"
                    assert message.value() not in found, "a record is there twice"
                    found[message.value()] = (partition, message.offset())
                    next_offset += 1
    finally:
        consumer.close()
    return found


def test_a_killed_leader_costs_nothing_that_was_acknowledged(
    own_cluster: DevCluster, topic_name: str
) -> None:
    admin = create(own_cluster, topic_name, partitions=6)
    writer = Writer(own_cluster, topic_name, partitions=6)
    writer.write(2_000)
    victim = leaders(admin, topic_name)[0]
    own_cluster.kill(victim)
    writer.write(2_000)
    writer.flush()
    wait_until(
        lambda: victim not in leaders(admin, topic_name).values(), what="other leaders are known"
    )
    own_cluster.start(victim)
    writer.write(1_000)
    writer.flush()
    assert read_back(own_cluster, topic_name, 6) == writer.acknowledged
    assert len(writer.acknowledged) == 5_000


def test_killing_every_broker_at_once_loses_nothing_acknowledged(
    own_cluster: DevCluster, topic_name: str
) -> None:
    create(own_cluster, topic_name, partitions=3)
    writer = Writer(own_cluster, topic_name, partitions=3)
    writer.write(1_500)
    writer.flush()
    own_cluster.dev("broker", "kill", "1", "2", "3")
    own_cluster.dev("broker", "start", "1", "2", "3")
    writer.write(500)
    writer.flush()
    assert read_back(own_cluster, topic_name, 3) == writer.acknowledged


def test_a_paused_leader_is_replaced_and_answers_nothing_from_the_past_when_it_wakes(
    own_cluster: DevCluster, topic_name: str
) -> None:
    """The question waits in its socket while others are elected and write. Then it follows."""
    admin = create(own_cluster, topic_name, partitions=3)
    writer = Writer(own_cluster, topic_name, partitions=3)
    writer.write(300)
    writer.flush()
    led = leaders(admin, topic_name)
    victim = led[0]
    asked = [ListOffsetsPartition(number, timestamp=-1) for number in led if led[number] == victim]
    question = ListOffsetsRequest(topics=[ListOffsetsTopic(topic_name, asked)])
    with Broker(own_cluster, victim).connect() as client:
        for answer in client.ask(question, ListOffsetsResponse, 5).topics[0].partitions:
            assert (answer.error_code, answer.offset) == (Error.NONE, 100)
        own_cluster.dev("broker", "pause", str(victim))
        try:
            client.request(question, 5)
            writer.write(300)
            writer.flush()
        finally:
            own_cluster.dev("broker", "resume", str(victim))
        answers = client.receive(ListOffsetsResponse, 5).topics[0].partitions
    assert len(answers) == len(asked)
    assert {answer.error_code for answer in answers} == {Error.NOT_LEADER_OR_FOLLOWER}
    writer.write(300)
    writer.flush()
    assert read_back(own_cluster, topic_name, 3) == writer.acknowledged
