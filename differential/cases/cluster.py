"""What admin tools ask of a cluster."""

from differential.cases.registry import case, create
from differential.peer import Peer
from strandline.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from strandline.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from strandline.protocol.messages.describe_cluster import DescribeClusterRequest
from strandline.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from strandline.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from strandline.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
)


@case
def versions(peer: Peer) -> None:
    """The range of each API."""
    answer = peer.ask_silently(ApiVersionsRequest("differential", "1"), 4)
    assert isinstance(answer, ApiVersionsResponse)
    for api in answer.api_keys:
        peer.note(f"api {api.api_key}", (api.min_version, api.max_version))
    for feature in answer.finalized_features:
        peer.note(f"feature {feature.name}", feature.max_version_level)


@case
def versions_asked_oddly(peer: Peer) -> None:
    """Names of software that are none; another cluster's id."""
    for label, name, version in (
        ("empty name", "", "1"),
        ("a space in the name", "a b", "1"),
        ("empty version", "a", ""),
    ):
        answer = peer.ask_silently(ApiVersionsRequest(name, version), 3)
        assert isinstance(answer, ApiVersionsResponse)
        peer.note(label, (answer.error_code, len(answer.api_keys) > 0))


@case
def describe(peer: Peer) -> None:
    """The brokers; controllers are asked of a broker."""
    for version in range(3):
        peer.ask(f"v{version}", DescribeClusterRequest(), version)
        request = DescribeClusterRequest(include_cluster_authorized_operations=True)
        peer.ask(f"v{version} with operations", request, version)
    for label, kind in (("controllers", 2), ("no such type", 7)):
        peer.ask(label, DescribeClusterRequest(endpoint_type=kind), 1)


@case
def log_dirs(peer: Peer) -> None:
    """One topic of a directory; one that is missing."""
    create(peer, "log-dirs", partitions=2)
    for label, topic in (("there", "log-dirs"), ("missing", "log-dirs-missing")):
        request = DescribeLogDirsRequest([DescribableLogDirTopic(topic, [0, 1, 9])])
        for version in range(1, 5):
            peer.ask(f"v{version} {label}", request, version)


@case
def elections(peer: Peer) -> None:
    """Preferred and unclean elections that change nothing."""
    create(peer, "elections")
    for label, kind, topic, partition in (
        ("preferred", 0, "elections", 0),
        ("unclean", 1, "elections", 0),
        ("missing partition", 0, "elections", 8),
        ("missing topic", 0, "elections-missing", 0),
        ("no such type", 5, "elections", 0),
    ):
        request = ElectLeadersRequest(kind, [TopicPartitions(topic, [partition])], 5000)
        peer.ask(label, request, 2)


@case
def reassignments(peer: Peer) -> None:
    """To where it is, to brokers that are none; cancelling what does not move."""
    create(peer, "moves")
    for label, topic, partition, brokers in (
        ("to where it is", "moves", 0, [1]),
        ("to a broker that is none", "moves", 0, [99]),
        ("to none", "moves", 0, []),
        ("twice to one", "moves", 0, [1, 1]),
        ("cancel what does not move", "moves", 0, None),
        ("missing partition", "moves", 8, [1]),
        ("missing topic", "moves-missing", 0, [1]),
    ):
        one = ReassignablePartition(partition, brokers)
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=5000, topics=[ReassignableTopic(topic, [one])]
        )
        peer.ask(label, request, 0)
    peer.ask("listed", ListPartitionReassignmentsRequest(timeout_ms=5000), 0)
