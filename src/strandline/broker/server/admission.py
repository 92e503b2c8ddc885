"""Decides which clients come in: by the broker's limits, and by what their listener wants of them.

Why:    one address, one user, or a thousand clients that never log in may not keep others out.
How:    a client's socket --limits of all, of its address's rate, of its address--> refused, or
        --TLS: handshake, limit of its user--> a connection. Above a bound on clients that have not
        logged in, the one that has taken the longest time is closed. During a drill only the
        request that ends it comes in.
Owns:   the handshakes, the counts of connections by address and user, the clients that have not
        logged in, the sockets whose end is delayed.
Source: design section 5; docs/decisions/0069-access.md."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable
from typing import Protocol

from strandline.base.clock import Clock
from strandline.broker.operations.log_budget import LogBudget
from strandline.broker.quotas.address_rates import AddressRates
from strandline.broker.server.connection import ClientStream, Connection
from strandline.broker.server.connection_counts import ConnectionCounts
from strandline.broker.server.limits import ServerLimits
from strandline.broker.server.listening import ListenerTerms
from strandline.network.handshakes import Handshakes
from strandline.network.streams import TlsStream
from strandline.protocol.apis import API_KEYS
from strandline.security.audit.audit_log import AuditLog
from strandline.security.audit.event import AuditEvent, EventKind
from strandline.security.session import ANONYMOUS, Session

ISOLATE_KEY = API_KEYS["IsolateBroker"]
REFUSED_OPEN_MS = 1_000
"""How long a broker that is cut off keeps a connection open: for the request to end this."""
REFUSED_OPEN_MAX = 16
"""And so many at the same time."""
DELAYED_MAX = 1_000
"""Connections beyond the rates of their addresses that wait for their end; more end at once."""
BY_CERTIFICATE = "TLS"
"""The mechanism of a client's certificate, as the audit log names it."""


def has_user(session: Session) -> bool:
    """Whether the client has proved who it is."""
    return session.is_authenticated and session.principal is not ANONYMOUS


def of_user(session: Session) -> str:
    """What a line of the log says of connections of the user."""
    return f"of {session.principal}"


def of_address(session: Session) -> str:
    """The same of the client's address."""
    return f"from {session.host}"


class Opening(Protocol):
    """Opens the connection of a client that comes in."""

    def __call__(
        self, stream: ClientStream, session: Session, *, only_key: int | None
    ) -> Connection:
        """`only_key`: see `Connection`."""


