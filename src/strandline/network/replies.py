"""The replies that arrive on connections that this broker opened, and which processes wrote them.

    the peer's process  --dies--> its next process --greets--> this broker
          |                                                      ^
          +-- replies, unread on a connection to it -------------+   must not be delivered now

Why:    the peer's next process may have forgotten what its earlier one replied, or voted otherwise
        meanwhile: a reply of the earlier one is outdated once the next one has been seen.
How:    each process draws a number, and each greeting carries it, in both directions. When a peer
        greets with another number than its last, connections to its earlier process end, and those
        that have not greeted yet must greet with this number. So every connection that may be of
        the earlier process ends; one that was opened later cannot be of it, because processes of a
        broker do not overlap.
            A greeting that was read late may name the earlier process again. No connection to that
        one is left. Those to the present one end, and greet again when they are back.
Owns:   the latest process of each peer.
Source: docs/decisions/0072-replies.md."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from strandline.base.network import Lane
from strandline.model.ids import BrokerId
from strandline.network.frame_reader import FrameReader
from strandline.network.greeting import GREETING_BYTES_MAX, read_greeting
from strandline.network.streams import Stream

REPLY_BYTES_MAX = 4 * 1024 * 1024
"""A longer message is sent, and never a reply."""
BUFFER_BYTES = GREETING_BYTES_MAX

_log = logging.getLogger("strandline.network")


class Replies:
    """Reads the replies on one connection to `peer`.

    on_process: its process has greeted. on_ended: see `FrameReader`."""

    def __init__(
        self,
        stream: Stream,
        *,
        peer: BrokerId,
        lane: Lane,
        cluster: str,
        on_process: Callable[[BrokerId, int], None],
        on_message: Callable[[BrokerId, Lane, memoryview], None],
        on_ended: Callable[[OSError | None], None],
    ) -> None:
        # The only process that may reply here; None: whichever greets.
        self.process: int | None = None
        self._is_greeted = False
        self._peer = peer
        self._lane = lane
        self._cluster = cluster
        self._on_process = on_process
        self._on_message = on_message
        self._reader = FrameReader(
            stream, buffer_bytes=BUFFER_BYTES, on_frame=self._on_frame, on_ended=on_ended
        )

    def stop(self) -> None:
        """Read nothing more."""
        self._reader.stop()

    def expect(self, process: int) -> bool:
        """Accept only replies of this process; False if another one has greeted."""
        if self.process is None:
            self.process = process
        return self.process == process

    def _on_frame(self, frame: memoryview) -> None:
        if self._is_greeted:
            self._on_message(self._peer, self._lane, frame)
            return
        greeting = read_greeting(frame, self._cluster)
        if greeting.sender != self._peer or greeting.lane != self._lane:
            _log.warning(
                "broker %d is not where it should be: broker %d replies",
                self._peer,
                greeting.sender,
            )
            raise ValueError("another broker")
        if not self.expect(greeting.process):
            raise ValueError("an earlier process")
        self._is_greeted = True
        self._reader.frame_bytes_max = REPLY_BYTES_MAX
        self._on_process(self._peer, greeting.process)


class Connection(Protocol):
    """A connection that this broker opened; see `outgoing.Outgoing`."""

    def expect_process(self, process: int) -> None:
        """Only this process may reply; end the connection if it is another's."""


class PeerProcesses:
    """See the module. `connections_to`: those that this broker has opened to a peer, and opens
    again by itself; none if it does not know the peer."""

    def __init__(self, connections_to: Callable[[BrokerId], Sequence[Connection]]) -> None:
        self._connections_to = connections_to
        self._latest: dict[BrokerId, int] = {}

    def on_greeted(self, peer: BrokerId, process: int) -> None:
        """A process of a peer has greeted, on whichever connection."""
        connections = self._connections_to(peer)
        if not connections or self._latest.get(peer) == process:
            return
        self._latest[peer] = process
        for connection in connections:
            connection.expect_process(process)

    def forget(self, peer: BrokerId) -> None:
        """No connection to it is open."""
        self._latest.pop(peer, None)
