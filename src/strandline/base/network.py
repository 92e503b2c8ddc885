"""The network between brokers: messages to a peer, over lanes that never queue behind each other.

Why:    replication, elections and the controller only need "send this to that broker"; connections,
        reconnection, framing and injected delays are details of the transport.
How:    unreliable but ordered per (peer, lane) while a connection lasts: a message arrives whole,
        once, in order, or not at all. After a loss nothing later on that lane arrives before the
        transport has called `on_peer_lost` at the sender.
            A reply goes back on the connection of what it answers, so that TCP's acknowledgement
        rides on it. Replies keep their order among themselves; between replies and messages that
        are sent there is none. A reply is lost only with its connection. Then the transport calls
        `on_peer_lost` at the receiver of the reply, which opened that connection, and delivers no
        reply of that connection afterwards. The broker that replied is not informed. So only a
        message may be a reply whose receiver asks again after `on_peer_lost`, or by itself:
        acknowledgements of appends, heartbeats and their answers.
            No reply of a peer's earlier process is delivered after its next process has greeted.
Source: design sections 5 and 10; docs/decisions/0072-replies.md."""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Protocol

from strandline.base.disk import Buffer
from strandline.model.ids import BrokerId


class Lane(IntEnum):
    """CONTROL: heartbeats, votes, acknowledgements, calls. BULK: appends with record batches."""

    CONTROL = 0
    BULK = 1


CONTROL, BULK = Lane
"""The lanes for code that runs for each message: to look a member of an enumeration up takes longer
than a call."""


class PeerEvents(Protocol):
    """The events of a transport; called on the broker's thread."""

    def on_message(self, peer: BrokerId, lane: Lane, message: memoryview) -> None:
        """One whole message. The memory is the transport's: copy what outlives the call."""

    def on_peer_connected(self, peer: BrokerId, lane: Lane) -> None:
        """A fresh outgoing connection to `peer` is up: earlier messages may be lost."""

    def on_peer_lost(self, peer: BrokerId, lane: Lane) -> None:
        """The outgoing connection broke, or could not be made; what was in flight may be lost."""


class Network(Protocol):
    """The endpoint of one broker."""

    def bind(self, events: PeerEvents) -> None:
        """Set the receiver; once, before `start`."""

    def set_peer(self, peer: BrokerId, host: str, port: int) -> None:
        """Learn or change a peer's address; connects at once, and again by itself after a loss."""

    def remove_peer(self, peer: BrokerId) -> None:
        """Forget a peer and close its connections."""

    def send(
        self,
        peer: BrokerId,
        lane: Lane,
        parts: Sequence[Buffer],
        on_handed: Callable[[], None] | None = None,
    ) -> bool:
        """Queue one message made of `parts`; False when the peer is unknown or not connected
        (nothing is queued).

        The parts must stay unchanged until `on_handed` is called, which is when the last byte has
        been handed to the socket (or the connection was lost)."""

    def reply(self, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> bool:
        """Queue one message on the newest connection that `peer` has opened to this broker for
        `lane`; it arrives as any other (`PeerEvents.on_message`).

        False, and nothing is queued, if there is no such connection, if the peer's release does not
        read replies, or if the message is too long for a reply: then the caller sends it. The parts
        must never change."""

    def renew(self, peer: BrokerId) -> None:
        """Close the connections that this broker has opened to `peer`, and open new ones. For
        connections that no longer work although the peer's own messages arrive."""

    def backlog_bytes(self, peer: BrokerId, lane: Lane) -> int:
        """Bytes queued and not yet handed to the socket."""

    def is_connected(self, peer: BrokerId, lane: Lane) -> bool:
        """Whether a send would be queued."""
