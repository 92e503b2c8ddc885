"""What one broker's groups have to say on the control lane, gathered until the end of a pass.

Why:    thousands of groups may speak in one pass, an election for each: a message of its own for
        each would cost more than what it says.
How:    a message for each peer with all that groups have for it, and one for all peers with who
        leads what since. Nothing is kept for peers that are not connected: who asks will ask again.
Owns:   what has not been sent yet; one per broker.
Source: design section 5."""

from collections.abc import Collection

from strandline.base.clock import Clock
from strandline.base.network import Lane, Network
from strandline.model.ids import BrokerId, GroupId
from strandline.replication.wire import ControlMessage, Kind, LeaderEntry, encode_control


class ControlMail:
    """See the module. `peers`: all other brokers, whose owner changes them."""

    def __init__(self, clock: Clock, network: Network, peers: Collection[BrokerId]) -> None:
        self._clock = clock
        self._network = network
        self._peers = peers
        self._outbox: dict[BrokerId, list[tuple[GroupId, ControlMessage]]] = {}
        self._announcements: list[LeaderEntry] = []
        self._is_scheduled = False
        self._is_stopped = False

    def send(self, peer: BrokerId, group: GroupId, message: ControlMessage) -> None:
        """At the end of this pass, to one peer."""
        self._outbox.setdefault(peer, []).append((group, message))
        self._flush_later()

    def announce(self, entry: LeaderEntry) -> None:
        """At the end of this pass, to all peers."""
        self._announcements.append(entry)
        self._flush_later()

    def stop(self) -> None:
        """Send nothing any more."""
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
            if self._network.is_connected(peer, Lane.CONTROL):  # Elections ask the dead, too.
                self._network.send(peer, Lane.CONTROL, [encode_control(Kind.RAFT, items)])
