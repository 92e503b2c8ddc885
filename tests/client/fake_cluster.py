"""A cluster in memory that answers the client's requests, over a transport whose time jumps."""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from strandline.base.disk import Buffer
from strandline.client.wire.transport import Stream
from strandline.model.cluster import Address
from strandline.model.ids import Epoch, Offset
from strandline.protocol.apis import APIS
from strandline.protocol.codec import decode, encode
from strandline.protocol.errors import Error
from strandline.protocol.headers import decode_request_header, encode_response_header
from strandline.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from strandline.protocol.messages.create_topics import (
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from strandline.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from strandline.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from strandline.protocol.messages.describe_balance import DescribeBalanceResponse
from strandline.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from strandline.protocol.messages.describe_exports import DescribeExportsResponse
from strandline.protocol.messages.describe_losses import DescribeLossesResponse
from strandline.protocol.messages.describe_observers import DescribeObserversResponse
from strandline.protocol.messages.describe_read_replicas import DescribeReadReplicasResponse
from strandline.protocol.messages.describe_status import DescribeStatusResponse
from strandline.protocol.messages.describe_topology import DescribeTopologyResponse
from strandline.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from strandline.protocol.messages.init_producer_id import InitProducerIdResponse
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsResponse,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from strandline.protocol.table import Message
from strandline.records.batch import iterate_headers

SIZE = struct.Struct(">i")
Handler = Callable[["FakeCluster", int, Message], Message | None]


@dataclass
class FakePartition:
    """A log as a list of wire batches, and who leads it."""

    leader: int
    batches: list[bytes] = field(default_factory=list)
    end: int = 0
    start: int = 0
    sequences: dict[int, int] = field(default_factory=dict)


class FakeCluster:
    """Brokers 1 to n on ports 9001 to 900n, and what they know."""

    def __init__(self, broker_count: int = 3) -> None:
        self.brokers = {
            index: Address("fake", 9000 + index) for index in range(1, broker_count + 1)
        }
        self.down: set[int] = set()
        self.silent: set[int] = set()
        self.controller = 1
        self.topics: dict[str, list[FakePartition]] = {}
        self.asked: list[tuple[int, str]] = []
        # What the next requests of an API get instead of their answer: an error code for
        # every part, or "drop" to do the work and lose the answer, or "die" to do nothing.
        self.faults: dict[str, list[str | int]] = {}
        self.max_versions: dict[int, int] = {}
        self.extra: dict[str, Handler] = {}
        # Topics that the client may not see.
        self.hidden: set[str] = set()

    @property
    def bootstrap(self) -> list[Address]:
        return list(self.brokers.values())

    def add_topic(self, name: str, partitions: int) -> None:
        ids = sorted(self.brokers)
        self.topics[name] = [FakePartition(leader=ids[i % len(ids)]) for i in range(partitions)]

    def handle(self, broker: int, frame: bytes) -> bytes | None:
        """The answer to a request, size included; None closes the connection."""
        header, position = decode_request_header(frame)
        api = APIS[header.api_key]
        self.asked.append((broker, api.name))
        request, _ = decode(api.request, frame, position, header.api_version)
        fault = self.faults[api.name].pop(0) if self.faults.get(api.name) else None
        if fault == "die":
            return None
        code = fault if isinstance(fault, int) else 0
        handler = self.extra.get(api.name) or HANDLERS[api.name]
        self.fault_code = code
        answer = handler(self, broker, request)
        if fault == "drop":
            return None
        if answer is None:
            return b""
        body = encode(answer, header.api_version)
        head = encode_response_header(header.api_key, header.api_version, header.correlation_id)
        return SIZE.pack(len(head) + len(body)) + head + bytes(body)


class FakeStream:
    """One connection to a fake broker."""

    def __init__(self, transport: "FakeTransport", broker: int) -> None:
        self._transport = transport
        self._broker = broker
        self._input = bytearray()
        self.output = bytearray()
        self.is_broken = False

    def send(self, parts: Sequence[Buffer], timeout_ms: int) -> None:
        cluster = self._transport.cluster
        if self.is_broken or self._broker in cluster.down:
            raise BrokenPipeError(32, "Broken pipe")
        self._input += b"".join(bytes(part) for part in parts)
        if self._broker in cluster.silent:
            return
        while len(self._input) >= 4:
            (size,) = SIZE.unpack_from(self._input)
            if len(self._input) < 4 + size:
                return
            frame = bytes(self._input[4 : 4 + size])
            del self._input[: 4 + size]
            answer = cluster.handle(self._broker, frame)
            if answer is None:
                self.is_broken = True
                return
            self.output += answer

    def receive(self, length: int, timeout_ms: int) -> memoryview:
        if len(self.output) < length:
            if self.is_broken or self._broker in self._transport.cluster.down:
                raise ConnectionError("the broker closed the connection")
            self._transport.now_ms += timeout_ms
            raise TimeoutError("timed out")
        taken = bytes(self.output[:length])
        del self.output[:length]
        return memoryview(taken)

    def close(self) -> None:
        self.is_broken = True


class FakeTransport:
    """Virtual time; sleeping is free."""

    login = None

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.now_ms = 0
        self.connects: list[int] = []
        self.on_sleep: Callable[[int], None] = lambda now_ms: None

    def connect(self, address: Address, timeout_ms: int) -> Stream:
        for broker, known in self.cluster.brokers.items():
            if known == address and broker not in self.cluster.down:
                self.connects.append(broker)
                return FakeStream(self, broker)
        raise ConnectionRefusedError(111, "Connection refused")

    def wait_readable(self, streams: Sequence[Stream], timeout_ms: int) -> list[Stream]:
        ready = [
            one
            for one in streams
            if isinstance(one, FakeStream)
            and (one.output or one.is_broken or one._broker in self.cluster.down)
        ]
        if not ready:
            self.now_ms += timeout_ms
        # One at a time: the others stay in flight meanwhile.
        return ready[:1]

    def monotonic_ms(self) -> int:
        return self.now_ms

    def wall_ms(self) -> int:
        return 1_700_000_000_000 + self.now_ms

    def sleep_ms(self, duration_ms: int) -> None:
        self.now_ms += duration_ms
        self.on_sleep(self.now_ms)


# ---- what the brokers do -------------------------------------------------------------------------


def api_versions(cluster: FakeCluster, broker: int, request: Message) -> Message:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(
                api_key=key,
                min_version=api.advertised_min,
                max_version=cluster.max_versions.get(key, api.max_version),
            )
            for key, api in APIS.items()
        ]
    )


