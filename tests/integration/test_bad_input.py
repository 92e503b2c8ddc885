"""Abuse of real brokers over their ports: it gets the code or the end that it deserves, the broker
lives on, and what was acknowledged stays.

Source: reliability reference 4; "Apache Kafka's weak points" (50 announced frames of 90 MiB)."""

import random
import struct
from collections.abc import Iterator
from contextlib import ExitStack

import msgspec
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.conftest import DevCluster, start_cluster, stop_cluster, wait_until
from tests.integration.raw_client import Broker, RawClient, brokers_of, frame_of, leader_of
from tests.integration.test_kill import read_back

from strandline.broker.server.request_limits import ITEM_COUNT_MAX
from strandline.protocol.errors import Error
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.protocol.messages.describe_groups import DescribeGroupsRequest
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from strandline.protocol.table import Message
from strandline.records.batch import read_header, seal
from strandline.records.record import Record, build_batch

pytestmark = pytest.mark.integration

MIB = 1024 * 1024
FRAME_BYTES_MAX = 100 * MIB
POLL_MS_MAX = 2**31 - 1
CREATE_TIMEOUT_S = 30
NOISE = random.Random(1).randbytes(2_000)

ILLEGAL_NAMES = {
    "parent": "../x", "dot": ".", "dots": "..", "empty": "", "nul": "nul\0", "long": "x" * 250,
    "slash": "a/b", "newline": "a\nb", "accent": "é", "etc": "../../etc/passwd",
}  # fmt: skip
illegal_names = pytest.mark.parametrize("name", ILLEGAL_NAMES.values(), ids=ILLEGAL_NAMES)


class Ledger:
    """A topic that nobody abuses, with a partition led by each broker, and what it acknowledged."""

    def __init__(self, cluster: DevCluster) -> None:
        self.topic = "ledger"
        self._cluster = cluster
        self._acknowledged: dict[bytes, tuple[int, int]] = {}
        self._producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": "all"})
        create(cluster, self.topic, partitions=3)

    def write(self) -> None:
        """One record to each partition; all are acknowledged."""
        before = len(self._acknowledged)
        for partition in range(3):
            value = b"%d" % (before + partition)
            self._producer.produce(
                self.topic, value=value, partition=partition, on_delivery=self._delivered
            )
        assert self._producer.flush(CREATE_TIMEOUT_S) == 0
        assert len(self._acknowledged) == before + 3

    def check(self) -> None:
        """What was acknowledged is there, each record once, and nothing else."""
        assert read_back(self._cluster, self.topic, 3) == self._acknowledged

    def _delivered(self, error: object, message: object) -> None:
        assert error is None, error
        self._acknowledged[message.value()] = (message.partition(), message.offset())  # type: ignore[attr-defined]


def create(cluster: DevCluster, topic: str, *, partitions: int, **config: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    new = NewTopic(topic, partitions, len(cluster.brokers), config=config)
    admin.create_topics([new])[topic].result(CREATE_TIMEOUT_S)


@pytest.fixture(scope="module")
def ledger(cluster: DevCluster) -> Iterator[Ledger]:
    ledger = Ledger(cluster)
    yield ledger
    ledger.check()


@pytest.fixture(autouse=True)
def nothing_breaks(cluster: DevCluster, ledger: Ledger) -> Iterator[None]:
    """Whatever a test does: every broker takes a write afterwards, and none has logged an error."""
    brokers = brokers_of(cluster)
    yield
    ledger.write()
    assert [line for broker in brokers for line in broker.complaints()] == []


@pytest.fixture
def victim(cluster: DevCluster) -> Broker:
    return Broker(cluster, 1)


@pytest.fixture
def topic(cluster: DevCluster, topic_name: str) -> str:
    create(cluster, topic_name, partitions=1)
    return topic_name


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DevCluster]:
    """One broker with bounds that a test can reach."""
    settings = (
        "limits.connection_idle_ms=1000",
        f"limits.request_bytes_max={8 * MIB}",
        f"limits.partial_bytes_max={8 * MIB}",
    )
    options = tuple(word for setting in settings for word in ("--set", setting))
    cluster = start_cluster(tmp_path_factory.mktemp("strict"), regions="east=1", options=options)
    yield cluster
    stop_cluster(cluster)


