"""Topics by their ids: Metadata, Produce, Fetch, commits, DeleteTopics."""

from uuid import UUID

from differential.cases.groups import ready
from differential.cases.produce import CONTENTS
from differential.cases.registry import case, create, produce_request, wait_for_leaders
from differential.peer import Peer
from strandline.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from strandline.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from strandline.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from strandline.protocol.table import NO_ID

NO_TOPIC = UUID(int=0x1234_5678_9ABC)
BY_NAME, BY_ID = range(8, 10), 10
"""Versions of OffsetCommit and OffsetFetch."""


def id_of(peer: Peer, topic: str) -> UUID:
    """The id of a topic that is there."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
    answer = peer.ask_silently(request, 12)
    assert isinstance(answer, MetadataResponse)
    return answer.topics[0].topic_id


@case
def metadata(peer: Peer) -> None:
    """By an id that is there, by one that is not, by an id beside the name."""
    create(peer, "ids-metadata", partitions=2)
    there = id_of(peer, "ids-metadata")
    for version in range(12, 14):
        for label, topic_id, name in (
            ("there", there, None),
            ("unknown", NO_TOPIC, None),
            ("both", there, "ids-metadata"),
        ):
            topics = [MetadataRequestTopic(topic_id, name)]
            request = MetadataRequest(topics=topics, allow_auto_topic_creation=False)
            peer.ask(f"v{version} {label}", request, version)


@case
def created_by_metadata(peer: Peer) -> None:
    """A topic that a client asks for is made, unless the client does not want that."""
    for version in (1, 4, 8, 9, 12, 13):
        name = f"auto-{version}"
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        peer.ask_silently(request, version)
        wait_for_leaders(peer, name)
        peer.ask(f"v{version} afterwards", request, version)
    for label, name in (("illegal", "a/b"), ("long", "n" * 250), ("empty", "")):
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
        peer.ask(label, request, 12)
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name="auto-13"), MetadataRequestTopic(name="a/b")],
        include_topic_authorized_operations=True,
        include_cluster_authorized_operations=True,
    )
    peer.ask("with operations", request, 10)
    peer.ask("no topics", MetadataRequest(topics=[]), 12)


@case
def produce_and_fetch(peer: Peer) -> None:
    """By each version with ids; ids that are none."""
    create(peer, "ids-produce")
    there = id_of(peer, "ids-produce")
    for label, topic_id in (("there", there), ("unknown", NO_TOPIC), ("none", NO_ID)):
        written = produce_request("", CONTENTS["one record"]())
        written.topic_data[0].topic_id = topic_id
        peer.ask(f"written, {label}", written, 13)
    for version in range(13, 19):
        for label, topic_id, partition in (
            ("there", there, 0),
            ("missing partition", there, 9),
            ("unknown", NO_TOPIC, 0),
            ("none", NO_ID, 0),
        ):
            one = FetchPartition(partition=partition, partition_max_bytes=1 << 20)
            request = FetchRequest(topics=[FetchTopic(topic_id=topic_id, partitions=[one])])
            peer.ask(f"read by v{version}, {label}", request, version)


@case
def commits(peer: Peer) -> None:
    """Offsets by name in the newest versions with names, and by id."""
    create(peer, "ids-commits")
    ready(peer)
    there = id_of(peer, "ids-commits")
    places = (("there", "ids-commits", there), ("unknown", "ids-missing", NO_TOPIC))
    for version in (*BY_NAME, BY_ID):
        for label, name, topic_id in (*places, ("none", "", NO_ID)):
            partition = OffsetCommitRequestPartition(committed_offset=version)
            topic = OffsetCommitRequestTopic(name, topic_id, [partition])
            request = OffsetCommitRequest(f"ids-{version}", topics=[topic])
            peer.ask(f"committed by v{version}, {label}", request, version)
        asked = [OffsetFetchRequestTopics(name, topic_id, [0, 9]) for _, name, topic_id in places]
        for label, topics in (("some", asked), ("all", None)):
            groups = [OffsetFetchRequestGroup(f"ids-{version}", topics=topics)]
            peer.ask(f"read by v{version}, {label}", OffsetFetchRequest(groups=groups), version)


@case
def delete(peer: Peer) -> None:
    """By an id, again, by one that is none, by neither id nor name, twice in one request."""
    create(peer, "ids-delete")
    create(peer, "ids-delete-twice")
    there, twice = id_of(peer, "ids-delete"), id_of(peer, "ids-delete-twice")
    for label, states in (
        ("unknown", [DeleteTopicState(topic_id=NO_TOPIC)]),
        ("both", [DeleteTopicState("ids-delete", there)]),
        ("neither", [DeleteTopicState()]),
        ("deleted", [DeleteTopicState(topic_id=there)]),
        ("deleted again", [DeleteTopicState(topic_id=there)]),
        ("the same twice", [DeleteTopicState(topic_id=twice), DeleteTopicState(topic_id=twice)]),
        ("by name and id", [DeleteTopicState("ids-delete-twice"), DeleteTopicState(None, twice)]),
    ):
        peer.ask(label, DeleteTopicsRequest(topics=states, timeout_ms=10_000), 6)
