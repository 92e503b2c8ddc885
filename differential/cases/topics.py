"""Creating, growing and deleting topics; metadata."""

from differential.cases.registry import case, create
from differential.peer import Peer
from strandline.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from strandline.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from strandline.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from strandline.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

NAMES = {
    "empty": "",
    "dot": ".",
    "two dots": "..",
    "slash": "a/b",
    "space": "a b",
    "colon": "a:b",
    "umlaut": "\u00e4",
    "249 characters": "n" * 249,
    "250 characters": "n" * 250,
    "internal": "__consumer_offsets",
}
CONFIGS = {
    "unknown key": ("no.such.key", "1"),
    "not a number": ("retention.ms", "soon"),
    "below the bound": ("retention.ms", "-2"),
    "no policy": ("cleanup.policy", "shred"),
    "both policies": ("cleanup.policy", "compact,delete"),
    "not a boolean": ("preallocate", "maybe"),
    "min.insync.replicas 0": ("min.insync.replicas", "0"),
    "min.insync.replicas 2 of 1": ("min.insync.replicas", "2"),
    "tiny segment": ("segment.bytes", "13"),
    "segment below 1 MiB": ("segment.bytes", "1048575"),
    "segment of 1 MiB": ("segment.bytes", "1048576"),
    "internal segment": ("internal.segment.bytes", "1000"),
    "negative message": ("max.message.bytes", "-1"),
    "unknown codec": ("compression.type", "brotli"),
    "timestamp type": ("message.timestamp.type", "SomeTime"),
}


def _create(name: str, count: int = 1, factor: int = 1) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=count, replication_factor=factor)
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


@case
def create_and_create_again(peer: Peer) -> None:
    """By each version; the second time it is there."""
    for version in range(2, 8):
        name = f"again-{version}"
        for label in ("first", "second"):
            answer = _create(name)
            peer.ask(f"v{version} {label}", answer, version)


@case
def create_with_configs(peer: Peer) -> None:
    """The configuration in the answer of each version; a topic that is only validated."""
    for version in range(2, 8):
        for label, is_trial in (("validated", True), ("created", False)):
            topic = CreatableTopic(
                name=f"configured-{version}",
                num_partitions=1,
                replication_factor=1,
                configs=[
                    CreatableTopicConfig("retention.ms", "1000"),
                    CreatableTopicConfig("segment.bytes", None),
                ],
            )
            request = CreateTopicsRequest([topic], timeout_ms=10_000, validate_only=is_trial)
            peer.ask(f"v{version} {label}", request, version)


@case
def create_with_odd_names(peer: Peer) -> None:
    """Names that are too long, empty, or have characters that no name has."""
    for label, name in NAMES.items():
        peer.ask(label, _create(name), 5)


@case
def create_with_names_that_collide(peer: Peer) -> None:
    """A period and an underscore are one character in metrics."""
    peer.ask("first", _create("x.a_b"), 5)
    peer.ask("second", _create("x_a.b"), 5)
    both = [
        CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in ("together.a", "together_a")
    ]
    peer.ask("together", CreateTopicsRequest(topics=both, timeout_ms=10_000), 5)
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="x.a.b")], allow_auto_topic_creation=True
    )
    peer.ask("asked about", request, 12)


@case
def create_with_odd_counts(peer: Peer) -> None:
    """Counts that no topic can have, assignments that do not fit."""
    for label, count, factor in (
        ("no partitions", 0, 1),
        ("minus two", -2, 1),
        ("no replicas", 1, 0),
        ("two replicas on one broker", 1, 2),
        ("defaults", -1, -1),
    ):
        peer.ask(label, _create(f"count-{label.replace(' ', '-')}", count, factor), 5)
    for label, brokers, count in (
        ("assigned", [[1]], -1),
        ("assigned to a broker that is none", [[99]], -1),
        ("assigned twice to one", [[1, 1]], -1),
        ("assigned to none", [[]], -1),
        ("assigned and counted", [[1]], 1),
    ):
        topic = CreatableTopic(
            name=label.replace(" ", "-"),
            num_partitions=count,
            replication_factor=-1,
            assignments=[CreatableReplicaAssignment(i, ids) for i, ids in enumerate(brokers)],
        )
        peer.ask(label, CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 5)


@case
def create_with_odd_configs(peer: Peer) -> None:
    """Keys that are none, values that are not legal."""
    for label, (key, value) in CONFIGS.items():
        topic = CreatableTopic(
            name="config-" + label.replace(" ", "-"),
            num_partitions=1,
            replication_factor=1,
            configs=[CreatableTopicConfig(key, value)],
        )
        answer = CreateTopicsRequest(topics=[topic], timeout_ms=10_000, validate_only=True)
        peer.ask(label, answer, 4)


@case
def create_the_same_twice_in_one_request(peer: Peer) -> None:
    """A name that stands twice in a request is refused."""
    topic = CreatableTopic(name="twice", num_partitions=1, replication_factor=1)
    peer.ask("twice", CreateTopicsRequest(topics=[topic, topic], timeout_ms=10_000), 5)


@case
def grow(peer: Peer) -> None:
    """More partitions, fewer, as many, for a topic that is not there."""
    create(peer, "grow", partitions=2)
    for label, name, count in (
        ("fewer", "grow", 1),
        ("as many", "grow", 2),
        ("more", "grow", 3),
        ("missing", "grow-missing", 3),
    ):
        request = CreatePartitionsRequest(
            topics=[CreatePartitionsTopic(name=name, count=count)], timeout_ms=10_000
        )
        peer.ask(label, request, 3)


@case
def delete(peer: Peer) -> None:
    """By name in each version; a topic that is gone; by an id that is none."""
    for version in range(1, 6):
        name = f"delete-{version}"
        create(peer, name)
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000)
        peer.ask(f"v{version}", request, version)
        peer.ask(f"v{version} again", request, version)
    state = DeleteTopicState(name="delete-missing")
    peer.ask("v6 missing", DeleteTopicsRequest(topics=[state], timeout_ms=10_000), 6)


@case
def metadata_of_a_topic(peer: Peer) -> None:
    """In each version: one that is there, one that is missing, names that are not legal."""
    create(peer, "metadata", partitions=3)
    for version in range(14):
        for label, name in (("there", "metadata"), ("illegal", "a/b"), ("empty", "")):
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False
            )
            peer.ask(f"v{version} {label}", request, version)
    for version in range(4, 14):
        request = MetadataRequest(
            topics=[MetadataRequestTopic(name="metadata-missing")], allow_auto_topic_creation=False
        )
        peer.ask(f"v{version} missing", request, version)


@case
def describe_topic_partitions(peer: Peer) -> None:
    """Pages of a topic, one that is missing, a cursor beyond the end."""
    create(peer, "pages", partitions=3)
    for label, names, limit, cursor in (
        ("whole", ["pages"], 10, None),
        ("a page", ["pages"], 2, None),
        ("next page", ["pages"], 2, Cursor("pages", 2)),
        ("beyond", ["pages"], 2, Cursor("pages", 9)),
        ("missing", ["pages-missing"], 10, None),
        ("none", ["pages"], 0, None),
    ):
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name) for name in names],
            response_partition_limit=limit,
            cursor=cursor,
        )
        peer.ask(label, request, 0)