# Frames.

NO_REQUESTS = {
    "negative size": struct.pack(">i", -1),
    "lowest size": struct.pack(">i", -(2**31)),
    "no size": struct.pack(">i", 0),
    "too short for a header": struct.pack(">i", 7) + bytes(7),
    "above the limit": struct.pack(">i", FRAME_BYTES_MAX + 1),
    "highest size": b"\x7f\xff\xff\xff" + NOISE,
    "noise": b"\xff" + NOISE,
    "http": b"GET /metrics HTTP/1.1\r\nHost: broker\r\n\r\n",
    "http 2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "tls": bytes.fromhex("16030100f6010000f20303") + bytes(240),
    "unknown API": struct.pack(">ihhih", 10, 999, 0, 1, -1),
    "an API of Kafka's that is not offered": struct.pack(">ihhih", 10, 24, 0, 1, -1),
    "unknown version": struct.pack(">ihhih", 10, 3, 99, 1, -1),
    "negative version": struct.pack(">ihhih", 10, 3, -1, 1, -1),
    "a client id beyond the frame": struct.pack(">ihhih", 12, 3, 1, 1, 30_000) + b"xx",
    "a cut body": struct.pack(">ihhih", 14, 3, 1, 1, -1) + struct.pack(">i", 5),
    "an array beyond the frame": struct.pack(">ihhih", 14, 3, 1, 1, -1) + b"\x7f\xff\xff\xff",
    "noise for a body": struct.pack(">ihhih", 10 + len(NOISE), 1, 11, 1, -1) + NOISE,
}


@pytest.mark.parametrize("data", NO_REQUESTS.values(), ids=NO_REQUESTS)
def test_what_is_no_request_closes_the_connection(victim: Broker, data: bytes) -> None:
    with victim.connect() as client:
        client.send(data)
        assert client.is_closed()


def test_a_version_of_the_future_of_api_versions_is_told_what_to_try(victim: Broker) -> None:
    with victim.connect() as client:
        client.send_frame(struct.pack(">hhih", 18, 99, 7, -1))
        correlation, code = struct.unpack_from(">ih", client.receive_frame())
    assert (correlation, code) == (7, Error.UNSUPPORTED_VERSION)


