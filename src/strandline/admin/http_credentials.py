"""What a request to the HTTP port shows of its client, and the answer if that is not enough.

Owns:   nothing.
Source: RFC 6750, RFC 7617, RFC 9110 section 11; decision 0069."""

import base64
from http import HTTPStatus

from strandline.admin.http_server import Answer
from strandline.config.other_ports import HEALTH, READ

HEALTH_PATHS = frozenset({"/healthz", "/readyz"})
REALM = "strandline"
_CHALLENGES = (f'Bearer realm="{REALM}"', f'Basic realm="{REALM}", charset="UTF-8"')
_HINT = (
    b"Unauthorized: send a token, as `Authorization: Bearer TOKEN` or as the password of any user\n"
)


def is_open_to(right: str, path: str) -> bool:
    """Whether a client that has this right may see a path: NONE, HEALTH or READ."""
    return right == READ or (right == HEALTH and path in HEALTH_PATHS)


def token_in(authorization: tuple[str, ...]) -> str | None:
    """The token of a request's credentials; None if they are no token."""
    if len(authorization) != 1:
        return None
    scheme, _, value = authorization[0].strip().partition(" ")
    value = value.strip()
    if scheme.lower() == "bearer":
        return value or None
    if scheme.lower() != "basic":
        return None
    try:
        pair = base64.b64decode(value, validate=True).decode()
    except ValueError:
        return None
    return pair.partition(":")[2] or None


def unauthorised(bearer_error: str = "") -> Answer:
    """The answer to a client that must send credentials, or others."""
    bearer, basic = _CHALLENGES
    challenges = (("WWW-Authenticate", bearer + bearer_error), ("WWW-Authenticate", basic))
    return Answer([_HINT], HTTPStatus.UNAUTHORIZED, headers=challenges)