def metadata(cluster: FakeCluster, broker: int, request: Message) -> Message:
    assert isinstance(request, MetadataRequest)
    assert not request.allow_auto_topic_creation
    names = (
        list(cluster.topics)
        if request.topics is None
        else [one.name or "" for one in request.topics]
    )
    up = [one for one in cluster.brokers if one not in cluster.down]
    return MetadataResponse(
        cluster_id="fake",
        controller_id=cluster.controller if cluster.controller in up else -1,
        brokers=[
            MetadataResponseBroker(
                node_id=one,
                host=cluster.brokers[one].host,
                port=cluster.brokers[one].port,
                rack=f"region-{one}",
            )
            for one in up
        ],
        topics=[_topic(cluster, name) for name in names],
    )


def _topic(cluster: FakeCluster, name: str) -> MetadataResponseTopic:
    if name in cluster.hidden:
        return MetadataResponseTopic(name=name, error_code=Error.TOPIC_AUTHORIZATION_FAILED)
    if name not in cluster.topics:
        return MetadataResponseTopic(name=name, error_code=Error.UNKNOWN_TOPIC_OR_PARTITION)
    return MetadataResponseTopic(
        name=name,
        is_internal=name.startswith("__"),
        partitions=[
            MetadataResponsePartition(
                partition_index=index,
                leader_id=-1 if one.leader in cluster.down else one.leader,
                leader_epoch=1,
                replica_nodes=sorted(cluster.brokers),
                isr_nodes=[b for b in sorted(cluster.brokers) if b not in cluster.down],
            )
            for index, one in enumerate(cluster.topics[name])
        ],
    )


def _find(cluster: FakeCluster, broker: int, topic: str, index: int) -> FakePartition | int:
    partitions = cluster.topics.get(topic)
    if cluster.fault_code:
        return cluster.fault_code
    if partitions is None or index >= len(partitions):
        return int(Error.UNKNOWN_TOPIC_OR_PARTITION)
    if partitions[index].leader != broker:
        return int(Error.NOT_LEADER_OR_FOLLOWER)
    return partitions[index]


def produce(cluster: FakeCluster, broker: int, request: Message) -> Message | None:
    assert isinstance(request, ProduceRequest)
    response = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name=topic.name,
                partition_responses=[
                    _append(_find(cluster, broker, topic.name, one.index), one)
                    for one in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
    )
    return response if request.acks else None


def _append(partition: FakePartition | int, data: PartitionProduceData) -> PartitionProduceResponse:
    if isinstance(partition, int):
        return PartitionProduceResponse(index=data.index, error_code=partition)
    assert isinstance(data.records, memoryview)
    batch = bytearray(data.records)
    (header,) = iterate_headers(batch)
    if header.producer_id >= 0:
        expected = partition.sequences.get(header.producer_id, 0)
        if header.base_sequence < expected:
            return PartitionProduceResponse(
                index=data.index, base_offset=partition.end - header.records_count
            )
        if header.base_sequence > expected:
            return PartitionProduceResponse(
                index=data.index, error_code=Error.OUT_OF_ORDER_SEQUENCE_NUMBER
            )
        partition.sequences[header.producer_id] = expected + header.records_count
    base = partition.end
    header.stamp(batch, base_offset=Offset(base), epoch=Epoch(1))
    partition.batches.append(bytes(batch))
    partition.end = header.next_offset
    return PartitionProduceResponse(index=data.index, base_offset=base)


