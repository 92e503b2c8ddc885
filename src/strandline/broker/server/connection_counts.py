"""Counts connections by address, or by user, and refuses those beyond a limit.

Why:    one address, or one user, may not take all connections of a broker from the others.
How:    the log tells once a minute of each address, or user, that may have no more.
Owns:   the counts.
Source: Kafka's `max.connections.per.ip`; docs/decisions/0069-access.md."""

from collections import Counter
from collections.abc import Callable

TOLD_INTERVAL_MS = 60_000
"""How often the log tells that an address, or user, may have no more connections."""
TOLD_MAX = 1_000
"""The addresses, or users, that are remembered for it."""


class ConnectionCounts:
    """See the module. `limit_key`: the key of the limit in the broker's file; `tell` writes a line
    of the log at most as often as above; `now_ms`: monotonic time."""

    def __init__(
        self,
        *,
        count_max: int,
        limit_key: str,
        tell: Callable[[str], None],
        now_ms: Callable[[], int],
    ) -> None:
        self.count_max = count_max
        self.refused_count = 0
        self._limit_key = limit_key
        self._tell = tell
        self._now_ms = now_ms
        self._counts: Counter[str] = Counter()
        # {address or user: when the log told last that it may have no more}, the oldest first.
        self._told_ms: dict[str, int] = {}

    def add(self, name: str) -> None:
        """One more is open."""
        self._counts[name] += 1

    def remove(self, name: str) -> None:
        """One less is open."""
        self._counts[name] -= 1
        assert self._counts[name] >= 0, name
        if not self._counts[name]:
            del self._counts[name]

    def refuses(self, name: str, *, beside: int = 0) -> bool:
        """Whether one more connection would be too many; counted, and told in the log. `beside`:
        others that are not counted here."""
        if self._counts[name] + beside < self.count_max:
            return False
        self.refused_count += 1
        now_ms = self._now_ms()
        told_ms = self._told_ms.get(name)
        if told_ms is None or now_ms - told_ms >= TOLD_INTERVAL_MS:
            self._told_ms.pop(name, None)
            self._told_ms[name] = now_ms
            if len(self._told_ms) > TOLD_MAX:
                self._told_ms.pop(next(iter(self._told_ms)))
            self._tell(
                f"refuses connections {name}: {self.count_max} are open, the limit of [limits] "
                f"{self._limit_key}"
            )
        return True