def test_half_a_frame_and_then_silence_is_given_up(strict: DevCluster) -> None:
    broker = Broker(strict, 1)
    frame = struct.pack(">i", 1_000) + bytes(500)
    with broker.connect() as silent, broker.connect() as short, broker.connect() as polite:
        silent.send(frame)
        short.send(frame[:2])
        assert polite.ask(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0
        assert silent.is_closed()
        assert short.is_closed()


def test_announced_frames_take_no_memory(victim: Broker) -> None:
    before = victim.memory_bytes()
    clients = [victim.connect() for _ in range(50)]
    for client in clients:
        client.send(struct.pack(">i", 90 * MIB) + bytes(1_024))
    with victim.connect() as polite:
        assert polite.ask(ApiVersionsRequest(), ApiVersionsResponse, 0).error_code == 0
    assert victim.memory_bytes() - before < 40 * MIB
    for client in clients:
        client.close()


def test_frames_that_never_end_share_a_bounded_memory(strict: DevCluster) -> None:
    broker = Broker(strict, 1)
    before = broker.memory_bytes()
    clients = [broker.connect() for _ in range(20)]
    for client in clients:
        client.send(struct.pack(">i", 7 * MIB) + bytes(2 * MIB))
    assert clients[0].is_closed()
    assert broker.memory_bytes() - before < 30 * MIB
    assert any("unfinished requests take more than" in line for line in broker.said())
    for client in clients:
        client.close()


def test_noise_on_the_rpc_port_is_closed_and_brokers_go_on(
    cluster: DevCluster, victim: Broker
) -> None:
    def framed(payload: bytes) -> bytes:
        return struct.pack(">I", len(payload)) + payload

    stranger = msgspec.msgpack.encode([1, "another cluster", 2, 0])
    for data in (
        NOISE,
        NO_REQUESTS["http"],
        NO_REQUESTS["tls"],
        framed(NOISE),
        framed(b"\x95\x01\xa1c\x02\x00" + b"\x91" * 10_000),
        framed(stranger),
        struct.pack(">I", 90 * MIB) + bytes(1_024),
    ):
        with RawClient(victim.rpc_port) as client:
            client.send(data)
            assert client.is_closed()


# Batches.


def produce(broker: Broker, topic: str, records: bytes, partition: int = 0) -> tuple[int, int]:
    """(error code, base offset) of one batch, with acks=all."""
    data = PartitionProduceData(index=partition, records=records)
    request = ProduceRequest(
        acks=-1,
        timeout_ms=30_000,
        topic_data=[TopicProduceData(name=topic, partition_data=[data])],
    )
    with broker.connect() as client:
        result = client.ask(request, ProduceResponse, 9).responses[0].partition_responses[0]
    return result.error_code, result.base_offset


def changed(position: int, value: bytes, *, sealed: bool = True) -> bytes:
    """A sound batch of two records with other bytes somewhere; with a right CRC if `sealed`."""
    batch = build_batch([Record(0, 1_000, None, b"one"), Record(1, 1_000, None, b"two")])
    header = read_header(batch)
    assert header is not None
    batch[position : position + len(value)] = value
    if sealed:
        seal(batch, header)
    return bytes(batch)


SOUND = changed(0, b"")
BAD_BATCHES = {
    "empty": (b"", Error.INVALID_RECORD),
    "noise": (NOISE, None),
    "cut": (SOUND[:-1], Error.INVALID_RECORD),
    "followed by noise": (SOUND + b"noise", Error.INVALID_RECORD),
    "wrong CRC": (changed(len(SOUND) - 2, b"\xff", sealed=False), Error.CORRUPT_MESSAGE),
    "magic 0": (changed(16, b"\0"), Error.INVALID_RECORD),
    "magic 1": (changed(16, b"\1"), Error.INVALID_RECORD),
    "magic 3": (changed(16, b"\3"), Error.INVALID_RECORD),
    "no records": (changed(57, struct.pack(">i", 0)), Error.INVALID_RECORD),
    "a negative count": (changed(57, struct.pack(">i", -1)), Error.INVALID_RECORD),
    "too high a count": (changed(57, struct.pack(">i", 2**31 - 1)), Error.INVALID_RECORD),
    "too high a last offset": (changed(23, struct.pack(">i", 7)), Error.INVALID_RECORD),
    "a negative last offset": (changed(23, struct.pack(">i", -1)), None),
    "length 0": (changed(8, struct.pack(">i", 0), sealed=False), Error.CORRUPT_MESSAGE),
    "a length beyond the request": (changed(8, struct.pack(">i", 2**31 - 1), sealed=False), None),
    "unknown codec": (changed(21, struct.pack(">h", 6)), Error.UNSUPPORTED_COMPRESSION_TYPE),
    "control": (changed(21, struct.pack(">h", 0x20)), Error.INVALID_RECORD),
    "second one broken": (SOUND + changed(16, b"\1"), Error.INVALID_RECORD),
    "a thousand and one": (SOUND * 1_001, Error.INVALID_RECORD),
}  # fmt: skip


def test_a_broken_batch_is_refused_and_leaves_nothing(cluster: DevCluster, topic: str) -> None:
    leader = leader_of(cluster, topic)
    for what, (records, expected) in BAD_BATCHES.items():
        code, offset = produce(leader, topic, records)
        assert (offset, code) == (-1, code if expected is None else expected), what
        assert code != Error.NONE and code != Error.UNKNOWN_SERVER_ERROR, what
    assert produce(leader, topic, SOUND) == (Error.NONE, 0)
    assert end_offset(leader, topic) == 2


def test_a_batch_above_the_topics_limit_is_too_large(cluster: DevCluster, topic_name: str) -> None:
    create(cluster, topic_name, partitions=1, **{"max.message.bytes": "10000"})
    leader = leader_of(cluster, topic_name)
    batch = bytes(build_batch([Record(0, 1_000, None, bytes(20_000))]))
    assert produce(leader, topic_name, batch)[0] == Error.MESSAGE_TOO_LARGE
    assert produce(leader, topic_name, SOUND) == (Error.NONE, 0)


def test_writing_where_nothing_is_says_so(victim: Broker, cluster: DevCluster, topic: str) -> None:
    leader = leader_of(cluster, topic)
    missing = Error.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(victim, "no-such-topic", SOUND)[0] == missing
    for partition in (1, -1, 2**31 - 1, -(2**31)):
        assert produce(leader, topic, SOUND, partition)[0] == missing
    assert produce(victim, "__consumer_offsets", SOUND)[0] in (
        missing,
        Error.INVALID_TOPIC_EXCEPTION,
    )


# Topics.


@illegal_names
def test_an_illegal_name_is_refused_wherever_it_is_given(victim: Broker, name: str) -> None:
    refused = Error.INVALID_TOPIC_EXCEPTION
    new = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    with victim.connect() as client:
        created = client.ask(
            CreateTopicsRequest(topics=[new], timeout_ms=10_000), CreateTopicsResponse, 5
        )
        assert [one.error_code for one in created.topics] == [refused]
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
        )
        described = client.ask(request, MetadataResponse, 9)
        assert [one.error_code for one in described.topics] == [refused]
    assert produce(victim, name, SOUND)[0] == Error.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize(
    ("partitions", "factor", "expected"),
    [
        (0, 1, Error.INVALID_PARTITIONS),
        (-9, 1, Error.INVALID_PARTITIONS),
        (2_000_000_000, 1, Error.INVALID_PARTITIONS),
        (-(2**31), 1, Error.INVALID_PARTITIONS),
        (1, 0, Error.INVALID_REPLICATION_FACTOR),
        (1, -7, Error.INVALID_REPLICATION_FACTOR),
        (1, 4, Error.INVALID_REPLICATION_FACTOR),
        (1, 30_000, Error.INVALID_REPLICATION_FACTOR),
    ],
)
def test_absurd_numbers_of_partitions_and_replicas_are_refused(
    victim: Broker, topic_name: str, partitions: int, factor: int, expected: int
) -> None:
    new = CreatableTopic(name=topic_name, num_partitions=partitions, replication_factor=factor)
    request = CreateTopicsRequest(topics=[new], timeout_ms=10_000)
    with victim.connect() as client:
        answer = client.ask(request, CreateTopicsResponse, 5).topics[0]
    assert answer.error_code == expected
    assert answer.error_message is not None and "\n" not in answer.error_message


