"""A consumer with fetch sessions, unchanged, against real brokers. Source: KIP-227."""

import pytest
from kafka import KafkaConsumer, KafkaProducer
from tests.integration.conftest import DevCluster

pytestmark = pytest.mark.integration


def read_all(consumer: KafkaConsumer, count: int) -> list[bytes]:
    """Read `count` records."""
    found: list[bytes] = []
    for _ in range(200):
        for records in consumer.poll(timeout_ms=200).values():
            found += [one.value for one in records]
        if len(found) >= count:
            return found
    raise AssertionError(f"{len(found)} of {count} records")


def test_kafka_python_reads_on_in_its_sessions(cluster: DevCluster, topic_name: str) -> None:
    cluster.run("topic", "create", topic_name, "-p", "6", "-r", "3", "-b", cluster.bootstrap)
    values = [f"value {number}".encode() for number in range(60)]
    consumer = KafkaConsumer(
        topic_name,
        bootstrap_servers=cluster.bootstrap,
        auto_offset_reset="earliest",
        fetch_max_wait_ms=100,
    )
    producer = KafkaProducer(bootstrap_servers=cluster.bootstrap)
    found: list[bytes] = []
    for start in range(0, len(values), 10):
        for number in range(start, start + 10):
            producer.send(topic_name, values[number], partition=number % 6)
        producer.flush()
        found += read_all(consumer, 10)
    sessions = [one.next_metadata for one in consumer._fetcher._session_handlers.values()]
    consumer.close()
    producer.close()
    assert sorted(found) == sorted(values)
    assert sessions
    for session in sessions:
        assert session.session_id > 0  # Of the broker's choice.
        assert session.epoch > 2  # The session has gone on, and was never opened anew.
