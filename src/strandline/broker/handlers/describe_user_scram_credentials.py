"""DescribeUserScramCredentials: no user has a password.

Source: KIP-554."""

from collections import Counter

from strandline.broker.context import RequestContext
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """An empty list of all; an error for each user that is named."""
    named = Counter(one.name for one in request.users or ())
    return DescribeUserScramCredentialsResponse(
        results=[
            _missing(user) if count == 1 else _repeated(user) for user, count in named.items()
        ],
    )


def _missing(user: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=Error.RESOURCE_NOT_FOUND,
        error_message=f"user {user!r} has no SCRAM credentials",
    )


def _repeated(user: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=Error.DUPLICATE_RESOURCE,
        error_message=f"the request names user {user!r} twice",
    )
