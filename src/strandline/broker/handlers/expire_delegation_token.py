"""ExpireDelegationToken: there are no delegation tokens; each request is refused.

Source: KIP-48."""

from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)

NO_TIME = -1


async def handle(
    request: ExpireDelegationTokenRequest, context: RequestContext
) -> ExpireDelegationTokenResponse:
    """Refuse, as Kafka does on a listener without authentication."""
    return ExpireDelegationTokenResponse(
        error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, expiry_timestamp_ms=NO_TIME
    )
