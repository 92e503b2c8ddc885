"""A producer that is faster than the followers is held back at its own socket, at every acks level,
and what a broker takes of it meanwhile is bounded by what is configured.

Source: Redpanda RFC 20220119, "Backpressure" and "Memory usage"; design section 5."""

import signal
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.raw_client import (
    Broker,
    brokers_of,
    frame_of,
    leader_if_any,
    leader_of,
)

from strandline.broker.server.limits import RECEIVE_BYTES
from strandline.protocol.errors import Error
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.records.record import Record, build_batch
from strandline.replication.leader.appender import CHUNK_BYTES_MAX

pytestmark = pytest.mark.integration

MIB = 1024 * 1024
PRODUCE_VERSION = 7
VALUE_BYTES = 64 * 1024
TIMEOUT_S = 60
STILL_S = 2
"""A socket that takes nothing for so long is full."""
INFLIGHT_BYTES, TAIL_BYTES, MEMORY_BYTES = 4 * MIB, 2 * MIB, 8 * MIB
SMALL = tuple(
    word
    for setting in (
        f"replication.append_bytes_max={MIB}",
        f"replication.inflight_bytes_max={INFLIGHT_BYTES}",
        f"replication.tail_bytes_max={TAIL_BYTES}",
        f"replication.memory_bytes_max={MEMORY_BYTES}",
    )
    for word in ("--set", setting)
)
PATIENT = ("--set", "replication.election_timeout_ms=8000")
"""Who leads does so without a quorum for twice as long: longer than it takes to fill a socket."""
TAKEN_BYTES_MAX = (
    (INFLIGHT_BYTES + MIB)  # Sent to a follower; one append more may be begun.
    + (TAIL_BYTES + CHUNK_BYTES_MAX)  # Appended, and not sent; one chunk more.
    + (RECEIVE_BYTES + 2 * VALUE_BYTES)  # Read, and held: what one read brings, and a request.
)
GROWTH_BYTES_MAX = MEMORY_BYTES + 8 * MIB
"""Of a broker's memory: what is configured, and what varies by itself."""
WARM_COUNT, REFUSED_COUNT, REQUESTS_AT_ONCE = 200, 1_000, 16


@contextmanager
def cluster_with(directory: Path, options: Sequence[str]) -> Iterator[DevCluster]:
    cluster = start_cluster(
        directory / "cluster", regions="east=1,west=1,south=1", options=tuple(options)
    )
    yield cluster
    for broker in brokers_of(cluster):
        broker.signal(signal.SIGCONT)
    stop_cluster(cluster)


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[DevCluster]:
    with cluster_with(tmp_path, (*SMALL, *PATIENT)) as cluster:
        yield cluster


@pytest.fixture
def usual(tmp_path: Path) -> Iterator[DevCluster]:
    with cluster_with(tmp_path, SMALL) as cluster:
        yield cluster


def kernel_bytes_max() -> int:
    """What the sockets of one connection hold at most, one way."""
    files = [Path(f"/proc/sys/net/ipv4/tcp_{one}") for one in ("rmem", "wmem")]
    return sum(int(file.read_text().split()[2]) for file in files)


