"""CreateDelegationToken: there are no delegation tokens; each request is refused.

Source: KIP-48."""

from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)

USER, ANONYMOUS = "User", "ANONYMOUS"
NO_TIME = -1


async def handle(
    request: CreateDelegationTokenRequest, context: RequestContext
) -> CreateDelegationTokenResponse:
    """Refuse, as Kafka does on a listener without authentication."""
    return CreateDelegationTokenResponse(
        error_code=Error.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED,
        principal_type=USER,
        principal_name=ANONYMOUS,
        token_requester_principal_type=USER,
        token_requester_principal_name=ANONYMOUS,
        issue_timestamp_ms=NO_TIME,
        expiry_timestamp_ms=NO_TIME,
        max_timestamp_ms=NO_TIME,
    )
