"""DescribeLeadership: partitions that are led here and should be led elsewhere, and why not yet.

Source: docs/decisions/0012-leaders.md."""

from strandline.broker.context import RequestContext
from strandline.protocol.messages.describe_leadership import (
    DescribeLeadershipRequest,
    DescribeLeadershipResponse,
    LeaderWait,
)

SHOWN_MAX = 1_000


async def handle(
    _: DescribeLeadershipRequest, context: RequestContext
) -> DescribeLeadershipResponse:
    """Describe the first of these partitions."""
    found = sorted(context.services.failback.waits(), key=lambda one: (one.topic, one.index))
    return DescribeLeadershipResponse(
        waits=[
            LeaderWait(one.topic, one.index, one.preferred, one.code, one.text)
            for one in found[:SHOWN_MAX]
        ]
    )
