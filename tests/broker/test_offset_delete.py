"""OffsetDelete over the Kafka protocol: what goes to the coordinator, and what it says.

Source: KIP-496."""

from tests.broker.cluster_world import ClusterWorld

from strandline.protocol.errors import Error
from strandline.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from strandline.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from strandline.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)

GROUP = "readers"


def commit(cluster: ClusterWorld, at: int, *indexes: int) -> int:
    partitions = [OffsetCommitRequestPartition(index, committed_offset=7) for index in indexes]
    request = OffsetCommitRequest(
        group_id=GROUP, topics=[OffsetCommitRequestTopic(name="t", partitions=partitions)]
    )
    answer = cluster.ask(at, request, OffsetCommitResponse, 8)
    return max(one.error_code for one in answer.topics[0].partitions)


def coordinator(cluster: ClusterWorld, *indexes: int) -> int:
    """The coordinator, which has taken offsets of these partitions."""
    for _ in range(200):
        request = FindCoordinatorRequest(coordinator_keys=[GROUP])
        (found,) = cluster.ask(1, request, FindCoordinatorResponse, 4).coordinators
        if found.error_code == 0 and commit(cluster, found.node_id, *indexes) == 0:
            return found.node_id
        cluster.advance(50)
    raise AssertionError("no coordinator takes offsets")


def delete(
    cluster: ClusterWorld, at: int, *partitions: tuple[str, int], group: str = GROUP
) -> OffsetDeleteResponse:
    topics = [
        OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(index)])
        for topic, index in partitions
    ]
    request = OffsetDeleteRequest(group_id=group, topics=topics)
    return cluster.ask(at, request, OffsetDeleteResponse, 0)


def codes(answer: OffsetDeleteResponse) -> list[tuple[str, int, int]]:
    assert answer.error_code == 0
    return [
        (topic.name, one.partition_index, one.error_code)
        for topic in answer.topics
        for one in topic.partitions
    ]


def committed(cluster: ClusterWorld, at: int) -> set[int]:
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=None)])
    (group,) = cluster.ask(at, request, OffsetFetchResponse, 8).groups
    return {one.partition_index for topic in group.topics for one in topic.partitions}


def test_offsets_are_gone_and_others_stay(cluster: ClusterWorld) -> None:
    cluster.create_topic("t", partitions=3)
    at = coordinator(cluster, 0, 1, 2)
    answer = delete(cluster, at, ("t", 0), ("none", 0), ("t", 3), ("t", 0), ("t", 2))
    missing = int(Error.UNKNOWN_TOPIC_OR_PARTITION)
    expected = [("t", 0, 0), ("none", 0, missing), ("t", 3, missing), ("t", 0, 0), ("t", 2, 0)]
    assert codes(answer) == expected
    assert committed(cluster, at) == {1}


def test_a_request_that_is_refused_as_a_whole_says_why(cluster: ClusterWorld) -> None:
    cluster.create_topic("t")
    at = coordinator(cluster, 0)
    assert delete(cluster, at, ("t", 0), group="").error_code == Error.INVALID_GROUP_ID
    elsewhere = delete(cluster, next(one for one in (1, 2, 3) if one != at), ("t", 0))
    assert (elsewhere.error_code, elsewhere.topics) == (Error.NOT_COORDINATOR, [])
    assert delete(cluster, at, ("none", 0), group="").error_code == Error.INVALID_GROUP_ID
    assert codes(delete(cluster, at, ("none", 0))) == [
        ("none", 0, int(Error.UNKNOWN_TOPIC_OR_PARTITION))
    ]
    assert committed(cluster, at) == {0}
