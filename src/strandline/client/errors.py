"""What can go wrong for a client, in one line each.

    StrandlineError
    |- ClientError              the answer makes no sense, or the records cannot be sent
    |  |- NotOfferedError       the broker does not know such requests
    |  `- CannotConnectError    no broker was reached, or none answered in time
    `- ApiError(code)           a broker refused; `refusal` words it

Source: STYLE, "Errors"."""

from strandline.base.errors import ApiError, StrandlineError
from strandline.protocol.errors import Error, message_of

_NAMES = {int(error): error.name for error in Error}


class ClientError(StrandlineError):
    """A request cannot be sent, or its answer is unusable."""


class NotOfferedError(ClientError):
    """The broker does not know such requests: it is of another version."""


class CannotConnectError(ClientError):
    """No broker could be reached, or none answered before the deadline."""


def refusal(code: int, subject: str, message: str | None = None) -> ApiError:
    """The error for a refusal: `topic orders: already exists (TOPIC_ALREADY_EXISTS)`. Further lines
    of the message are its details."""
    lines = [" ".join(line.split()) for line in (message or "").splitlines()]
    first, *details = [line for line in lines if line] or [message_of(code)]
    return ApiError(code, f"{subject}: {first} ({_NAMES.get(code, code)})", details)
