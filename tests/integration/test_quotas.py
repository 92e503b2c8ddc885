"""Quotas over real sockets: what clients of Kafka get through, and what a restart leaves.

Source: KIP-13, KIP-219; docs/operating/security-quotas.md, "Quotas"."""

import json
import threading
import time
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaConsumer
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until

pytestmark = pytest.mark.integration

TIMEOUT_S = 60
RATE = 100_000
"""Bytes per second of each quota."""
LONG_S = 12
WINDOW_S = 11
"""So many seconds' worth may come at once."""
VALUE = bytes(1_000)
REQUEST_BYTES = 20_000
"""The longest request, and one answer's batches."""


class Sender:
    """A producer that sends as fast as it is let, or one record each `pause_s`."""

    def __init__(self, bootstrap: str, topic: str, client_id: str, *, pause_s: float = 0) -> None:
        self.acked_bytes = self.sent = self.failed = 0
        self.told_s: list[float] = []
        self._topic, self._pause_s = topic, pause_s
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "client.id": client_id,
                "batch.size": REQUEST_BYTES - 2_000,
                "queue.buffering.max.messages": 2_000,
                "throttle_cb": lambda event: self.told_s.append(event.throttle_time),
            }
        )

    def run(self, seconds: float) -> float:
        """Send for so long; the seconds that it took."""
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            try:
                self._producer.produce(self._topic, VALUE, on_delivery=self._on_delivery)
                self.sent += 1
            except BufferError:
                self._producer.poll(0.1)
            self._producer.poll(self._pause_s)
        spent_s = time.monotonic() - begin
        self.acked_within = self.acked_bytes
        return spent_s

    def finish(self) -> None:
        self._producer.flush(TIMEOUT_S)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acked_bytes += len(message.value() or b"")
        else:
            self.failed += 1


def create(cluster: DevCluster, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 3)])[topic].result(TIMEOUT_S)


def quotas(cluster: DevCluster, bootstrap: str = "") -> object:
    told = cluster.run("quota", "list", "--json", "-b", bootstrap or cluster.bootstrap)
    return json.loads(told.stdout)


def test_a_greedy_producer_gets_its_quota_and_a_quiet_one_what_it_wants(
    cluster: DevCluster, topic_name: str
) -> None:
    create(cluster, topic_name)
    where = ("--client-id", "greedy", "-b", cluster.bootstrap)
    cluster.run("quota", "set", f"producer_byte_rate={RATE}", *where)
    greedy = Sender(cluster.bootstrap, topic_name, "greedy")
    quiet = Sender(cluster.bootstrap, topic_name, "quiet", pause_s=0.01)
    spent_s: list[float] = []
    thread = threading.Thread(target=lambda: spent_s.append(greedy.run(LONG_S)))
    thread.start()
    quiet.run(LONG_S)
    quiet.finish()
    thread.join()
    cluster.run("quota", "delete", *where)
    assert quiet.acked_bytes == quiet.sent * len(VALUE)
    assert (quiet.failed, quiet.told_s) == (0, [])
    assert greedy.failed == 0
    assert greedy.told_s
    # Five requests may be on their way when the first of them crosses the line.
    assert greedy.acked_within <= RATE * (spent_s[0] + WINDOW_S) + REQUEST_BYTES
    assert greedy.acked_within >= RATE * WINDOW_S // 2
    greedy.finish()  # A deleted quota counts at once: what waits goes out.
    assert greedy.acked_bytes == greedy.sent * len(VALUE)


def test_a_greedy_consumer_gets_its_quota_and_every_record(
    cluster: DevCluster, topic_name: str
) -> None:
    create(cluster, topic_name)
    writer = Sender(cluster.bootstrap, topic_name, "writer")
    writer.run(0.5)
    writer.finish()
    where = ("--client-id", "reader", "-b", cluster.bootstrap)
    cluster.run("quota", "set", f"consumer_byte_rate={RATE}", *where)
    consumer = KafkaConsumer(
        topic_name,
        bootstrap_servers=cluster.bootstrap,
        client_id="reader",
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1_000,
    )
    wanted = min(writer.acked_bytes, RATE * (WINDOW_S + 2))
    begin, read_bytes, offsets = time.monotonic(), 0, []
    for record in consumer:
        read_bytes += len(record.value)
        offsets.append(record.offset)
        if read_bytes >= wanted:
            break
    spent_s = time.monotonic() - begin
    consumer.close(autocommit=False)
    cluster.run("quota", "delete", *where)
    assert offsets == list(range(len(offsets)))
    assert wanted > RATE * WINDOW_S
    # An answer that crosses the line has one second's worth at most, or a batch.
    assert read_bytes <= RATE * (spent_s + WINDOW_S + 1) + REQUEST_BYTES


def test_quotas_outlive_brokers_and_the_controllers_leader(tmp_path: Path) -> None:
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=1,south=1")
    try:
        cluster.run("quota", "set", "producer_byte_rate=1234567", "--user", "mia",
                    "-b", cluster.bootstrap)  # fmt: skip
        cluster.run("quota", "set", "request_percentage=12.5", "--default-user",
                    "--client-id", "app", "-b", cluster.bootstrap)  # fmt: skip
        before = quotas(cluster)
        assert len(before) == 2  # type: ignore[arg-type]
        for broker in cluster.brokers:
            cluster.kill(broker)
            other = next(one for one in cluster.brokers if one != broker)
            address = str(cluster.brokers[other]["address"])
            wait_until(
                lambda address=address: quotas(cluster, address) == before,  # type: ignore[misc]
                what="another broker has the quotas",
                timeout_s=TIMEOUT_S,
            )
            cluster.start(broker)
        for broker in cluster.brokers:
            cluster.kill(broker)
        cluster.start_all()
        assert quotas(cluster) == before
    finally:
        stop_cluster(cluster)