class Admission:
    """See the module. `connection_count`: how many are open."""

    def __init__(
        self,
        clock: Clock,
        limits: ServerLimits,
        opening: Opening,
        *,
        connection_count: Callable[[], int],
        lines: LogBudget,
        audit: AuditLog | None,
        address_rates: AddressRates | None,
    ) -> None:
        self.accepted_count = 0
        self._clock = clock
        self._limits = limits
        self._opening = opening
        self._connection_count = connection_count
        self._lines = lines
        self._audit = audit
        self._address_rates = address_rates
        self._refused_count = 0
        self._fast_count = 0
        self._is_refusing = False
        # Connections beyond the rate of their address, until they are closed.
        self._delayed: set[socket.socket] = set()
        # Those that have not logged in, in the order in which they were opened: {connection: None}.
        self._unknown: dict[Connection, None] = {}
        self._of_address = self._counts(
            limits.connection_count_per_address_max, "connection_count_per_address_max"
        )
        # Without those of clients that have no user.
        self._of_user = self._counts(
            limits.connection_count_per_user_max, "connection_count_per_user_max"
        )
        self._handshakes: Handshakes[ListenerTerms] = Handshakes(
            timeout_ms=limits.handshake_ms,
            count_max=limits.handshake_count_max,
            context_of=ListenerTerms.context,
            on_done=self._on_handshake,
            on_refused=self._tell_refused,
        )

    @property
    def refused_connections(self) -> dict[str, int]:
        """Connections that were refused: {the limit: how many}."""
        return {
            "broker": self._refused_count,
            "address": self._of_address.refused_count,
            "user": self._of_user.refused_count,
            "address-rate": self._fast_count,
        }

    def stop(self) -> None:
        """End what has not come in yet."""
        self._handshakes.stop()
        for sock in list(self._delayed):
            self._end_delayed(sock)

    def refuse(self, *, is_refusing: bool) -> None:
        """See `Server.refuse`."""
        self._is_refusing = is_refusing
        if is_refusing:
            self._handshakes.stop()

    def on_authenticated(self, connection: Connection, before: Session) -> None:
        """See `ConnectionOwner`."""
        self._unknown.pop(connection, None)
        if not before.is_authenticated:
            is_refused = self._is_user_refused(connection.session)
            self._count_user(connection.session)
            if is_refused:
                connection.close()

    def on_closed(self, connection: Connection) -> None:
        """A connection that had come in is no more."""
        self._of_address.remove(of_address(connection.session))
        if has_user(connection.session):
            self._of_user.remove(of_user(connection.session))
        self._unknown.pop(connection, None)

    def on_accepted(self, sock: socket.socket, host: str, terms: ListenerTerms) -> None:
        """A client has come to a listener."""
        open_count = self._connection_count() + self._handshakes.count + len(self._delayed)
        self.accepted_count += 1
        delay_ms = 0 if self._address_rates is None else self._address_rates.delay_ms(host)
        if self._is_refusing and open_count >= REFUSED_OPEN_MAX:
            sock.close()
        elif open_count >= self._limits.connection_count_max:
            sock.close()
            self._refused_count += 1
            text = "refused a connection from %s: %d are open, the limit"
            self._lines.write(logging.WARNING, text, host, open_count)
        elif delay_ms:
            self._end_later(sock, host, delay_ms)
        elif self._is_address_refused(host):
            sock.close()
        elif terms.tls is not None:
            self._handshakes.begin(sock, host, terms)
        else:
            self._let_in(sock, terms.plain_session(host))

    def _end_later(self, sock: socket.socket, host: str, delay_ms: int) -> None:
        """Close a connection that came faster than the rate of its address, after a delay."""
        self._fast_count += 1
        text = "refused a connection from %s: more came in a second than its quota allows"
        self._lines.write(logging.INFO, text, host)
        if len(self._delayed) >= DELAYED_MAX:
            sock.close()
            return
        self._delayed.add(sock)
        self._clock.call_later(delay_ms, lambda: self._end_delayed(sock))

    def _end_delayed(self, sock: socket.socket) -> None:
        self._delayed.discard(sock)
        sock.close()

    def _is_address_refused(self, host: str) -> bool:
        """Whether the address has all the connections that it may have."""
        if self._of_address.count_max >= self._limits.connection_count_max:
            return False  # The limit of all connections is reached first.
        return self._of_address.refuses(f"from {host}", beside=self._handshakes.count_of(host))

    def _is_user_refused(self, session: Session) -> bool:
        """Whether the client's user has all the connections that it may have."""
        return has_user(session) and self._of_user.refuses(of_user(session))

    def _on_handshake(self, sock: ssl.SSLSocket, host: str, terms: ListenerTerms) -> None:
        """A client has proved what its listener wants. Raises ValueError if it may not come in."""
        session = terms.session(sock, host)
        if session.principal is not ANONYMOUS:
            self._audit_login(terms, host, principal=str(session.principal))
        if self._is_user_refused(session):
            sock.close()
        else:
            self._let_in(TlsStream(sock), session)

    def _let_in(self, stream: ClientStream, session: Session) -> None:
        only_key = ISOLATE_KEY if self._is_refusing else None
        connection = self._opening(stream, session, only_key=only_key)
        self._of_address.add(of_address(session))
        self._count_user(session)
        if not session.is_authenticated:
            self._note_unknown(connection)
        if not self._is_refusing:
            return
        self._clock.call_later(REFUSED_OPEN_MS, connection.close)

    def _note_unknown(self, connection: Connection) -> None:
        """Make room for a client that has yet to log in, at the cost of the one that has taken the
        longest time for it."""
        if len(self._unknown) >= self._limits.login_count_max:
            slowest = next(iter(self._unknown))
            slowest.close(f"more than {self._limits.login_count_max} clients have not logged in")
        self._unknown[connection] = None

    def _counts(self, count_max: int, limit_key: str) -> ConnectionCounts:
        return ConnectionCounts(
            count_max=count_max,
            limit_key=limit_key,
            tell=lambda line: self._lines.write(logging.WARNING, "%s", line),
            now_ms=self._clock.monotonic_ms,
        )

    def _count_user(self, session: Session) -> None:
        if has_user(session):
            self._of_user.add(of_user(session))

    def _tell_refused(self, host: str, terms: ListenerTerms, reason: str) -> None:
        text = "closed the connection from %s at listener %s: %s"
        self._lines.write(logging.INFO, text, host, terms.name, reason)
        self._audit_login(terms, host, refusal=reason)

    def _audit_login(
        self, terms: ListenerTerms, host: str, *, principal: str = "", refusal: str = ""
    ) -> None:
        """A line about a client's certificate. `refusal`: why it may not come in."""
        if self._audit is not None:
            self._audit.add(
                AuditEvent(
                    kind=EventKind.LOGIN,
                    is_allowed=not refusal,
                    principal=principal,
                    listener=terms.name,
                    address=host,
                    mechanism=BY_CERTIFICATE,
                    details=(("reason", refusal),) if refusal else (),
                )
            )
