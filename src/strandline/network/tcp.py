"""A broker's endpoint on the real network.

Why:    implements `base.network.Network` over TCP; the simulator implements it over virtual time.
How:    listens for peers, and opens one connection for each (peer, lane). A message goes on the
        connection that this broker opened; a reply goes back on the one that the peer opened
        (`accepted.py`), and arrives as any message does (`replies.py`).
Owns:   every socket between brokers.
Source: design section 5; docs/decisions/0072-replies.md."""

import asyncio
import logging
import random
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from strandline.base.disk import Buffer
from strandline.base.errors import OperatorError
from strandline.base.network import Lane, PeerEvents
from strandline.model.ids import BrokerId
from strandline.network.accepted import Accepted
from strandline.network.greeting import PROCESS_MAX, OwnGreeting
from strandline.network.handshakes import Handshakes
from strandline.network.opening import UNACKNOWLEDGED_MAX_MS
from strandline.network.outgoing import CONNECT_TIMEOUT_MS, Outgoing
from strandline.network.peer_processes import Connection, PeerProcesses
from strandline.network.refusals import Refusals
from strandline.network.replies import Replies
from strandline.network.sockets import why_not_bound
from strandline.network.streams import Stream, TlsStream
from strandline.security.peers import PeerTls

LISTEN_BACKLOG = 256
ACCEPT_PAUSE_MS = 500
"""Out of descriptors or memory, peers wait so long in the kernel."""
HANDSHAKE_COUNT_MAX = 256
"""TLS handshakes in progress; beyond it the one that has waited longest for its peer ends."""

_log = logging.getLogger("strandline.network")


