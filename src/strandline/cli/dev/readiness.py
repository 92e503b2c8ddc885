"""Waits until the brokers of a local cluster serve, and checks whether one does.

How:    a broker serves when it answers Metadata on its Kafka port with itself among the brokers and
        a controller known; a whole cluster serves when each of its brokers names all of them. The
        wait ends if the process of a broker ends.
Source: design section 3; reference ecosystem 0.7 (never say "ready" before it is)."""

from collections.abc import Callable, Collection, Sequence

from strandline.base.errors import OperatorError
from strandline.cli.dev.plan import LOOPBACK, PlannedBroker
from strandline.client.errors import ClientError
from strandline.client.wire.connection import Connection
from strandline.client.wire.transport import Transport
from strandline.model.cluster import Address
from strandline.protocol.messages.metadata import MetadataRequest, MetadataResponse

POLL_MS = 20
ANSWER_TIMEOUT_MS = 1_000


class NotServingError(OperatorError):
    """Brokers that run, and did not serve in time."""


class Probe:
    """Asks one broker again and again, over one connection while it lasts."""

    def __init__(
        self, transport: Transport, broker: PlannedBroker, *, timeout_ms: int = ANSWER_TIMEOUT_MS
    ) -> None:
        self.broker = broker
        self._transport = transport
        self._timeout_ms = timeout_ms
        self._connection: Connection | None = None

    def serves(self, others: Collection[int] = ()) -> bool:
        """Whether it answers now, knows a controller, itself, and `others`."""
        try:
            if self._connection is None or self._connection.is_closed:
                self._connection = Connection(
                    self._transport,
                    Address(LOOPBACK, self.broker.kafka_port),
                    client_id="strandline-dev",
                    timeout_ms=self._timeout_ms,
                )
            answer = self._connection.call(
                MetadataRequest(topics=[], allow_auto_topic_creation=False),
                MetadataResponse,
                self._timeout_ms,
            )
        except ClientError:
            return False
        known = {one.node_id for one in answer.brokers}
        return answer.controller_id in known and known.issuperset((self.broker.id, *others))

    def close(self) -> None:
        """End its connection."""
        if self._connection is not None:
            self._connection.close()


def wait_serving(
    transport: Transport,
    brokers: Sequence[PlannedBroker],
    *,
    others: Collection[int],
    timeout_ms: int,
    check_alive: Callable[[PlannedBroker], None],
) -> None:
    """Wait until each of `brokers` serves and knows `others`; raises NotServingError after the
    time.

    `check_alive` raises when the process of a broker has ended."""
    until = transport.monotonic_ms() + timeout_ms
    waiting = [Probe(transport, broker) for broker in brokers]
    try:
        while True:
            # All are looked at, so that one that died is found while another is slow.
            for probe in waiting:
                check_alive(probe.broker)
            while waiting and waiting[0].serves(others):
                waiting.pop(0).close()
            if not waiting:
                return
            if transport.monotonic_ms() >= until:
                ids = ", ".join(str(probe.broker.id) for probe in waiting)
                raise NotServingError(
                    f"broker {ids} did not serve within {timeout_ms // 1000} s; see its log"
                )
            transport.sleep_ms(POLL_MS)
    finally:
        for probe in waiting:
            probe.close()