def value_of(number: int) -> bytes:
    return struct.pack(">Q", number) * (VALUE_BYTES // 8)


class Stream:
    """Numbered records to one partition, over one connection at a time."""

    def __init__(self, cluster: DevCluster, topic: str) -> None:
        self._cluster = cluster
        self._topic = topic
        self._rest = memoryview(b"")
        self.count = 0
        """Records that were sent, the first byte at least."""
        self.acknowledged: dict[int, int] = {}
        """{offset: the number of the record that is there}, with acks=-1."""
        self.broker = leader_of(cluster, topic)
        self.client = self.broker.connect()

    def connect_to(self, broker: Broker) -> None:
        self.client.close()
        self.broker, self.client = broker, broker.connect()

    def goes_on(self) -> bool:
        """Whether a leader is found, and a record acknowledged by it and a quorum."""
        leader = leader_if_any(self._cluster, self._topic)
        if leader is None:
            return False
        self.connect_to(leader)
        return self.produce(1, acks=-1) == {Error.NONE}

    def close(self) -> None:
        self.client.close()

    def fill(self, acks: int) -> tuple[int, int]:
        """Send until the socket takes nothing more: how many bytes it took, and the broker."""
        sent = 0
        while count := self.client.send_some(self._left(acks), within_s=STILL_S):
            self._rest = self._rest[count:]
            sent += count
            assert sent <= TAKEN_BYTES_MAX + kernel_bytes_max()
        return sent, sent - self.broker.unread_bytes(self.client.port)

    def finish(self) -> None:
        """Send the rest of the request that is under way."""
        rest, self._rest = self._rest, memoryview(b"")
        self.client.send(bytes(rest))

    def send(self, acks: int) -> None:
        self.client.send(self._next(acks))

    def receive(self) -> PartitionProduceResponse:
        answer = self.client.receive_any(ProduceResponse, PRODUCE_VERSION)
        return answer.responses[0].partition_responses[0]

    def produce(self, count: int, *, acks: int) -> set[int]:
        """Send so many, some of them ahead of the answers; the codes of the answers."""
        codes = set()
        for first in range(0, count, REQUESTS_AT_ONCE):
            numbers = range(self.count, self.count + min(count - first, REQUESTS_AT_ONCE))
            for _ in numbers:
                self.send(acks)
            for number in numbers if acks else ():
                codes.add(self.note(number, acks).error_code)
        return codes

    def produce_until_refused(self, acks: int) -> set[int]:
        """Send until the leader refuses something, or closes; the other codes of its answers."""
        codes: set[int] = set()
        if acks == 0:
            while not self.client.has_answer:
                self.send(acks)
            assert self.client.is_closed()
        while acks and Error.NOT_LEADER_OR_FOLLOWER not in codes:
            codes |= self.produce(REQUESTS_AT_ONCE, acks=acks)
        return codes - {Error.NOT_LEADER_OR_FOLLOWER}

    def note(self, number: int, acks: int) -> PartitionProduceResponse:
        """The next answer, which is about this record."""
        answer = self.receive()
        if acks == -1 and not answer.error_code:
            self.acknowledged[answer.base_offset] = number
        return answer

    def _left(self, acks: int) -> memoryview:
        if not self._rest:
            self._rest = memoryview(self._next(acks))
        return self._rest

    def _next(self, acks: int) -> bytes:
        records = build_batch([Record(value=value_of(self.count))])
        self.count += 1
        data = PartitionProduceData(index=0, records=records)
        topic = TopicProduceData(name=self._topic, partition_data=[data])
        request = ProduceRequest(acks=acks, timeout_ms=TIMEOUT_S * 1000, topic_data=[topic])
        frame = frame_of(request, PRODUCE_VERSION)
        return struct.pack(">i", len(frame)) + frame


def stream_to(cluster: DevCluster, topic_name: str) -> Stream:
    """To a partition of three replicas."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    topic = NewTopic(topic_name, 1, replica_assignment=[[1, 2, 3]])
    admin.create_topics([topic])[topic_name].result(TIMEOUT_S)
    return Stream(cluster, topic_name)


def others(cluster: DevCluster, leader: Broker) -> list[Broker]:
    return [one for one in brokers_of(cluster) if one.number != leader.number]


@contextmanager
def stopped(brokers: Sequence[Broker]) -> Iterator[None]:
    """They stand still meanwhile, all of them from the beginning."""
    for broker in brokers:
        broker.signal(signal.SIGSTOP)
    for broker in brokers:
        wait_until(lambda broker=broker: broker.is_stopped, what="it stands still")
    yield
    for broker in brokers:
        broker.signal(signal.SIGCONT)


def read_all(cluster: DevCluster, topic: str) -> list[int]:
    """The numbers of all records there are, by offset; each is whole."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "all"})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), TIMEOUT_S)
    consumer.assign([TopicPartition(topic, 0, 0)])
    numbers: list[int] = []
    while len(numbers) < end:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None and message.error() is None
        assert message.offset() == len(numbers)
        (number,) = struct.unpack_from(">Q", message.value())
        assert message.value() == value_of(number)
        numbers.append(number)
    consumer.close()
    return numbers


def test_a_producer_that_nobody_follows_is_held_back_at_its_socket(
    patient: DevCluster, topic_name: str
) -> None:
    """What the leader takes is what may be under way to a follower and what may wait for that,
    whatever the acks; then its socket is not read. Nothing of it is refused, lost or written twice,
    and nothing is acknowledged that a quorum does not have, while the same leader leads: that is so
    for two election time-outs without a quorum, here for longer than a socket takes to fill."""
    brokers = brokers_of(patient)
    stream = stream_to(patient, topic_name)
    leader = stream.broker
    assert stream.produce(WARM_COUNT, acks=-1) == {Error.NONE}
    before = leader.memory_bytes()
    taken, growth = {}, {}
    for acks in (0, 1, -1):
        first = stream.count
        with stopped(others(patient, leader)):
            sent, taken[acks] = stream.fill(acks)
            growth[acks] = leader.memory_bytes() - before
            assert sent > taken[acks]
            assert stream.client.has_answer is (acks == 1)
        stream.finish()
        for number in range(first, stream.count) if acks else ():
            assert stream.note(number, acks).error_code == Error.NONE
        assert stream.produce(1, acks=-1) == {Error.NONE}
    assert max(taken.values()) <= TAKEN_BYTES_MAX, taken
    assert max(growth.values()) <= GROWTH_BYTES_MAX, growth
    stream.close()
    assert read_all(patient, topic_name) == list(range(stream.count))
    assert all(offset == number for offset, number in stream.acknowledged.items())
    assert [line for one in brokers for line in one.complaints()] == []


def test_a_leader_that_has_given_up_refuses_and_holds_nothing(
    usual: DevCluster, topic_name: str
) -> None:
    """After two election time-outs without a quorum nobody leads, and nobody is held back any
    longer: who waits is told so, and so is whatever comes, as fast as it comes; with acks=0, which
    has no answer, the connection is closed. Memory stays what it is. What was acknowledged by a
    quorum is there when one is back, and the stream goes on."""
    brokers = brokers_of(usual)
    stream = stream_to(usual, topic_name)
    growth = {}
    for acks in (0, 1, -1):
        assert stream.produce(WARM_COUNT, acks=-1) == {Error.NONE}
        leader, before = stream.broker, stream.broker.memory_bytes()
        with stopped(others(usual, leader)):
            assert stream.produce_until_refused(acks) <= ({Error.NONE} if acks == 1 else set())
            if acks == 0:
                stream.produce(REFUSED_COUNT, acks=0)
                stream.connect_to(leader)
                stream.produce(1, acks=0)
                assert stream.client.is_closed()
            else:
                assert stream.produce(REFUSED_COUNT, acks=acks) == {Error.NOT_LEADER_OR_FOLLOWER}
            growth[acks] = leader.memory_bytes() - before
        wait_until(stream.goes_on, what="a leader serves")
    assert max(growth.values()) <= GROWTH_BYTES_MAX, growth
    stream.close()
    found = read_all(usual, topic_name)
    assert len(found) == len(set(found))
    assert {at: found[at] for at in stream.acknowledged} == stream.acknowledged
    assert [line for one in brokers for line in one.complaints()] == []
