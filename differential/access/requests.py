"""The requests of the table, by API.

How:    most name a topic that rules are about, one that does not exist, and a hidden one, so that
        one answer shows what each looks like. What an allowed request changes is put back
        afterwards (`walk.restore`), or is nothing."""

from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from differential.access.subjects import (
    ABSENT_GROUP,
    ABSENT_TOPIC,
    GROUP,
    HIDDEN_GROUP,
    HIDDEN_TOPIC,
    NEW_TOPIC,
    TOPIC,
)
from strandline.protocol.messages import (
    delete_groups,
    describe_groups,
    describe_producers,
    describe_topic_partitions,
    fetch,
    find_coordinator,
    heartbeat,
    init_producer_id,
    join_group,
    leave_group,
    list_groups,
    list_offsets,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    produce,
    sync_group,
)
from strandline.protocol.table import Message
from strandline.records.record import Record, build_batch

Ids = Mapping[str, UUID]
"""{topic: its id}, of `NAMED`."""
NAMED = (TOPIC, ABSENT_TOPIC, HIDDEN_TOPIC)
GROUPS = (GROUP, ABSENT_GROUP, HIDDEN_GROUP)
TIMEOUT_MS = 5_000
STRANGER = "no-such-member"


class Request(NamedTuple):
    """A request. `make`: from the topics' ids; `changes`: what it needs is put back afterwards."""

    title: str
    make: Callable[[Ids], Message]
    changes: bool = False
    oldest: int = 0
    """The lowest version that has what it names."""
    newest: int = 99
    """The highest one."""


def batch() -> bytearray:
    """One record."""
    return build_batch([Record(offset_delta=0, timestamp=1_700_000_000_000, value=b"v")])


def produce_of(ids: Ids, acks: int = -1) -> Message:
    """One record to each topic."""
    return produce.ProduceRequest(
        acks=acks,
        timeout_ms=TIMEOUT_MS,
        topic_data=[
            produce.TopicProduceData(
                name, ids[name], [produce.PartitionProduceData(0, bytes(batch()))]
            )
            for name in NAMED
        ],
    )


def _fetch(ids: Ids) -> Message:
    partition = fetch.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    return fetch.FetchRequest(
        max_bytes=1 << 20,
        topics=[fetch.FetchTopic(name, ids[name], [partition]) for name in NAMED],
    )


def _list_offsets(_: Ids) -> Message:
    return list_offsets.ListOffsetsRequest(
        replica_id=-1,
        topics=[
            list_offsets.ListOffsetsTopic(
                name, [list_offsets.ListOffsetsPartition(0, timestamp=-1)]
            )
            for name in NAMED
        ],
    )


def _epochs(_: Ids) -> Message:
    return offset_for_leader_epoch.OffsetForLeaderEpochRequest(
        replica_id=-1,
        topics=[
            offset_for_leader_epoch.OffsetForLeaderTopic(
                name, [offset_for_leader_epoch.OffsetForLeaderPartition(0, leader_epoch=1_000)]
            )
            for name in NAMED
        ],
    )


def _metadata(ids: Ids, *, by_id: bool = False) -> Message:
    one = metadata.MetadataRequestTopic
    return metadata.MetadataRequest(
        topics=[one(ids[name], None) if by_id else one(name=name) for name in NAMED],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )


def all_topics(*, operations: bool = False) -> Message:
    """What a client sees without naming it."""
    return metadata.MetadataRequest(
        topics=None,
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=operations,
    )


def _metadata_of_cluster(_: Ids) -> Message:
    return metadata.MetadataRequest(topics=[], include_cluster_authorized_operations=True)


def _topic_pages(ids: Ids, *, all_of_them: bool = False) -> Message:
    names = () if all_of_them else ids
    return describe_topic_partitions.DescribeTopicPartitionsRequest(
        topics=[describe_topic_partitions.TopicRequest(name) for name in sorted(names)]
    )


def _producers(_: Ids) -> Message:
    return describe_producers.DescribeProducersRequest(
        topics=[describe_producers.TopicRequest(name, [0]) for name in NAMED]
    )


def commit_of(group: str, ids: Ids) -> offset_commit.OffsetCommitRequest:
    """A commit from outside of the group."""
    partition = offset_commit.OffsetCommitRequestPartition(0, committed_offset=1)
    return offset_commit.OffsetCommitRequest(
        group_id=group,
        topics=[
            offset_commit.OffsetCommitRequestTopic(name, ids[name], [partition]) for name in NAMED
        ],
    )


