"""The connections that peers have opened to this broker: who they are, and the replies to them.

Why:    two clusters on one machine must never mix, and what a peer's earlier process sent must not
        be read after what its next one sends.
How:    a connection must first greet with this cluster's name. Of several connections from one peer
        for one lane, only the latest is read, and replies go there.
Owns:   the accepted connections.
Source: design section 5; docs/decisions/0072-replies.md."""

import logging
from collections.abc import Callable, Sequence

from strandline.base.disk import Buffer
from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.greeting import Greeting, OwnGreeting, read_greeting
from strandline.network.incoming import Incoming
from strandline.network.replies import REPLY_BYTES_MAX
from strandline.network.streams import Stream

_log = logging.getLogger("strandline.network")


class Accepted:
    """See the module.

    delay_ms_to: the injected delay, one way. on_message: gets each message. admits: whether a
    peer's process, which has greeted from this host, may send."""

    def __init__(
        self,
        *,
        own_greeting: OwnGreeting,
        delay_ms_to: Callable[[BrokerId], float],
        on_message: Callable[[BrokerId, Lane, memoryview], None],
        admits: Callable[[BrokerId, int, str], bool],
    ) -> None:
        self._own_greeting = own_greeting
        self._delay_ms_to = delay_ms_to
        self.on_message = on_message
        self._admits = admits
        # All connections, in the order in which they were made: {connection: None}.
        self._connections: dict[Incoming, None] = {}
        # Those that have greeted, the latest of each: {(peer, lane): connection}.
        self._latest: dict[tuple[BrokerId, Lane], Incoming] = {}

    def add(self, stream: Stream, host: str, *, peer: BrokerId | None) -> None:
        """Read a connection from `host`. `peer`: the broker that the certificate names; None
        without TLS."""
        incoming = Incoming(
            stream, host, peer=peer, on_frame=self._on_frame, on_closed=self._on_closed
        )
        self._connections[incoming] = None

    def reply(self, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> bool:
        """See `base.network.Network.reply`."""
        incoming = self._latest.get((peer, lane))
        if incoming is None or incoming.greeting is None or not incoming.greeting.reads_replies:
            return False
        if sum(map(len, parts)) > REPLY_BYTES_MAX:
            return False
        return incoming.reply(parts)

    def pause(self) -> None:
        """Stop reading and writing all, without telling the peers."""
        for incoming in self._connections:
            incoming.pause()
        self._latest.clear()

    def close(self) -> None:
        """Close all."""
        for incoming in list(self._connections):
            incoming.close()

    def _on_closed(self, incoming: Incoming) -> None:
        self._connections.pop(incoming, None)
        greeting = incoming.greeting
        if greeting is not None and self._latest.get((greeting.sender, incoming.lane)) is incoming:
            del self._latest[greeting.sender, incoming.lane]

    def _on_frame(self, incoming: Incoming, frame: memoryview) -> None:
        greeting = incoming.greeting
        if greeting is None:
            self._on_greeting(incoming, read_greeting(frame, self._own_greeting.cluster))
        else:
            self.on_message(greeting.sender, incoming.lane, frame)

    def _on_greeting(self, incoming: Incoming, greeting: Greeting) -> None:
        if incoming.peer not in (None, greeting.sender):
            _log.warning(
                "refused a connection that says it is broker %d, with the certificate of broker %d",
                greeting.sender,
                incoming.peer,
            )
            raise ValueError("another broker's certificate")
        earlier = self._earlier(incoming, greeting)
        if not self._admits(greeting.sender, greeting.process, incoming.host):
            raise ValueError("another process of this broker answers")
        for connection in earlier:
            connection.close()
        incoming.on_greeted(
            greeting,
            own_greeting=self._own_greeting.encoded(Lane(greeting.lane)),
            delay_ms=self._delay_ms_to(greeting.sender),
        )
        self._latest[greeting.sender, incoming.lane] = incoming

    def _earlier(self, incoming: Incoming, greeting: Greeting) -> list[Incoming]:
        """Earlier connections from this peer for this lane: unread messages on them are outdated,
        and may be from a process that has ended. Raises ValueError if a later connection exists."""
        earlier: list[Incoming] = []
        is_earlier = True
        for other in list(self._connections):
            if other is incoming:
                is_earlier = False
                continue
            known = other.greeting
            if known is None or (known.sender, known.lane) != (greeting.sender, greeting.lane):
                continue
            if not is_earlier:
                raise ValueError("there is a later connection")
            earlier.append(other)
        return earlier
