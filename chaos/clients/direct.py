"""Connections to one broker by the product's own client, without retries: what an answer says, is
of the only attempt.

Owns:   nothing."""

from pathlib import Path

from chaos.hosts import KAFKA_PORT, broker_host
from strandline.client.client_config import read_client_config
from strandline.client.wire.connection import Connection
from strandline.client.wire.transport import TcpTransport
from strandline.model.cluster import Address


def transport_of(client_config: Path | None) -> TcpTransport:
    """How a user's connections are made."""
    assert client_config is not None
    config = read_client_config(client_config)
    return TcpTransport(config.tls, login=config.login)


def connect(transport: TcpTransport, broker: int, timeout_ms: int) -> Connection:
    """A connection to a broker, logged in. Raises ClientError."""
    address = Address(broker_host(broker).address, KAFKA_PORT)  # Secure runs have no --cores.
    return Connection(transport, address, client_id="direct", timeout_ms=timeout_ms)
