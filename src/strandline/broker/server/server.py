"""Serves the Kafka clients of all listeners and keeps their connections within the broker's bounds.

Why:    one client, or a thousand, may use up neither the memory nor the time of the broker.
How:    Clients come from listening ports, as far as `admission` lets them in. Above a bound on
        bytes, connections pause until there is room. A sweep closes idle and stalled ones. It uses
        sockets and the running loop, so it exists in the real world only: the simulator hands
        frames to the router itself.
Owns:   the listening ports, the connections, the counts of bytes in hand.
Source: design section 5; reliability reference 4; python-speed reference 2."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Sequence
from typing import Protocol

from strandline.base.clock import Clock
from strandline.broker.operations.log_budget import LogBudget
from strandline.broker.operations.ticker import Ticker
from strandline.broker.quotas.address_rates import AddressRates
from strandline.broker.server.admission import Admission
from strandline.broker.server.connection import ClientStream, Connection, RequestRouter
from strandline.broker.server.connection_rate import ConnectionRate
from strandline.broker.server.inbox import Scratch
from strandline.broker.server.limits import ServerLimits
from strandline.broker.server.listening import ListenerTerms, ListeningPort, claim_port
from strandline.broker.server.muting import MutedConnections
from strandline.security.audit.audit_log import AuditLog
from strandline.security.session import Session

SWEEP_INTERVAL_MS = 1_000
RESUME_RATIO_PERCENT = 75
"""Paused connections are read again once at most this share of the bound is in use."""

_log = logging.getLogger("strandline.broker")


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
        self._clock = clock
        self.now_ms = clock.monotonic_ms
        self.at_pass_end = clock.at_pass_end
        self._memory = memory
        self._connections: set[Connection] = set()
        # In the order in which they paused, for want of room: {connection: None}.
        self._paused: dict[Connection, None] = {}
        self._muted = MutedConnections(clock)
        self._is_waiting_for_memory = False
        self._is_resume_due = False
        self._ports: list[ListeningPort] = []
        self._lines = LogBudget(_log, clock.monotonic_ms)
        self._admission = Admission(
            clock,
            limits,
            self._open,
            connection_count=lambda: len(self._connections),
            lines=self._lines,
            audit=audit,
            address_rates=address_rates,
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
        return self._admission.refused_connections

    @property
    def accepted_count(self) -> int:
        """Connections that have come, admitted or not."""
        return self._admission.accepted_count

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
            on_accepted=self._admission.on_accepted,
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
        self._admission.stop()
        for connection in list(self._connections):
            connection.close()

    def refuse(self, *, is_refusing: bool) -> None:
        """Close every connection and refuse new ones, but for the request that ends a drill; or
        accept them again."""
        self._admission.refuse(is_refusing=is_refusing)
        if is_refusing:
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

    def mute(self, connection: Connection, duration_ms: int) -> None:
        """The client is over a quota: no room makes the connection read."""
        self._paused.pop(connection, None)
        self._muted.mute(connection, duration_ms)

    def on_authenticated(self, connection: Connection, before: Session) -> None:
        """The client has logged in; for the first time, if the session `before` was not
        authenticated."""
        self._admission.on_authenticated(connection, before)

    def on_closed(self, connection: Connection) -> None:
        """The connection is no more."""
        if connection in self._connections:
            self._connections.discard(connection)
            self._admission.on_closed(connection)
        self._paused.pop(connection, None)
        self._muted.forget(connection)

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

    def _open(self, stream: ClientStream, session: Session, *, only_key: int | None) -> Connection:
        connection = Connection(stream, self, session, only_key=only_key)
        self._connections.add(connection)
        return connection

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
