"""Disk usage of brokers, from the brokers themselves.

Source: KIP-113, KIP-827."""

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.client.cluster import Client
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)


@dataclass(frozen=True, slots=True)
class DiskView:
    """The disk of a broker: size of its logs, and of its file system. Not how full it is:
    reserved space is neither used nor usable. `describe_balance` reports that."""

    logs_bytes: int
    total_bytes: int
    usable_bytes: int


def describe_disk(client: Client, broker: BrokerId) -> DiskView | None:
    """The disk of one broker; None where it does not say."""
    result = _ask(client, broker, DescribeLogDirsRequest(topics=None))
    if result is None:
        return None
    logs = (log.partition_size for topic in result.topics for log in topic.partitions)
    return DiskView(sum(logs), result.total_bytes, result.usable_bytes)


def log_sizes(
    client: Client, broker: BrokerId, topic: str, partitions: Sequence[int]
) -> dict[int, int]:
    """{partition: bytes of its log on this broker}, as far as it says."""
    asked = DescribableLogDirTopic(topic, list(partitions))
    result = _ask(client, broker, DescribeLogDirsRequest(topics=[asked]))
    return {
        log.partition_index: log.partition_size
        for one in ([] if result is None else result.topics)
        for log in one.partitions
    }


def _ask(
    client: Client, broker: BrokerId, request: DescribeLogDirsRequest
) -> DescribeLogDirsResult | None:
    answer = client.look(broker, request, DescribeLogDirsResponse)
    if answer is None or answer.error_code:
        return None
    if len(answer.results) != 1 or answer.results[0].error_code:
        return None
    return answer.results[0]
