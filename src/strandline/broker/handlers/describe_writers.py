"""DescribeWriters: which regions write to partitions led here, and why they are led here.

How:    As of the last look of `following`; partitions without a look are left out.
Source: decision 0014."""

from strandline.broker.context import RequestContext
from strandline.broker.leadership.writers import LeaderVerdict
from strandline.protocol.messages.describe_writers import (
    DescribeWritersRequest,
    DescribeWritersResponse,
    WriterRegion,
    WrittenPartition,
)


async def handle(
    request: DescribeWritersRequest, context: RequestContext
) -> DescribeWritersResponse:
    """Describe one topic; empty if it does not exist."""
    services = context.services
    topic = services.cluster.topics.get(request.topic)
    led = services.writers.verdicts
    return DescribeWritersResponse(
        partitions=[
            _describe(one.index, led[one.group])
            for one in (() if topic is None else topic.partitions)
            if one.group in led
        ]
    )


def _describe(index: int, outcome: LeaderVerdict) -> WrittenPartition:
    order = sorted(outcome.bytes.items(), key=lambda one: (-one[1], one[0]))
    return WrittenPartition(
        partition=index,
        code=outcome.verdict.code,
        text=outcome.verdict.text,
        regions=[WriterRegion(region, int(size)) for region, size in order],
    )
