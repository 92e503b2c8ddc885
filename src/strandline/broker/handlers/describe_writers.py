"""DescribeWriters: from where partitions led here are written, and why they are led here.

How:    as of the last look of `following`; a partition that has not been looked at is left out.
Source: decision 0014."""

from strandline.broker.context import RequestContext
from strandline.broker.leadership.writers import Told
from strandline.protocol.messages.describe_writers import (
    DescribeWritersRequest,
    DescribeWritersResponse,
    WriterRegion,
    WrittenPartition,
)


async def handle(
    request: DescribeWritersRequest, context: RequestContext
) -> DescribeWritersResponse:
    """Describe what is known of one topic; nothing of a topic that there is not."""
    services = context.services
    topic = services.cluster.topics.get(request.topic)
    led = services.writers.told
    return DescribeWritersResponse(
        partitions=[
            _describe(one.index, led[one.group])
            for one in (() if topic is None else topic.partitions)
            if one.group in led
        ]
    )


def _describe(index: int, told: Told) -> WrittenPartition:
    order = sorted(told.bytes.items(), key=lambda one: (-one[1], one[0]))
    return WrittenPartition(
        partition=index,
        code=told.verdict.code,
        text=told.verdict.text,
        regions=[WriterRegion(region, int(size)) for region, size in order],
    )
