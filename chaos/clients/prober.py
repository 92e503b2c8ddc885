"""Asks each broker again and again for what it may not get: records without a right or without a
login, a login with a wrong password, a port between brokers without a certificate.

Why:    a right must hold at any time: also while a broker starts, follows, or is cut off.
How:        stranger   a user without any rule: Fetch and ListOffsets
            eastern    a user who may read through brokers of the east alone, at others
            nameless   TLS without a login;  plain   neither;  wrong   another password
            peer       the port between brokers, without a certificate
        Each answer other than a refusal goes to the ledger as Leaked.
Source: docs/internals/chaos.md."""

import socket
import ssl
import struct
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

from chaos.clients.command_line import Arguments, Stop, parse_arguments
from chaos.clients.direct import connect, transport_of
from chaos.hosts import BROKERS, KAFKA_PORT, RPC_PORT, Host
from chaos.ledger import Client, Failed, Leaked, LedgerWriter, Probed, now_ns
from strandline.base.errors import StrandlineError
from strandline.client.wire.connection import Connection
from strandline.client.wire.login import Login, LoginError
from strandline.protocol.errors import Error
from strandline.protocol.headers import encode_request
from strandline.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from strandline.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from strandline.protocol.messages.metadata import MetadataRequest

TIMEOUT_MS = 1_500
WRONG_TIMEOUT_MS = 7_000
"""A failed login is answered after up to 5 s."""
ROUND_S = 0.5
WRONG_EVERY = 8
EASTERN_REGION = "east"
REFUSED, AWAY = "refused", "out of reach"
TLS_ALERT = b"\x15"
LATEST = -1
FETCH_BYTES = 1 << 20


class LeakError(Exception):
    """A broker gave what it must not."""