def end_offset(leader: Broker, topic: str) -> int:
    asked = ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    with leader.connect() as client:
        return client.ask(request, ListOffsetsResponse, 5).topics[0].partitions[0].offset


# Reading.


def test_a_fetch_of_what_is_not_there_is_an_error_for_that_partition(
    cluster: DevCluster, topic: str
) -> None:
    leader = leader_of(cluster, topic)
    assert produce(leader, topic, SOUND) == (Error.NONE, 0)
    # A leader answers reads once it is sure that it leads.
    wait_until(lambda: fetch_error(leader, topic, 0, 0) == Error.NONE, what="reads are answered")
    asked = {
        (0, 0): Error.NONE,
        (0, -1): Error.OFFSET_OUT_OF_RANGE,
        (0, -(2**63)): Error.OFFSET_OUT_OF_RANGE,
        (0, 3): Error.OFFSET_OUT_OF_RANGE,
        (0, 2**63 - 1): Error.OFFSET_OUT_OF_RANGE,
        (-1, 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
        (7, 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
        (2**31 - 1, 0): Error.UNKNOWN_TOPIC_OR_PARTITION,
    }
    for size in (MIB, 0, -1, -(2**31), 2**31 - 1):
        for (partition, offset), expected in asked.items():
            assert fetch_error(leader, topic, partition, offset, size_bytes=size) == expected, (
                partition,
                offset,
                size,
            )


def fetch_error(
    leader: Broker, topic: str, partition: int, offset: int, *, size_bytes: int = MIB
) -> int:
    asked = FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=size_bytes)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=size_bytes,
        max_bytes=size_bytes,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    with leader.connect() as client:
        return client.ask(request, FetchResponse, 11).responses[0].partitions[0].error_code


def too_much() -> dict[str, tuple[Message, int]]:
    count = ITEM_COUNT_MAX + 1
    topics = [MetadataRequestTopic(name=f"{n}") for n in range(count)]
    partitions = [FetchPartition(partition=n) for n in range(count)]
    return {
        "metadata": (MetadataRequest(topics=topics, allow_auto_topic_creation=True), 9),
        "fetch": (FetchRequest(topics=[FetchTopic(topic="t", partitions=partitions)]), 11),
        "groups": (DescribeGroupsRequest(groups=["g"] * count), 5),
    }


@pytest.mark.parametrize("what", ["metadata", "fetch", "groups"])
def test_a_request_that_names_far_too_much_is_not_answered(victim: Broker, what: str) -> None:
    request, version = too_much()[what]
    with victim.connect() as client:
        client.send_frame(frame_of(request, version))
        assert client.is_closed()
    assert any("the limit is 100000" in line for line in victim.said())


def test_much_is_answered_and_what_is_named_twice_only_once(
    cluster: DevCluster, topic: str
) -> None:
    leader = leader_of(cluster, topic)
    before = leader.memory_bytes()
    named = [MetadataRequestTopic(name=topic)] * 50_000
    partitions = [FetchPartition(partition=0, partition_max_bytes=MIB)] * 50_000
    with leader.connect() as client:
        metadata = client.ask(
            MetadataRequest(topics=named, allow_auto_topic_creation=False), MetadataResponse, 9
        )
        fetched = client.ask(
            FetchRequest(max_wait_ms=0, topics=[FetchTopic(topic=topic, partitions=partitions)]),
            FetchResponse,
            11,
        )
    assert [one.name for one in metadata.topics] == [topic]
    assert [len(one.partitions) for one in fetched.responses] == [1]
    assert leader.memory_bytes() - before < 80 * MIB


def test_long_polls_leave_with_their_clients(cluster: DevCluster, topic: str) -> None:
    leader = leader_of(cluster, topic)
    asked = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=MIB)
    poll = FetchRequest(
        max_wait_ms=POLL_MS_MAX,
        min_bytes=POLL_MS_MAX,
        max_bytes=MIB,
        topics=[FetchTopic(topic=topic, partitions=[asked])],
    )
    with ExitStack() as closing:
        clients = [closing.enter_context(leader.connect()) for _ in range(100)]
        ports = {client.port for client in clients}
        for client in clients:
            client.request(poll, 11)
        # More on one connection than a broker takes from one: it is not read then.
        for client in clients[:3]:
            for _ in range(200):
                client.request(poll, 11)
        assert produce(leader, topic, SOUND) == (Error.NONE, 0)
        wait_until(lambda: leader.connections_from(ports) == len(clients), what="all are served")
    wait_until(lambda: leader.connections_from(ports) == 0, what="all have left")
    assert produce(leader, topic, SOUND) == (Error.NONE, 2)


def test_an_essay_beside_an_offset_is_too_large(
    cluster: DevCluster, victim: Broker, topic: str
) -> None:
    def coordinator() -> int:
        with victim.connect() as client:
            request = FindCoordinatorRequest(key="essays", key_type=0)
            return client.ask(request, FindCoordinatorResponse, 3).node_id

    def commit(metadata: str) -> int:
        partition = OffsetCommitRequestPartition(committed_offset=1, committed_metadata=metadata)
        request = OffsetCommitRequest(
            group_id="essays",
            topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
        )
        with Broker(cluster, coordinator()).connect() as client:
            return client.ask(request, OffsetCommitResponse, 7).topics[0].partitions[0].error_code

    wait_until(lambda: coordinator() in cluster.brokers, what="the group has a coordinator")
    wait_until(lambda: commit("short") == Error.NONE, what="the coordinator commits")
    assert commit("x" * 30_000) == Error.OFFSET_METADATA_TOO_LARGE
    assert commit("short") == Error.NONE
