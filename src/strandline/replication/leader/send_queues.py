"""Limits the bytes that wait for the socket of each peer's bulk connection, over all groups.

Why:    a peer that takes nothing must not make the broker hold a window's worth of batches for
        every group that it leads. The log has them when the peer takes more.
How:    an append counts from the moment it is queued until the socket has it. Above the limit the
        broker queues nothing more for that peer. Groups with more to send wait in turn, and go on
        at the end of the pass once half of the limit is free.
Owns:   the counts and the turns; one per broker.
Source: Redpanda RFC 20220119, "Memory usage"; design section 5."""

from collections.abc import Callable

from strandline.base.clock import Clock
from strandline.model.ids import BrokerId, GroupId


class _Queue:
    __slots__ = ("bytes", "is_resuming", "waiting")

    def __init__(self) -> None:
        self.bytes = 0
        self.is_resuming = False
        # {group: how it goes on}, in turn.
        self.waiting: dict[GroupId, Callable[[], None]] = {}


class BulkQueues:
    """See the module."""

    def __init__(self, clock: Clock, *, limit_bytes: int) -> None:
        self._clock = clock
        self._limit_bytes = limit_bytes
        self._queues: dict[BrokerId, _Queue] = {}

    @property
    def queued_bytes(self) -> int:
        """Over all peers."""
        return sum(queue.bytes for queue in self._queues.values())

    def has_room(self, peer: BrokerId) -> bool:
        """Whether another append to `peer` may be queued."""
        queue = self._queues.get(peer)
        return queue is None or queue.bytes < self._limit_bytes

    def add(self, peer: BrokerId, count: int) -> None:
        """`count` bytes were queued."""
        queue = self._queues.get(peer)
        if queue is None:
            queue = self._queues[peer] = _Queue()
        assert count > 0, "an append has a head"
        queue.bytes += count

    def on_handed(self, peer: BrokerId, count: int) -> None:
        """`count` bytes were handed to the socket, or lost with it."""
        queue = self._queues[peer]
        queue.bytes -= count
        assert queue.bytes >= 0
        if queue.waiting and not queue.is_resuming and 2 * queue.bytes <= self._limit_bytes:
            queue.is_resuming = True
            self._clock.call_soon(lambda: self._resume(peer, queue))

    def wait(self, peer: BrokerId, group: GroupId, go_on: Callable[[], None]) -> None:
        """Call `go_on` when there is room again: once for each group, however often it asks, and
        only the latest, because an earlier leader state may be over."""
        self._queues[peer].waiting[group] = go_on

    def _resume(self, peer: BrokerId, queue: _Queue) -> None:
        queue.is_resuming = False
        for group in list(queue.waiting):
            if not self.has_room(peer):
                return
            queue.waiting.pop(group)()
