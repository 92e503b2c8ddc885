"""Memory for batches that were taken in and not yet handed on: the source of back-pressure.

Why:    a producer must not be faster than the replicas that make its records safe; when this budget
        is spent the broker stops reading producers' sockets, at every acks level.
How:    units are bytes. A batch takes its size when it is accepted and returns it when it has been
        handed to the sockets of enough followers. Taking never fails (a request in hand is
        finished), `has_room` says when to stop.
Owns:   the count; one per broker.
Source: Redpanda RFC 20220119, "Backpressure" and "Memory usage"; design section 5."""

from collections.abc import Callable


class MemoryBudget:
    """See the module."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self._waiting: list[Callable[[], None]] = []

    @property
    def has_room(self) -> bool:
        """Whether another request should be read."""
        return self.used_bytes < self.limit_bytes

    def take(self, count: int) -> None:
        """Account for `count` bytes."""
        self.used_bytes += count

    def give_back(self, count: int) -> None:
        """Return `count` bytes; wakes who waits once a quarter of the budget is free."""
        self.used_bytes -= count
        assert self.used_bytes >= 0
        if self._waiting and self.used_bytes <= self.limit_bytes * 3 // 4:
            waiting, self._waiting = self._waiting, []
            for callback in waiting:
                callback()

    def wait(self, callback: Callable[[], None]) -> None:
        """Call `callback` once when there is room again; it must check `has_room` itself."""
        if self.has_room:
            callback()
        else:
            self._waiting.append(callback)
