"""A client of a cluster: finds its controller and the leaders of partitions.

Why:    leadership moves; a command wants an answer, or one line with the reason.
How:    the client reads metadata when it needs it and does not keep it: an answer that the metadata
        is out of date leads to a new attempt.
Source: design section 3."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar, cast

from strandline.base.errors import ApiError
from strandline.client.brokers import Brokers
from strandline.client.errors import CannotConnectError, ClientError, refusal
from strandline.client.operations.no_controller import why_no_controller
from strandline.client.views import TopicView
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error, is_retriable
from strandline.protocol.table import Message


class Refusable(Protocol):
    """An answer with one error for the whole request."""

    @property
    def error_code(self) -> int:
        """Of `protocol.errors`; 0 for none."""

    @property
    def error_message(self) -> str | None:
        """A text that says more than the code, if there is one."""


A = TypeVar("A", bound=Refusable)
T = TypeVar("T")

UNKNOWN_TOPIC_GRACE_MS = 500
SOON_MS = 1_000
"""How long `ask_controller_soon` looks for a controller before it asks why there is none."""


class Client(Brokers):
    """See the module. `timeout_ms` bounds every operation as a whole, retries included."""

    def find_controller(self, *, deadline_ms: int) -> BrokerId:
        """The broker that takes commands for the whole cluster."""
        controller = self.metadata(deadline_ms=deadline_ms).controller
        if controller not in self._brokers:
            raise refusal(Error.LEADER_NOT_AVAILABLE, "the cluster's controller")
        return controller

    def ask_controller(
        self, request: Message, response: type[A], subject: str, deadline_ms: int | None = None
    ) -> A:
        """Ask the controller, until it answers or time is over. Raises ApiError, which names
        `subject`, where it refuses; ClientError where there is no answer."""

        def ask(controller: BrokerId, until: int) -> A:
            schema = cast("type[Message]", response)
            answer = self.ask(controller, request, schema, deadline_ms=until)
            assert isinstance(answer, response)
            if answer.error_code:
                raise refusal(answer.error_code, subject, answer.error_message)
            return answer

        return self.attempt_at_controller(ask, deadline_ms)

    def ask_controller_soon(self, request: Message, response: type[A], subject: str) -> A:
        """The same for a question that an operator asks in an outage: if too few of the
        controller's voters answer, this fails soon, with the reason, and not after the whole
        timeout. An election is waited for."""
        until = self.transport.monotonic_ms() + min(self.timeout_ms, SOON_MS)
        try:
            return self.ask_controller(request, response, subject, until)
        except (CannotConnectError, ApiError) as error:
            if isinstance(error, ApiError) and not is_retriable(error.code):
                raise
            return self.ask_controller(request, response, subject)

    def attempt_at_controller(
        self, operation: Callable[[BrokerId, int], T], deadline_ms: int | None = None
    ) -> T:
        """Run `operation(controller, deadline)` as `attempt` does. If time runs out because too
        few of the controller's voters are up, the ClientError names the missing ones."""
        try:
            return self.attempt(
                lambda until: operation(self.find_controller(deadline_ms=until), until), deadline_ms
            )
        except (CannotConnectError, ApiError) as error:
            if isinstance(error, ApiError) and not is_retriable(error.code):
                raise
            why = why_no_controller(self)
            if not why:
                raise
            raise ClientError(why) from error

    def leaders(
        self, topic: str, partitions: Sequence[int] | None = None, *, deadline_ms: int
    ) -> dict[int, BrokerId]:
        """{partition: leader} of the partitions asked for, or of all; waits until all have one."""

        def look(until: int) -> dict[int, BrokerId]:
            view = self.topic(topic, deadline_ms=until)
            wanted = range(len(view.partitions)) if partitions is None else partitions
            for index in wanted:
                if not 0 <= index < len(view.partitions):
                    raise ClientError(
                        f"topic {topic} has no partition {index}: its partitions are 0 to "
                        f"{len(view.partitions) - 1}"
                    )
                if view.partitions[index].leader not in self._brokers:
                    raise refusal(Error.LEADER_NOT_AVAILABLE, f"partition {topic}-{index}")
            return {index: view.partitions[index].leader for index in wanted}

        return self.attempt(look, deadline_ms)

    def topic(self, name: str, *, deadline_ms: int | None = None) -> TopicView:
        """One topic; raises ClientError when there is none."""
        # A topic made a moment ago may not have reached the broker that is asked.
        grace_ms = self.transport.monotonic_ms() + UNKNOWN_TOPIC_GRACE_MS

        def look(until: int) -> TopicView:
            view = self.metadata([name], deadline_ms=until).topics.get(name)
            code = Error.UNKNOWN_TOPIC_OR_PARTITION if view is None else view.error_code
            if code == Error.UNKNOWN_TOPIC_OR_PARTITION:
                if self.transport.monotonic_ms() >= grace_ms:
                    raise ClientError(f"topic {name} does not exist; see `strandline topic list`")
                raise refusal(code, f"topic {name}")
            assert view is not None
            if code not in (Error.NONE, Error.LEADER_NOT_AVAILABLE):
                raise refusal(code, f"topic {name}")
            return view

        return self.attempt(look, deadline_ms)
