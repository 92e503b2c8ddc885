"""A hundred connections that each send the largest thing allowed do not fill a broker's memory, and
a normal client still works.

How:    one broker, with limits of 8 and 16 MiB, one listener in the clear and one for logins. What
        it may take more is stated beside the limits that it follows from, with a wide margin.
Source: decision 0069, "Hard to abuse"; docs/operating/security-quotas.md, "Limits"."""

import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.raw_client import RawClient
from tests.integration.secure_cluster import plain_listener, secure_cluster

from strandline.protocol.apis import API_KEYS
from strandline.protocol.errors import Error
from strandline.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.protocol.primitives import encode_uvarint
from strandline.records.codec import ZSTD
from strandline.records.record import build_encoded_batch
from strandline.records.varint import encode_varint

pytestmark = pytest.mark.integration

MIB = 1 << 20
CONNECTIONS = 100
REQUEST_BYTES_MAX, INFLIGHT_BYTES_MAX, PARTIAL_BYTES_MAX = 8 * MIB, 16 * MIB, 16 * MIB
GROWTH_BYTES_MAX = 256 * MIB
"""Requests in work, unfinished ones, one of each too many, and a bomb while it is read, twice: 80
MiB. The rest is margin. A hundred requests of 8 MiB are 800 MB, and what they decode or decompress
to is far more."""
TIMEOUT_S = 120
LOOK_UPS = 10
NOW = int(time.time() * 1_000)


@dataclass
class Victim:
    """One broker, its two ports, and what it took before."""

    port: int
    login_port: int
    pid: int
    before_bytes: int = 0

    def memory_bytes(self) -> int:
        """The most that its process has had in memory."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
        raise AssertionError("no VmHWM")

    def growth_bytes(self) -> int:
        return self.memory_bytes() - self.before_bytes


@pytest.fixture(scope="module")
def victim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Victim]:
    with secure_cluster(tmp_path_factory.mktemp("attack"), listeners=2) as cluster:
        broker = cluster.brokers[1]
        login = plain_listener("LOGIN", broker.ports[1]) + 'protocol = "SASL_PLAINTEXT"\n'
        broker.sections = "\n".join(
            (
                plain_listener("OPEN", broker.ports[0]),
                login,
                f"[limits]\nrequest_bytes_max = {REQUEST_BYTES_MAX}",
                f"inflight_bytes_max = {INFLIGHT_BYTES_MAX}",
                f"partial_bytes_max = {PARTIAL_BYTES_MAX}",
            )
        )
        cluster.start()
        assert broker.process is not None
        victim = Victim(broker.ports[0], broker.ports[1], broker.process.pid)
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{victim.port}"})
        made = admin.create_topics([NewTopic("t", 1, 1), NewTopic("u", 1, 1)])
        for one in made.values():
            one.result(TIMEOUT_S)
        use(victim, 0)
        victim.before_bytes = victim.memory_bytes()
        yield victim


@pytest.fixture(autouse=True)
def normal_client_works(victim: Victim) -> Iterator[None]:
    """After each attack the broker is within its bound, and serves."""
    yield
    use(victim, 1)
    growth = victim.growth_bytes()
    assert growth < GROWTH_BYTES_MAX, f"{growth >> 20} MiB more"


def use(victim: Victim, count: int) -> None:
    """Write a record, and read one."""
    address = {"bootstrap.servers": f"127.0.0.1:{victim.port}"}
    producer = Producer(address)
    producer.produce("u", b"normal %d" % count)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = Consumer({**address, "group.id": "normal", "auto.offset.reset": "earliest"})
    consumer.subscribe(["u"])
    try:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None and message.error() is None
    finally:
        consumer.close()


def crowd(stack: ExitStack, port: int) -> list[RawClient]:
    return [stack.enter_context(RawClient(port)) for _ in range(CONNECTIONS)]


def framed(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


def bomb(count: int) -> bytes:
    """A batch of a kilobyte: one record, with so many empty headers."""
    body = b"\0\0\0\2k\1" + encode_varint(count) + b"\0\1" * count
    return bytes(
        build_encoded_batch(
            framed(body),
            records_count=1,
            timestamps=(NOW, NOW),
            codec=ZSTD,
            producer=(-1, -1, -1),
        )
    )


@pytest.mark.parametrize("is_login", [False, True], ids=["open", "before login"])
def test_unfinished_requests(victim: Victim, is_login: bool) -> None:
    """Each announces the largest request, and sends nearly all of it."""
    size = 64 * 1024 if is_login else REQUEST_BYTES_MAX
    part = struct.pack(">i", size) + bytes(min(size, 4 * MIB) - 8)
    with ExitStack() as stack:
        for client in crowd(stack, victim.login_port if is_login else victim.port):
            client.send(part)
        assert victim.growth_bytes() < GROWTH_BYTES_MAX


def test_too_large_requests_before_a_login(victim: Victim) -> None:
    with ExitStack() as stack:
        for client in crowd(stack, victim.login_port):
            client.send(struct.pack(">i", REQUEST_BYTES_MAX) + bytes(64 * 1024))
            assert client.is_closed()


def test_requests_of_tiny_items(victim: Victim) -> None:
    """Each names five million items, in arrays of arrays."""
    settings = b"\1\1\0" * 900_000
    topic = b"\2t" + bytes(6) + b"\1" + encode_uvarint(900_001) + settings + b"\0"
    count = (REQUEST_BYTES_MAX - 100) // len(topic)
    head = struct.pack(">hhih", API_KEYS["CreateTopics"], 7, 1, -1) + b"\0"
    frame = head + encode_uvarint(count + 1) + topic * count + bytes(6)
    with ExitStack() as stack:
        for client in crowd(stack, victim.port):
            client.send_frame(frame)
            assert client.is_closed()


def test_bombs_and_look_ups_by_time(victim: Victim) -> None:
    """Each produces a kilobyte that decompresses to 6 MiB; some have it looked up."""
    batch = bomb(3_000_000)
    assert len(batch) < 4_096
    data = PartitionProduceData(index=0, records=batch)
    topic = TopicProduceData(name="t", partition_data=[data])
    produce = ProduceRequest(acks=1, timeout_ms=TIMEOUT_S * 1_000, topic_data=[topic])
    wanted = ListOffsetsPartition(partition_index=0, timestamp=NOW)
    look_up = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
    with ExitStack() as stack:
        clients = crowd(stack, victim.port)
        for client in clients:
            client.request(produce, 7)
        for client in clients:
            answer = client.receive_any(ProduceResponse, 7)
            assert answer.responses[0].partition_responses[0].error_code == Error.NONE
        for client in clients[:LOOK_UPS]:
            client.request(look_up, 5)
        for client in clients[:LOOK_UPS]:
            found = client.receive_any(ListOffsetsResponse, 5).topics[0].partitions[0]
            assert (found.error_code, found.timestamp, found.offset) == (Error.NONE, NOW, 0)


def test_members_of_groups_with_much_metadata(victim: Victim) -> None:
    protocol = JoinGroupRequestProtocol(name="range", metadata=bytes(REQUEST_BYTES_MAX - 1_000))
    with ExitStack() as stack:
        for number, client in enumerate(crowd(stack, victim.port)):
            request = JoinGroupRequest(
                group_id=f"g{number}",
                session_timeout_ms=30_000,
                rebalance_timeout_ms=30_000,
                protocol_type="consumer",
                protocols=[protocol],
            )
            client.request(request, 3)
            answer = client.receive_any(JoinGroupResponse, 3)
            assert answer.error_code == Error.MESSAGE_TOO_LARGE
