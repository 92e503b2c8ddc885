"""In-sync replicas, from each partition's leader: only it knows them.

Source: docs/ARCHITECTURE.md (elsewhere Metadata names live replicas)."""

from collections.abc import Mapping

from strandline.client.cluster import Client
from strandline.client.views import TopicView
from strandline.model.ids import BrokerId
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)


def in_sync_replicas(client: Client, topic: TopicView) -> Mapping[int, tuple[BrokerId, ...]]:
    """{partition: its in-sync replicas}, for partitions whose leader answers."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=topic.name)], allow_auto_topic_creation=False
    )
    found: dict[int, tuple[BrokerId, ...]] = {}
    for leader in sorted({one.leader for one in topic.partitions if one.leader >= 0}):
        answer = client.look(leader, request, MetadataResponse)
        if answer is None:
            continue
        for one in (each for told in answer.topics for each in told.partitions):
            if one.leader_id == leader:
                found[one.partition_index] = tuple(map(BrokerId, one.isr_nodes))
    return found