class TcpNetwork:
    """See the module. `one_way_delay_ms` maps a peer to an injected delay (development
    clusters); `tls`: None for none."""

    def __init__(
        self,
        *,
        self_id: BrokerId,
        cluster: str,
        host: str,
        port: int,
        one_way_delay_ms: Mapping[BrokerId, float] | Callable[[BrokerId], float] | None = None,
        tls: PeerTls | None = None,
    ) -> None:
        self._self_id = self_id
        self._cluster = cluster
        self._host = host
        self._port = port
        self._delays = one_way_delay_ms
        self._tls = tls
        self._handshakes: Handshakes[PeerTls] | None = None
        self._refusals = Refusals()
        self._events: PeerEvents | None = None
        self._listener: socket.socket | None = None
        self._is_silent = False
        self._outgoing: dict[tuple[BrokerId, Lane], Outgoing] = {}
        self._addresses: dict[BrokerId, tuple[str, int]] = {}
        # From the system's randomness: it must differ from those of all other processes.
        process = random.SystemRandom().randint(1, PROCESS_MAX)
        self._greeting = OwnGreeting(cluster, self_id, process)
        self._processes = PeerProcesses(self._connections_to, time.monotonic)
        self._accepted = Accepted(
            own_greeting=self._greeting,
            delay_ms_to=self._delay_to,
            on_message=_ignore,
            admits=self._processes.admit,
        )

    @property
    def port(self) -> int:
        """The port in use, once started."""
        return self._port

    @property
    def is_listening(self) -> bool:
        """Whether `start` has been called, and `stop` has not."""
        return self._listener is not None

    def bind(self, events: PeerEvents) -> None:
        """See `base.network.Network.bind`."""
        self._events = events
        self._accepted.on_message = events.on_message

    async def start(self) -> None:
        """Listen; raises OperatorError when the address is taken."""
        try:
            info = await asyncio.get_running_loop().getaddrinfo(
                self._host, self._port, type=socket.SOCK_STREAM
            )
            family, kind, protocol, _, address = info[0]
            listener = socket.socket(family, kind, protocol)
            try:
                listener.setblocking(False)
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(LISTEN_BACKLOG)
            except OSError:
                listener.close()
                raise
        except OSError as error:
            raise OperatorError(
                f"[rpc] port: cannot listen on {self._host}:{self._port}: "
                f"{why_not_bound(self._port, error)}"
            ) from error
        if self._tls is not None:
            self._handshakes = self._new_handshakes(self._tls)
        self._port = listener.getsockname()[1]
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener.fileno(), self._on_acceptable)

    def stop(self) -> None:
        """Close every socket."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._listener = None
        for outgoing in list(self._outgoing.values()):
            outgoing.close()
        self._outgoing.clear()
        self._addresses.clear()
        if self._handshakes is not None:
            self._handshakes.stop()
        self._accepted.close()

    def set_peer(self, peer: BrokerId, host: str, port: int) -> None:
        """See `base.network.Network.set_peer`."""
        if peer == self._self_id or self._addresses.get(peer) == (host, port):
            return
        self.remove_peer(peer)
        self._addresses[peer] = (host, port)
        if not self._is_silent:
            self._connect(peer)

    def _connect(self, peer: BrokerId) -> None:
        for lane in Lane:
            self._outgoing[peer, lane] = Outgoing(
                peer=peer,
                lane=lane,
                address=self._addresses[peer],
                greeting=self._greeting.encoded(lane),
                one_way_delay_ms=self._delay_to(peer),
                tls=self._tls,
                read_replies=partial(self._read_replies, peer, lane),
                on_connected=self._on_connected,
                on_lost=self._on_lost,
                on_silence=self._on_silence,
            )

    def remove_peer(self, peer: BrokerId) -> None:
        """See `base.network.Network.remove_peer`."""
        self._addresses.pop(peer, None)
        for lane in Lane:
            outgoing = self._outgoing.pop((peer, lane), None)
            if outgoing is not None:
                outgoing.close()
        self._processes.forget(peer)

    def silence(self, *, is_silent: bool) -> None:
        """Stop sending and reading, as if every link were cut; with False, start again.

        Peers get no notice: their connections stay open, and this broker does not answer. When the
        silence ends, messages in flight are lost on both sides."""
        if is_silent == self._is_silent or self._listener is None:
            return
        self._is_silent = is_silent
        if is_silent:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            if self._handshakes is not None:
                self._handshakes.stop()
            self._accepted.pause()
            ended, self._outgoing = self._outgoing, {}
            for outgoing in ended.values():
                outgoing.close()
            for peer, lane in ended:
                self._on_lost(peer, lane)
            return
        self._accepted.close()
        self._drop_waiting()
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._on_acceptable)
        for peer in self._addresses:
            self._connect(peer)

    def _drop_waiting(self) -> None:
        """Close the connections that wait to be accepted: their messages are outdated."""
        assert self._listener is not None
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            sock.close()

    def send(
        self,
        peer: BrokerId,
        lane: Lane,
        parts: Sequence[Buffer],
        on_handed: Callable[[], None] | None = None,
    ) -> bool:
        """See `base.network.Network.send`."""
        outgoing = self._outgoing.get((peer, lane))
        if outgoing is None or outgoing.writer is None:
            return False
        outgoing.writer.send(parts, on_handed)
        return True

    def reply(self, peer: BrokerId, lane: Lane, parts: Sequence[Buffer]) -> bool:
        """See `base.network.Network.reply`."""
        return self._accepted.reply(peer, lane, parts)

    def renew(self, peer: BrokerId) -> None:
        """See `base.network.Network.renew`."""
        for lane in Lane:
            outgoing = self._outgoing.get((peer, lane))
            if outgoing is not None:
                outgoing.renew()

    def backlog_bytes(self, peer: BrokerId, lane: Lane) -> int:
        """See `base.network.Network.backlog_bytes`."""
        outgoing = self._outgoing.get((peer, lane))
        return 0 if outgoing is None else outgoing.backlog_bytes

    def is_connected(self, peer: BrokerId, lane: Lane) -> bool:
        """See `base.network.Network.is_connected`."""
        outgoing = self._outgoing.get((peer, lane))
        return outgoing is not None and outgoing.writer is not None

    def _delay_to(self, peer: BrokerId) -> float:
        if self._delays is None:
            return 0.0
        return self._delays(peer) if callable(self._delays) else self._delays.get(peer, 0.0)

    def _connections_to(self, peer: BrokerId) -> Sequence[Connection]:
        found = (self._outgoing.get((peer, lane)) for lane in Lane)
        return [outgoing for outgoing in found if outgoing is not None]

    def _read_replies(
        self,
        peer: BrokerId,
        lane: Lane,
        stream: Stream,
        on_ended: Callable[[OSError | None], None],
    ) -> Replies:
        return Replies(
            stream,
            peer=peer,
            lane=lane,
            cluster=self._cluster,
            on_process=self._processes.on_replied,
            on_message=_ignore if self._events is None else self._events.on_message,
            on_ended=on_ended,
        )

    def _on_connected(self, peer: BrokerId, lane: Lane) -> None:
        if self._events is not None:
            self._events.on_peer_connected(peer, lane)

    def _on_lost(self, peer: BrokerId, lane: Lane) -> None:
        self._processes.on_lost(peer)
        if self._events is not None:
            self._events.on_peer_lost(peer, lane)

    def _on_silence(self, peer: BrokerId, lane: Lane) -> None:
        """Renew the bulk connection when the control lane's peer acknowledges nothing.

        A fault that swallows one lane mostly swallows both. Heartbeats show it on the control lane;
        the bulk lane may be idle and not show it. A silent bulk lane may only be full, so it says
        nothing about the control lane."""
        outgoing = self._outgoing.get((peer, Lane.BULK))
        if lane is Lane.CONTROL and outgoing is not None:
            outgoing.renew()

    def _on_acceptable(self) -> None:
        assert self._listener is not None
        while True:
            try:
                sock, address = self._listener.accept()
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                _log.warning("cannot accept a peer: %s", error)
                loop = asyncio.get_running_loop()
                loop.remove_reader(self._listener.fileno())
                loop.call_later(ACCEPT_PAUSE_MS / 1000, self._accept_again)
                return
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MAX_MS)
            if self._tls is not None and self._handshakes is not None:
                self._handshakes.begin(sock, address[0], self._tls)
            else:
                self._accepted.add(sock, address[0], peer=None)

    def _accept_again(self) -> None:
        if self._listener is not None and not self._is_silent:
            asyncio.get_running_loop().add_reader(self._listener.fileno(), self._on_acceptable)

    def _new_handshakes(self, tls: PeerTls) -> Handshakes[PeerTls]:
        return Handshakes(
            timeout_ms=CONNECT_TIMEOUT_MS,
            count_max=HANDSHAKE_COUNT_MAX,
            context_of=lambda _: tls.accepting,
            on_done=lambda sock, host, _: self._accepted.add(
                TlsStream(sock), host, peer=tls.broker_of(sock)
            ),
            on_refused=lambda host, _, reason: self._refusals.tell(host, reason),
            on_plain=None if tls.is_required else self._add_plain,
        )

    def _add_plain(self, sock: socket.socket, host: str, _: PeerTls) -> None:
        self._accepted.add(sock, host, peer=None)


def _ignore(_peer: BrokerId, _lane: Lane, _message: memoryview) -> None:
    """What messages are for before a receiver is bound."""
