"""DescribeUserScramCredentials: which passwords users have; never the passwords.

Source: KIP-554."""

from collections import Counter
from collections.abc import Mapping

from strandline.broker.context import RequestContext
from strandline.model.access import ScramSecret
from strandline.protocol.errors import Error
from strandline.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from strandline.security.sasl.secrets import MECHANISM_NUMBERS

_NUMBERS = {name: number for number, name in MECHANISM_NUMBERS.items()}


async def handle(
    request: DescribeUserScramCredentialsRequest, context: RequestContext
) -> DescribeUserScramCredentialsResponse:
    """All users, or those that are named; an error for a named one without a password."""
    known: dict[str, list[ScramSecret]] = {}
    for secret in context.services.cluster.access.secrets.values():
        known.setdefault(secret.user, []).append(secret)
    if not request.users:
        results = [_found(user, known) for user in sorted(known)]
    else:
        named = Counter(one.name for one in request.users)
        results = [
            _repeated(user) if count > 1 else _found(user, known) for user, count in named.items()
        ]
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def _found(user: str, known: Mapping[str, list[ScramSecret]]) -> DescribeUserScramCredentialsResult:
    if user not in known:
        return DescribeUserScramCredentialsResult(
            user=user,
            error_code=Error.RESOURCE_NOT_FOUND,
            error_message=f"user {user!r} has no SCRAM credentials",
        )
    return DescribeUserScramCredentialsResult(
        user=user,
        error_message=None,
        credential_infos=[
            CredentialInfo(_NUMBERS[one.mechanism], one.iterations)
            for one in sorted(known[user], key=lambda one: one.mechanism)
        ],
    )


def _repeated(user: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(
        user=user,
        error_code=Error.DUPLICATE_RESOURCE,
        error_message=f"the request names user {user!r} twice",
    )
