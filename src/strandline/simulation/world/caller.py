"""The client's end of one request, without a socket.

Source: design section 5."""

from collections.abc import Callable

from strandline.broker.context import RequestContext
from strandline.broker.server.outbox import FilePart
from strandline.security.sasl.mechanism import Mechanism
from strandline.security.session import Session


def answer_bytes(context: RequestContext) -> bytes:
    """The answer as it goes to the client, length included; empty where there is none."""
    return b"".join(
        part.file.pread(part.size_bytes, part.position)
        if isinstance(part, FilePart)
        else bytes(part)  # type: ignore[arg-type]
        for part in context.parts
    )


class Caller:
    """The client's end of one request: an `AnswerSink`."""

    client_host = "/10.0.0.1"
    session = Session(host="10.0.0.1")
    exchange: Mechanism | None = None
    is_logging_in = False

    def __init__(
        self,
        on_answer: Callable[[bytes], None],
        on_closed: Callable[[str], None],
        number: int,
    ) -> None:
        self.number = number
        self.is_open = True
        self._on_answer = on_answer
        self._on_closed = on_closed

    def on_answered(self, context: RequestContext) -> None:
        """See `context.AnswerSink`."""
        if self.is_open:
            self.is_open = False
            self._on_answer(answer_bytes(context))

    def authenticate(self, session: Session) -> None:
        """See `context.AnswerSink`."""
        self.session = session

    def on_unblocked(self) -> None:
        """See `context.AnswerSink`."""

    def mute(self, duration_ms: int) -> None:
        """See `context.AnswerSink`: it asks once."""

    def close(self, reason: str) -> None:
        """See `context.AnswerSink`."""
        if self.is_open:
            self.is_open = False
            self._on_closed(reason)
