"""Connections to the brokers of a cluster: picks a broker, retries until a deadline.

Why:    brokers die and addresses change; a command wants an answer, or one line with the reason.
How:    `attempt` repeats an operation after a retriable error, with growing pauses, until the
        deadline. A connection opens at first use and is dropped when it fails.
Owns:   one connection per broker; the brokers of the last metadata.
Source: design section 3."""

from collections.abc import Callable, Iterable, Sequence
from typing import Self, TypeVar

from strandline.base.errors import ApiError, StrandlineError
from strandline.client.errors import CannotConnectError
from strandline.client.views import BrokerView, ClusterView, read_cluster
from strandline.client.wire.connection import Connection
from strandline.client.wire.transport import TcpTransport, Transport
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.protocol.errors import is_retriable
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from strandline.protocol.table import Message

R = TypeVar("R", bound=Message)
T = TypeVar("T")

DEFAULT_TIMEOUT_MS = 30_000
CONNECT_TIMEOUT_MS = 3_000
FIRST_CONTACT_MS = 2_000
"""How long a client keeps trying until its first connection: the address may be wrong."""
ANSWER_PATIENCE_MS = 2_000
"""How long `ask_any` waits for one broker before it asks the next."""
LOOK_MS = 2_000
"""How long `look` waits for its optional answer."""
PAUSE_FIRST_MS = 20
PAUSE_MAX_MS = 500


class Brokers:
    """See the module. `timeout_ms` bounds every operation as a whole, retries included."""

    def __init__(
        self,
        bootstrap: Sequence[Address],
        *,
        client_id: str = "strandline",
        timeout_ms: int = DEFAULT_TIMEOUT_MS,
        transport: Transport | None = None,
    ) -> None:
        self.transport: Transport = transport or TcpTransport()
        self.timeout_ms = timeout_ms
        self._bootstrap = tuple(bootstrap)
        self._client_id = client_id
        self._connections: dict[Address, Connection] = {}
        self._brokers: dict[BrokerId, BrokerView] = {}
        self._made_ms = self.transport.monotonic_ms()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    @property
    def bootstrap(self) -> tuple[Address, ...]:
        """The addresses that are contacted first."""
        return self._bootstrap

    # ---- time ------------------------------------------------------------------------------------

    def deadline(self) -> int:
        """The deadline of an operation that starts now, in monotonic ms."""
        return self.transport.monotonic_ms() + self.timeout_ms

    def look_deadline(self) -> int:
        """The deadline of an optional request that starts now, in monotonic ms."""
        return self.transport.monotonic_ms() + LOOK_MS

    def left_ms(self, deadline_ms: int) -> int:
        """Time left, at least 1."""
        return max(deadline_ms - self.transport.monotonic_ms(), 1)

    def wait_throttled(self, connections: Iterable[Connection] | None = None) -> None:
        """Wait as brokers have told this client, over these connections or its own: it is over a
        quota. Before a deadline begins, since waiting is no failure."""
        told = self._connections.values() if connections is None else connections
        wait_ms = max((one.throttled_ms for one in told), default=0)
        if wait_ms:
            self.transport.sleep_ms(wait_ms)

    def attempt(self, operation: Callable[[int], T], deadline_ms: int | None = None) -> T:
        """Run `operation(deadline)` until it succeeds, fails with an error that no retry mends, or
        the deadline is near."""
        until = self.deadline() if deadline_ms is None else deadline_ms
        pause_ms = PAUSE_FIRST_MS
        while True:
            try:
                return operation(until)
            except (CannotConnectError, ApiError) as error:
                if isinstance(error, ApiError) and not is_retriable(error.code):
                    raise
                if not self._connections:
                    until = min(until, self._made_ms + FIRST_CONTACT_MS)
                if self.transport.monotonic_ms() + pause_ms >= until:
                    raise
            self.transport.sleep_ms(pause_ms)
            pause_ms = min(2 * pause_ms, PAUSE_MAX_MS)

    # ---- requests -------------------------------------------------------------------------------

    def metadata(
        self, topics: Sequence[str] | None = (), *, deadline_ms: int | None = None
    ) -> ClusterView:
        """The cluster, with the named topics, or all topics (None). Creates no topic."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=one) for one in topics],
            allow_auto_topic_creation=False,
        )
        answer = self.attempt(
            lambda until: self.ask_any(request, MetadataResponse, deadline_ms=until), deadline_ms
        )
        view = read_cluster(answer)
        self._brokers = view.brokers
        return view

    def ask_any(self, request: Message, response: type[R], *, deadline_ms: int) -> R:
        """Ask any broker: open connections first, then every known address."""
        known = [broker.address for broker in self._brokers.values()]
        up = [one.address for one in self._connections.values() if not one.is_closed]
        failures: list[str] = []
        for address in dict.fromkeys((*up, *self._bootstrap, *known)):
            try:
                connection = self.connection_to(address, deadline_ms)
                patience_ms = min(self.left_ms(deadline_ms), ANSWER_PATIENCE_MS)
                return connection.call(request, response, patience_ms)
            except CannotConnectError as error:
                failures.append(str(error))
        raise CannotConnectError(f"cannot reach the cluster: {'; '.join(failures[:3])}")

    def ask(self, broker: BrokerId, request: Message, response: type[R], *, deadline_ms: int) -> R:
        """Ask one broker."""
        connection = self.connection(broker, deadline_ms)
        return connection.call(request, response, self._patience(deadline_ms))

    def look(self, broker: BrokerId, request: Message, response: type[R]) -> R | None:
        """Ask one broker an optional question; None if it does not answer soon."""
        try:
            return self.ask(broker, request, response, deadline_ms=self.look_deadline())
        except StrandlineError:
            return None

    def ask_best_informed(self, request: Message, response: type[R], *, deadline_ms: int) -> R:
        """Ask a question that every broker can answer: the controller, which knows most, or any
        broker if there is no controller."""
        controller = self.metadata(deadline_ms=deadline_ms).controller
        if controller in self._brokers:
            return self.ask(controller, request, response, deadline_ms=deadline_ms)
        return self.ask_any(request, response, deadline_ms=deadline_ms)

    def connection(self, broker: BrokerId, deadline_ms: int) -> Connection:
        """The connection to a broker, at its address in the latest metadata."""
        return self.connection_to(self._address_of(broker), deadline_ms)

    def connection_to(self, address: Address, deadline_ms: int) -> Connection:
        """The connection to an address; a new one if the last one is closed or has answers
        outstanding."""
        connection = self._connections.get(address)
        if connection is not None and connection.due_count:
            # Its caller timed out: late answers must not be taken for answers to later requests.
            connection.close()
        if connection is None or connection.is_closed:
            connection = self._connections[address] = self._connect(address, deadline_ms)
        return connection

    def open_connection(self, broker: BrokerId, deadline_ms: int) -> Connection:
        """A new connection for requests that stay in flight; the caller closes it."""
        return self._connect(self._address_of(broker), deadline_ms)

    def _connect(self, address: Address, deadline_ms: int) -> Connection:
        timeout_ms = min(self.left_ms(deadline_ms), CONNECT_TIMEOUT_MS)
        return Connection(self.transport, address, client_id=self._client_id, timeout_ms=timeout_ms)

    def _address_of(self, broker: BrokerId) -> Address:
        known = self._brokers.get(broker)
        if known is None:
            raise CannotConnectError(f"broker {broker} is not in the cluster")
        return known.address

    def _patience(self, deadline_ms: int) -> int:
        """How long to wait for one broker: a third of the timeout, so that a retry is possible."""
        return min(self.left_ms(deadline_ms), max(self.timeout_ms // 3, 1))
