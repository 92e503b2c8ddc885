"""A broker's memory stays what it is, whatever its followers and its producers do.

Source: Redpanda RFC 20220119, "Backpressure" and "Memory usage"; design section 5."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.raw_client import Broker, RawClient, brokers_of, leader_of

from strandline.protocol.errors import Error
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.record import Record, build_batch

pytestmark = pytest.mark.integration

MB = 1_000_000
PRODUCE_VERSION = 7
PARTITION_COUNT = 12
RECORD_BYTES = 128_000
REQUESTS_AT_ONCE = 24
LOAD_BYTES = 80 * MB
GROWTH_BYTES_MAX = 48 * MB
"""Far more than what varies by itself; less than a window of 16 MB for each partition."""
TIMEOUT_S = 60


@pytest.fixture
def stopping_cluster(tmp_path: Path) -> Iterator[DevCluster]:
    cluster = start_cluster(tmp_path / "cluster", regions="east=1,west=1,south=1")
    yield cluster
    for broker in brokers_of(cluster):
        broker.signal(signal.SIGCONT)
    stop_cluster(cluster)


class Load:
    """Records of one size to all partitions in turn, many requests in flight."""

    def __init__(self, broker: Broker, topic: str) -> None:
        self._client: RawClient = broker.connect()
        self._topic = topic
        self._count = 0
        self._value = bytes(RECORD_BYTES)

    def produce(self, size_bytes: int, *, acks: int) -> None:
        """Send so much; every answer is there at the end."""
        left = size_bytes // RECORD_BYTES
        while left:
            count = min(left, REQUESTS_AT_ONCE)
            for _ in range(count):
                self._send(acks)
            for _ in range(count if acks else 0):
                answer = self._client.receive_any(ProduceResponse, PRODUCE_VERSION)
                assert answer.responses[0].partition_responses[0].error_code == Error.NONE
            left -= count

    def _send(self, acks: int) -> None:
        data = PartitionProduceData(
            index=self._count % PARTITION_COUNT, records=build_batch([Record(value=self._value)])
        )
        self._count += 1
        topic = TopicProduceData(name=self._topic, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=TIMEOUT_S * 1000, topic_data=[topic])
        self._client.request(request, PRODUCE_VERSION)

    def close(self) -> None:
        self._client.close()


def test_a_follower_that_stands_still_slows_no_producer_and_fills_no_memory(
    stopping_cluster: DevCluster, topic_name: str
) -> None:
    """RFC: "Replicate batcher memory units are released after the request is handed off to the
    socket so that all the user space buffer can be freed." To one of two sockets nothing can be
    handed off, at every acks level."""
    cluster = stopping_cluster
    leader, stopped, _ = brokers_of(cluster)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    replicas = [[leader.number, stopped.number, 3]] * PARTITION_COUNT
    topic = NewTopic(topic_name, PARTITION_COUNT, replica_assignment=replicas)
    admin.create_topics([topic])[topic_name].result(TIMEOUT_S)
    for index in range(PARTITION_COUNT):
        wait_until(
            lambda index=index: leader_of(cluster, topic_name, index).number == leader.number,
            what="the first broker leads",
        )
    load = Load(leader, topic_name)
    for acks in (0, 1, -1):
        load.produce(10 * MB, acks=acks)
    before = leader.memory_bytes()
    stopped.signal(signal.SIGSTOP)
    growth = {}
    for acks in (0, 1, -1):
        load.produce(LOAD_BYTES, acks=acks)
        load.produce(MB, acks=-1)  # Acknowledged by a quorum: all of it has been appended.
        growth[acks] = (leader.memory_bytes() - before) // MB
    assert max(growth.values()) * MB <= GROWTH_BYTES_MAX, growth
    stopped.signal(signal.SIGCONT)
    load.produce(MB, acks=-1)
    load.close()
    assert leader.complaints() == []
