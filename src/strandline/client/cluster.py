"""A cluster as a client sees it: brokers and leaders, connections to them, retries until a
deadline.

Why:    leaders move and brokers die; whoever produces, reads or administers wants an answer or one
        line that says why there is none.
How:    metadata is asked for when needed and thrown away when an answer says that it is old.
        `attempt` runs an operation again while it fails in a way that may pass, with growing
        pauses, until the deadline. Connections are made when first used and dropped when they fail.
Owns:   one connection per broker; the metadata last seen.
Source: design section 3."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeVar, cast
from uuid import UUID

from strandline.base.errors import ApiError, StrandlineError
from strandline.client.errors import CannotConnectError, ClientError, refusal
from strandline.client.wire.connection import Connection
from strandline.client.wire.transport import TcpTransport, Transport
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error, is_retriable
from strandline.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from strandline.protocol.table import Message


class Refusable(Protocol):
    """An answer that says as a whole what stands against what was asked."""

    @property
    def error_code(self) -> int:
        """Of `protocol.errors`; 0 where nothing does."""

    @property
    def error_message(self) -> str | None:
        """In words, where there are more than the code says."""


R = TypeVar("R", bound=Message)
A = TypeVar("A", bound=Refusable)
T = TypeVar("T")

DEFAULT_TIMEOUT_MS = 30_000
CONNECT_TIMEOUT_MS = 3_000
FIRST_CONTACT_MS = 2_000
"""How long brokers are tried of which none has ever been reached: the address may just be wrong."""
ANSWER_PATIENCE_MS = 2_000
"""How long a broker may take to say what it knows before another one is asked."""
LOOK_MS = 2_000
"""How long a broker may take to say what can be done without."""
UNKNOWN_TOPIC_GRACE_MS = 500
PAUSE_FIRST_MS = 20
PAUSE_MAX_MS = 500


@dataclass(frozen=True, slots=True)
class BrokerView:
    """A broker, as metadata tells it. `rack` is its region; empty when not said."""

    id: BrokerId
    address: Address
    rack: str


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition. `leader` is -1 while there is none."""

    index: int
    leader: BrokerId
    epoch: int
    replicas: tuple[int, ...]
    in_sync: tuple[int, ...]
    offline: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class TopicView:
    """A topic; `partitions[i].index == i`. `error_code` is not 0 where there is no answer for
    it."""

    name: str
    id: UUID
    is_internal: bool
    error_code: int
    partitions: tuple[PartitionView, ...]


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What one broker said. `controller` is -1 while nobody knows it."""

    cluster_id: str
    controller: BrokerId
    brokers: dict[BrokerId, BrokerView]
    topics: dict[str, TopicView] = field(default_factory=dict)


class Client:
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

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    # ---- time ------------------------------------------------------------------------------------

    def deadline(self) -> int:
        """When an operation that begins now has to be over, in monotonic ms."""
        return self.transport.monotonic_ms() + self.timeout_ms

    def look_deadline(self) -> int:
        """When a broker that is asked now for what can be done without has to have answered."""
        return self.transport.monotonic_ms() + LOOK_MS

    def left_ms(self, deadline_ms: int) -> int:
        """Time left, at least 1."""
        return max(deadline_ms - self.transport.monotonic_ms(), 1)

    def attempt(self, operation: Callable[[int], T], deadline_ms: int | None = None) -> T:
        """Run `operation(deadline)` until it succeeds, fails for good, or time is over."""
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

    # ---- whom to ask -----------------------------------------------------------------------------

    def metadata(
        self, topics: Sequence[str] | None = (), *, deadline_ms: int | None = None
    ) -> ClusterView:
        """The cluster with these topics, all topics (None), or none. Creates nothing."""
        request = MetadataRequest(
            topics=None if topics is None else [MetadataRequestTopic(name=one) for one in topics],
            allow_auto_topic_creation=False,
        )
        answer = self.attempt(
            lambda until: self.ask_any(request, MetadataResponse, deadline_ms=until), deadline_ms
        )
        view = _cluster_view(answer)
        self._brokers = view.brokers
        return view

    def ask_any(self, request: Message, response: type[R], *, deadline_ms: int) -> R:
        """Ask whichever broker answers: connections that are up first, then every address known."""
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
        """Ask one broker for what can be done without; None where it does not say soon."""
        try:
            return self.ask(broker, request, response, deadline_ms=self.look_deadline())
        except StrandlineError:
            return None

    def ask_best_informed(self, request: Message, response: type[R], *, deadline_ms: int) -> R:
        """Ask what every broker can answer: the controller where there is one, else any broker."""
        controller = self.metadata(deadline_ms=deadline_ms).controller
        if controller in self._brokers:
            return self.ask(controller, request, response, deadline_ms=deadline_ms)
        return self.ask_any(request, response, deadline_ms=deadline_ms)

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

    def attempt_at_controller(
        self, operation: Callable[[BrokerId, int], T], deadline_ms: int | None = None
    ) -> T:
        """Run `operation(controller, deadline)` as `attempt` does. Where time is over because too
        few of the controller's voters are left, the ClientError says who is missing."""
        from strandline.client.operations.no_controller import why_no_controller

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

    def connection(self, broker: BrokerId, deadline_ms: int) -> Connection:
        """The connection to a broker that metadata told of."""
        return self.connection_to(self._address_of(broker), deadline_ms)

    def connection_to(self, address: Address, deadline_ms: int) -> Connection:
        """The connection to an address; made anew when it has ended."""
        connection = self._connections.get(address)
        if connection is not None and connection.due_count:
            # Whoever asked has given up on the answers: they must not be taken for others.
            connection.close()
        if connection is None or connection.is_closed:
            connection = self._connections[address] = self._connect(address, deadline_ms)
        return connection

    def open_connection(self, broker: BrokerId, deadline_ms: int) -> Connection:
        """A connection of the caller's own, who closes it: for requests that stay in flight."""
        return self._connect(self._address_of(broker), deadline_ms)

    def _connect(self, address: Address, deadline_ms: int) -> Connection:
        timeout_ms = min(self.left_ms(deadline_ms), CONNECT_TIMEOUT_MS)
        return Connection(self.transport, address, client_id=self._client_id, timeout_ms=timeout_ms)

    def _address_of(self, broker: BrokerId) -> Address:
        known = self._brokers.get(broker)
        if known is None:
            raise CannotConnectError(f"broker {broker} is not there")
        return known.address

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
                        f"topic {topic} has partitions 0 to {len(view.partitions) - 1}, not {index}"
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
                    raise ClientError(f"topic {name}: there is none; see `strandline topic list`")
                raise refusal(code, f"topic {name}")
            assert view is not None
            if code not in (Error.NONE, Error.LEADER_NOT_AVAILABLE):
                raise refusal(code, f"topic {name}")
            return view

        return self.attempt(look, deadline_ms)

    def _patience(self, deadline_ms: int) -> int:
        """How long one broker may take to do something before it is tried anew."""
        return min(self.left_ms(deadline_ms), max(self.timeout_ms // 3, 1))


def _cluster_view(answer: MetadataResponse) -> ClusterView:
    brokers = {
        BrokerId(one.node_id): BrokerView(
            BrokerId(one.node_id), Address(one.host, one.port), one.rack or ""
        )
        for one in answer.brokers
    }
    return ClusterView(
        cluster_id=answer.cluster_id or "",
        controller=BrokerId(answer.controller_id),
        brokers=dict(sorted(brokers.items())),
        topics={one.name: _topic_view(one) for one in answer.topics if one.name is not None},
    )


def _topic_view(topic: MetadataResponseTopic) -> TopicView:
    partitions = sorted(topic.partitions, key=lambda one: one.partition_index)
    return TopicView(
        name=topic.name or "",
        id=topic.topic_id,
        is_internal=topic.is_internal,
        error_code=topic.error_code,
        partitions=tuple(
            PartitionView(
                index=one.partition_index,
                leader=BrokerId(one.leader_id),
                epoch=one.leader_epoch,
                replicas=tuple(one.replica_nodes),
                in_sync=tuple(one.isr_nodes),
                offline=tuple(one.offline_replicas),
            )
            for one in partitions
        ),
    )
