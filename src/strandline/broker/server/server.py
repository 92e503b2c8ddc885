"""Serves the Kafka clients of all listeners and keeps their connections within the broker's bounds.

Why:    one client, or a thousand, may use up neither the memory nor the time of the broker.
How:    Clients come from listening ports, those with TLS by way of a handshake. Above a bound on
        bytes, connections pause until there is room. A sweep closes idle and stalled ones. It uses
        sockets and the running loop, so it exists in the real world only: the simulator hands
        frames to the router itself.
Owns:   the listening ports, the connections, the counts of bytes in hand.
Source: design section 5; reliability reference 4; python-speed reference 2."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from typing import Protocol

from strandline.base.clock import Clock
from strandline.broker.operations.log_budget import LogBudget
from strandline.broker.operations.ticker import Ticker
from strandline.broker.quotas.address_rates import AddressRates
from strandline.broker.server.connection import ClientStream, Connection, RequestRouter
from strandline.broker.server.connection_counts import ConnectionCounts
from strandline.broker.server.connection_rate import ConnectionRate
from strandline.broker.server.inbox import Scratch
from strandline.broker.server.limits import ServerLimits
from strandline.broker.server.listening import ListenerTerms, ListeningPort, claim_port
from strandline.network.handshakes import Handshakes
from strandline.network.streams import TlsStream
from strandline.protocol.apis import API_KEYS
from strandline.security.audit.audit_log import AuditLog
from strandline.security.audit.event import AuditEvent, EventKind
from strandline.security.session import ANONYMOUS, Session

SWEEP_INTERVAL_MS = 1_000
ISOLATE_KEY = API_KEYS["IsolateBroker"]
REFUSED_OPEN_MS = 1_000
"""How long a broker that is cut off keeps a connection open: for the request to end this."""
REFUSED_OPEN_MAX = 16
"""And so many at the same time."""
DELAYED_MAX = 1_000
"""Connections beyond the rates of their addresses that wait for their end; more end at once."""
BY_CERTIFICATE = "TLS"
"""The mechanism of a client's certificate, as the audit log names it."""
RESUME_RATIO_PERCENT = 75
"""Paused connections are read again once at most this share of the bound is in use."""

_log = logging.getLogger("strandline.broker")


def has_user(session: Session) -> bool:
    """Whether the client has proved who it is."""
    return session.is_authenticated and session.principal is not ANONYMOUS


def of_user(session: Session) -> str:
    """What a line of the log says of connections of the user."""
    return f"of {session.principal}"


def of_address(session: Session) -> str:
    """The same of the client's address."""
    return f"from {session.host}"


