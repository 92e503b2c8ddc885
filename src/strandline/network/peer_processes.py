"""Which process of each peer may speak: the latest one, unless two brokers have one id.

    the peer's process  --dies--> its next process --greets--> this broker
          |                                                      ^
          +-- replies, unread on a connection to it -------------+   must not be delivered now

Why:    the peer's next process may have forgotten what its earlier one replied, or voted otherwise
        meanwhile: a reply of the earlier one is outdated once the next one has been seen. A second
        broker that was given the id of a living one must not take its place.
How:    each process draws a number, and each greeting carries it, in both directions. When a peer
        greets with another number than its last, connections to its earlier process end, and those
        that have not greeted yet must greet with this number. So every connection that may be of
        the earlier process ends. One that was opened later cannot be of it, because processes of
        one broker do not overlap.
            A greeting that was read late may name the earlier process again. No connection to that
        one is left. Those to the present one end, and greet again when they are back.
            Processes of two brokers do overlap. So if a process greets while another one answers,
        it is not admitted, and the connections to the other one are made again. If the other one
        greets again, it is alive, and the newcomer stays out for as long as that one answers. If
        it does not, the newcomer is the next process, and is admitted when it comes again.
Owns:   the latest process of each peer, and those that stay out.
Source: docs/decisions/0072-replies.md."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from strandline.model.ids import BrokerId

ASK_S = 3.0
"""For so long a newcomer waits for the process that it may follow: as long as a connection may take
to be made."""

_log = logging.getLogger("strandline.network")


class Connection(Protocol):
    """A connection that this broker opened; see `outgoing.Outgoing`."""

    @property
    def address(self) -> tuple[str, int]:
        """Where the peer listens."""

    @property
    def is_answered(self) -> bool:
        """Whether it is up, and a process has replied on it."""

    def expect_process(self, process: int) -> None:
        """Only this process may reply; end the connection if it is another's."""

    def renew(self) -> None:
        """End the connection if it is up, and make another one."""


@dataclass(frozen=True, slots=True)
class _Newcomer:
    """A process that has greeted while another one answered. `until_s`: that one has until then to
    greet again."""

    process: int
    host: str
    until_s: float


class PeerProcesses:
    """See the module. `connections_to`: those that this broker has opened to a peer, and opens
    again by itself; none if it does not know the peer. `now_s`: a clock that never goes back."""

    def __init__(
        self,
        connections_to: Callable[[BrokerId], Sequence[Connection]],
        now_s: Callable[[], float],
    ) -> None:
        self._connections_to = connections_to
        self._now_s = now_s
        self._latest: dict[BrokerId, int] = {}
        self._newcomers: dict[BrokerId, _Newcomer] = {}
        # {peer: a process that stays out while the latest one answers}
        self._refused: dict[BrokerId, int] = {}

    def admit(self, peer: BrokerId, process: int, host: str) -> bool:
        """Whether a process that has greeted on a connection of its own, from `host`, may send."""
        connections = self._connections_to(peer)
        if self._latest.get(peer) == process:
            return True
        if peer in self._latest and any(one.is_answered for one in connections):
            if self._refused.get(peer) != process:
                for connection in connections:
                    connection.renew()
                self._newcomers[peer] = _Newcomer(process, host, self._now_s() + ASK_S)
            return False
        newcomer = self._newcomers.get(peer)
        if newcomer is not None and self._now_s() < newcomer.until_s:
            return False
        self._newcomers.pop(peer, None)
        self._refused.pop(peer, None)
        self._learn(peer, process)
        return True

    def on_replied(self, peer: BrokerId, process: int) -> None:
        """A process has greeted on a connection that this broker opened."""
        newcomer = self._newcomers.pop(peer, None)
        if newcomer is not None and newcomer.process != process:
            self._refused[peer] = newcomer.process
            _log.error(
                "two brokers have the id %d: the one at %s:%d answers, and the one on host %s "
                "cannot join: give it another id",
                peer,
                *self._connections_to(peer)[0].address,
                newcomer.host,
            )
        self._learn(peer, process)

    def on_lost(self, peer: BrokerId) -> None:
        """A connection to it was lost, or could not be made: a newcomer need not wait."""
        self._newcomers.pop(peer, None)

    def forget(self, peer: BrokerId) -> None:
        """No connection to it is open."""
        self._latest.pop(peer, None)
        self._newcomers.pop(peer, None)
        self._refused.pop(peer, None)

    def _learn(self, peer: BrokerId, process: int) -> None:
        connections = self._connections_to(peer)
        if not connections or self._latest.get(peer) == process:
            return
        self._latest[peer] = process
        for connection in connections:
            connection.expect_process(process)
