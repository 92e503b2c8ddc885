"""Batches the control messages of one broker's groups until the end of a pass.

Why:    thousands of groups may send in one pass: a network message for each costs more than its
        content.
How:    one message for each peer carries all groups' messages; one for all peers the new leaders.
        Messages for unconnected peers are dropped: the senders retry.
            Acknowledgements of appends are replies on the bulk lane: TCP's acknowledgement of the
        append rides on them. So they may overtake messages on the control lane, and the other way
        round. Without a connection for replies, they go on the control lane.
Owns:   the unsent messages; one per broker.
Source: design section 5; docs/decisions/0072-replies.md."""

from collections.abc import Collection

from strandline.base.clock import Clock
from strandline.base.network import BULK, CONTROL, Network
from strandline.model.ids import BrokerId, GroupId
from strandline.raft.messages import AppendResponse
from strandline.replication.wire import ControlMessage, Kind, LeaderEntry, encode_control

_RAFT = Kind.RAFT


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
        if not self._is_scheduled:
            self._flush_later()

    def announce(self, entry: LeaderEntry) -> None:
        """Send to all peers at the end of this pass."""
        self._announcements.append(entry)
        if not self._is_scheduled:
            self._flush_later()

    def send_now(self, peer: BrokerId, kind: Kind, body: object) -> None:
        """At once, to one peer; it may be lost."""
        self._network.send(peer, CONTROL, [encode_control(kind, body)])

    def stop(self) -> None:
        """Send nothing from now on."""
        self._is_stopped = True

    def _flush_later(self) -> None:
        self._is_scheduled = True
        self._clock.at_pass_end(self._flush)

    def _flush(self) -> None:
        self._is_scheduled = False
        if self._is_stopped:
            return
        if self._announcements:
            message = encode_control(Kind.LEADERS, self._announcements)
            self._announcements = []
            for peer in self._peers:
                self._network.send(peer, CONTROL, [message])
        outbox, self._outbox = self._outbox, {}
        for peer, items in outbox.items():
            rest = self._reply(peer, items)
            if rest and self._network.is_connected(peer, CONTROL):  # Elections: all voters.
                self._network.send(peer, CONTROL, [encode_control(_RAFT, rest)])

    def _reply(
        self, peer: BrokerId, items: list[tuple[GroupId, ControlMessage]]
    ) -> list[tuple[GroupId, ControlMessage]]:
        """Send the acknowledgements among `items` as a reply; what is left."""
        replies = [item for item in items if type(item[1]) is AppendResponse]
        if not replies:
            return items
        if not self._network.reply(peer, BULK, [encode_control(_RAFT, replies)]):
            return items
        if len(replies) == len(items):
            return []
        return [item for item in items if type(item[1]) is not AppendResponse]