class Prober:
    """See the module."""

    def __init__(self, told: Arguments, ledger: LedgerWriter) -> None:
        assert told.client_config is not None
        self._topics = told.topics
        self._ledger = ledger
        self._random = Random(told.name)
        self._users = {
            user: transport_of(_beside(told.client_config, user))
            for user in ("stranger", "eastern")
        }
        wrong = transport_of(told.client_config)
        assert isinstance(wrong.login, Login)
        wrong.login = replace(wrong.login, password="wrong")
        self._wrong = wrong
        self._tls = ssl.create_default_context(cafile=str(told.client_config.with_name("ca.pem")))
        self._peers = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._peers.check_hostname = False
        self._peers.verify_mode = ssl.CERT_NONE
        self._open: dict[tuple[str, int], Connection] = {}
        self._rounds = 0

    def round(self) -> None:
        """Every broker, every way."""
        self._rounds += 1
        for host in BROKERS:
            self._probe("stranger", host, lambda host=host: self._as_user("stranger", host))  # type: ignore[misc]
            if host.region != EASTERN_REGION:
                self._probe("eastern", host, lambda host=host: self._as_user("eastern", host))  # type: ignore[misc]
            self._probe("nameless", host, lambda host=host: self._without_login(host))  # type: ignore[misc]
            self._probe("plain", host, lambda host=host: self._in_the_clear(host))  # type: ignore[misc]
            self._probe("peer", host, lambda host=host: self._as_peer(host))  # type: ignore[misc]
            if self._rounds % WRONG_EVERY == 0:
                self._probe("wrong", host, lambda host=host: self._with_wrong_password(host))  # type: ignore[misc]

    def _probe(self, what: str, host: Host, probe: Callable[[], str]) -> None:
        try:
            outcome = probe()
        except LeakError as leak:
            self._ledger.add(Leaked(now_ns(), what, host.broker, str(leak)))
            return
        self._ledger.add(Probed(now_ns(), what, host.broker, outcome))

    def _as_user(self, user: str, host: Host) -> str:
        try:
            connection = self._connection(user, host.broker)
            fetched = connection.call(self._fetch(), FetchResponse, TIMEOUT_MS)
            listed = connection.call(self._list(), ListOffsetsResponse, TIMEOUT_MS)
        except LoginError as error:
            self._ledger.add(Failed(now_ns(), f"a login at broker {host.broker}", str(error)))
            return AWAY
        except StrandlineError:
            return AWAY
        for topic in fetched.responses:
            for one in topic.partitions:
                if one.error_code != Error.TOPIC_AUTHORIZATION_FAILED or one.records:
                    raise LeakError(f"{topic.topic}-{one.partition_index}: error {one.error_code}")
        for listing in listed.topics:
            for each in listing.partitions:
                if each.error_code != Error.TOPIC_AUTHORIZATION_FAILED or each.offset >= 0:
                    raise LeakError(f"{listing.name}: error {each.error_code}, {each.offset}")
        return REFUSED

    def _without_login(self, host: Host) -> str:
        """A request on a connection that has not logged in must end it."""
        try:
            with (
                socket.create_connection((host.address, KAFKA_PORT), TIMEOUT_MS / 1000) as sock,
                self._tls.wrap_socket(sock, server_hostname=host.address) as secured,
            ):
                return _expect_nothing(secured, self._request())
        except OSError:
            return AWAY

    def _in_the_clear(self, host: Host) -> str:
        try:
            with socket.create_connection((host.address, KAFKA_PORT), TIMEOUT_MS / 1000) as sock:
                return _expect_nothing(sock, self._request())
        except OSError:
            return AWAY

    def _as_peer(self, host: Host) -> str:
        """Without a certificate, nothing comes of the port between brokers."""
        try:
            with (
                socket.create_connection((host.address, RPC_PORT), TIMEOUT_MS / 1000) as sock,
                self._peers.wrap_socket(sock) as secured,
            ):
                return _expect_nothing(secured, b"\0" * 64)
        except OSError:
            return AWAY

    def _with_wrong_password(self, host: Host) -> str:
        try:
            connect(self._wrong, host.broker, WRONG_TIMEOUT_MS).close()
        except LoginError:
            return REFUSED
        except StrandlineError:
            return AWAY
        raise LeakError("a login with a wrong password")

    def _connection(self, user: str, broker: int) -> Connection:
        known = self._open.get((user, broker))
        if known is None or known.is_closed:
            known = self._open[user, broker] = connect(self._users[user], broker, TIMEOUT_MS)
        return known

    def _request(self) -> bytes:
        """Metadata or Fetch, with its size."""
        message = self._random.choice((MetadataRequest(topics=None), self._fetch()))
        version = 9 if isinstance(message, MetadataRequest) else 12
        frame = bytes(encode_request(message, version, correlation_id=1, client_id="probe"))
        return struct.pack(">i", len(frame)) + frame

    def _fetch(self) -> FetchRequest:
        offset = self._random.choice((0, self._random.randrange(1_000)))
        return FetchRequest(
            max_bytes=FETCH_BYTES,
            topics=[
                FetchTopic(
                    name,
                    partitions=[
                        FetchPartition(n, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
                        for n in range(count)
                    ],
                )
                for name, count in self._topics.items()
            ],
        )

    def _list(self) -> ListOffsetsRequest:
        return ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name, [ListOffsetsPartition(n, timestamp=LATEST) for n in range(count)]
                )
                for name, count in self._topics.items()
            ],
        )


def _beside(config: Path, user: str) -> Path:
    return config.with_name(f"{user}.conf")


def _expect_nothing(sock: socket.socket, sent: bytes) -> str:
    """Send, and expect the end or an alert of TLS. Raises LeakError and OSError."""
    sock.settimeout(TIMEOUT_MS / 1000)
    try:
        sock.sendall(sent)
        got = sock.recv(64)
    except TimeoutError:
        return AWAY
    except OSError:
        return REFUSED
    if got and not got.startswith(TLS_ALERT):
        raise LeakError(f"an answer of {len(got)} bytes or more: {got[:16].hex()}")
    return REFUSED


def main() -> None:
    """Until SIGTERM."""
    told = parse_arguments()
    stop = Stop()
    prober = Prober(told, LedgerWriter(told.ledger, Client(told.name)))
    while not stop.is_asked:
        prober.round()
        time.sleep(ROUND_S)


if __name__ == "__main__":
    main()
