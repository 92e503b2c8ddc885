"""Regions that write to a topic whose leaders follow the writers, from each leader.

Source: decision 0014."""

from strandline.client.cluster import Client
from strandline.client.views import TopicView
from strandline.client.wire.side_by_side import look_at_each
from strandline.protocol.messages.describe_writers import (
    DescribeWritersRequest,
    DescribeWritersResponse,
    WrittenPartition,
)


def describe_writers(client: Client, topic: TopicView) -> list[WrittenPartition]:
    """By partition; without those whose leader does not answer soon."""
    found: dict[int, WrittenPartition] = {}
    leaders = {one.leader for one in topic.partitions if one.leader >= 0}
    request = DescribeWritersRequest(topic=topic.name)
    for leader, answer in look_at_each(client, leaders, request, DescribeWritersResponse).items():
        led = {one.index for one in topic.partitions if one.leader == leader}
        found |= {one.partition: one for one in answer.partitions if one.partition in led}
    return [found[index] for index in sorted(found)]
