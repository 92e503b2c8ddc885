"""Memory for batches that the broker accepted and has not yet handed on: the back-pressure.

Why:    a producer must not be faster than the replicas that make its records safe. When this budget
        is spent, the broker stops reading producers' sockets, at every acks level.
How:    units are bytes. A batch takes its size when it is accepted, and returns it when the sockets
        of enough followers have it. Taking never fails, so that a request in hand is finished;
        `has_room` says when to stop.
            Batches that are kept beyond that, for followers that lag, use the room that is left.
        When it is needed, they go: from one group after the other, the oldest first.
Owns:   the counts; one per broker.
Source: Redpanda RFC 20220119, "Backpressure" and "Memory usage"; design section 5."""

from collections.abc import Callable
from typing import Protocol


class Keeper(Protocol):
    """A holder of batches that it can drop."""

    def drop_oldest(self) -> None:
        """Drop the oldest; `MemoryBudget.forget` follows for it."""


class MemoryBudget:
    """See the module. `used_bytes` are units; `kept_bytes` could be had back at once; `taken_bytes`
    counts all units that were ever taken."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.used_bytes = 0
        self.taken_bytes = 0
        self.kept_bytes = 0
        # {keeper: how many bytes it keeps}; the next one to let go comes first.
        self._kept: dict[Keeper, int] = {}
        self._waiting: list[Callable[[], None]] = []

    @property
    def has_room(self) -> bool:
        """Whether another request should be read."""
        return self.used_bytes < self.limit_bytes

    def take(self, count: int) -> None:
        """Account for `count` bytes."""
        assert count >= 0
        self.used_bytes += count
        self.taken_bytes += count
        if self._kept:
            self._reclaim()

    def give_back(self, count: int) -> None:
        """Return `count` bytes; calls the waiters once a quarter of the budget is free."""
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

    # ---- beyond the units ------------------------------------------------------------------------

    def keep(self, keeper: Keeper, count: int) -> None:
        """`count` bytes beyond the units stay in memory, for as long as there is room."""
        assert count >= 0
        self.kept_bytes += count
        self._kept[keeper] = self._kept.get(keeper, 0) + count
        self._reclaim()

    def forget(self, keeper: Keeper, count: int) -> None:
        """`count` of these bytes are gone from memory."""
        self.kept_bytes -= count
        assert self.kept_bytes >= 0
        left = self._kept[keeper] - count
        assert left >= 0
        if left:
            self._kept[keeper] = left
        else:
            del self._kept[keeper]

    def _reclaim(self) -> None:
        while self._kept and self.used_bytes + self.kept_bytes > self.limit_bytes:
            keeper = next(iter(self._kept))
            self._kept[keeper] = self._kept.pop(keeper)  # The others' turn comes first now.
            keeper.drop_oldest()