class Memory(Protocol):
    """What the server needs of replication's memory budget."""

    @property
    def has_room(self) -> bool:
        """Whether another produce request should be read."""

    def wait(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when there is room again."""


class Server:
    """See the module; a `ConnectionOwner`."""

    def __init__(
        self,
        *,
        router: RequestRouter,
        clock: Clock,
        limits: ServerLimits,
        memory: Memory,
        audit: AuditLog | None = None,
        address_rates: AddressRates | None = None,
    ) -> None:
        self.router = router
        self.limits = limits
        self.scratch = Scratch()
        self.inflight_bytes = 0
        self.partial_bytes = 0
        self.port = 0
        self._refused_count = 0
        self._clock = clock
        self.now_ms = clock.monotonic_ms
        self.at_pass_end = clock.at_pass_end
        self._memory = memory
        self._audit = audit
        self.accepted_count = 0
        self._address_rates = address_rates
        self._fast_count = 0
        # Connections beyond the rate of their address, until they are closed.
        self._delayed: set[socket.socket] = set()
        self._connections: set[Connection] = set()
        # Those that have not logged in, in the order in which they were opened: {connection: None}.
        self._unknown: dict[Connection, None] = {}
        # In the order in which they paused, for want of room: {connection: None}.
        self._paused: dict[Connection, None] = {}
        # Those whose clients are over a quota: no room makes them read.
        self._muted: dict[Connection, None] = {}
        self._is_waiting_for_memory = False
        self._is_resume_due = False
        self._is_refusing = False
        self._ports: list[ListeningPort] = []
        self._lines = LogBudget(_log, clock.monotonic_ms)
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
        self._sweeping = Ticker(
            clock,
            self._sweep,
            interval_ms=SWEEP_INTERVAL_MS,
            log=_log,
            failure="cannot sweep idle connections",
        )

    @property
    def connection_count(self) -> int:
        """Connections that are open."""
        return len(self._connections)

    @property
    def refused_connections(self) -> dict[str, int]:
        """Connections that were refused: {the limit: how many}."""
        return {
            "broker": self._refused_count,
            "address": self._of_address.refused_count,
            "user": self._of_user.refused_count,
            "address-rate": self._fast_count,
        }

    @property
    def muted_count(self) -> int:
        """Connections that are not read, because their clients are over a quota."""
        return len(self._muted)

    @property
    def delayed_accepts(self) -> int:
        """How often clients have waited because too many came in a second."""
        return sum(one.delay_count for one in self._ports)

    async def start(
        self,
        host: str,
        port: int,
        *,
        claimed: socket.socket | None = None,
        terms: ListenerTerms | None = None,
        rates: Sequence[ConnectionRate] = (),
    ) -> None:
        """Listen, on the socket of `claim_port` if there is one; once for each listener. Raises
        OperatorError."""
        sock = claimed if claimed is not None else await claim_port(host, port)
        listening = ListeningPort(
            sock,
            terms or ListenerTerms(),
            clock=self._clock,
            on_accepted=self._on_accepted,
            rates=rates,
        )
        self._ports.append(listening)
        if len(self._ports) == 1:
            self.port = listening.port
            self._sweeping.start()

    def stop(self) -> None:
        """Close everything."""
        self._sweeping.stop()
        for listening in self._ports:
            listening.close()
        self._ports.clear()
        self._handshakes.stop()
        for connection in list(self._connections):
            connection.close()
        for sock in list(self._delayed):
            self._end_delayed(sock)

    def refuse(self, *, is_refusing: bool) -> None:
        """Close every connection and refuse new ones, but for the request that ends a drill; or
        accept them again."""
        self._is_refusing = is_refusing
        if is_refusing:
            self._handshakes.stop()
            for connection in list(self._connections):
                connection.close()

    # ---- what connections ask of their owner -----------------------------------------------------

    def has_room(self, *, is_producer: bool) -> bool:
        """Whether another request may be taken in."""
        return self.inflight_bytes < self.limits.inflight_bytes_max and (
            not is_producer or self._memory.has_room
        )

    def count_inflight(self, change_bytes: int) -> None:
        """Bytes of requests in work have changed."""
        self.inflight_bytes += change_bytes
        if (
            change_bytes < 0
            and self._paused
            and not self._is_resume_due
            and self.inflight_bytes * 100 <= self.limits.inflight_bytes_max * RESUME_RATIO_PERCENT
        ):
            self._is_resume_due = True
            self._clock.call_soon(self._resume_paused)

    def count_partial(self, change_bytes: int) -> None:
        """Memory of partial frames has changed; above the bound the slowest connections are closed,
        as many as it takes."""
        self.partial_bytes += change_bytes
        limit = self.limits.partial_bytes_max
        if change_bytes <= 0 or self.partial_bytes <= limit:
            return
        begun = [one for one in self._connections if one.partial_since_ms >= 0]
        for slowest in sorted(begun, key=lambda one: one.partial_since_ms):
            slowest.close(
                f"unfinished requests take more than {limit} bytes, and this one has been coming "
                "in for the longest time"
            )
            if self.partial_bytes <= limit:
                return

    def tell_closed(self, host: str, reason: str) -> None:
        """Log why a connection is closed."""
        self._lines.write(logging.INFO, "closed the connection from %s: %s", host, reason)

    def on_paused(self, connection: Connection) -> None:
        """The connection waits for room."""
        self._paused[connection] = None
        if connection.is_producer and not self._memory.has_room:
            self._wait_for_memory()

    def on_resumed(self, connection: Connection) -> None:
        """The connection reads again."""
        self._paused.pop(connection, None)

    def on_muted(self, connection: Connection) -> None:
        """The client is over a quota."""
        self._paused.pop(connection, None)
        self._muted[connection] = None

    def on_unmuted(self, connection: Connection) -> None:
        """It has waited."""
        self._muted.pop(connection, None)

    def on_authenticated(self, connection: Connection, before: Session) -> None:
        """The client has logged in; for the first time, if the session `before` was not
        authenticated."""
        self._unknown.pop(connection, None)
        if not before.is_authenticated:
            is_refused = self._is_user_refused(connection.session)
            self._count_user(connection.session)
            if is_refused:
                connection.close()

    def on_closed(self, connection: Connection) -> None:
        """The connection is no more."""
        if connection in self._connections:
            self._connections.discard(connection)
            self._of_address.remove(of_address(connection.session))
            if has_user(connection.session):
                self._of_user.remove(of_user(connection.session))
        self._unknown.pop(connection, None)
        self._paused.pop(connection, None)
        self._muted.pop(connection, None)

    # ---- its own work ---------------------------------------------------------------------

    def _wait_for_memory(self) -> None:
        if not self._is_waiting_for_memory:
            self._is_waiting_for_memory = True
            self._memory.wait(self._on_memory)

    def _on_memory(self) -> None:
        self._is_waiting_for_memory = False
        if not self._is_resume_due:
            self._is_resume_due = True
            self._clock.call_soon(self._resume_paused)

    def _resume_paused(self) -> None:
        self._is_resume_due = False
        for connection in list(self._paused):
            connection.resume()

    def _on_accepted(self, sock: socket.socket, host: str, terms: ListenerTerms) -> None:
        open_count = len(self._connections) + self._handshakes.count + len(self._delayed)
        self.accepted_count += 1
        delay_ms = 0 if self._address_rates is None else self._address_rates.delay_ms(host)
        if self._is_refusing and open_count >= REFUSED_OPEN_MAX:
            sock.close()
        elif open_count >= self.limits.connection_count_max:
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
            self._add(sock, terms.plain_session(host))

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
        if self._of_address.count_max >= self.limits.connection_count_max:
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
            self._add(TlsStream(sock), session)

    def _add(self, stream: ClientStream, session: Session) -> None:
        only_key = ISOLATE_KEY if self._is_refusing else None
        connection = Connection(stream, self, session, only_key=only_key)
        self._connections.add(connection)
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
        if len(self._unknown) >= self.limits.login_count_max:
            slowest = next(iter(self._unknown))
            slowest.close(f"more than {self.limits.login_count_max} clients have not logged in")
        self._unknown[connection] = None

    def _sweep(self) -> None:
        """Close connections that are idle, do not log in, take no answers, or whose client is
        gone."""
        now_ms = self._clock.monotonic_ms()
        before_ms = now_ms - self.limits.connection_idle_ms
        login_ms = now_ms - self.limits.login_ms
        for connection in list(self._connections):
            if connection.last_active_ms <= before_ms and connection.is_idle:
                connection.close(f"idle for {self.limits.connection_idle_ms} ms")
            elif connection.opened_ms <= login_ms and not connection.session.is_authenticated:
                connection.close(f"no login within {self.limits.login_ms} ms")
        for connection in [*self._paused, *self._muted]:
            connection.close_if_left()

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
