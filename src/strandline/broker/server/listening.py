"""One socket that accepts Kafka clients, with the terms of its listener.

Why:    a broker has several listeners, which differ in names, protection and authentication.
How:    ACCEPTING --out of descriptors or memory, or faster than a rate allows--> RESTING (clients
            wait in the kernel) --> ACCEPTING
Owns:   the listening socket.
Source: design section 5; docs/decisions/0069-access.md."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from strandline.base.clock import Clock
from strandline.base.errors import OperatorError
from strandline.broker.server.connection_rate import ConnectionRate
from strandline.config.principal_rules import PrincipalRules
from strandline.model.cluster import ONLY_LISTENER
from strandline.model.networks import canonical_host
from strandline.network.sockets import why_not_bound
from strandline.security.certificates import distinguished_name
from strandline.security.session import ANONYMOUS, Principal, Session
from strandline.security.tls import ServerTls

LISTEN_BACKLOG = 1024
KAFKA_PORT_KEY = "[listener] kafka_port"
ACCEPT_PAUSE_MS = 500
TOLD_INTERVAL_MS = 60_000
"""How often the log tells that clients wait because of a rate."""

_log = logging.getLogger("strandline.broker")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerTerms:
    """A listener's name, its TLS if it has any, the rules that make a principal of a certificate's
    name, and whether its clients log in by SASL."""

    name: str = ONLY_LISTENER
    tls: ServerTls | None = None
    rules: PrincipalRules = field(default_factory=PrincipalRules)
    has_logins: bool = False

    def plain_session(self, host: str) -> Session:
        """The session of a client that has come in the clear."""
        return Session(listener=self.name, host=host, is_authenticated=not self.has_logins)

    def context(self) -> ssl.SSLContext:
        """For the next handshake; the listener has TLS."""
        assert self.tls is not None
        return self.tls.context

    def session(self, sock: ssl.SSLSocket, host: str) -> Session:
        """The session of a client whose handshake is done. Raises ValueError if it may not come
        in."""
        der = sock.getpeercert(binary_form=True)
        principal = ANONYMOUS
        if der is not None:
            name = distinguished_name(der)
            user = self.rules.principal_name(name)
            if not user:
                raise ValueError(
                    f"no principal_mapping_rules match its certificate's name, {name!r}"
                )
            principal = Principal.user(user)
        return Session(
            principal=ANONYMOUS if self.has_logins else principal,
            listener=self.name,
            host=host,
            is_encrypted=True,
            is_authenticated=not self.has_logins,
        )


async def claim_port(host: str, port: int, *, key: str = KAFKA_PORT_KEY) -> socket.socket:
    """A socket that has the address and does not listen yet. Raises OperatorError with `key`, the
    configuration key of the port.

    A process that has much to do before it serves learns at once that the port is taken."""
    try:
        info = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, kind, protocol, _, address = info[0]
        claimed = socket.socket(family, kind, protocol)
        try:
            claimed.setblocking(False)
            claimed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            claimed.bind(address)
        except OSError:
            claimed.close()
            raise
    except OSError as error:
        raise _cannot_listen(host, port, error, key=key) from error
    return claimed


def _cannot_listen(host: str, port: int, error: OSError, *, key: str) -> OperatorError:
    return OperatorError(f"{key}: cannot listen on {host}:{port}: {why_not_bound(port, error)}")


class ListeningPort:
    """See the module. `on_accepted` gets each client's socket, which does not block, and its
    address. `rates`: those that count here."""

    def __init__(
        self,
        sock: socket.socket,
        terms: ListenerTerms,
        *,
        clock: Clock,
        on_accepted: Callable[[socket.socket, str, ListenerTerms], None],
        rates: Sequence[ConnectionRate] = (),
    ) -> None:
        """Listen on a socket of `claim_port`. Raises OperatorError, and closes it."""
        host, self.port = sock.getsockname()[:2]
        self.terms = terms
        self.delay_count = 0
        """How often clients have waited because of a rate."""
        self._rates = rates
        self._told_ms: int | None = None
        self._socket = sock
        self._clock = clock
        self._on_accepted = on_accepted
        self._loop = asyncio.get_running_loop()
        try:
            sock.listen(LISTEN_BACKLOG)
        except OSError as error:
            sock.close()
            raise _cannot_listen(host, self.port, error, key=KAFKA_PORT_KEY) from error
        self._loop.add_reader(sock.fileno(), self._on_acceptable)

    @property
    def is_closed(self) -> bool:
        """Whether `close` has been called."""
        return self._socket.fileno() < 0

    def close(self) -> None:
        """Accept nothing more."""
        if not self.is_closed:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _on_acceptable(self) -> None:
        while not self.is_closed:
            wait_ms = self._wait_ms()
            if wait_ms:
                self._rest(wait_ms)
                return
            try:
                sock, address = self._socket.accept()
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionAbortedError:
                continue
            except OSError as error:
                self._tell_failed(error)
                self._rest(ACCEPT_PAUSE_MS)
                return
            for rate in self._rates:
                rate.take()
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            self._on_accepted(sock, canonical_host(address[0]), self.terms)

    def _wait_ms(self) -> int:
        """How long the next client has to wait; logged once a minute."""
        if not self._rates:
            return 0
        now_ms = self._clock.monotonic_ms()
        waits_ms = [rate.wait_ms(now_ms) for rate in self._rates]
        wait_ms = max(waits_ms)
        if not wait_ms:
            return 0
        slowest = self._rates[waits_ms.index(wait_ms)]
        self.delay_count += 1
        if self._told_ms is None or now_ms - self._told_ms >= TOLD_INTERVAL_MS:
            self._told_ms = now_ms
            text = "listener %s: new connections wait, there are more than %d per second (%s)"
            _log.warning(text, self.terms.name, slowest.per_s, slowest.key)
        return wait_ms

    def _tell_failed(self, error: OSError) -> None:
        level = logging.WARNING if error.errno in (errno.EMFILE, errno.ENFILE) else logging.ERROR
        _log.log(level, "cannot accept a client: %s", error.strerror)

    def _rest(self, duration_ms: int) -> None:
        """Leave clients in the backlog for a moment."""
        self._loop.remove_reader(self._socket.fileno())

        def accept_again() -> None:
            if not self.is_closed:
                self._loop.add_reader(self._socket.fileno(), self._on_acceptable)

        self._clock.call_later(duration_ms, accept_again)
