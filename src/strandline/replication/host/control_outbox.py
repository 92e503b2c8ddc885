"""Batches the control messages of one broker's groups until the end of a pass.

Why:    thousands of groups may send in one pass: a network message for each costs more than its
        content.
How:    one message for each peer carries all groups' messages; one for all peers the new leaders.
        Messages for unconnected peers are dropped: the senders retry.
Owns:   the unsent messages; one per broker.
Source: design section 5."""

from collections.abc import Collection

from strandline.base.clock import Clock
from strandline.base.network import Lane, Network
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.wire import ControlMessage, Kind, LeaderEntry, encode_control


class ControlOutbox:
    """See the module. `peers`: all other brokers, kept up to date by its owner."""

    def __init__(self, clock: Clock, network: Network, peers: Collection[BrokerId]) -> None:
        self._clock = clock
        self._network = network
        self._peers = peers
        self._outbox: dict[BrokerId, list[tuple[GroupId, ControlMessage]]] = {}
        self._announcements: list[LeaderEntry] = []
        self._is_scheduled = False
        self._is_stopped = False

    def send(self, peer: BrokerId, group: GroupId, message: ControlMessage) -> None:
        """Send to one peer at the end of this pass."""
        self._outbox.setdefault(peer, []).append((group, message))
        self._flush_later()

    def announce(self, entry: LeaderEntry) -> None:
        """Send to all peers at the end of this pass."""
        self._announcements.append(entry)
        self._flush_later()

    def send_now(self, peer: BrokerId, kind: Kind, body: object) -> None:
        """At once, to one peer; it may be lost."""
        self._network.send(peer, Lane.CONTROL, [encode_control(kind, body)])

    def stop(self) -> None:
        """Send nothing from now on."""
        self._is_stopped = True

    def _flush_later(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._clock.call_soon(self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        if self._is_stopped:
            return
        if self._announcements:
            message = encode_control(Kind.LEADERS, self._announcements)
            self._announcements = []
            for peer in self._peers:
                self._network.send(peer, Lane.CONTROL, [message])
        outbox, self._outbox = self._outbox, {}
        for peer, items in outbox.items():
            if self._network.is_connected(peer, Lane.CONTROL):  # Elections address all voters.
                self._network.send(peer, Lane.CONTROL, [encode_control(Kind.RAFT, items)])
