"""What a mechanism is: bytes in, bytes out, and a principal at its end.

How:    OPEN --`step`--> OPEN, with a challenge;  OPEN --`step`--> DONE, with `principal` set;
        OPEN --`step`--> FAILED: SaslError
        A mechanism that takes long says so: `work` runs on a thread.
Source: RFC 4422; decision 0069."""

from typing import Protocol

from strandline.base.errors import StrandlineError
from strandline.security.session import Principal

TOKEN_BYTES_MAX = 64 * 1024
"""The longest message of a client before it is known."""
FAILED = "Authentication failed: invalid user credentials"
"""What a client is told of any failure, so that it learns nothing from it."""


class SaslError(StrandlineError):
    """A client has not proved who it is. The message is for the broker's log."""


class Mechanism(Protocol):
    """One exchange with one client."""

    principal: Principal | None
    """Set once the client has proved who it is."""
    groups: frozenset[str]
    lifetime_ms: int | None
    """How long what was proved is good for; None: as long as the broker wants."""
    is_slow: bool
    """Whether `step` takes long, so that it must run on a thread."""

    def step(self, token: bytes) -> bytes:
        """Take the client's message; the answer to it. Raises SaslError."""
