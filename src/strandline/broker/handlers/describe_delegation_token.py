"""DescribeDelegationToken: there are no delegation tokens; each request is refused.

Source: KIP-48."""

from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)


async def handle(
    request: DescribeDelegationTokenRequest, context: RequestContext
) -> DescribeDelegationTokenResponse:
    """Refuse, as Kafka does on a listener without authentication."""
    return DescribeDelegationTokenResponse(error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)
