"""From where a topic is written whose leaders follow the writers, asked of each leader.

Source: decision 0014."""

from strandline.client.cluster import Client, TopicView
from strandline.protocol.messages.describe_writers import (
    DescribeWritersRequest,
    DescribeWritersResponse,
    WrittenPartition,
)


def describe_writers(client: Client, topic: TopicView) -> list[WrittenPartition]:
    """By partition; those whose leader does not answer soon are left out."""
    found: dict[int, WrittenPartition] = {}
    for leader in sorted({one.leader for one in topic.partitions if one.leader >= 0}):
        led = {one.index for one in topic.partitions if one.leader == leader}
        request = DescribeWritersRequest(topic=topic.name)
        answer = client.look(leader, request, DescribeWritersResponse)
        if answer is None:
            continue
        found |= {one.partition: one for one in answer.partitions if one.partition in led}
    return [found[index] for index in sorted(found)]
