"""Asks up to which offset buckets have the records of partitions.

How:    the first broker that answers and has buckets reads them: all brokers have the same ones.
Source: decisions 0027 and 0061."""

from collections.abc import Iterable

from strandline.client.cluster import Client
from strandline.client.wire.side_by_side import look_at_each
from strandline.protocol.messages.describe_exports import (
    DescribeExportsRequest,
    DescribeExportsResponse,
    ExportedPartition,
    ExportsTopic,
)

READ_MS = 1_500
"""A bucket that has not answered by then is told as one that does not."""


def describe_exports(
    client: Client, partitions: Iterable[tuple[str, int]]
) -> dict[tuple[str, int], list[ExportedPartition]]:
    """{partition: what each bucket has of it}; nothing without buckets, or if no broker answers."""
    topics: dict[str, list[int]] = {}
    for topic, index in partitions:
        topics.setdefault(topic, []).append(index)
    request = DescribeExportsRequest(
        topics=[ExportsTopic(name, indexes) for name, indexes in topics.items()],
        timeout_ms=READ_MS,
    )
    for broker in client.metadata().brokers:
        answer = look_at_each(client, [broker], request, DescribeExportsResponse).get(broker)
        if answer is not None and not answer.error_code and answer.partitions:
            found: dict[tuple[str, int], list[ExportedPartition]] = {}
            for one in answer.partitions:
                found.setdefault((one.topic, one.partition), []).append(one)
            return found
    return {}
