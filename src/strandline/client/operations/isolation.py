"""Has brokers cut themselves off for a while, and ends that.

Source: docs/decisions/0019-drills.md."""

from strandline.client.cluster import Client
from strandline.client.errors import CannotConnectError, refusal
from strandline.client.wire.connection import Connection
from strandline.model.cluster import Address
from strandline.model.ids import BrokerId
from strandline.protocol.messages.isolate_broker import (
    IsolateBrokerRequest,
    IsolateBrokerResponse,
)


def isolate_broker(
    client: Client,
    broker: BrokerId,
    *,
    delay_ms: int,
    duration_ms: int,
    validate_only: bool = False,
) -> None:
    """Have a broker cut itself off after a delay, for a while; it reconnects by itself. Raises
    the reason of a refusal. Not retried, because a lost answer may mean that it was accepted."""
    request = IsolateBrokerRequest(delay_ms, duration_ms, validate_only)
    answer = client.ask(broker, request, IsolateBrokerResponse, deadline_ms=client.look_deadline())
    if answer.error_code:
        raise refusal(answer.error_code, f"broker {broker}", answer.error_message)


def end_isolation(client: Client, address: Address, *, timeout_ms: int) -> bool:
    """End a broker's drill; returns whether it was in one. Raises CannotConnectError if it does
    not answer: it may be down, or of a release that takes no such request."""
    connection = Connection(
        client.transport,
        address,
        client_id="strandline",
        timeout_ms=timeout_ms,
        negotiates=False,  # A broker that is cut off takes this request alone.
    )
    try:
        request = IsolateBrokerRequest(ends=True)
        return connection.call(request, IsolateBrokerResponse, timeout_ms).was_in_drill
    finally:
        connection.close()


def takes_clients(client: Client, address: Address, *, timeout_ms: int) -> bool:
    """Whether a broker answers a client that connects now."""
    try:
        Connection(client.transport, address, client_id="strandline", timeout_ms=timeout_ms).close()
    except CannotConnectError:
        return False
    return True
