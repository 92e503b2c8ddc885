"""The decorator that registers a case, and requests that many cases need."""

import time
from collections.abc import Callable

from differential.peer import Peer
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)

Case = Callable[[Peer], None]
CASES: dict[str, Case] = {}
"""{`subject.function`: case}, in the order of the files."""
READY_TRIES = 200
PAUSE_S = 0.05


def case(function: Case) -> Case:
    """Register a case as `subject.function`."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    assert name not in CASES, name
    CASES[name] = function
    return function


def create(
    peer: Peer, name: str, *, partitions: int = 1, configs: dict[str, str] | None = None
) -> None:
    """Create a topic and wait until each partition can be read; nothing is noted."""
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=1,
        configs=[CreatableTopicConfig(key, value) for key, value in (configs or {}).items()],
    )
    peer.ask_silently(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
    wait_for_leaders(peer, name)


def wait_for_leaders(peer: Peer, name: str) -> None:
    """Return once each partition of the topic has a leader that serves it.

    Kafka names a leader in Metadata before that broker serves."""
    for partition in range(_count_led(peer, name)):
        _wait_until_readable(peer, name, partition)


def _wait_until_readable(peer: Peer, name: str, partition: int) -> None:
    request = fetch_request(name, 0, partition=partition)
    for _ in range(READY_TRIES):
        answer = peer.ask_silently(request, 11)
        assert isinstance(answer, FetchResponse)
        if answer.responses[0].partitions[0].error_code == Error.NONE:
            return
        time.sleep(PAUSE_S)
    raise TimeoutError(f"{peer.name}: partition {partition} of topic {name} cannot be read")


def _count_led(peer: Peer, name: str) -> int:
    """The number of partitions, once each has a leader."""
    for _ in range(READY_TRIES):
        answer = peer.ask_silently(
            MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
            ),
            9,
        )
        assert isinstance(answer, MetadataResponse)
        (topic,) = answer.topics
        if topic.error_code == Error.NONE and all(one.leader_id >= 0 for one in topic.partitions):
            return len(topic.partitions)
        time.sleep(PAUSE_S)
    raise TimeoutError(f"{peer.name}: topic {name} has no leader")


def produce_request(
    topic: str, records: bytes | bytearray | None, *, partition: int = 0, acks: int = -1
) -> ProduceRequest:
    """A Produce request for one partition."""
    return ProduceRequest(
        acks=acks,
        timeout_ms=10_000,
        topic_data=[
            TopicProduceData(
                name=topic, partition_data=[PartitionProduceData(index=partition, records=records)]
            )
        ],
    )


def fetch_request(topic: str, offset: int, *, partition: int = 0) -> FetchRequest:
    """A Fetch request for one partition, which does not wait."""
    return FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[
            FetchTopic(
                topic=topic,
                partitions=[
                    FetchPartition(
                        partition=partition, fetch_offset=offset, partition_max_bytes=1 << 20
                    )
                ],
            )
        ],
    )