def _offset_fetch(ids: Ids, *, everything: bool = False) -> Message:
    topics = offset_fetch.OffsetFetchRequestTopics
    return offset_fetch.OffsetFetchRequest(
        groups=[
            offset_fetch.OffsetFetchRequestGroup(
                group,
                topics=None if everything else [topics(name, ids[name], [0]) for name in NAMED],
            )
            for group in (GROUP, HIDDEN_GROUP)
        ]
    )


def _offset_fetch_of_one(group: str, *, everything: bool = False) -> Message:
    topics = [offset_fetch.OffsetFetchRequestTopic(name, [0]) for name in NAMED]
    return offset_fetch.OffsetFetchRequest(group, topics=None if everything else topics)


def _offset_delete(_: Ids) -> Message:
    return offset_delete.OffsetDeleteRequest(
        GROUP,
        [
            offset_delete.OffsetDeleteRequestTopic(
                name, [offset_delete.OffsetDeleteRequestPartition(0)]
            )
            for name in NAMED
        ],
    )


def _join(_: Ids) -> Message:
    return join_group.JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=STRANGER,
        protocol_type="consumer",
        protocols=[join_group.JoinGroupRequestProtocol("range", b"")],
    )


CREATING_REQUESTS: tuple[Request, ...] = (
    Request(
        "Metadata that creates",
        lambda _: metadata.MetadataRequest(
            [metadata.MetadataRequestTopic(name=name) for name in (NEW_TOPIC, TOPIC)]
        ),
        changes=True,
    ),
)
"""Requests that create topics where the cluster is told to."""
REQUESTS: tuple[Request, ...] = (
    Request("Produce", produce_of),
    Request("Fetch", _fetch),
    Request("ListOffsets", _list_offsets),
    Request("OffsetForLeaderEpoch", _epochs),
    Request("Metadata", _metadata),
    Request("Metadata by id", lambda ids: _metadata(ids, by_id=True), oldest=12),
    Request("Metadata of all topics", lambda _: all_topics(operations=True), oldest=8),
    Request("Metadata of the cluster", _metadata_of_cluster, oldest=8, newest=10),
    Request("DescribeTopicPartitions", _topic_pages),
    Request("DescribeTopicPartitions of all", lambda ids: _topic_pages(ids, all_of_them=True)),
    Request("DescribeProducers", _producers),
    Request(
        "InitProducerId",
        lambda _: init_producer_id.InitProducerIdRequest(None, 1_000),
    ),
    Request("OffsetCommit", lambda ids: commit_of(GROUP, ids)),
    Request("OffsetCommit, hidden group", lambda ids: commit_of(HIDDEN_GROUP, ids)),
    Request("OffsetFetch", lambda _: _offset_fetch_of_one(GROUP), newest=7),
    Request("OffsetFetch, hidden group", lambda _: _offset_fetch_of_one(HIDDEN_GROUP), newest=7),
    Request(
        "OffsetFetch of all topics",
        lambda _: _offset_fetch_of_one(GROUP, everything=True),
        oldest=2,
        newest=7,
    ),
    Request("OffsetFetch of groups", _offset_fetch, oldest=8),
    Request(
        "OffsetFetch of groups, all topics",
        lambda ids: _offset_fetch(ids, everything=True),
        oldest=8,
    ),
    Request("OffsetDelete", _offset_delete, changes=True),
    Request(
        "FindCoordinator",
        lambda _: find_coordinator.FindCoordinatorRequest(key=GROUP),
        newest=3,
    ),
    Request(
        "FindCoordinator, hidden group",
        lambda _: find_coordinator.FindCoordinatorRequest(key=HIDDEN_GROUP),
        newest=3,
    ),
    Request(
        "FindCoordinator of groups",
        lambda _: find_coordinator.FindCoordinatorRequest(coordinator_keys=list(GROUPS)),
        oldest=4,
    ),
    Request("JoinGroup", _join),
    Request(
        "SyncGroup",
        lambda _: sync_group.SyncGroupRequest(
            GROUP, 1, STRANGER, protocol_type="consumer", protocol_name="range"
        ),
    ),
    Request("Heartbeat", lambda _: heartbeat.HeartbeatRequest(GROUP, 1, STRANGER)),
    Request(
        "LeaveGroup",
        lambda _: leave_group.LeaveGroupRequest(
            GROUP, STRANGER, [leave_group.MemberIdentity(STRANGER)]
        ),
    ),
    Request(
        "DescribeGroups",
        lambda _: describe_groups.DescribeGroupsRequest(
            list(GROUPS), include_authorized_operations=True
        ),
    ),
    Request("ListGroups", lambda _: list_groups.ListGroupsRequest()),
    Request(
        "DeleteGroups",
        lambda _: delete_groups.DeleteGroupsRequest(list(GROUPS)),
        changes=True,
    ),
)
"""The requests of producers, consumers and groups."""
