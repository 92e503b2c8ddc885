"""A mechanism of SASL: bytes in, bytes out, and a principal at its end.

How:    OPEN --`step`--> OPEN, with a challenge;  OPEN --`step`--> DONE, with `principal` set;
        OPEN --`step`--> FAILED: SaslError. If it has a challenge, the client gets that first, and
        its next message fails.
        If `is_slow` is set, the caller runs `step` on a thread.
Source: RFC 4422; decision 0069."""

from typing import Protocol

from strandline.base.errors import StrandlineError
from strandline.security.session import Principal

TOKEN_BYTES_MAX = 64 * 1024
"""The longest message of a client before it is known."""
FAILED = "Authentication failed: invalid user credentials"
"""The answer to every failure: it does not tell a wrong password from an unknown user."""


class SaslError(StrandlineError):
    """The client has not authenticated. The message is for the broker's log.

    challenge: the mechanism's last message to the client, which answers once more.
    is_known:  whether this failure was raised before, with its challenge."""

    def __init__(self, message: str, *, challenge: bytes = b"", is_known: bool = False) -> None:
        super().__init__(message)
        self.challenge = challenge
        self.is_known = is_known


class Mechanism(Protocol):
    """One exchange with one client."""

    name: str
    """As in SaslHandshake."""
    known_user: str
    """The user whom the client says it is, once told, if there is one of this name; else empty. An
    unknown name may be a password in the wrong field."""
    is_refused: bool
    """Whether the client has failed, and was told so by a challenge."""
    principal: Principal | None
    """Set once the client has authenticated."""
    groups: frozenset[str]
    lifetime_ms: int | None
    """How long the authentication holds; None: the mechanism sets no limit."""
    is_slow: bool
    """Whether `step` takes long, so that it must run on a thread."""

    def step(self, token: bytes) -> bytes:
        """Take the client's message; the answer to it. Raises SaslError."""
