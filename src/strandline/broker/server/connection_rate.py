"""Bounds how many connections a second a broker, or one of its listeners, accepts.

Why:    clients that connect again and again cost a handshake or a login each, which the clients
        that are connected pay for.
How:    a bucket of connections that fills at the rate, up to one second of it. While it is empty,
        clients wait in the kernel's queue of the listening socket.
Owns:   the bucket.
Source: KIP-612 (broker-wide and per-listener rates delay the accept)."""

from collections.abc import Callable

NO_RATE = 2**31 - 1
LOOK_AGAIN_MS = 500
"""After so long the rate is asked for again: it may have changed meanwhile."""


class ConnectionRate:
    """See the module. `rate_of`: the present rate, in connections per second; 0 for none at all.
    `key`: the configuration key of the rate."""

    def __init__(self, rate_of: Callable[[], int], key: str) -> None:
        self.key = key
        self._rate_of = rate_of
        self._left = 1.0
        self._seen_ms: int | None = None

    @property
    def per_s(self) -> int:
        """The present rate."""
        return self._rate_of()

    def wait_ms(self, now_ms: int) -> int:
        """How long the next connection has to wait; 0 for not at all. `now_ms`: monotonic time."""
        rate = self._rate_of()
        if rate >= NO_RATE:
            return 0
        if self._seen_ms is None:
            self._left = float(rate)
        else:
            self._left = min(rate, self._left + (now_ms - self._seen_ms) * rate / 1000)
        self._seen_ms = now_ms
        if self._left >= 1:
            return 0
        if not rate:
            return LOOK_AGAIN_MS
        return min(LOOK_AGAIN_MS, int((1 - self._left) * 1000 / rate) + 1)

    def take(self) -> None:
        """A connection was accepted."""
        if self._seen_ms is not None:
            self._left -= 1
