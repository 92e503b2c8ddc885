"""How much room brokers have, asked of themselves.

Source: KIP-113, KIP-827."""

from dataclasses import dataclass

from strandline.base.errors import StrandlineError
from strandline.client.cluster import Client
from strandline.model.ids import BrokerId
from strandline.protocol.messages.describe_log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
)


@dataclass(frozen=True, slots=True)
class DiskView:
    """The disk of a broker: what its logs take, and the file system that holds them."""

    logs_bytes: int
    total_bytes: int
    usable_bytes: int

    @property
    def used_percent(self) -> int:
        """Of the file system, by whomever."""
        return 100 - 100 * self.usable_bytes // max(self.total_bytes, 1)


def describe_disk(client: Client, broker: BrokerId) -> DiskView | None:
    """The disk of one broker; None where it does not say."""
    until = client.look_deadline()
    request = DescribeLogDirsRequest(topics=None)
    try:
        answer = client.ask(broker, request, DescribeLogDirsResponse, deadline_ms=until)
    except StrandlineError:
        return None
    if answer.error_code or len(answer.results) != 1 or answer.results[0].error_code:
        return None
    result = answer.results[0]
    logs = (log.partition_size for topic in result.topics for log in topic.partitions)
    return DiskView(sum(logs), result.total_bytes, result.usable_bytes)
