"""Connections of clients over a quota: until when each of them is not read.

Why:    the answer tells a client to wait, and leaves at once (KIP-219). A client that sends on
        meanwhile must not be served.
How:    a timer for each muted connection; a longer time takes the place of a shorter one. Requests
        in work go on, and answers leave.
Owns:   the timers, and each connection's `is_muted`.
Source: KIP-219."""

from collections.abc import Iterator

from strandline.base.clock import Clock, Timer
from strandline.broker.server.connection import Connection


class MutedConnections:
    """See the module."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # {connection: (until when it is muted, what ends that)}
        self._muted: dict[Connection, tuple[int, Timer]] = {}

    def __len__(self) -> int:
        return len(self._muted)

    def __iter__(self) -> Iterator[Connection]:
        return iter(self._muted)

    def mute(self, connection: Connection, duration_ms: int) -> None:
        """Do not read it for so long, at least."""
        until_ms = self._clock.monotonic_ms() + duration_ms
        muted = self._muted.get(connection)
        if muted is not None:
            if muted[0] >= until_ms:
                return
            muted[1].cancel()
        connection.is_muted = True
        connection.last_active_ms = max(connection.last_active_ms, until_ms)  # It is not idle.
        timer = self._clock.call_later(duration_ms, lambda: self._unmute(connection))
        self._muted[connection] = until_ms, timer

    def forget(self, connection: Connection) -> None:
        """It is closed."""
        muted = self._muted.pop(connection, None)
        if muted is not None:
            muted[1].cancel()

    def _unmute(self, connection: Connection) -> None:
        del self._muted[connection]
        connection.unmute()
