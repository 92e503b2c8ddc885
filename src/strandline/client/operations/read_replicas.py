"""Asks how far copies of other clusters' topics are.

How:    every broker answers for the partitions that it has; the leader's answer counts.
Source: decision 0061."""

from collections.abc import Collection

from strandline.client.cluster import Client
from strandline.client.wire.side_by_side import look_at_each
from strandline.protocol.messages.describe_read_replicas import (
    CopiedPartition,
    DescribeReadReplicasRequest,
    DescribeReadReplicasResponse,
)


def describe_read_replicas(client: Client, topics: Collection[str]) -> list[CopiedPartition]:
    """The partitions of these topics that are copies, by topic and partition; those whose brokers
    do not answer soon, or are of an earlier release, are left out."""
    request = DescribeReadReplicasRequest(topics=sorted(topics))
    brokers = client.metadata(sorted(topics)).brokers
    found: dict[tuple[str, int], CopiedPartition] = {}
    answers = look_at_each(client, brokers, request, DescribeReadReplicasResponse)
    for answer in answers.values():
        for one in answer.partitions:
            key = (one.topic, one.partition)
            if one.is_leader or key not in found:
                found[key] = one
    return [found[key] for key in sorted(found)]
