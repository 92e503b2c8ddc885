"""Checks that a broker of a local cluster may go for good, and unregisters it.

Why:    a broker that still holds replicas, or votes in the controller, would take them with it.
How:    asks the controller through the other brokers. A broker that the cluster does not know, as
        after a start that failed, may go at once.
Source: decision 0011."""

from collections.abc import Sequence

from strandline.base.errors import ApiError, OperatorError
from strandline.cli.dev.plan import LOOPBACK, PlannedBroker
from strandline.client.cluster import Client
from strandline.client.operations.balance import describe_balance
from strandline.client.operations.broker_configs import controller_voters
from strandline.client.operations.broker_removal import unregister_broker, why_it_votes
from strandline.client.wire.transport import Transport
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.protocol.errors import Error

ASK_TIMEOUT_MS = 30_000
SILENCE_TIMEOUT_MS = 60_000
"""How long the controller may take to see that a broker has stopped."""
POLL_MS = 100


class Departure:
    """One broker that is to go. `others`: the brokers that stay, which are asked."""

    def __init__(
        self, transport: Transport, broker: PlannedBroker, others: Sequence[PlannedBroker]
    ) -> None:
        self._transport = transport
        self._broker = BrokerId(broker.id)
        self._addresses = [Address(LOOPBACK, one.kafka_port) for one in others]

    def require_empty(self) -> tuple[int, ...]:
        """Raises OperatorError if the broker was not decommissioned, still holds replicas, or votes
        in the controller; returns the voters, which are the seeds from then on."""
        with self._client() as client:
            found = describe_balance(client).brokers
            voters = controller_voters(client, client.metadata().brokers)
        for one in found:
            if one.broker_id != self._broker:
                continue
            if not one.is_leaving:
                raise OperatorError(
                    f"broker {self._broker} is not decommissioned: strandline broker decommission "
                    f"{self._broker}"
                )
            if one.replica_count:
                noun = "replica" if one.replica_count == 1 else "replicas"
                raise OperatorError(
                    f"broker {self._broker} still holds {one.replica_count} {noun}: wait until "
                    "`strandline broker status` says that it is empty"
                )
        if vote := why_it_votes(self._broker, voters):
            raise OperatorError(vote)
        return tuple(sorted(voters))

    def unregister(self) -> None:
        """Have the cluster forget the stopped broker, once the controller sees that it is down."""
        until = self._transport.monotonic_ms() + SILENCE_TIMEOUT_MS
        with self._client() as client:
            while True:
                try:
                    return unregister_broker(client, self._broker)
                except ApiError as error:
                    if error.code == Error.BROKER_ID_NOT_REGISTERED:
                        return None
                    is_late = self._transport.monotonic_ms() >= until
                    if error.code != Error.POLICY_VIOLATION or is_late:
                        raise
                self._transport.sleep_ms(POLL_MS)

    def _client(self) -> Client:
        return Client(self._addresses, timeout_ms=ASK_TIMEOUT_MS, transport=self._transport)