def fetch(cluster: FakeCluster, broker: int, request: Message) -> Message:
    assert isinstance(request, FetchRequest)
    return FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic=topic.topic,
                partitions=[
                    _read(
                        _find(cluster, broker, topic.topic, one.partition),
                        one.partition,
                        offset=one.fetch_offset,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def _read(partition: FakePartition | int, index: int, *, offset: int) -> PartitionData:
    if isinstance(partition, int):
        return PartitionData(partition_index=index, error_code=partition)
    if not partition.start <= offset <= partition.end:
        return PartitionData(partition_index=index, error_code=Error.OFFSET_OUT_OF_RANGE)
    wanted = [
        batch
        for batch in partition.batches
        if next(iter(iterate_headers(batch))).last_offset >= offset
    ]
    # Two batches at a time, so that reading takes more than one fetch.
    return PartitionData(
        partition_index=index, high_watermark=partition.end, records=b"".join(wanted[:2])
    )


def list_offsets(cluster: FakeCluster, broker: int, request: Message) -> Message:
    assert isinstance(request, ListOffsetsRequest)
    topics = []
    for topic in request.topics:
        answers = []
        for one in topic.partitions:
            found = _find(cluster, broker, topic.name, one.partition_index)
            answer = ListOffsetsPartitionResponse(partition_index=one.partition_index)
            if isinstance(found, int):
                answer.error_code = found
            elif one.timestamp == -2:
                answer.offset = found.start
            elif one.timestamp == -1:
                answer.offset = found.end
            answers.append(answer)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def create_topics(cluster: FakeCluster, broker: int, request: Message) -> Message:
    assert isinstance(request, CreateTopicsRequest)
    results = []
    for topic in request.topics:
        code = cluster.fault_code
        if not code and broker != cluster.controller:
            code = int(Error.NOT_CONTROLLER)
        if not code and topic.name in cluster.topics:
            code = int(Error.TOPIC_ALREADY_EXISTS)
        if not code and not request.validate_only:
            cluster.add_topic(topic.name, max(topic.num_partitions, 1))
        results.append(CreatableTopicResult(name=topic.name, error_code=code))
    return CreateTopicsResponse(topics=results)


def delete_topics(cluster: FakeCluster, broker: int, request: Message) -> Message:
    assert isinstance(request, DeleteTopicsRequest)
    results = []
    for name in request.topic_names:
        known = cluster.topics.pop(name, None) is not None
        code = 0 if known else int(Error.UNKNOWN_TOPIC_OR_PARTITION)
        results.append(DeletableTopicResult(name=name, error_code=code))
    return DeleteTopicsResponse(responses=results)


def delete_records(cluster: FakeCluster, broker: int, request: Message) -> Message:
    assert isinstance(request, DeleteRecordsRequest)
    topics = []
    for topic in request.topics:
        answers = []
        for one in topic.partitions:
            found = _find(cluster, broker, topic.name, one.partition_index)
            answer = DeleteRecordsPartitionResult(
                partition_index=one.partition_index, low_watermark=-1
            )
            if isinstance(found, int):
                answer.error_code = found
            elif one.offset > found.end:
                answer.error_code = int(Error.OFFSET_OUT_OF_RANGE)
            else:
                found.start = max(found.start, found.end if one.offset < 0 else one.offset)
                answer.low_watermark = found.start
            answers.append(answer)
        topics.append(DeleteRecordsTopicResult(name=topic.name, partitions=answers))
    return DeleteRecordsResponse(topics=topics)


def describe_configs(cluster: FakeCluster, broker: int, request: Message) -> Message:
    assert isinstance(request, DescribeConfigsRequest)
    (asked,) = request.resources
    rows = {"retention.ms": "1000"}
    if "min.insync.replicas" in (asked.configuration_keys or ()):
        rows["min.insync.replicas"] = "1"
    return DescribeConfigsResponse(
        results=[
            DescribeConfigsResult(
                resource_name=asked.resource_name,
                configs=[
                    DescribeConfigsResourceResult(name=name, value=value, config_source=1)
                    for name, value in rows.items()
                ],
            )
        ]
    )


def init_producer_id(cluster: FakeCluster, broker: int, request: Message) -> Message:
    return InitProducerIdResponse(error_code=cluster.fault_code, producer_id=7, producer_epoch=0)


HANDLERS: dict[str, Handler] = {
    "ApiVersions": api_versions,
    "Metadata": metadata,
    "Produce": produce,
    "Fetch": fetch,
    "ListOffsets": list_offsets,
    "CreateTopics": create_topics,
    "DeleteRecords": delete_records,
    "DeleteTopics": delete_topics,
    "DescribeBalance": lambda *_: DescribeBalanceResponse(),
    "DescribeConfigs": describe_configs,
    "DescribeObservers": lambda *_: DescribeObserversResponse(),
    "DescribeExports": lambda *_: DescribeExportsResponse(),
    "DescribeReadReplicas": lambda *_: DescribeReadReplicasResponse(),
    "DescribeLosses": lambda *_: DescribeLossesResponse(),
    "DescribeStatus": lambda *_: DescribeStatusResponse(),
    "DescribeTopology": lambda *_: DescribeTopologyResponse(),
    "InitProducerId": init_producer_id,
    "ListPartitionReassignments": lambda *_: ListPartitionReassignmentsResponse(),
}
